"""(situation, message, now) -> situation, what to write down first, and what to answer; sending is the loop's part."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from hostler_agent.decide.entry import Entry
from hostler_agent.decide.situation import DrainProgress, GoTicket, Situation
from hostler_agent.session import (
    Assignment,
    Go,
    Order,
    Outcome,
    OutcomeKind,
    OutcomeRecorded,
    Outgoing,
    Progress,
    Step,
    Stop,
)
from hostler_contract.hosts import JournalPhase
from hostler_contract.work import OperationKind

STEP_OF_PHASE = {
    JournalPhase.ACCEPTED: Step.ACCEPTED,
    JournalPhase.INTENT: Step.CHECKING,
    JournalPhase.ACTING: Step.ACTING,
}


@dataclass(frozen=True, slots=True)
class Received:
    """`save` must be durable before `situation` holds and `replies` are sent; `note` is for the log."""

    situation: Situation
    replies: tuple[Outgoing, ...] = ()
    save: Entry | None = None
    note: str = ""


def receive(
    situation: Situation, message: Order, now: float, *, sent_after: float, supported: Collection[OperationKind]
) -> Received:
    """Take one order in.

    `sent_after` is a moment (agent's clock) before which the coordinator cannot have sent this message: when we said
    the hello or the newest heartbeat it had answered. A GO counts from there, so that one which waited in a buffer
    while this process was frozen, or the network was gone, is not taken for fresh.
    """
    match message:
        case Assignment():
            return _assigned(situation, message, supported)
        case Go():
            return _go(situation, message, now, sent_after)
        case Stop():
            return _stop(situation, message)
        case OutcomeRecorded():
            return _recorded(situation, message)


def _assigned(situation: Situation, order: Assignment, supported: Collection[OperationKind]) -> Received:
    entry = situation.entry
    if order.token < entry.newest_token or (order.token == entry.newest_token and order.task_id != entry.newest_task):
        text = f"token {order.token} is older than {entry.newest_token}, the newest seen"
        if order.token == entry.newest_token:
            text = f"token {order.token} was given to {entry.newest_task} already"
        return _answer(situation, order, "stale-token", text)
    if entry.task_id == order.task_id and entry.token == order.token:
        return _assigned_again(situation)
    if order.operation not in supported:
        text = f"this agent does not know the operation {order.operation or 'sent'}"
        return _answer(replace(situation, pulled=False), order, "unknown-operation", text, permanent=True)
    if order.boot_before and situation.boot_id and order.boot_before != situation.boot_id:
        text = f"the order is for boot {order.boot_before}, this is {situation.boot_id}"
        return _answer(situation, order, "another-boot", text)
    return _accept(situation, order)


def _answer(situation: Situation, order: Assignment, code: str, text: str, *, permanent: bool = False) -> Received:
    outcome = Outcome(
        task_id=order.task_id,
        token=order.token,
        kind=OutcomeKind.REFUSED,
        code=code,
        text=text,
        boot_id=situation.boot_id,
        permanent=permanent,
    )
    return Received(situation, (outcome,), note=text)


def _assigned_again(situation: Situation) -> Received:
    """The same order once more: report where we are, start nothing anew."""
    again = replace(situation, outcome_said_at=None, started_at=None, post_boot_said=False)
    return Received(again, _where_we_are(situation))


def _where_we_are(situation: Situation) -> tuple[Outgoing, ...]:
    entry = situation.entry
    if entry.outcome is not None or entry.phase is None or entry.phase not in STEP_OF_PHASE:
        return ()
    return (Progress(task_id=entry.task_id, token=entry.token, step=STEP_OF_PHASE[entry.phase]),)


def _accept(situation: Situation, order: Assignment) -> Received:
    entry = situation.entry
    accepted = Entry(
        newest_token=order.token,
        newest_task=order.task_id,
        order=order,
        phase=JournalPhase.ACCEPTED,
        boot_before=order.boot_before or situation.boot_id,
        drained_for=entry.drained_for,
        drain_boot=entry.drain_boot,
    )
    fresh = replace(
        situation,
        entry=accepted,
        pulled=False,
        drain=DrainProgress(),
        checked=False,
        post_boot_said=False,
        started_at=None,
        waiting_since=None,
        go=None,
        stop=None,
        act=None,
        outcome_said_at=None,
    )
    return Received(fresh, (Progress(task_id=order.task_id, token=order.token, step=Step.ACCEPTED),), save=accepted)


def _go(situation: Situation, go: Go, now: float, sent_after: float) -> Received:
    """Law 3: only for this task, this token, this boot, in the right phase, and fresh."""
    entry = situation.entry
    expires_at = min(now, sent_after) + go.expires_in_s
    if entry.task_id != go.task_id or entry.token != go.token:
        why = f"GO for {go.task_id} {go.token}, but the journal holds {entry.task_id or 'nothing'} {entry.token}"
    elif entry.outcome is not None or entry.phase not in {JournalPhase.INTENT, JournalPhase.ACTING}:
        why = f"GO in phase {entry.phase}"
    elif not situation.boot_id or go.boot_id != situation.boot_id or entry.boot_before != situation.boot_id:
        why = f"GO for boot {go.boot_id or 'unknown'}, this is {situation.boot_id or 'unknown'}"
    elif situation.act is not None:
        why = "GO repeated: the command was given already"
    elif situation.stop is not None:
        why = "GO after stop"
    elif now >= expires_at:
        why = f"GO may be {now - sent_after:.1f} s old and was good for {go.expires_in_s:g} s"
    else:
        return Received(replace(situation, go=GoTicket(expires_at)), note="GO")
    return Received(situation, note=why)


def _stop(situation: Situation, stop: Stop) -> Received:
    entry = situation.entry
    if entry.task_id != stop.task_id:
        outcome = Outcome(
            task_id=stop.task_id,
            token=stop.token,
            kind=OutcomeKind.STOPPED,
            code="not-held",
            text="this task is not in the journal",
            boot_id=situation.boot_id,
        )
        return Received(situation, (outcome,), note="stop for a task that is not here")
    if stop.token < entry.token:
        return Received(situation, note=f"stop with the older token {stop.token}")
    if entry.outcome is not None:
        return Received(replace(situation, outcome_said_at=None))
    if entry.phase is JournalPhase.ACTING or (situation.boot_id and situation.boot_id != entry.boot_before):
        return Received(situation, _where_we_are(situation), note="stop came too late")
    return Received(replace(situation, stop=stop.reason or "stopped by the coordinator", go=None))


def _recorded(situation: Situation, message: OutcomeRecorded) -> Received:
    entry = situation.entry
    if entry.outcome is None or (entry.task_id, entry.token) != (message.task_id, message.token):
        return Received(situation, note="outcome recorded for another task")
    left = entry.forgotten()
    fresh = replace(
        situation,
        entry=left,
        damage="",
        pulled=False,
        drain=DrainProgress(),
        checked=False,
        go=None,
        stop=None,
        act=None,
        outcome_said_at=None,
    )
    return Received(fresh, save=left)
