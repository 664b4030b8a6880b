"""Work on one host: operations, tokens, task states, evidence, dead letters; transitions live in the coordinator."""

from __future__ import annotations

from enum import StrEnum
from functools import total_ordering
from typing import Annotated

from pydantic import Field

from hostler_contract.moments import Instant
from hostler_contract.shapes import Record, Value


class OperationKind(StrEnum):
    """What is done to the host."""

    REBOOT = "reboot"
    POWER_ON = "power_on"
    POWER_OFF = "power_off"
    SOFT_REBOOT = "soft_reboot"
    """Only user space is restarted; the kernel goes on."""


BY_AGENT = frozenset({OperationKind.REBOOT, OperationKind.SOFT_REBOOT})
"""Operations that the host's agent carries out; the others are its BMC's."""


class RebootMode(StrEnum):
    """Soft asks the operating system first; hard goes straight to the BMC, in order and with the ledger."""

    SOFT = "soft"
    HARD = "hard"


class Verdict(StrEnum):
    """What health says of a host; unknown is never folded into another."""

    OK = "ok"
    NOTICE = "notice"
    SUSPECT = "suspect"
    DEGRADED = "degraded"
    BAD = "bad"
    DEAD = "dead"
    UNKNOWN = "unknown"


TOKEN_NUMBER_MOST = 2**53
"""No number of a token is larger: JSON readers keep it exact, and the wire's 64 bits are never overrun."""


@total_ordering
class Token(Value):
    """Fencing token of a claim on one host; grows only."""

    epoch: Annotated[int, Field(ge=0, le=TOKEN_NUMBER_MOST)] = 0
    counter: Annotated[int, Field(ge=0, le=TOKEN_NUMBER_MOST)] = 0

    def __lt__(self, other: Token) -> bool:
        """Order by restore epoch, then counter."""
        return (self.epoch, self.counter) < (other.epoch, other.counter)

    def __str__(self) -> str:
        """Write as `epoch.counter`."""
        return f"{self.epoch}.{self.counter}"


class TaskState(StrEnum):
    """Where one host's share of a campaign stands."""

    PENDING = "pending"
    RESERVED = "reserved"
    ACTING = "acting"
    PROVING = "proving"
    BACKING_OFF = "backing_off"
    POWER_CYCLING = "power_cycling"
    POWER_CYCLED = "power_cycled"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    SKIPPED = "skipped"
    ABORTED = "aborted"


TERMINAL = frozenset(
    {TaskState.SUCCEEDED, TaskState.FAILED, TaskState.DEAD_LETTER, TaskState.SKIPPED, TaskState.ABORTED}
)
"""States that nothing leaves."""


class EvidenceKind(StrEnum):
    """What was seen."""

    ASKED = "asked"
    ACCEPTED = "accepted"
    DRAINED = "drained"
    GO_GIVEN = "go_given"
    POWER_OFF_SEEN = "power_off_seen"
    POWER_ON_SEEN = "power_on_seen"
    BOOT_CHANGED = "boot_changed"
    AGENT_BACK = "agent_back"
    INVENTORY_INTACT = "inventory_intact"
    USABLE = "usable"
    ATTEMPT_FAILED = "attempt_failed"
    NOTE = "note"
    USERSPACE_RESTARTED = "userspace_restarted"


class Evidence(Value):
    """One dated fact about a task."""

    kind: EvidenceKind
    at: Instant
    detail: str = ""


class PowerVerb(StrEnum):
    """What a power intent will do: cycle is off, seen off, dwell, on, seen on."""

    CYCLE = "cycle"
    ON = "on"
    OFF = "off"


class PowerIntent(Value):
    """Durable before any BMC command (law 3). A successor waits until `expires_at` plus the BMC's session time-out."""

    verb: PowerVerb
    token: Token
    at: Instant
    expires_at: Instant
    leader: str
    why: str


class TaskRecord(Record):
    """One host's share of a campaign, written when the host first moves. Key: `tasks/<campaign>/<host>`."""

    campaign: str
    host: str
    state: TaskState
    since: Instant
    wave: int = 0
    attempt: int = 0
    """Attempts begun, agent's and BMC's alike, since the task began."""
    rescues: int = 0
    """Power intents written for this task."""
    refusals: int = 0
    token: Token | None = None
    boot_before: str | None = None
    boot_after: str | None = None
    soft_reboots_before: int | None = None
    """Soft reboots that its service manager had counted when it was let go for one; None for other work."""
    deadline_at: Instant | None = None
    go_at: Instant | None = None
    go_expires_at: Instant | None = None
    next_attempt_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    code: str = ""
    """Stable code of the newest failure, refusal or end."""
    reason: str = ""
    stop_to: TaskState | None = None
    """While stopping: the state that follows (`pending` when paused, `aborted` when aborted)."""
    power: PowerIntent | None = None
    evidence: tuple[Evidence, ...] = ()

    @property
    def id(self) -> str:
        """`campaign/host`."""
        return f"{self.campaign}/{self.host}"


class DeadLetterState(StrEnum):
    """What a person has done about it."""

    OPEN = "open"
    RETRIED = "retried"
    RESOLVED = "resolved"


class ResolutionKind(StrEnum):
    """How a person closed a dead letter."""

    FIXED = "fixed"
    RMA = "rma"
    IGNORED = "ignored"


class Resolution(Value):
    """Who closed a dead letter, and how."""

    kind: ResolutionKind
    by: str
    at: Instant
    ticket: str = ""
    reason: str = ""


class DeadLetterRecord(Record):
    """A task that waits for a person. Key: `deadletters/<id>`; id is `<campaign>.<host>`."""

    id: str
    campaign: str
    host: str
    at: Instant
    cause: str
    text: str
    suggestion: str
    attempts: int
    evidence: tuple[Evidence, ...] = ()
    state: DeadLetterState = DeadLetterState.OPEN
    resolution: Resolution | None = None
    retried_by: str = ""
