"""The agent sessions this coordinator holds, and what goes up to the leader from them; the wire lives in `rpc`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hostler_contract.pb.hostler.v1 import agent_pb2

if TYPE_CHECKING:
    from hostler_coordinator.board import Board

MESSAGE_BYTES_MAX = 64 * 1024
"""A larger message of an agent ends its session: agents cut their texts themselves."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Bounds of the sessions held by one coordinator."""

    coordinator: str
    endpoints: tuple[str, ...] = ()
    """All coordinators, host:port, as the agents are told."""
    heartbeat_interval_s: float = 5.0
    working_interval_s: float = 2.0
    """Interval of a host that holds an assignment."""
    reattach_span_s: float = 60.0
    outgoing_messages_max: int = 64
    """More than this waiting for one agent ends its session: it does not read."""
    sessions_max: int = 20_000


class Uplink(Protocol):
    """Where the words of the agents go: the board of this process, or the relay to the leader. None of these waits."""

    def attached(self, host: str, session: int, hello: agent_pb2.Hello, age_s: float) -> None:
        """A session opened `age_s` ago."""

    def message(self, host: str, session: int, request: agent_pb2.SessionRequest, age_s: float) -> None:
        """An agent said something the leader must see."""

    def heard(self, host: str, session: int, age_s: float) -> None:
        """An agent still speaks."""

    def detached(self, host: str, session: int, reason: str) -> None:
        """A session ended."""


class LocalUplink:
    """The uplink of the coordinator that leads: straight onto its board."""

    def __init__(self, board: Board, coordinator: str, clock: Callable[[], float]) -> None:
        self._board = board
        self._via = coordinator
        self._clock = clock

    def attached(self, host: str, session: int, hello: agent_pb2.Hello, age_s: float) -> None:
        """See Uplink."""
        self._board.attached(host, self._via, session, hello, age_s, self._clock())

    def message(self, host: str, session: int, request: agent_pb2.SessionRequest, age_s: float) -> None:
        """See Uplink."""
        self._board.message(host, self._via, session, request, age_s, self._clock())

    def heard(self, host: str, session: int, age_s: float) -> None:
        """See Uplink."""
        self._board.heard(host, self._via, session, age_s, self._clock())

    def detached(self, host: str, session: int, reason: str) -> None:
        """See Uplink."""
        self._board.detached(host, self._via, session, reason, self._clock())


@dataclass(slots=True, eq=False)
class Session:
    """One agent's open stream, and the newest of what it said that has not been answered.

    `outgoing` is emptied by the stream's one writer. `ended` is set when the stream must go; `why_ended` says why.
    """

    host: str
    number: int
    hello: agent_pb2.Hello
    opened_at: float
    heard_at: float
    outgoing: asyncio.Queue[agent_pb2.SessionResponse]
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    why_ended: str = ""
    working: bool = False
    """Holds an assignment whose outcome is not recorded."""
    pull_at: float | None = None
    report: agent_pb2.SessionRequest | None = None
    report_at: float = 0.0

    def end(self, why: str) -> None:
        """Ask the stream to close; the first reason stands."""
        if not self.ended.is_set():
            self.why_ended = why
            self.ended.set()


class Sessions:
    """At most one session per host: a newer one replaces the older at once, however half-open that may be.

    `clock` gives seconds and is used for ages only. `host_name` gives the name of a host id, or the empty string.
    """

    def __init__(
        self,
        settings: SessionSettings,
        clock: Callable[[], float],
        host_name: Callable[[str], str] = lambda _host: "",
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._host_name = host_name
        self._open: dict[str, Session] = {}
        self._uplink: Uplink | None = None
        self._draining = ""
        # Numbers must grow over restarts of this process too; microseconds since 1970 leave room for 2^63.
        self._last_number = int(clock() * 1e6)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def uplink(self) -> Uplink | None:
        """Where things go now; None while no leader is known: then only the newest of each session is kept."""
        return self._uplink

    @uplink.setter
    def uplink(self, uplink: Uplink | None) -> None:
        self._uplink = uplink
        if uplink is not None:
            self.push_snapshot(uplink)

    # -- what the stream does ----------------------------------------------------------------------------------------

    def full(self) -> str:
        """Why no further session is taken now; empty when one is."""
        if self._draining:
            return self._draining
        if len(self._open) >= self.settings.sessions_max:
            return f"this coordinator holds {len(self._open)} sessions, its limit; attach to another"
        return ""

    def open(self, host: str, hello: agent_pb2.Hello) -> Session:
        """Begin a session, ending an older one of the same host, and welcome the agent."""
        now = self._clock()
        self._last_number = max(self._last_number + 1, int(now * 1e6))
        queue: asyncio.Queue[agent_pb2.SessionResponse] = asyncio.Queue(self.settings.outgoing_messages_max)
        session = Session(host, self._last_number, hello, opened_at=now, heard_at=now, outgoing=queue)
        older = self._open.get(host)
        self._open[host] = session
        if older is not None:
            older.end("replaced by a newer session of this host")
        self._put(session, agent_pb2.SessionResponse(welcome=self._welcome(host)))
        if self._uplink is not None:
            self._uplink.attached(host, session.number, hello, 0.0)
        return session

    def received(self, session: Session, request: agent_pb2.SessionRequest) -> None:
        """Take one message in. What does not fit ends the session; a session that was replaced says nothing more."""
        if session.ended.is_set():
            return
        session.heard_at = now = self._clock()
        kind = request.WhichOneof("message")
        if kind == "heartbeat":
            self._heartbeat(session, request)
            return
        if kind is None:
            session.end("sent an empty message")
            return
        if request.ByteSize() > MESSAGE_BYTES_MAX:
            session.end(f"sent a message of {request.ByteSize()} bytes; at most {MESSAGE_BYTES_MAX} are taken")
            return
        if kind == "pull":
            session.pull_at = now
        elif kind == "hello":
            session.hello.CopyFrom(request.hello)
        else:
            session.report, session.report_at = request, now
        if self._uplink is not None:
            self._uplink.message(session.host, session.number, request, 0.0)

    def closed(self, session: Session, reason: str) -> None:
        """The stream is gone. Nothing is said upwards about a session that was replaced: the newer one speaks."""
        session.end(reason)
        if self._open.get(session.host) is not session:
            return
        del self._open[session.host]
        if self._uplink is not None:
            self._uplink.detached(session.host, session.number, reason)

    # -- what the leader does ----------------------------------------------------------------------------------------

    def deliver(self, host: str, number: int, response: agent_pb2.SessionResponse) -> bool:
        """Send an agent what the leader says; False when this very session is not held here any more."""
        session = self._open.get(host)
        if session is None or session.number != number or session.ended.is_set():
            return False
        if not self._put(session, response):
            return False
        _answered(session, response)
        return True

    def push_snapshot(self, uplink: Uplink) -> None:
        """Tell an uplink of every session: hello with the newest condition, then what has not been answered."""
        now = self._clock()
        for session in self._open.values():
            host, number = session.host, session.number
            uplink.attached(host, number, session.hello, now - session.opened_at)
            uplink.heard(host, number, now - session.heard_at)
            if session.report is not None:
                uplink.message(host, number, session.report, now - session.report_at)
            if session.pull_at is not None:
                pull = agent_pb2.SessionRequest(pull=agent_pb2.Pull())
                uplink.message(host, number, pull, now - session.pull_at)

    def reattach(self, span_s: float, reason: str) -> int:
        """Ask every agent to leave at a random moment within the span, and take no new ones; how many were asked."""
        self._draining = reason
        leave = agent_pb2.SessionResponse(reattach=agent_pb2.Reattach(span_s=span_s, reason=reason))
        return sum(self._put(session, leave) for session in tuple(self._open.values()))

    def end_all(self, reason: str) -> None:
        """Close every stream."""
        for session in self._open.values():
            session.end(reason)

    def held(self) -> Iterator[Session]:
        """Every session held now."""
        return iter(tuple(self._open.values()))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _heartbeat(self, session: Session, request: agent_pb2.SessionRequest) -> None:
        """Answer here and now: the leader only hears that the host lives, or of a new condition."""
        beat = request.heartbeat
        settings = self.settings
        interval_s = settings.working_interval_s if session.working else settings.heartbeat_interval_s
        reply = agent_pb2.HeartbeatReply(sequence=beat.sequence, next_interval_s=interval_s)
        self._put(session, agent_pb2.SessionResponse(heartbeat_reply=reply))
        uplink = self._uplink
        if not beat.HasField("condition"):
            if uplink is not None:
                uplink.heard(session.host, session.number, 0.0)
            return
        if request.ByteSize() > MESSAGE_BYTES_MAX:
            session.end(f"sent a condition of {request.ByteSize()} bytes; at most {MESSAGE_BYTES_MAX} are taken")
            return
        session.hello.condition.CopyFrom(beat.condition)
        if uplink is not None:
            uplink.message(session.host, session.number, request, 0.0)

    def _welcome(self, host: str) -> agent_pb2.Welcome:
        return agent_pb2.Welcome(
            coordinator=self.settings.coordinator,
            host_name=self._host_name(host),
            heartbeat_interval_s=self.settings.heartbeat_interval_s,
            reattach_span_s=self.settings.reattach_span_s,
            endpoints=self.settings.endpoints,
        )

    @staticmethod
    def _put(session: Session, response: agent_pb2.SessionResponse) -> bool:
        try:
            session.outgoing.put_nowait(response)
        except asyncio.QueueFull:
            session.end(f"does not read: {session.outgoing.maxsize} messages wait for it")
            return False
        return True


def _answered(session: Session, response: agent_pb2.SessionResponse) -> None:
    """Forget what this answers, so that a new leader is not told of it again."""
    match response.WhichOneof("message"):
        case "assignment":
            session.pull_at = None
            session.working = True
        case "go" | "stop":
            if session.report is not None and session.report.HasField("started"):
                session.report = None
        case "outcome_recorded":
            session.working = False
            if session.report is not None and session.report.HasField("outcome"):
                recorded, said = response.outcome_recorded, session.report.outcome
                if (recorded.task_id, recorded.token) == (said.task_id, said.token):
                    session.report = None
        case _:
            pass
