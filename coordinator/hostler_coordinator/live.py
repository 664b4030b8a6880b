"""What is heard from agents and BMC workers now: the leader's memory, never stored; decisions are the planner's."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from hostler_contract.hosts import Condition, HostFacts, Journal
from hostler_contract.work import Token

if TYPE_CHECKING:
    from hostler_contract.hosts import BmcFacts, BmcModel
    from hostler_contract.work import Evidence


class ReportKind(StrEnum):
    """What an agent last said of a task."""

    ACCEPTED = "accepted"
    DRAINING = "draining"
    DRAINED = "drained"
    CHECKING = "checking"
    STARTED = "started"
    ACTING = "acting"
    POST_BOOT = "post_boot"
    REFUSED = "refused"
    FAILED = "failed"
    STOPPED = "stopped"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class TaskReport:
    """An agent's newest word on one task; `number` grows with every message, so that a repetition is answered anew."""

    task_id: str
    token: Token
    kind: ReportKind
    at: float
    number: int = 0
    code: str = ""
    text: str = ""
    boot_id: str = ""
    permanent: bool = False


@dataclass(slots=True)
class Sighting:
    """One host as heard by the leader. Times are the leader's clock, epoch seconds."""

    host: str
    via: str = ""
    """Coordinator that holds the session."""
    session: int = 0
    connected: bool = False
    attached_at: float = 0.0
    heard_at: float = 0.0
    boot_id: str = ""
    """Empty: not heard, or the agent could not read it."""
    newest_token: Token = field(default_factory=Token)
    condition: Condition = field(default_factory=Condition)
    facts: HostFacts = field(default_factory=HostFacts)
    journal: Journal = field(default_factory=Journal)
    wants_work: bool = False
    report: TaskReport | None = None

    def report_on(self, task_id: str, token: Token | None) -> TaskReport | None:
        """The agent's report, if it is about this task under this very token."""
        found = self.report
        return found if found is not None and found.task_id == task_id and found.token == token else None


class PowerResult(StrEnum):
    """How a walk of the power worker ended."""

    WORKING = "working"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PowerStep:
    """One thing that a walk saw or did, and how it went: `done` or `failed`; `number` counts from 1."""

    number: int
    evidence: Evidence
    result: str = "done"


@dataclass(frozen=True, slots=True)
class RefusedOrder:
    """An order whose token was overtaken, refused where it would have acted; `at` is the leader's clock."""

    host: str
    task_id: str
    token: Token
    order: str
    by: str
    why: str
    at: float


@dataclass(frozen=True, slots=True)
class PowerReport:
    """What the power worker of this leader says of one intent."""

    task_id: str
    token: Token
    result: PowerResult
    at: float
    code: str = ""
    text: str = ""
    step: str = ""
    off_seen: bool = False
    on_seen: bool = False
    evidence: tuple[Evidence, ...] = ()
    retry: bool = True
    """False when trying again by itself makes no sense (wrong password, serial mismatch)."""
    steps: tuple[PowerStep, ...] = ()
    """All so far, also while the walk goes on: each is written down as it happens."""
    bmc: BmcFacts | None = None
    """What the BMC told of the machine behind it; None when nothing new."""
    model: BmcModel | None = None
    """What was found about all BMCs of this model; None when nothing."""
