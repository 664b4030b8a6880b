"""The way to a coordinator: profile, environment, TLS, several endpoints, one deadline, errors with details."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pool
from google.rpc import error_details_pb2

from hostler_coordinator.cli import api
from hostler_coordinator.cli.connection import PLAINTEXT_IDENTITY
from hostler_coordinator.cli.errors import EXIT_OF_CODE, Problem, flag_of
from hostler_coordinator.cli.profile import is_loopback, load_profile
from hostler_coordinator.refusals import BadField
from hostler_coordinator.rpc.identity import PLAINTEXT_CLAIM
from hostler_coordinator.rpc.statuses import status_of
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
    assert "no coordinator answers at" in done.err


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
    assert "--max-down: lets nothing start; give at least 1" in done.err
