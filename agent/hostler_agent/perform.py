"""Carries out one step: journal, drain, host, words to the coordinator; which step is due is decided in `decide`."""

from __future__ import annotations

from hostler_agent.attachment import Attachment
from hostler_agent.board import Board
from hostler_agent.decide import Act, DrainProgress, DrainState, Entry, Pauses, blocked_by
from hostler_agent.decide.steps import (
    AskForWork,
    Conclude,
    Inspect,
    Intend,
    MarkDrain,
    NextStep,
    Perform,
    PollDrain,
    SayOutcome,
    SayPostBoot,
    SayStarted,
    Undrain,
    Wait,
)
from hostler_agent.excerpt import REPORT_MAX_CHARS, excerpt
from hostler_agent.logs import Logger
from hostler_agent.operations import OPERATIONS
from hostler_agent.ports import Clock, Drain, DrainError, DrainLook, Host, Journal, JournalRefusedError
from hostler_agent.session import Assignment, Outcome, OutcomeKind, Progress, Pull, Started, Step
from hostler_contract.hosts import JournalPhase


def drain_owner(task_id: str) -> str:
    """Whose drain mark it is: never a person's, never another task's (law 8)."""
    return f"hostler:{task_id}"


class Performer:
    """The hands. Every step ends in a change of the board, so that no step can repeat itself at once."""

    def __init__(
        self,
        *,
        board: Board,
        attachment: Attachment,
        host: Host,
        journal: Journal,
        drain: Drain,
        clock: Clock,
        log: Logger,
        pauses: Pauses,
    ) -> None:
        self._board = board
        self._line = attachment
        self._host = host
        self._journal = journal
        self._drain = drain
        self._clock = clock
        self._plain_log = log
        self._pauses = pauses

    @property
    def _log(self) -> Logger:
        """Every line of the work names campaign, task and token."""
        order = self._entry.order
        if order is None:
            return self._plain_log
        return self._plain_log.bind(campaign=order.campaign_id, task=order.task_id, token=str(order.token))

    async def perform(self, step: NextStep) -> None:
        """Do it."""
        match step:
            case AskForWork() | SayStarted() | SayPostBoot() | SayOutcome():
                await self._speak(step)
            case MarkDrain():
                await self._mark_drain()
            case PollDrain():
                await self._poll_drain()
            case Undrain(task_id=task_id):
                await self._undrain(task_id)
            case Inspect():
                await self._inspect()
            case Intend():
                await self._intend()
            case Perform():
                await self._act()
            case Conclude():
                await self._conclude(step)
            case Wait():
                return

    async def _speak(self, step: AskForWork | SayStarted | SayPostBoot | SayOutcome) -> None:
        match step:
            case AskForWork():
                self._board.update(pulled=True)
                await self._line.say(Pull())
            case SayStarted():
                await self._say_started()
            case SayPostBoot():
                self._board.update(post_boot_said=True)
                await self._progress(Step.POST_BOOT)
            case SayOutcome():
                await self._say_outcome()

    @property
    def _entry(self) -> Entry:
        return self._board.situation.entry

    def _order(self) -> Assignment:
        order = self._entry.order
        assert order is not None, "only steps of a task come here"  # noqa: S101 - a bug, and bugs crash
        return order

    async def _progress(self, step: Step, detail: str = "") -> None:
        order = self._order()
        said = excerpt(detail, REPORT_MAX_CHARS)
        await self._line.say(Progress(task_id=order.task_id, token=order.token, step=step, detail=said))

    async def _save(self, entry: Entry) -> bool:
        """Strict: what cannot be made durable ends the attempt, with the disk as it was."""
        try:
            await self._journal.save(entry)
        except JournalRefusedError as error:
            self._log.error("journal refused", code=error.code, error=error.text)
            await self._conclude(Conclude(OutcomeKind.REFUSED, error.code, error.text))
            return False
        self._board.update(entry=entry)
        return True

    # --- drain --------------------------------------------------------------------------------------------------------

    async def _mark_drain(self) -> None:
        order, situation = self._order(), self._board.situation
        ours = self._entry.model_copy(update={"drained_for": order.task_id, "drain_boot": situation.boot_id})
        if not await self._save(ours):
            return
        await self._progress(Step.DRAINING)
        now = self._clock.now()
        try:
            look = await self._drain.mark(drain_owner(order.task_id))
        except DrainError as error:
            self._log.error("drain failed", error=str(error))
            self._board.update(drain=DrainProgress(DrainState.FAILED, now, None, str(error)))
            return
        if look.owner not in {"", drain_owner(order.task_id)}:
            self._log.info("host was drained already; that mark is left", owner=look.owner)
            if not await self._save(self._entry.model_copy(update={"drained_for": "", "drain_boot": ""})):
                return
        await self._drain_seen(DrainProgress(DrainState.MARKED, now), look)

    async def _poll_drain(self) -> None:
        drain = self._board.situation.drain
        try:
            look = await self._drain.look(drain_owner(self._order().task_id))
        except DrainError as error:
            look = DrainLook(empty=False, text=str(error))
        await self._drain_seen(drain, look)

    async def _drain_seen(self, drain: DrainProgress, look: DrainLook) -> None:
        state = DrainState.EMPTY if look.empty else DrainState.MARKED
        self._board.update(drain=DrainProgress(state, drain.since, self._clock.now(), look.text))
        if look.empty:
            await self._progress(Step.DRAINED, look.text)

    async def _undrain(self, task_id: str) -> None:
        try:
            await self._drain.undo(drain_owner(task_id))
        except DrainError as error:
            self._log.error("drain mark not undone", mark=task_id, error=str(error))
            self._board.update(undo_after=self._clock.now() + self._pauses.undo_retry_s, undo_text=str(error))
            return
        left = self._entry.model_copy(update={"drained_for": "", "drain_boot": ""})
        await self._save_if_possible(left)
        self._log.info("drain mark undone", mark=task_id)

    # --- intent and act -----------------------------------------------------------------------------------------------

    async def _inspect(self) -> None:
        order = self._order()
        await self._progress(Step.CHECKING)
        blockers = await self._host.blockers()
        self._board.update(blockers=blockers)
        if blocked := blocked_by(blockers, drained=self._drain.configured, force=order.force):
            await self._conclude(Conclude(OutcomeKind.REFUSED, blocked.code, blocked.text))
            return
        self._board.update(checked=True)

    async def _intend(self) -> None:
        """Durable before GO is asked for: phase, boot id before, and what tells a soft reboot from a real one."""
        reading = await self._host.read()
        if reading.boot_id != self._entry.boot_before:
            self._board.update(boot_id=reading.boot_id)
            return
        intent = self._entry.model_copy(
            update={
                "phase": JournalPhase.INTENT,
                "soft_reboots": reading.soft_reboots,
                "userspace_start": reading.userspace_start,
            }
        )
        await self._save(intent)

    async def _say_started(self) -> None:
        """With a heartbeat before it, whose answer proves that the GO which follows is fresh."""
        situation, order = self._board.situation, self._order()
        now = self._clock.now()
        since = situation.waiting_since if situation.waiting_since is not None else now
        self._board.update(started_at=now, waiting_since=since)
        await self._line.beat()
        await self._line.say(Started(task_id=order.task_id, token=order.token, boot_id=situation.boot_id))

    async def _act(self) -> None:
        """Journal, then act. The GO is looked at once more after the disk has answered."""
        order, ticket = self._order(), self._board.situation.go
        if not await self._save(self._entry.model_copy(update={"phase": JournalPhase.ACTING})):
            return
        now = self._clock.now()
        self._board.update(go=None, waiting_since=now, started_at=None)
        if ticket is None or now >= ticket.expires_at:
            self._log.warning("GO expired before the command")
            return
        self._log.warning("acting", actor=order.actor, reason=order.reason)
        await self._progress(Step.ACTING)
        operation = OPERATIONS[order.operation] if order.operation else None
        assert operation is not None, "accepted orders have a known operation"  # noqa: S101 - a bug, and bugs crash
        now = self._clock.now()
        if now >= ticket.expires_at:
            return
        result = await operation.act(self._host, order)
        self._log.info("command given", result=result.state, text=result.text)
        self._board.update(act=Act(result.state, now, result.text))

    # --- outcome ------------------------------------------------------------------------------------------------------

    async def _conclude(self, step: Conclude) -> None:
        order = self._order()
        outcome = Outcome(
            task_id=order.task_id,
            token=order.token,
            kind=step.kind,
            code=step.code,
            text=excerpt(step.text, REPORT_MAX_CHARS),
            boot_id=self._board.situation.boot_id,
            permanent=step.permanent,
        )
        self._log.info("outcome", kind=step.kind, code=step.code, text=step.text)
        if step.kind is OutcomeKind.REFUSED:
            self._board.update(pull_after=self._clock.now() + self._pauses.refusal_pause_s)
        self._board.update(go=None, stop=None, act=None)
        await self._save_if_possible(self._entry.model_copy(update={"phase": JournalPhase.DONE, "outcome": outcome}))

    async def _say_outcome(self) -> None:
        outcome = self._entry.outcome
        self._board.update(outcome_said_at=self._clock.now())
        if outcome is not None:
            await self._line.beat()
            await self._line.say(outcome)

    async def _save_if_possible(self, entry: Entry) -> None:
        """What is over is over, also on a full disk: after a restart the same is found out and said again."""
        try:
            await self._journal.save(entry)
        except JournalRefusedError as error:
            self._log.error("journal refused; going on from memory", code=error.code, error=error.text)
        self._board.update(entry=entry)
