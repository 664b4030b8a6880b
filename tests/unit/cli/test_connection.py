"""The way to a coordinator: profile, environment, TLS, several endpoints, one deadline, errors with details."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf import any_pb2, descriptor_pool
from google.rpc import error_details_pb2, status_pb2

from hostler_coordinator.cli import api
from hostler_coordinator.cli.connection import PLAINTEXT_IDENTITY
from hostler_coordinator.cli.errors import EXIT_OF_CODE, Problem, flag_of
from hostler_coordinator.cli.profile import is_loopback, load_profile
from hostler_coordinator.refusals import BadField
from hostler_coordinator.rpc.identity import PLAINTEXT_CLAIM
from hostler_coordinator.rpc.statuses import status_of
from hostler_coordinator.transport_words import NOT_CONNECTED, in_words
from unit.cli import stand_in
from unit.cli.conftest import Cli


def test_every_method_exists_in_the_api_with_these_types() -> None:
    methods = [value for value in vars(api).values() if isinstance(value, api.Method)]
    pool = descriptor_pool.Default()
    for method in methods:
        service = pool.FindServiceByName(f"hostler.v1.{method.service}")
        found = service.methods_by_name[method.name]
        assert method.request().DESCRIPTOR is found.input_type
        assert method.read(b"").DESCRIPTOR is found.output_type
    assert len(methods) == 35


@pytest.fixture
def frozen() -> Iterator[str]:
    """An endpoint that takes connections and never says a word, like a stopped process."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_the_next_endpoint_answers_when_one_is_down_or_frozen(
    bare_cli: Cli, coordinator: stand_in.StandIn, frozen: str
) -> None:
    for dead in ("127.0.0.1:1", frozen):
        started = time.monotonic()
        done = bare_cli(
            "--endpoint", f"{dead},{coordinator.endpoint}", "--insecure-loopback", "--timeout", "4s", "status"
        )
        assert (done.status, time.monotonic() - started < 4.5) == (0, True)


def test_all_endpoints_together_keep_to_the_time_out(bare_cli: Cli, frozen: str) -> None:
    started = time.monotonic()
    done = bare_cli("--endpoint", f"{frozen},127.0.0.1:1", "--insecure-loopback", "--timeout", "2s", "status")
    assert done.status == 5
    assert 1.0 < time.monotonic() - started < 4.0
    assert done.err.splitlines() == [
        "hostler: unavailable: no coordinator answered within 2 s",
        f"  {frozen}: it did not answer in time",
        "  127.0.0.1:1: it refuses the connection: nothing listens there",
        "  next: check the endpoints and certificates of the profile, and that coordinators run",
    ]


def test_a_coordinator_that_says_unavailable_sends_the_call_elsewhere(
    bare_cli: Cli, coordinator: stand_in.StandIn, fleet: stand_in.Fleet
) -> None:
    details = (stand_in.info("no-leader", since="2026-12-01T00:00:00Z"),)
    away = stand_in.Refusal(grpc.StatusCode.UNAVAILABLE, "no leader is known", details)
    fleet.fails["AddHold"] = [away]
    run = ("--endpoint", coordinator.endpoint, "--insecure-loopback", "--timeout", "2s")
    assert bare_cli(*run, "hold", "add", "gpu-001", "--reason", "x").status == 0
    assert len(fleet.holds) == 1
    fleet.fails["GetStatus"] = [away] * 99
    done = bare_cli(*run, "status", "-o", "json")
    error = done.json()["error"]
    assert (done.status, error["reason"], error["since"]) == (5, "no-leader", "2026-12-01T00:00:00Z")


def test_plaintext_is_refused_without_the_flag_and_beyond_loopback(bare_cli: Cli) -> None:
    for arguments in (
        ("--endpoint", "127.0.0.1:1"),
        ("--endpoint", "10.0.0.1:1", "--insecure-loopback"),
        ("--endpoint", "localhost:1", "--insecure-loopback"),
    ):
        done = bare_cli(*arguments, "status")
        assert done.status == 4
        assert "plaintext" in done.err
    assert [is_loopback(text) for text in ("127.8.9.10:1", "128.0.0.1:1", "::1:1")] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("endpoints: [127.0.0.1]", "HOST:PORT"),
        ("endpoints: []", "no coordinator is named"),
        ("endpoints: [127.0.0.1:1]\nca: ca.pem", "missing: cert, key"),
        ("endpoints: [127.0.0.1:1]\nca: ca.pem\ncert: c.pem\nkey: k.pem", "ca file"),
        ("- a list", "must be a mapping"),
        ("a: [", "no YAML"),
        ("endpoints: {a: b}", "endpoints"),
    ],
)
def test_a_bad_profile_is_explained(bare_cli: Cli, tmp_path: Path, text: str, said: str) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(text)
    done = bare_cli("--profile", str(profile), "status")
    assert (done.status, said in done.err) == (2, True)


def test_a_missing_profile_that_was_asked_for_is_an_error(bare_cli: Cli, tmp_path: Path) -> None:
    assert "cannot be read" in bare_cli("--profile", str(tmp_path / "none"), "status").err


def test_flags_win_over_the_environment_and_that_over_the_file(
    bare_cli: Cli, coordinator: stand_in.StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / ".config" / "hostler"
    home.mkdir(parents=True)
    (home / "profile.yaml").write_text(f"endpoints: {coordinator.endpoint}\ninsecure_loopback: true\n")
    assert bare_cli("status").status == 0
    monkeypatch.setenv("HOSTLER_ENDPOINTS", "127.0.0.1:1")
    monkeypatch.setenv("HOSTLER_TIMEOUT", "1s")
    assert bare_cli("status").status == 5
    monkeypatch.setenv("HOSTLER_OUTPUT", "json")
    assert bare_cli("status", "--endpoint", coordinator.endpoint).json()["coordinator"] == "c1"
    monkeypatch.setenv("HOSTLER_OUTPUT", "xml")
    assert bare_cli("status").status == 2


def test_papers_are_found_beside_the_profile(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("endpoints: a:1\nca: ca.pem\ncert: /etc/c.pem\n")
    profile = load_profile(str(tmp_path / "p.yaml"), {"HOSTLER_KEY": "k.pem"}, print)
    assert (profile.ca, profile.cert, profile.key) == (str(tmp_path / "ca.pem"), "/etc/c.pem", "k.pem")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, 2),
        (grpc.StatusCode.NOT_FOUND, 3),
        (grpc.StatusCode.FAILED_PRECONDITION, 4),
        (grpc.StatusCode.ALREADY_EXISTS, 4),
        (grpc.StatusCode.ABORTED, 4),
        (grpc.StatusCode.PERMISSION_DENIED, 4),
        (grpc.StatusCode.UNAUTHENTICATED, 4),
        (grpc.StatusCode.DEADLINE_EXCEEDED, 5),
        (grpc.StatusCode.UNAVAILABLE, 5),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 5),
        (grpc.StatusCode.INTERNAL, 5),
    ],
)
def test_each_code_has_its_exit_status(cli: Cli, fleet: stand_in.Fleet, code: grpc.StatusCode, status: int) -> None:
    fleet.fails["GetStatus"] = [stand_in.Refusal(code, "said the coordinator")] * 99
    done = cli("--timeout", "1s", "status")
    assert (done.status, "said the coordinator" in done.err) == (status, True)


def test_a_refusal_names_thing_holder_reason_since_and_next_step(cli: Cli, fleet: stand_in.Fleet) -> None:
    failure = error_details_pb2.PreconditionFailure()
    failure.violations.add(type="held", subject="gpu-001", description="BIOS update until 22:00Z")
    details = (
        stand_in.info("held", holder="hold-7 of bob", since="2026-12-01T00:00:00Z", fix="hostler hold remove hold-7"),
        failure,
    )
    refusal = stand_in.Refusal(grpc.StatusCode.FAILED_PRECONDITION, "gpu-001 may not be drained", details)
    fleet.fails["DrainHosts"] = [refusal, refusal]
    lines = cli("host", "drain", "gpu-001").err.splitlines()
    assert lines == [
        "hostler: refused: gpu-001 may not be drained",
        "  gpu-001: BIOS update until 22:00Z",
        "  held by: hold-7 of bob",
        "  since: 2026-12-01T00:00:00Z",
        "  next: hostler hold remove hold-7",
    ]
    error = cli("host", "drain", "gpu-001", "-o", "json").json()["error"]
    assert (error["holder"], error["reason"], error["fix"]) == ("hold-7 of bob", "held", "hostler hold remove hold-7")
    assert error["fields"] == [{"field": "gpu-001", "message": "BIOS update until 22:00Z"}]


def test_a_field_path_is_shown_as_the_flag_it_came_from() -> None:
    assert flag_of("request.limits.max_down[1]") == "--max-down"
    assert flag_of("request.selector.labels[0].key") == "-l"
    assert flag_of("limits.windows[0]") == "--window"
    assert flag_of("what.ever") == "what.ever"


def test_codes_without_an_entry_mean_unavailable() -> None:
    assert Problem("UNKNOWN", "x").exit_status == 5
    assert set(EXIT_OF_CODE.values()) == {1, 2, 3, 4, 130}


def test_plaintext_names_the_caller_as_the_coordinator_reads_it(
    bare_cli: Cli, coordinator: stand_in.StandIn, fleet: stand_in.Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTLER_CALLER", "alice")
    assert bare_cli("--endpoint", coordinator.endpoint, "--insecure-loopback", "status").status == 0
    assert PLAINTEXT_IDENTITY == PLAINTEXT_CLAIM
    assert fleet.callers == ["operator/alice"]


def test_a_bad_field_is_shown_under_its_flag(cli: Cli, fleet: stand_in.Fleet) -> None:
    status = status_of(BadField("limits.max_down[0]", "fabric=0", "lets nothing start", "give at least 1"))
    bad = error_details_pb2.BadRequest()
    assert any(detail.Unpack(bad) for detail in status.details)
    fleet.fails["PlanCampaign"] = [stand_in.Refusal(grpc.StatusCode.INVALID_ARGUMENT, status.message, (bad,))]
    done = cli("campaign", "plan", "gpu-001", "--max-down", "fabric=0")
    assert done.status == 2
    assert done.err == "hostler: wrong usage: --max-down: 'fabric=0' lets nothing start; give at least 1\n"


# --- a leader is being elected, or the store is away -----------------------------------------------------------------


def _refusal(reason: str, text: str, **metadata: str) -> stand_in.Refusal:
    return stand_in.Refusal(grpc.StatusCode.UNAVAILABLE, text, (stand_in.info(reason, **metadata),))


def test_a_command_waits_for_the_next_leader_and_says_so(cli: Cli, fleet: stand_in.Fleet) -> None:
    until = time.monotonic() + 2.5
    fleet.fails["DrainHosts"] = _Until(until, _refusal("no-leader", "no coordinator leads", outcome="none"))
    done = cli("host", "drain", "gpu-001", "--reason", "x", "--yes")
    assert (done.status, time.monotonic() >= until) == (0, True)
    assert "a leader is being elected; trying for up to" in done.err


class _Until(list[stand_in.Refusal]):
    """Fails every call up to a moment."""

    def __init__(self, until: float, refusal: stand_in.Refusal) -> None:
        super().__init__()
        self._until = until
        self._refusal = refusal

    def __bool__(self) -> bool:
        return time.monotonic() < self._until

    def pop(self, _index: object = -1) -> stand_in.Refusal:
        return self._refusal


@pytest.mark.parametrize(("outcome", "calls", "said"), [("none", 2, ""), ("unknown", 1, "not sent twice unasked")])
def test_what_may_have_been_done_is_not_sent_again_unless_twice_is_once(
    cli: Cli, fleet: stand_in.Fleet, outcome: str, calls: int, said: str
) -> None:
    away = _refusal("leader-unreachable", "leader c2 cannot be reached", outcome=outcome)
    fleet.fails["RemoveHold"] = [away, stand_in.Refusal(grpc.StatusCode.NOT_FOUND, "there is no hold")]
    done = cli("hold", "remove", "hold-1", "--reason", "x")
    assert (done.status, said in done.err) == (3 if calls == 2 else 5, True)
    assert len(fleet.fails["RemoveHold"]) == 2 - calls


def test_every_method_that_changes_something_is_repeatable_or_known_not_to_be() -> None:
    once = {value.name for value in vars(api).values() if isinstance(value, api.Method) and not value.repeatable}
    assert once == {"RemoveHold", "RemoveHost", "ProbeBmc"}


def test_what_an_agents_bmc_said_is_never_asked_again(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.fails["ProbeBmc"] = [_refusal("bmc-auth", "wrong password"), _refusal("bmc-auth", "wrong password")]
    assert cli("host", "power", "status", "gpu-001").status == 5
    assert len(fleet.fails["ProbeBmc"]) == 1


def test_an_error_document_keeps_the_next_step_apart_from_what_happened(cli: Cli, fleet: stand_in.Fleet) -> None:
    text = "the store is unavailable since 2026-12-01T00:00:00Z: no etcd member answers; nothing was changed"
    away = _refusal("store-unavailable", text, outcome="none", fix="look at etcd", since="2026-12-01T00:00:00Z")
    fleet.fails["DrainHosts"] = [away] * 99
    error = cli("--timeout", "1s", "host", "drain", "gpu-001", "--reason", "x", "-o", "json").json()["error"]
    assert (error["message"], error["fix"], error["reason"]) == (text, "look at etcd", "store-unavailable")
    fixed = status_of(BadField("reason", "", "is missing", "say why"))
    fleet.fails["DrainHosts"] = [
        stand_in.Refusal(grpc.StatusCode.INVALID_ARGUMENT, fixed.message, (stand_in.info("bad-field", fix="say why"),))
    ]
    error = cli("host", "drain", "gpu-001", "-o", "json").json()["error"]
    assert (error["message"], error["fix"]) == ("reason: '' is missing", "say why")


def test_the_transports_own_words_are_for_programs_only(bare_cli: Cli) -> None:
    done = bare_cli("--endpoint", "127.0.0.1:1", "--insecure-loopback", "--timeout", "1s", "status", "-o", "json")
    error = done.json()["error"]
    assert error["message"] == "no answer from 127.0.0.1:1: it refuses the connection: nothing listens there"
    assert "ipv4:" in error["transport"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4:5: x: Connection refused", "listens"),
        ("failed to connect; SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED: self signed", "not signed by our CA"),
        ("Hostname Verification Check failed.", "for another name"),
        ("DNS resolution failed for x.example:1", "name is not known"),
        ("Socket closed", "closed the connection"),
        (f"{NOT_CONNECTED}; last error: UNAVAILABLE: ipv4:1.2.3.4:5: Socket closed", "not take our certificate"),
        ("UNAVAILABLE: ipv4:1.2.3.4:5: Handshake read failed (Endpoint closing)", "did not answer in time"),
        ("ping timeout", "stopped answering"),
        ("UNKNOWN: ipv4:1.2.3.4:5: strange", "the connection failed"),
        ("", "the connection failed"),
        ("said by whoever answered", "said by whoever answered"),
    ],
)
def test_failures_of_the_transport_are_put_in_words(raw: str, words: str) -> None:
    assert words in in_words(raw)
    assert "ipv4" not in in_words(raw)


def test_an_answer_from_old_records_is_shown_with_a_warning(cli: Cli, fleet: stand_in.Fleet) -> None:
    away = status_pb2.Status(code=14, message="the store is unavailable since T: no etcd member answers; read from T")
    detail = any_pb2.Any()
    detail.Pack(stand_in.info("store-unavailable", fix="look at etcd"))
    away.details.append(detail)
    fleet.notice = away.SerializeToString()
    done = cli("host", "list")
    assert done.status == 0
    assert "gpu-001" in done.out
    assert done.err.splitlines() == [
        "hostler: warning: the store is unavailable since T: no etcd member answers; read from T; next: look at etcd"
    ]
    assert cli("status").err == ""


def test_while_a_leader_is_elected_old_records_are_the_last_resort(cli: Cli, fleet: stand_in.Fleet) -> None:
    detail = any_pb2.Any()
    detail.Pack(stand_in.info("no-leader"))
    fleet.notice = status_pb2.Status(message="no coordinator leads", details=[detail]).SerializeToString()
    began = time.monotonic()
    done = cli("--timeout", "1s", "host", "show", "gpu-001", "-o", "json")
    assert (done.status, done.json()["name"], time.monotonic() - began > 0.8) == (0, "gpu-001", True)
    assert "warning: no coordinator leads" in done.err
    done = cli("--timeout", "1s", "host", "show", "gpu-999")
    assert done.status == 3


def test_a_store_that_stays_away_is_not_waited_for_to_the_end(cli: Cli, fleet: stand_in.Fleet) -> None:
    away = _refusal("store-unavailable", "the store is unavailable", outcome="none")
    fleet.fails["DrainHosts"] = [away] * 99
    began = time.monotonic()
    done = cli("--timeout", "30s", "host", "drain", "gpu-001", "--reason", "x")
    assert (done.status, 4.5 < time.monotonic() - began < 8.0) == (5, True)
    assert "the store is unavailable; trying for up to 3 s more" in done.err
