"""What the leader hears from every agent, as the planner reads it; plain memory: no sockets, no clock, no decisions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from hostler_contract.codec import from_message
from hostler_contract.hosts import Condition, HostFacts, Journal, Usability
from hostler_contract.pb.hostler.v1 import agent_pb2
from hostler_contract.work import Token
from hostler_coordinator.live import RefusedOrder, ReportKind, Sighting, TaskReport

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from hostler_contract.shapes import Value
    from hostler_contract.work import Token as TokenModel

TEXT_CHARACTERS_MAX = 2000
"""An agent's free text is cut here: what it says is shown to people and stored as evidence."""

_PROGRESS = {
    agent_pb2.STEP_ACCEPTED: ReportKind.ACCEPTED,
    agent_pb2.STEP_DRAINING: ReportKind.DRAINING,
    agent_pb2.STEP_DRAINED: ReportKind.DRAINED,
    agent_pb2.STEP_CHECKING: ReportKind.CHECKING,
    agent_pb2.STEP_ACTING: ReportKind.ACTING,
    agent_pb2.STEP_POST_BOOT: ReportKind.POST_BOOT,
}
_OUTCOMES = {
    agent_pb2.OUTCOME_KIND_REFUSED: ReportKind.REFUSED,
    agent_pb2.OUTCOME_KIND_FAILED: ReportKind.FAILED,
    agent_pb2.OUTCOME_KIND_STOPPED: ReportKind.STOPPED,
    agent_pb2.OUTCOME_KIND_DONE: ReportKind.DONE,
}

STALE_TOKEN = "stale-token"  # noqa: S105  (an agent's word for an order that a newer one has overtaken)
REFUSED_MOST = 200
"""Refused orders that are remembered; the oldest goes first."""

_BOOT_ID = re.compile(r"[0-9A-Za-z-]{4,64}")
"""What a boot id may look like; anything else is unknown, and unknown is never taken for changed."""
FACT_CHARACTERS_MAX = 256
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")

V = TypeVar("V", bound="Value")


def _nobody_listens(_host: str) -> None:
    """Stand in for the engine's hook until there is one."""


class Board:
    """Sightings by host id, fed by sessions here and by the relays of other coordinators.

    Events carry `via` (the coordinator that holds the session), the session's number there, and `age_s`, the seconds
    since it was heard; `now` is the leader's clock, epoch seconds. The session that opened last wins: events of any
    other are ignored. `changed(host)` is called for what the engine may have to act on: attach, pull, started, outcome,
    new condition; `noted(host)` for what can wait for its next look: a step of the work, a detach; neither is for a
    plain heartbeat. `refused` holds overtaken orders that were refused where they would have acted: by agents, by our
    own power worker, by other coordinators'. `unreadable` counts what a newer agent said that this version does not
    know.
    """

    def __init__(
        self, changed: Callable[[str], None] = _nobody_listens, noted: Callable[[str], None] = _nobody_listens
    ) -> None:
        self.sightings: dict[str, Sighting] = {}
        self.refused: dict[tuple[str, Token], RefusedOrder] = {}
        self.changed = changed
        self.noted = noted
        self.unreadable = 0

    def clear(self) -> None:
        """Forget everything: a new term of leadership begins with what it hears itself."""
        self.sightings.clear()
        self.refused.clear()

    def attached(self, host: str, via: str, session: int, hello: agent_pb2.Hello, age_s: float, now: float) -> None:
        """A session opened `age_s` ago, or is part of a snapshot: then what is already known of it is kept."""
        opened_at = now - max(0.0, age_s)
        seen = self.sightings.get(host)
        if seen is None:
            seen = self.sightings[host] = Sighting(host=host)
        elif _stale(seen, via, session, opened_at):
            return
        if (seen.via, seen.session) != (via, session):
            seen.report = None
            seen.wants_work = False
            seen.attached_at = opened_at
        seen.via, seen.session, seen.connected = via, session, True
        seen.heard_at = max(seen.heard_at, opened_at)
        self._take_hello(seen, hello)
        self.changed(host)

    def message(
        self, host: str, via: str, session: int, request: agent_pb2.SessionRequest, age_s: float, now: float
    ) -> None:
        """An agent said something; a hello in mid-session renews what the first one said."""
        seen = self._current(host, via, session)
        if seen is None:
            return
        at = now - max(0.0, age_s)
        seen.heard_at = max(seen.heard_at, at)
        match request.WhichOneof("message"):
            case "heartbeat":
                if not request.heartbeat.HasField("condition") or not self._take_condition(seen, request.heartbeat):
                    return
            case "pull":
                seen.wants_work = True
            case "started" | "outcome":
                if not self._take_report(seen, request, at):
                    return
            case "progress":
                if self._take_report(seen, request, at):
                    self.noted(host)
                return
            case "hello":
                self._take_hello(seen, request.hello)
            case _:
                self.unreadable += 1
                return
        self.changed(host)

    def heard(self, host: str, via: str, session: int, age_s: float, now: float) -> None:
        """The agent still speaks; wakes nobody."""
        seen = self.sightings.get(host)
        if seen is not None and seen.session == session and seen.via == via and seen.connected:
            at = now - age_s
            if seen.heard_at < at <= now:
                seen.heard_at = at

    def detached(self, host: str, via: str, session: int, reason: str, now: float) -> None:  # noqa: ARG002 - one shape
        """The session ended. When it was last heard stays, and so does its last report: evidence does not expire."""
        seen = self._current(host, via, session)
        if seen is not None:
            self._disconnect(seen)

    def forget_via(self, coordinator: str, now: float) -> None:  # noqa: ARG002 - events have one shape
        """The relay of a coordinator broke: its sessions are no longer connected; when they were heard stays."""
        for seen in self.sightings.values():
            if seen.via == coordinator and seen.connected:
                self._disconnect(seen)

    def order_refused(self, order: RefusedOrder) -> None:
        """An overtaken order was refused; the first word on each stands."""
        self.refused.setdefault((order.host, order.token), order)
        while len(self.refused) > REFUSED_MOST:
            del self.refused[next(iter(self.refused))]
        self.changed(order.host)

    def _disconnect(self, seen: Sighting) -> None:
        seen.connected = False
        seen.wants_work = False
        self.noted(seen.host)

    def _current(self, host: str, via: str, session: int) -> Sighting | None:
        seen = self.sightings.get(host)
        if seen is None or seen.session != session or seen.via != via or not seen.connected:
            return None
        return seen

    def _take_hello(self, seen: Sighting, hello: agent_pb2.Hello) -> None:
        seen.boot_id = hello.boot_id if _BOOT_ID.fullmatch(hello.boot_id) else ""
        token = self._read(Token, hello.newest_token)
        seen.newest_token = max(seen.newest_token, token or Token())
        seen.facts = _plain(self._read(HostFacts, hello.facts) or HostFacts())
        seen.journal = self._read(Journal, hello.journal) or Journal(damage="this version cannot read it")
        if token is None:
            seen.journal = seen.journal.model_copy(update={"damage": "the token in its hello is out of range"})
        seen.condition = self._condition(hello.condition)

    def _take_condition(self, seen: Sighting, heartbeat: agent_pb2.Heartbeat) -> bool:
        """True when it differs from what was known."""
        said = self._condition(heartbeat.condition)
        if said == seen.condition:
            return False
        seen.condition = said
        return True

    def _condition(self, message: agent_pb2.Condition) -> Condition:
        found = self._read(Condition, message)
        if found is None:
            return Condition(usability=Usability.UNKNOWN, usability_reason="the agent's words are newer than ours")
        if max(len(found.usability_reason), len(found.blocked_by)) > TEXT_CHARACTERS_MAX:
            cut = {"usability_reason": _cut(found.usability_reason), "blocked_by": _cut(found.blocked_by)}
            return found.model_copy(update=cut)
        return found

    def _take_report(self, seen: Sighting, request: agent_pb2.SessionRequest, at: float) -> bool:
        number = seen.report.number + 1 if seen.report is not None else 1
        try:
            report = _report(request, at, number)
        except ValueError:  # a token that no coordinator of ours gave
            report = None
        if report is None:
            self.unreadable += 1
            return False
        if report.kind is ReportKind.REFUSED and report.code == STALE_TOKEN:
            by = f"its agent (session on {seen.via})"
            task_id, why = (_CONTROLS.sub(" ", text)[:FACT_CHARACTERS_MAX] for text in (report.task_id, report.text))
            order = RefusedOrder(seen.host, task_id, report.token, "order", by, why, at)
            self.order_refused(order)
            if seen.report is not None and seen.report.token > report.token:
                return True  # a word on an order of before says nothing about the present one
        # A report's boot id proves nothing: an outcome is repeated after the next boot. Only a hello names the boot.
        seen.report = report
        return True

    def _read(self, model: type[V], message: Message) -> V | None:
        """Convert; None for what this version cannot read, so that one odd word spoils nothing else."""
        try:
            return from_message(model, message)
        except ValueError:
            self.unreadable += 1
            return None


def _stale(seen: Sighting, via: str, session: int, opened_at: float) -> bool:
    """Does this attach come too late? On one coordinator numbers decide, between two the moment of opening does."""
    if not seen.connected:
        return False
    return session < seen.session if seen.via == via else opened_at < seen.attached_at


def _report(request: agent_pb2.SessionRequest, at: float, number: int) -> TaskReport | None:
    if request.HasField("started"):
        said = request.started
        return TaskReport(said.task_id, _token(said.token), ReportKind.STARTED, at, number, boot_id=said.boot_id)
    if request.HasField("progress"):
        step = _PROGRESS.get(request.progress.step)
        if step is None:
            return None
        text = _cut(request.progress.detail)
        return TaskReport(request.progress.task_id, _token(request.progress.token), step, at, number, text=text)
    outcome = request.outcome
    kind = _OUTCOMES.get(outcome.kind)
    if kind is None:
        return None
    return TaskReport(
        task_id=outcome.task_id,
        token=_token(outcome.token),
        kind=kind,
        at=at,
        number=number,
        code=outcome.code[:TEXT_CHARACTERS_MAX],
        text=_cut(outcome.text),
        boot_id=outcome.boot_id,
        permanent=outcome.permanent,
    )


def _token(message: Message) -> TokenModel:
    return from_message(Token, message)


def _plain(facts: HostFacts) -> HostFacts:
    """Facts are shown to people and become flags in the store: no control characters, and of a bounded length."""
    texts = {name: value for name, value in facts if isinstance(value, str)}
    return facts.model_copy(update={n: _CONTROLS.sub(" ", text)[:FACT_CHARACTERS_MAX] for n, text in texts.items()})


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS_MAX else text[: TEXT_CHARACTERS_MAX - 7] + "… (cut)"
