"""What a coordinator does with its sessions: replies, replacement, bounds, and the snapshot for a new leader."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hostler_contract.pb.hostler.v1 import agent_pb2, work_pb2
from hostler_coordinator.board import Board
from hostler_coordinator.live import ReportKind
from hostler_coordinator.sessions import MESSAGE_BYTES_MAX, LocalUplink, Session, Sessions, SessionSettings

NOW = 1_800_000_000.0
TOKEN = work_pb2.Token(epoch=1, counter=7)
OTHER_TOKEN = work_pb2.Token(epoch=1, counter=8)


@dataclass
class HandClock:
    """A clock moved by hand."""

    at: float = NOW

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def sessions(clock: HandClock) -> Sessions:
    settings = SessionSettings("c1", endpoints=("127.0.0.1:1",), outgoing_messages_max=4, sessions_max=3)
    return Sessions(settings, clock, host_name=lambda host: f"name-of-{host}")


@pytest.fixture
def leading(sessions: Sessions, board: Board, clock: HandClock) -> Sessions:
    sessions.uplink = LocalUplink(board, "c1", clock)
    return sessions


def hello(host: str = "h1") -> agent_pb2.Hello:
    return agent_pb2.Hello(host_id=host, boot_id="boot-1")


def beat(sequence: int, condition: agent_pb2.Condition | None = None) -> agent_pb2.SessionRequest:
    return agent_pb2.SessionRequest(heartbeat=agent_pb2.Heartbeat(sequence=sequence, condition=condition))


def pull() -> agent_pb2.SessionRequest:
    return agent_pb2.SessionRequest(pull=agent_pb2.Pull())


def started() -> agent_pb2.SessionRequest:
    return agent_pb2.SessionRequest(started=agent_pb2.Started(task_id="c/h1", token=TOKEN, boot_id="boot-1"))


def done() -> agent_pb2.SessionRequest:
    outcome = agent_pb2.Outcome(task_id="c/h1", token=TOKEN, kind=agent_pb2.OUTCOME_KIND_DONE, boot_id="boot-2")
    return agent_pb2.SessionRequest(outcome=outcome)


def assignment() -> agent_pb2.SessionResponse:
    return agent_pb2.SessionResponse(assignment=agent_pb2.Assignment(task_id="c/h1", token=TOKEN))


def recorded(token: work_pb2.Token = TOKEN) -> agent_pb2.SessionResponse:
    return agent_pb2.SessionResponse(outcome_recorded=agent_pb2.OutcomeRecorded(task_id="c/h1", token=token))


def sent(session: Session) -> list[agent_pb2.SessionResponse]:
    return [session.outgoing.get_nowait() for _ in range(session.outgoing.qsize())]


def test_an_agent_is_welcomed_by_name(sessions: Sessions) -> None:
    session = sessions.open("h1", hello())

    [message] = sent(session)
    assert message.welcome.host_name == "name-of-h1"
    assert message.welcome.coordinator == "c1"
    assert list(message.welcome.endpoints) == ["127.0.0.1:1"]
    assert message.welcome.reattach_span_s == 60.0


def test_heartbeats_are_answered_here_with_or_without_a_leader(sessions: Sessions) -> None:
    session = sessions.open("h1", hello())
    sent(session)
    sessions.received(session, beat(5))

    [message] = sent(session)
    assert message.heartbeat_reply == agent_pb2.HeartbeatReply(sequence=5, next_interval_s=5.0)


def test_the_interval_is_short_while_the_host_holds_work(leading: Sessions) -> None:
    session = leading.open("h1", hello())
    assert leading.deliver("h1", session.number, assignment())
    sent(session)
    leading.received(session, beat(1))
    assert sent(session)[0].heartbeat_reply.next_interval_s == 2.0

    leading.deliver("h1", session.number, recorded())
    sent(session)
    leading.received(session, beat(2))
    assert sent(session)[0].heartbeat_reply.next_interval_s == 5.0


def test_the_board_hears_everything_that_matters(leading: Sessions, board: Board, clock: HandClock) -> None:
    session = leading.open("h1", hello())
    clock.at += 5
    leading.received(session, beat(1))
    assert board.sightings["h1"].heard_at == NOW + 5

    leading.received(session, pull())
    leading.received(session, started())
    report = board.sightings["h1"].report
    assert board.sightings["h1"].wants_work
    assert report is not None
    assert report.kind is ReportKind.STARTED

    leading.closed(session, "the agent left")
    assert not board.sightings["h1"].connected
    assert len(leading) == 0


def test_a_newer_session_replaces_a_half_open_one_at_once(leading: Sessions, board: Board) -> None:
    older = leading.open("h1", hello())
    newer = leading.open("h1", hello())

    assert older.ended.is_set()
    assert "replaced" in older.why_ended
    assert newer.number > older.number
    assert board.sightings["h1"].session == newer.number
    assert not leading.deliver("h1", older.number, assignment())
    assert leading.deliver("h1", newer.number, assignment())

    leading.received(older, pull())
    leading.closed(older, "keep-alive")
    assert board.sightings["h1"].connected
    assert not board.sightings["h1"].wants_work
    assert len(leading) == 1


def test_an_agent_that_does_not_read_loses_its_session_only(leading: Sessions) -> None:
    session = leading.open("h1", hello())
    other = leading.open("h2", hello("h2"))
    results = [leading.deliver("h1", session.number, assignment()) for _ in range(5)]

    assert results == [True, True, True, False, False]
    assert "does not read" in session.why_ended
    assert not other.ended.is_set()


@pytest.mark.parametrize(
    "request_",
    [
        agent_pb2.SessionRequest(progress=agent_pb2.Progress(detail="x" * (MESSAGE_BYTES_MAX + 1))),
        beat(1, agent_pb2.Condition(blocked_by="x" * (MESSAGE_BYTES_MAX + 1))),
    ],
    ids=["report", "condition"],
)
def test_a_message_that_is_too_large_ends_the_session(leading: Sessions, request_: agent_pb2.SessionRequest) -> None:
    session = leading.open("h1", hello())
    leading.received(session, request_)

    assert f"at most {MESSAGE_BYTES_MAX}" in session.why_ended
    assert session.report is None


def test_an_empty_message_ends_the_session(leading: Sessions) -> None:
    session = leading.open("h1", hello())
    leading.received(session, agent_pb2.SessionRequest())
    assert session.ended.is_set()


def test_sessions_are_bounded(sessions: Sessions) -> None:
    for number in range(3):
        assert not sessions.full()
        sessions.open(f"h{number}", hello())
    assert "its limit" in sessions.full()


def test_a_new_leader_is_told_what_has_not_been_answered(sessions: Sessions, board: Board, clock: HandClock) -> None:
    session = sessions.open("h1", hello())
    sessions.received(session, beat(1, agent_pb2.Condition(blocked_by="job 7")))
    clock.at += 10
    sessions.received(session, pull())
    sessions.received(session, started())
    clock.at += 5
    sessions.uplink = LocalUplink(board, "c1", clock)

    seen = board.sightings["h1"]
    assert (seen.attached_at, seen.heard_at) == (NOW, NOW + 10)
    assert seen.condition.blocked_by == "job 7"
    assert seen.wants_work
    assert seen.report is not None
    assert (seen.report.kind, seen.report.at) == (ReportKind.STARTED, NOW + 10)


@pytest.mark.parametrize(
    ("said", "answer", "left"),
    [
        (pull(), assignment(), False),
        (started(), agent_pb2.SessionResponse(go=agent_pb2.Go(task_id="c/h1", token=TOKEN)), False),
        (started(), agent_pb2.SessionResponse(stop=agent_pb2.Stop(task_id="c/h1", token=TOKEN)), False),
        (done(), recorded(), False),
        (done(), recorded(OTHER_TOKEN), True),
        (done(), agent_pb2.SessionResponse(go=agent_pb2.Go(task_id="c/h1", token=TOKEN)), True),
    ],
    ids=["pull", "started-go", "started-stop", "outcome", "outcome-of-another-token", "outcome-outlives-a-go"],
)
def test_what_was_answered_is_not_told_again(
    sessions: Sessions,
    board: Board,
    clock: HandClock,
    said: agent_pb2.SessionRequest,
    answer: agent_pb2.SessionResponse,
    left: bool,
) -> None:
    session = sessions.open("h1", hello())
    sessions.received(session, said)
    sessions.deliver("h1", session.number, answer)
    sessions.uplink = LocalUplink(board, "c1", clock)

    seen = board.sightings["h1"]
    assert (seen.report is not None or seen.wants_work) is left


def test_a_coordinator_that_leaves_sends_its_agents_away_and_takes_no_more(sessions: Sessions) -> None:
    session = sessions.open("h1", hello())
    sent(session)
    assert sessions.reattach(30.0, "upgrade") == 1

    [message] = sent(session)
    assert (message.reattach.span_s, message.reattach.reason) == (30.0, "upgrade")
    assert sessions.full() == "upgrade"
    sessions.end_all("stopped")
    assert session.why_ended == "stopped"


def test_numbers_grow_over_a_restart_of_the_process(clock: HandClock) -> None:
    first = Sessions(SessionSettings("c1"), clock).open("h1", hello())
    clock.at += 1
    assert Sessions(SessionSettings("c1"), clock).open("h1", hello()).number > first.number
