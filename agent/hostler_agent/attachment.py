"""Keeps one stream to one coordinator: attach, heartbeats, orders, re-attach; what orders mean is not known here."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from dataclasses import dataclass

from hostler_agent.backoff import full_jitter_s
from hostler_agent.board import Board, Received, wait_event
from hostler_agent.decide import condition_of, hello_of
from hostler_agent.logs import Logger
from hostler_agent.ports import AttachError, Clock, Coordinators, Host, Session, SessionLostError
from hostler_agent.session import Heartbeat, HeartbeatReply, Hello, Outgoing, Reattach, Welcome
from hostler_contract.hosts import Condition, HostFacts

UNANSWERED_MAX = 64
WORKING_SPAN_S = 1.0
WORKING_CAP_S = 5.0
"""A host at work comes back this soon, whatever span and cap say: budgets keep such hosts few, and one that stays away
may be rescued through its BMC though it lives."""
INTERVAL_MIN_S = 0.1
INTERVAL_MAX_S = 300.0


@dataclass(frozen=True, slots=True)
class AttachmentSettings:
    """Bounds of the stream, seconds; the coordinator's welcome overrides the interval and the span."""

    heartbeat_interval_s: float = 10.0
    reply_timeout_s: float = 30.0
    reattach_span_s: float = 5.0
    backoff_first_s: float = 0.5
    backoff_cap_s: float = 60.0
    settled_s: float = 10.0


class Attachment:
    """The agent's line to the control plane. `say` drops what cannot be sent: everything of weight is repeated."""

    def __init__(
        self,
        board: Board,
        coordinators: Coordinators,
        host: Host,
        clock: Clock,
        chance: random.Random,
        log: Logger,
        *,
        host_id: str,
        settings: AttachmentSettings,
    ) -> None:
        self._board = board
        self._coordinators = coordinators
        self._host = host
        self._clock = clock
        self._chance = chance
        self._log = log
        self._host_id = host_id
        self._settings = settings
        self._session: Session | None = None
        self.stream = 0
        self._facts = HostFacts()
        self._sequence = 0
        self._unanswered: OrderedDict[int, float] = OrderedDict()
        self._sent_after = 0.0
        self._said_condition: Condition | None = None
        self._interval_s = settings.heartbeat_interval_s

    async def keep(self) -> None:
        """Attach for ever. Ends only when cancelled."""
        failures = 0
        while True:
            attached_at = self._clock.now()
            try:
                self._facts = await self._host.facts()
                session = await self._coordinators.attach(self._hello)
            except AttachError as error:
                pause_s = self._back_off_s(failures)
                failures += 1
                self._log.warning("not attached", code=error.code, error=error.text, again_in_s=round(pause_s, 1))
                self._board.why = f"no coordinator ({error.code}): {error.text}"
            else:
                pause_s = await self._serve(session)
                if self._clock.now() - attached_at >= self._settings.settled_s:
                    failures = 0
                else:
                    pause_s = max(pause_s, self._back_off_s(failures))
                    failures += 1
            await self._clock.sleep(pause_s)

    async def say(self, message: Outgoing) -> None:
        """Send on the stream that stands; without one, or when it breaks, the message is dropped."""
        if self._session is None:
            return
        try:
            await self._session.send(message)
        except SessionLostError:
            return  # the reader sees it too, and re-attaches

    async def beat(self) -> None:
        """Send a heartbeat now, with the condition if it changed. Its answer dates everything that comes after."""
        now = self._clock.now()
        condition = condition_of(self._board.situation, now)
        self._sequence += 1
        self._unanswered[self._sequence] = now
        while len(self._unanswered) > UNANSWERED_MAX:
            self._unanswered.popitem(last=False)
        changed = condition if condition != self._said_condition else None
        self._said_condition = condition
        await self.say(Heartbeat(sequence=self._sequence, condition=changed))

    def _hello(self) -> Hello:
        now = self._clock.now()
        hello = hello_of(self._board.situation, now, self._host_id, self._facts)
        self._sent_after = now
        self._said_condition = hello.condition
        self._unanswered.clear()
        return hello

    def _back_off_s(self, failures: int) -> float:
        settings = self._settings
        cap_s = min(settings.backoff_cap_s, WORKING_CAP_S) if self._at_work else settings.backoff_cap_s
        return full_jitter_s(failures, self._chance, first_s=settings.backoff_first_s, cap_s=cap_s)

    @property
    def _at_work(self) -> bool:
        return self._board.situation.entry.order is not None

    async def _serve(self, session: Session) -> float:
        """Live on one stream until it ends; return how long to stay away."""
        self._session = session
        self.stream += 1
        self._welcomed(session.welcome)
        self._board.update(attached=True, pulled=False, started_at=None, post_boot_said=False, outcome_said_at=None)
        tasks = [asyncio.create_task(self._read(session)), asyncio.create_task(self._heartbeats())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            span_s, why = self._how_it_ended(done)
        finally:
            self._session = None
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await session.close()
            self._board.update(attached=False, pulled=False, go=None)
        if self._at_work:
            span_s = min(span_s, WORKING_SPAN_S)
        self._log.info("stream ended", reason=why, within_s=span_s)
        return self._chance.uniform(0.0, span_s)

    def _welcomed(self, welcome: Welcome) -> None:
        self._interval_s = _bounded(welcome.heartbeat_interval_s or self._settings.heartbeat_interval_s)
        self._log.info("attached", coordinator=welcome.coordinator, heartbeat_interval_s=self._interval_s)

    def _how_it_ended(self, done: set[asyncio.Task[Reattach]]) -> tuple[float, str]:
        """The span to re-attach in, and the reason. Anything but a lost stream or a Reattach is a bug and raises."""
        span_s = self._settings.reattach_span_s
        if self._session is not None and self._session.welcome.reattach_span_s > 0:
            span_s = self._session.welcome.reattach_span_s
        for task in done:
            try:
                order = task.result()
            except SessionLostError as error:
                return span_s, str(error)
            return order.span_s or span_s, f"asked to leave: {order.reason}"
        return span_s, "cancelled"

    async def _read(self, session: Session) -> Reattach:
        while True:
            message = await session.receive()
            match message:
                case HeartbeatReply():
                    self._answered(message)
                case Reattach():
                    return message
                case Welcome():
                    self._welcomed(message)
                case _:
                    self._board.deliver(Received(message, self.stream, self._sent_after))

    def _answered(self, reply: HeartbeatReply) -> None:
        """The stream keeps its order: what comes after this answer was sent after that heartbeat."""
        sent_at = self._unanswered.get(reply.sequence)
        if sent_at is not None:
            self._sent_after = max(self._sent_after, sent_at)
            while self._unanswered and next(iter(self._unanswered)) <= reply.sequence:
                self._unanswered.popitem(last=False)
        if reply.next_interval_s > 0 and _bounded(reply.next_interval_s) != self._interval_s:
            self._interval_s = _bounded(reply.next_interval_s)
            self._board.poke()  # a shorter interval counts from now, not after one more long one

    async def _heartbeats(self) -> Reattach:
        """Beat at the interval, and at once when the condition changed; give up when answers stay away."""
        changed = self._board.watch()
        try:
            due_at = self._clock.now() + self._jittered_s()
            while True:
                await wait_event(changed, due_at - self._clock.now())
                now = self._clock.now()
                self._check_answers(now)
                if now >= due_at or condition_of(self._board.situation, now) != self._said_condition:
                    await self.beat()
                    due_at = now + self._jittered_s()
                due_at = min(due_at, now + self._interval_s * 1.1)
        finally:
            self._board.unwatch(changed)

    def _jittered_s(self) -> float:
        return self._interval_s * self._chance.uniform(0.9, 1.1)

    def _check_answers(self, now: float) -> None:
        limit_s = max(self._settings.reply_timeout_s, 3 * self._interval_s)
        if self._unanswered and now - next(iter(self._unanswered.values())) > limit_s:
            msg = f"no heartbeat was answered for {limit_s:g} s"
            raise SessionLostError(msg)


def _bounded(interval_s: float) -> float:
    return min(INTERVAL_MAX_S, max(INTERVAL_MIN_S, interval_s))
