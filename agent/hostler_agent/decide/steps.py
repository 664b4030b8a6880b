"""What may be done next, one frozen value per step; how a step is carried out belongs to `perform`."""

from __future__ import annotations

from dataclasses import dataclass

from hostler_agent.session import OutcomeKind


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before `until` (agent's clock; None: until something changes). `why` is for people."""

    why: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class AskForWork:
    """Send Pull."""


@dataclass(frozen=True, slots=True)
class MarkDrain:
    """Write down that the mark is ours, then set it."""


@dataclass(frozen=True, slots=True)
class PollDrain:
    """Look whether the host is empty."""


@dataclass(frozen=True, slots=True)
class Undrain:
    """Undo our own mark."""

    task_id: str


@dataclass(frozen=True, slots=True)
class Inspect:
    """Look at blockers and inhibitors once more, right before the intent."""


@dataclass(frozen=True, slots=True)
class Intend:
    """Write the intent with the boot id before."""


@dataclass(frozen=True, slots=True)
class SayStarted:
    """The intent is on disk: ask for GO."""


@dataclass(frozen=True, slots=True)
class SayPostBoot:
    """Report that the host is back on another boot."""


@dataclass(frozen=True, slots=True)
class Perform:
    """Write ACTING, then carry the operation out."""


@dataclass(frozen=True, slots=True)
class Conclude:
    """Write the outcome."""

    kind: OutcomeKind
    code: str
    text: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class SayOutcome:
    """Report the outcome, until it is recorded."""


NextStep = (
    Wait
    | AskForWork
    | MarkDrain
    | PollDrain
    | Undrain
    | Inspect
    | Intend
    | SayStarted
    | SayPostBoot
    | Perform
    | Conclude
    | SayOutcome
)
