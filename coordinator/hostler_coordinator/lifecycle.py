"""A task's life as a data table: (state, event) -> next state, with its guard in words; no guard is evaluated here.

Rules of this room:

1. Whatever changes a task's state goes through `step`. An unknown pair is a typed refusal and changes nothing.
2. The table says what may follow what. *Whether* it does is decided by the planner, which names the event; the guard
   is the sentence a reader checks the planner against.
3. A terminal state has no rows. A dead letter is retried by a new task in a linked campaign, never by going back.
4. `boot changed` has a row in every state in which the host may have been let go, or may fall over by itself: the new
   boot id is the proof (law 1), welcome whenever it comes. It has no row where no boot id was recorded before.
5. Power states (`power_cycling`, `power_cycled`) are entered only with a durable intent (law 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hostler_contract.work import TaskState as S


class Event(StrEnum):
    """What may happen to a task."""

    RESERVE = "reserve"
    """Charged in every domain, a new token issued, boot id recorded."""
    REFUSED = "refused"
    """The agent left the host untouched for a reason that may pass."""
    GO = "go"
    """The leader let the host go: hold, window, health and budget checked once more."""
    BOOT_CHANGED = "boot_changed"
    """The host reports a boot id other than the one recorded before the act."""
    USERSPACE_RESTARTED = "userspace_restarted"
    """A soft reboot was asked for, and the host counts one more of them, on the same boot id."""
    USABLE = "usable"
    """Post-boot checks and soak passed, our drain mark undone."""
    ATTEMPT_FAILED = "attempt_failed"
    """This attempt is proved to have failed while the host stayed up; another one is left."""
    EXHAUSTED = "exhausted"
    """No attempt is left, or none makes sense: a person is needed."""
    ESCALATE = "escalate"
    """A power intent with the next token is written."""
    POWER_DONE = "power_done"
    """The power worker saw off, then on; the host has yet to boot."""
    POWER_SETTLED = "power_settled"
    """A power-off was asked for and off was seen twice."""
    WITHDRAW = "withdraw"
    """Work is taken back before the point of no return."""
    STOPPED_FOR_PAUSE = "stopped_for_pause"
    STOPPED_FOR_ABORT = "stopped_for_abort"
    SKIP = "skip"
    ABORT = "abort"
    FAIL = "fail"
    """The campaign ended while this task waited for its next attempt."""
    REMOVED = "removed"
    """The host left the inventory."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    state: S
    event: Event
    then: S
    guard: str


TABLE: tuple[Row, ...] = (
    # Waiting. Nothing is charged, no token lives.
    Row(S.PENDING, Event.RESERVE, S.RESERVED, "every gate open, every ledger has room"),
    Row(S.PENDING, Event.SKIP, S.SKIPPED, "the campaign ended, or the host cannot be worked on"),
    Row(S.PENDING, Event.ABORT, S.ABORTED, "the campaign is aborted"),
    Row(S.PENDING, Event.REMOVED, S.SKIPPED, "the host left the inventory"),
    Row(S.PENDING, Event.EXHAUSTED, S.DEAD_LETTER, "refused too often"),
    # Reserved: charged, token issued, the agent drains and checks. Nothing has been done to the host's boot.
    Row(S.RESERVED, Event.GO, S.ACTING, "intent journalled by the agent; hold, window, health, budget checked again"),
    Row(S.RESERVED, Event.REFUSED, S.PENDING, "the agent left the host untouched"),
    Row(S.RESERVED, Event.ATTEMPT_FAILED, S.BACKING_OFF, "the host is up on the old boot; attempts are left"),
    Row(S.RESERVED, Event.EXHAUSTED, S.DEAD_LETTER, "no attempt left, or a permanent refusal"),
    Row(S.RESERVED, Event.ESCALATE, S.POWER_CYCLING, "two witnesses and no brake, or an ordered hard reboot"),
    Row(S.RESERVED, Event.WITHDRAW, S.STOPPING, "paused, aborted, held, or the window closed"),
    Row(S.RESERVED, Event.BOOT_CHANGED, S.PROVING, "boot id differs from the one recorded before"),
    Row(S.RESERVED, Event.REMOVED, S.SKIPPED, "the host left the inventory"),
    # Acting: the host was let go. Only evidence ends this state.
    Row(S.ACTING, Event.GO, S.ACTING, "the former GO has expired and the host still asks; checked again"),
    Row(S.ACTING, Event.BOOT_CHANGED, S.PROVING, "boot id differs from the one recorded before"),
    Row(S.ACTING, Event.USERSPACE_RESTARTED, S.PROVING, "soft reboot: one more is counted on the same boot id"),
    Row(S.ACTING, Event.REFUSED, S.PENDING, "the host says so itself, on the old boot: nothing was done to it"),
    Row(S.ACTING, Event.ATTEMPT_FAILED, S.BACKING_OFF, "the host says so itself, on the old boot; attempts are left"),
    Row(S.ACTING, Event.EXHAUSTED, S.DEAD_LETTER, "no attempt and no rescue left"),
    Row(S.ACTING, Event.ESCALATE, S.POWER_CYCLING, "silent past the deadline, two witnesses, no brake"),
    Row(S.ACTING, Event.REMOVED, S.SKIPPED, "the host left the inventory"),
    # Stopping: taken back before the GO; the agent undoes its drain mark. No GO was given, so nothing can happen to it.
    Row(S.STOPPING, Event.STOPPED_FOR_PAUSE, S.PENDING, "the agent has stopped, or is silent past the bound"),
    Row(S.STOPPING, Event.STOPPED_FOR_ABORT, S.ABORTED, "the agent has stopped, or is silent past the bound"),
    Row(S.STOPPING, Event.BOOT_CHANGED, S.PROVING, "boot id differs from the one recorded before"),
    Row(S.STOPPING, Event.REMOVED, S.SKIPPED, "the host left the inventory"),
    # Power. The intent is durable; the walk of the power worker is off, seen off, dwell, on, seen on.
    Row(S.POWER_CYCLING, Event.POWER_DONE, S.POWER_CYCLED, "off seen and on seen, by this intent's worker"),
    Row(S.POWER_CYCLING, Event.POWER_SETTLED, S.SUCCEEDED, "power-off was asked for, off seen twice"),
    Row(
        S.POWER_CYCLING, Event.ESCALATE, S.POWER_CYCLING, "former intent ended, or expired and its BMC session with it"
    ),
    Row(S.POWER_CYCLING, Event.BOOT_CHANGED, S.PROVING, "boot id differs from the one recorded before"),
    Row(
        S.POWER_CYCLING, Event.ATTEMPT_FAILED, S.BACKING_OFF, "cancelled before off was sent: it is up on the old boot"
    ),
    Row(S.POWER_CYCLING, Event.EXHAUSTED, S.DEAD_LETTER, "no rescue left, or none makes sense"),
    Row(S.POWER_CYCLING, Event.REMOVED, S.SKIPPED, "the host left the inventory"),
    Row(S.POWER_CYCLED, Event.BOOT_CHANGED, S.PROVING, "boot id differs from the one recorded before"),
    Row(S.POWER_CYCLED, Event.USABLE, S.SUCCEEDED, "power-on was asked for, and the agent is heard and usable"),
    Row(S.POWER_CYCLED, Event.ESCALATE, S.POWER_CYCLING, "silent past the boot allowance; rescues are left"),
    Row(S.POWER_CYCLED, Event.EXHAUSTED, S.DEAD_LETTER, "no new boot id within the allowance, no rescue left"),
    Row(S.POWER_CYCLED, Event.REMOVED, S.SKIPPED, "the host left the inventory"),
    # Proving: another boot id is durable; usable is still a fact of its own.
    Row(S.PROVING, Event.USABLE, S.SUCCEEDED, "post-boot checks and soak passed, drain mark undone"),
    Row(S.PROVING, Event.BOOT_CHANGED, S.PROVING, "it booted again by itself; the newest boot is the one to prove"),
    Row(S.PROVING, Event.EXHAUSTED, S.DEAD_LETTER, "not usable within the bound"),
    Row(S.PROVING, Event.REMOVED, S.SKIPPED, "the host left the inventory"),
    # Between attempts: the host is up and not charged.
    Row(S.BACKING_OFF, Event.RESERVE, S.RESERVED, "the pause is over, every gate open, every ledger has room"),
    Row(S.BACKING_OFF, Event.BOOT_CHANGED, S.PROVING, "boot id differs from the one recorded before"),
    Row(S.BACKING_OFF, Event.USERSPACE_RESTARTED, S.PROVING, "soft reboot: one more is counted on the same boot id"),
    Row(S.BACKING_OFF, Event.EXHAUSTED, S.DEAD_LETTER, "no attempt left"),
    Row(S.BACKING_OFF, Event.FAIL, S.FAILED, "the campaign ended first"),
    Row(S.BACKING_OFF, Event.SKIP, S.SKIPPED, "the host was retired"),
    Row(S.BACKING_OFF, Event.ABORT, S.ABORTED, "the campaign is aborted"),
    Row(S.BACKING_OFF, Event.REMOVED, S.SKIPPED, "the host left the inventory"),
)

_NEXT: dict[tuple[S, Event], S] = {(row.state, row.event): row.then for row in TABLE}

CHARGED = frozenset(
    {S.RESERVED, S.ACTING, S.STOPPING, S.POWER_CYCLING, S.POWER_CYCLED, S.PROVING},
)
"""States in which the task itself charges its host."""

LET_GO = frozenset({S.ACTING, S.POWER_CYCLING, S.POWER_CYCLED, S.PROVING})
"""States past the point of no return: carried to a safe end whatever happens to the campaign."""


class IllegalTransitionError(ValueError):
    """An event that the table does not know in this state; nothing was changed."""

    def __init__(self, state: S, event: Event) -> None:
        """Name the pair."""
        super().__init__(f"a task in state {state.value} knows no event {event.value}")
        self.state = state
        self.event = event


def step(state: S, event: Event) -> S:
    """The state that follows; raises IllegalTransitionError for a pair that is not in the table."""
    found = _NEXT.get((state, event))
    if found is None:
        raise IllegalTransitionError(state, event)
    return found


def may(state: S, event: Event) -> bool:
    """True when the table knows this event in this state."""
    return (state, event) in _NEXT


def diagram() -> str:
    """The table as a Mermaid state diagram; docs hold it and a test keeps it fresh."""
    merged: dict[tuple[S, S], list[str]] = {}
    for row in TABLE:
        merged.setdefault((row.state, row.then), []).append(row.event.value)
    lines = [f"    {src.value} --> {dst.value}: {', '.join(events)}" for (src, dst), events in merged.items()]
    return "\n".join(["stateDiagram-v2", "    [*] --> pending", *lines]) + "\n"
