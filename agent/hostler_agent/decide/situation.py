"""All that a decision weighs, as plain data: journal, what the host shows, what was said; nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hostler_agent.decide.entry import Entry
from hostler_contract.hosts import Usability


class DrainState(StrEnum):
    """How far the drain of this attempt has got."""

    NONE = "none"
    MARKED = "marked"
    EMPTY = "empty"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """`since` is the moment of the mark, `polled_at` of the newest look (agent's clock)."""

    state: DrainState = DrainState.NONE
    since: float = 0.0
    polled_at: float | None = None
    text: str = ""


class ActState(StrEnum):
    """What became of the command."""

    ACCEPTED = "accepted"
    FAILED = "failed"
    INHIBITED = "inhibited"
    NOT_PERMITTED = "not_permitted"


@dataclass(frozen=True, slots=True)
class Act:
    """Result of the command and when it was given (agent's clock)."""

    state: ActState
    at: float
    text: str = ""


class BlockerKind(StrEnum):
    """What forbids work: a drain ends jobs and tells people, so it clears people but not leftover GPU processes."""

    GPU_PROCESS = "gpu_process"
    PERSON = "person"
    INHIBITOR = "inhibitor"


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that forbids work, in words for people."""

    kind: BlockerKind
    who: str


@dataclass(frozen=True, slots=True)
class GoTicket:
    """A GO that passed its checks; worthless after `expires_at` (agent's clock)."""

    expires_at: float


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to leave between repetitions, seconds."""

    started_repeat_s: float = 2.0
    outcome_repeat_s: float = 10.0
    drain_poll_s: float = 2.0
    undo_retry_s: float = 5.0
    refusal_pause_s: float = 5.0
    drain_timeout_default_s: float = 900.0
    shutdown_timeout_default_s: float = 900.0
    intent_ttl_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Situation:
    """The whole of it. Times are seconds of the agent's own clock, which goes on while the process is frozen."""

    entry: Entry
    boot_id: str = ""
    soft_reboots: int = -1
    userspace_start: str = ""
    damage: str = ""
    usability: Usability = Usability.STARTING
    usability_reason: str = ""
    usable_since: float | None = None
    blockers: tuple[Blocker, ...] = ()
    can_drain: bool = False
    shutting_down: bool = False
    attached: bool = False
    pulled: bool = False
    pull_after: float = 0.0
    drain: DrainProgress = DrainProgress()
    undo_after: float = 0.0
    undo_text: str = ""
    checked: bool = False
    post_boot_said: bool = False
    started_at: float | None = None
    waiting_since: float | None = None
    """When this process first asked for the GO that it waits for; bounds the wait."""
    go: GoTicket | None = None
    stop: str | None = None
    act: Act | None = None
    outcome_said_at: float | None = None
