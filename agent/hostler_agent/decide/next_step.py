"""(situation, now) -> the one next step, and why nothing else happens; what a message changes is in `receive`."""

from __future__ import annotations

from hostler_agent.decide.blocking import blocked_by
from hostler_agent.decide.entry import Entry
from hostler_agent.decide.restarted import is_soft, proved, rebooted, userspace_restarted
from hostler_agent.decide.situation import ActState, DrainState, Pauses, Situation
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
from hostler_agent.session import Assignment, OutcomeKind
from hostler_contract.hosts import JournalPhase, Usability

STILL_UP = "still-up"
UNCOUNTED = "its service manager does not count soft reboots (systemd does from 256 on): one could not be proved"


def next_step(situation: Situation, now: float, pauses: Pauses) -> NextStep:
    """Say what to do next. `now` is the agent's clock in seconds; the same input gives the same step."""
    entry = situation.entry
    if entry.order is None:
        return _idle(situation, now)
    if entry.outcome is not None:
        return _ended(situation, now, pauses)
    if not situation.boot_id:
        return _boot_unknown(situation)
    if proved(situation):
        return _proving(situation, entry.order, now)
    match entry.phase:
        case JournalPhase.INTENT if situation.act is None:
            return _waiting_for_go(situation, now, pauses)
        case JournalPhase.INTENT | JournalPhase.ACTING:  # an act is not repeated, whatever the journal says
            return _acting(situation, entry.order, now, pauses)
        case _:
            return _preparing(situation, entry.order, now, pauses)


def _idle(situation: Situation, now: float) -> NextStep:
    """No task. A mark left by an ended one is undone on the next usable boot; then ask for work."""
    entry = situation.entry
    if situation.usability is not Usability.USABLE:
        return Wait(f"host is {situation.usability}: {situation.usability_reason}")
    if entry.drained_for and situation.boot_id and situation.boot_id != entry.drain_boot:
        return _undrain(situation, entry.drained_for, now)
    if situation.shutting_down:
        return Wait("host is shutting down")
    if not situation.attached:
        return Wait("no coordinator")
    if situation.pulled:
        return Wait("asked for work")
    if now < situation.pull_after:
        return Wait("pause after a refusal", situation.pull_after)
    return AskForWork()


def _ended(situation: Situation, now: float, pauses: Pauses) -> NextStep:
    """The outcome is known: undo our mark first, then say it until it is recorded."""
    entry = situation.entry
    if _mark_must_go(entry):
        return _undrain(situation, entry.drained_for, now)
    if not situation.attached:
        return Wait("no coordinator to report the outcome to")
    said = situation.outcome_said_at
    if said is None or now - said >= pauses.outcome_repeat_s:
        return SayOutcome()
    return Wait("outcome not yet recorded", said + pauses.outcome_repeat_s)


def _mark_must_go(entry: Entry) -> bool:
    """A host stuck in its shutdown stays drained: nothing may be scheduled on it before its next boot."""
    outcome = entry.outcome
    return bool(entry.drained_for) and not (outcome is not None and outcome.code == STILL_UP)


def _undrain(situation: Situation, task_id: str, now: float) -> NextStep:
    if now < situation.undo_after:
        return Wait(f"our drain mark could not be undone: {situation.undo_text}", situation.undo_after)
    return Undrain(task_id)


def _boot_unknown(situation: Situation) -> NextStep:
    """An unreadable boot id is unknown, never "changed" (law 1)."""
    if situation.entry.phase is JournalPhase.ACCEPTED:
        return Conclude(OutcomeKind.REFUSED, "boot-id-unknown", "boot id cannot be read: a reboot could not be proved")
    return Wait("boot id cannot be read")


def _proving(situation: Situation, order: Assignment, now: float) -> NextStep:
    """It has happened: usable without a break for the soak, our mark undone, then done."""
    what = "rebooted" if rebooted(situation) else "user space restarted"
    if situation.attached and not situation.post_boot_said:
        return SayPostBoot()
    since = situation.usable_since
    if situation.usability is not Usability.USABLE or since is None:
        return Wait(f"{what}; host is {situation.usability}: {situation.usability_reason}")
    if now < since + order.soak_s:
        return Wait(f"{what}; soaking for {order.soak_s:g} s", since + order.soak_s)
    if situation.entry.drained_for:
        return _undrain(situation, situation.entry.drained_for, now)
    if rebooted(situation):
        return Conclude(OutcomeKind.DONE, "rebooted", f"boot id changed from {situation.entry.boot_before}")
    counted = f"soft reboots counted: {situation.entry.soft_reboots} -> {situation.soft_reboots}"
    return Conclude(OutcomeKind.DONE, "userspace-restarted", f"{counted}; boot id unchanged")


def _preparing(situation: Situation, order: Assignment, now: float, pauses: Pauses) -> NextStep:
    """Accepted: drain, look once more, write the intent."""
    entry = situation.entry
    if situation.stop is not None:
        return Conclude(OutcomeKind.STOPPED, "stopped", situation.stop)
    if is_soft(situation) and situation.soft_reboots < 0:
        return Conclude(OutcomeKind.REFUSED, "soft-reboots-unknown", UNCOUNTED)
    if entry.drained_for and entry.drained_for != order.task_id:
        return _undrain(situation, entry.drained_for, now)
    if situation.can_drain and situation.drain.state is not DrainState.EMPTY:
        return _draining(situation, order, now, pauses)
    if blocked := blocked_by(situation.blockers, drained=situation.can_drain, force=order.force):
        return Conclude(OutcomeKind.REFUSED, blocked.code, blocked.text)
    return Intend() if situation.checked else Inspect()


def _draining(situation: Situation, order: Assignment, now: float, pauses: Pauses) -> NextStep:
    drain = situation.drain
    if drain.state is DrainState.NONE:
        return MarkDrain()
    if drain.state is DrainState.FAILED:
        return Conclude(OutcomeKind.FAILED, "drain-failed", drain.text)
    timeout_s = order.drain_timeout_s or pauses.drain_timeout_default_s
    if now - drain.since >= timeout_s:
        return Conclude(OutcomeKind.FAILED, "drain-timeout", f"not empty after {timeout_s:g} s: {drain.text}")
    if drain.polled_at is None or now - drain.polled_at >= pauses.drain_poll_s:
        return PollDrain()
    return Wait(f"draining: {drain.text}", min(drain.polled_at + pauses.drain_poll_s, drain.since + timeout_s))


def _waiting_for_go(situation: Situation, now: float, pauses: Pauses) -> NextStep:
    if situation.stop is not None:
        return Conclude(OutcomeKind.STOPPED, "stopped", situation.stop)
    since = situation.waiting_since
    if since is not None and now - since >= pauses.intent_ttl_s:
        # Intents expire (law 3): the task may have ended while we were away, and nobody asks for it any more.
        return Conclude(OutcomeKind.REFUSED, "no-go", f"no GO came within {pauses.intent_ttl_s:g} s")
    return _ask_for_go(situation, now, pauses)


def _ask_for_go(situation: Situation, now: float, pauses: Pauses) -> NextStep:
    if situation.go is not None and now < situation.go.expires_at:
        return Perform()
    if not situation.attached:
        return Wait("waiting for GO; no coordinator")
    said = situation.started_at
    if said is None or now - said >= pauses.started_repeat_s:
        return SayStarted()
    return Wait("waiting for GO", said + pauses.started_repeat_s)


def _acting(situation: Situation, order: Assignment, now: float, pauses: Pauses) -> NextStep:
    """On the old boot still. Without a result of our own (the agent was restarted) only a fresh GO leads on."""
    if userspace_restarted(situation) and not is_soft(situation):
        return Conclude(OutcomeKind.FAILED, "soft-reboot", "userspace restarted, kernel did not")
    timeout_s = order.shutdown_timeout_s or pauses.shutdown_timeout_default_s
    act = situation.act
    if act is None:
        since = situation.waiting_since
        if since is not None and now - since >= timeout_s:
            return Conclude(OutcomeKind.FAILED, STILL_UP, "no fresh GO came, and the host did not restart")
        return _ask_for_go(situation, now, pauses)
    match act.state:
        case ActState.FAILED:
            return Conclude(OutcomeKind.FAILED, "reboot-command-failed", act.text)
        case ActState.INHIBITED:
            return Conclude(OutcomeKind.REFUSED, "inhibited", act.text)
        case ActState.NOT_PERMITTED:
            return Conclude(OutcomeKind.FAILED, "not-permitted", act.text, permanent=True)
        case ActState.ACCEPTED if now - act.at >= timeout_s:
            return Conclude(OutcomeKind.FAILED, STILL_UP, _in_vain(situation))
        case ActState.ACCEPTED:
            return Wait("shutting down", act.at + timeout_s)


def _in_vain(situation: Situation) -> str:
    if is_soft(situation):
        return "soft reboot command accepted, user space did not restart"
    return "reboot command accepted, host still up"
