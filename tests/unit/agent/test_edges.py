"""Configuration, back-off, the wire's conversion, notifications and metrics: the agent's edges without a network."""

from __future__ import annotations

import asyncio
import random
import socket
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from hostler_agent.backoff import full_jitter_s
from hostler_agent.board import Board
from hostler_agent.client import classify, from_response, left_alone, to_request
from hostler_agent.config import ConfigError, Settings, load_settings
from hostler_agent.metrics import BoardCollector
from hostler_agent.notify import SystemdNotifier
from hostler_agent.ports import SessionLostError
from hostler_agent.session import (
    Assignment,
    Go,
    Heartbeat,
    HeartbeatReply,
    Hello,
    Outcome,
    OutcomeKind,
    Outgoing,
    Progress,
    Pull,
    Started,
    Step,
)
from hostler_agent.simulated.control import Line, LineBuffer, parse_line
from hostler_contract.hosts import Condition, Usability
from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from hostler_contract.work import Token
from unit.agent.situations import order, situation

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "systemd/sample/agent.yaml"
TOKEN = Token(epoch=1, counter=7)


@pytest.mark.parametrize(
    ("attempt", "least_s", "most_s"),
    [(0, 0.0, 0.5), (1, 0.0, 1.0), (4, 0.0, 8.0), (7, 0.0, 60.0), (8, 48.0, 60.0), (10_000, 48.0, 60.0)],
)
def test_the_span_doubles_up_to_the_cap_and_is_its_upper_fifth_there(
    attempt: int, least_s: float, most_s: float
) -> None:
    chance = random.Random(attempt)
    drawn = [full_jitter_s(attempt, chance, first_s=0.5, cap_s=60.0) for _ in range(500)]
    assert least_s <= min(drawn) < least_s + most_s * 0.1
    assert most_s * 0.9 < max(drawn) <= most_s


def test_a_span_that_is_the_cap_from_the_beginning_is_drawn_from_whole_first() -> None:
    drawn = [full_jitter_s(0, random.Random(seed), first_s=60.0, cap_s=60.0) for seed in range(500)]
    assert min(drawn) < 6.0
    assert 54.0 < max(drawn) <= 60.0
    assert full_jitter_s(1, random.Random(1), first_s=60.0, cap_s=60.0) >= 48.0


def test_the_sample_shows_every_setting_with_its_default() -> None:
    shown = yaml.safe_load(SAMPLE.read_text())
    plain = Settings(host_id=shown["host_id"], endpoints=tuple(shown["endpoints"]))
    assert load_settings(SAMPLE) == plain
    assert _keys(shown) == _keys(plain.model_dump())


def _keys(values: dict[str, object], prefix: str = "") -> set[str]:
    found: set[str] = set()
    for key, value in values.items():
        found |= _keys(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key}
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a mapping of settings"),
        ("host_id: x", "endpoints: is missing, and has no default"),
        ("host_id: ''\nendpoints: [a:1]", "host_id"),
        ("host_id: x\nendpoints: []", "endpoints"),
        ("host_id: x\nendpoints: [a:1]\ncolour: blue", "colour: there is no such setting"),
        ("host_id: x\nendpoints: [a:1]\nsession: {backof_cap_s: 3}", "session.backof_cap_s"),
        ("host_id: x\nendpoints: [a:1]\nsession: {backoff_cap_s: -3}", "session.backoff_cap_s"),
        ("host_id: x\nendpoints: [a:1]\ndrain: {kind: exec}", "drain.kind exec needs drain.command"),
        ("host_id: x\nendpoints: [a:1]\nmetrics: {address: 0.0.0.0}", "metrics.address"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "agent.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words.replace("[", r"\[")):
        load_settings(tmp_path / "agent.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_settings(tmp_path / "agent.yaml")


def test_a_variable_overrides_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_AGENT_SESSION__BACKOFF_CAP_S", "7")
    assert load_settings(SAMPLE).session.backoff_cap_s == 7.0


SAID: list[Outgoing] = [
    Hello(host_id="h", boot_id="b", newest_token=TOKEN, condition=Condition(usability=Usability.USABLE)),
    Heartbeat(sequence=3),
    Heartbeat(sequence=3, condition=Condition(usability=Usability.UNKNOWN, blocked_by="x")),
    Pull(),
    Started(task_id="t", token=TOKEN, boot_id="b"),
    Progress(task_id="t", token=TOKEN, step=Step.POST_BOOT),
    Outcome(task_id="t", token=TOKEN, kind=OutcomeKind.DONE, boot_id="b"),
]


@pytest.mark.parametrize("message", SAID, ids=lambda one: type(one).__name__)
def test_what_is_said_arrives_as_its_own_kind(message: Outgoing) -> None:
    request = pb.SessionRequest.FromString(to_request(message).SerializeToString())
    kind = request.WhichOneof("message")
    assert kind == type(message).__name__.lower()
    if isinstance(message, Heartbeat):
        assert request.heartbeat.HasField("condition") == (message.condition is not None)


def test_what_is_heard_is_converted() -> None:
    go = pb.Go(task_id="t", expires_in_s=10.0, boot_id="b")
    assert from_response(pb.SessionResponse(go=go)) == Go(task_id="t", expires_in_s=10.0, boot_id="b")
    reply = pb.HeartbeatReply(sequence=4, next_interval_s=2.0)
    assert from_response(pb.SessionResponse(heartbeat_reply=reply)) == HeartbeatReply(sequence=4, next_interval_s=2.0)
    assert from_response(pb.SessionResponse()) is None


def test_an_operation_of_a_newer_version_is_kept_to_be_refused() -> None:
    sent = pb.Assignment(task_id="t")
    sent.operation = 99  # type: ignore[assignment]
    found = from_response(pb.SessionResponse(assignment=sent))
    assert isinstance(found, Assignment)
    assert (found.task_id, found.operation) == ("t", None)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError(), "timeout"),
        (SessionLostError("UNAVAILABLE: Ssl handshake failed: CERTIFICATE_VERIFY_FAILED"), "certificate-mismatch"),
        (SessionLostError("PERMISSION_DENIED: no such host"), "not-enrolled"),
        (SessionLostError("UNAVAILABLE: Connection refused"), "unreachable"),
    ],
)
def test_fc_a28_why_no_coordinator_took_us_in(error: BaseException, code: str) -> None:
    assert classify(error)[0] == code


def test_systemd_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(5)
        notifier = SystemdNotifier(str(tmp_path / "notify"))
        notifier.ready()
        notifier.status("waiting\nfor GO")
        notifier.alive()
        assert [manager.recv(1000) for _ in range(3)] == [b"READY=1", b"STATUS=waiting for GO", b"WATCHDOG=1"]
        notifier.close()


def test_without_systemd_no_socket_is_opened_and_nothing_is_said() -> None:
    before = set(Path("/proc/self/fd").iterdir())
    notifier = SystemdNotifier("")
    notifier.alive()
    assert set(Path("/proc/self/fd").iterdir()) == before


async def test_a_read_is_left_alone_when_its_caller_is_cancelled() -> None:
    reading = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(left_alone(reading))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not reading.done()
    reading.set_exception(SessionLostError("the call has ended"))  # nobody looks at it, and nothing warns


def test_metrics_say_what_the_board_says() -> None:
    registry = CollectorRegistry()
    registry.register(BoardCollector(Board(situation())))
    text = generate_latest(registry).decode()
    assert 'hostler_agent_usability{usability="usable"} 1.0' in text
    assert "hostler_agent_attached 1.0" in text
    assert order().task_id not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h1 power on", Line("h1", "power", ("on",))),
        ("  h1   power reset ", Line("h1", "power", ("reset",))),
        ("h1 fault no-boot", Line("h1", "fault", ("no-boot",))),
        ("h1 fault clear", Line("h1", "fault", ("clear",))),
        ("h1 crash", Line("h1", "crash")),
        ("h1 reboot b c-1/h1 1.7", Line("h1", "reboot", ("b", "c-1/h1", "1.7"))),
        ("h1 soft-reboot b c-1/h1 1.7", Line("h1", "soft-reboot", ("b", "c-1/h1", "1.7"))),
        ("h1 power sideways", None),
        ("h1 fault gremlins", None),
        ("", None),
        ("power on", None),
    ],
)
def test_lines_for_the_machines(text: str, expected: Line | None) -> None:
    assert parse_line(text) == expected


def test_lines_are_put_together_and_endless_ones_dropped() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"h1 cr") == []
    assert buffer.feed(b"ash\nh2 crash\nh3") == ["h1 crash", "h2 crash"]
    assert buffer.feed(b"x" * 5000) == []
    assert buffer.feed(b"\nh4 crash\n") == ["", "h4 crash"]
