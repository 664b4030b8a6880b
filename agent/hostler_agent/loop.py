"""Observe, decide, perform, report: runs the agent's tasks over the ports; the rules themselves are in `decide`."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hostler_agent.attachment import Attachment
from hostler_agent.board import Board, Received, wait_event
from hostler_agent.decide import Pauses, next_step, receive
from hostler_agent.decide.steps import NextStep, Wait
from hostler_agent.logs import Logger
from hostler_agent.observation import Observation
from hostler_agent.operations import OPERATIONS
from hostler_agent.perform import Performer
from hostler_agent.ports import Clock, Journal, JournalRefusedError, Supervisor
from hostler_agent.session import Assignment, Go, Outcome, OutcomeKind

TICK_MAX_S = 15.0
STUCK_AFTER_S = 150.0
"""Longer than any single step may take (drain call, fsync of a slow disk, reboot command)."""


class Agent:
    """The work loop: the only writer of the journal, and the only one that acts."""

    def __init__(
        self,
        *,
        board: Board,
        attachment: Attachment,
        observation: Observation,
        performer: Performer,
        journal: Journal,
        clock: Clock,
        supervisor: Supervisor,
        log: Logger,
        pauses: Pauses,
    ) -> None:
        self._board = board
        self._attachment = attachment
        self._observation = observation
        self._performer = performer
        self._journal = journal
        self._clock = clock
        self._supervisor = supervisor
        self._log = log
        self._pauses = pauses

    async def run(self) -> None:
        """Run until cancelled. A bug in any task ends all of them: systemd starts afresh from the journal."""
        self._supervisor.ready()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._observation.keep())
            tasks.create_task(self._attachment.keep())
            tasks.create_task(self._work())
            tasks.create_task(self._feed_watchdog())

    async def _work(self) -> None:
        changed = self._board.watch()
        while True:
            changed.clear()
            self._board.ticked_at = self._clock.now()
            while (received := self._board.take()) is not None:
                await self._take(received)
            step = next_step(self._board.situation, self._clock.now(), self._pauses)
            if isinstance(step, Wait):
                await self._wait(step, changed)
            else:
                await self._perform(step)

    async def _wait(self, step: Wait, changed: asyncio.Event) -> None:
        if self._board.why != step.why:
            self._board.why = step.why
            self._supervisor.status(step.why)
        left_s = TICK_MAX_S if step.until is None else step.until - self._clock.now()
        await wait_event(changed, min(TICK_MAX_S, left_s))

    async def _perform(self, step: NextStep) -> None:
        await self._performer.perform(step)

    async def _take(self, received: Received) -> None:
        """Decide on one order; what must be durable is written before anything is answered."""
        order = received.order
        if isinstance(order, Go) and received.stream != self._attachment.stream:
            self._log.info("GO of a stream that ended is not used", task=order.task_id)
            return
        found = receive(
            self._board.situation,
            order,
            self._clock.now(),
            sent_after=received.sent_after,
            supported=OPERATIONS.keys(),
        )
        if found.note:
            self._log.info(found.note, message=type(order).__name__, task=order.task_id, token=str(order.token))
        if found.save is not None:
            try:
                await self._journal.save(found.save)
            except JournalRefusedError as error:
                if isinstance(order, Assignment):
                    await self._refuse_unwritten(order, error)
                    return
                self._log.warning("the journal keeps a task that is over", error=error.text)
        self._merge(found.situation)
        for reply in found.replies:
            await self._attachment.say(reply)

    def _merge(self, decided: object) -> None:
        """Keep what other tasks saw while the journal was written: only the work's own fields are taken over."""
        wanted = {name: getattr(decided, name) for name in WORK_FIELDS}
        self._board.put(replace(self._board.situation, **wanted))

    async def _refuse_unwritten(self, order: Assignment, error: JournalRefusedError) -> None:
        """Nothing was accepted: the journal still says what it said (FC-A25)."""
        self._log.error("work refused", task=order.task_id, code=error.code, error=error.text)
        self._board.update(pulled=False, pull_after=self._clock.now() + self._pauses.refusal_pause_s)
        await self._attachment.say(
            Outcome(
                task_id=order.task_id,
                token=order.token,
                kind=OutcomeKind.REFUSED,
                code=error.code,
                text=error.text,
                boot_id=self._board.situation.boot_id,
            )
        )

    async def _feed_watchdog(self) -> None:
        while True:
            if self._clock.now() - self._board.ticked_at < STUCK_AFTER_S:
                self._supervisor.alive()
            await self._clock.sleep(TICK_MAX_S)


WORK_FIELDS = (
    "entry",
    "damage",
    "pulled",
    "drain",
    "checked",
    "post_boot_said",
    "started_at",
    "waiting_since",
    "go",
    "stop",
    "act",
    "outcome_said_at",
)
"""Fields of the situation that only the work loop decides on."""
