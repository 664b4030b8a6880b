"""What the API answers with, one model per message of the protos; what is stored lives in the other rooms."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from hostler_contract.campaigns import CampaignState, Limits, Selector
from hostler_contract.hosts import BmcRef, Condition, HoldKind, HostFacts
from hostler_contract.moments import Instant
from hostler_contract.shapes import Value
from hostler_contract.work import (
    DeadLetterState,
    Evidence,
    OperationKind,
    RebootMode,
    Resolution,
    TaskState,
    Token,
    Verdict,
)


class PlannedWave(Value):
    """One wave of a plan; `hosts` shows the first 20."""

    number: int
    host_count: int
    hosts: tuple[str, ...] = ()


class PlannedDomain(Value):
    """What a plan does to one domain."""

    domain: str
    enrolled: int
    targets: int
    charged_now: int
    limit: int
    limit_from: str
    rounding: str = ""
    peak_down: int = 0
    free: int = 0


class PlannedBlocked(Value):
    """A target that would not start now, and why."""

    host: str
    code: str
    why: str


class Plan(Value):
    """What would happen; nothing has been changed."""

    plan_token: str
    target_count: int
    waves: tuple[PlannedWave, ...] = ()
    domains: tuple[PlannedDomain, ...] = ()
    blocked: tuple[PlannedBlocked, ...] = ()
    expected_duration_s: float = 0.0
    expected_from: str = ""
    notes: tuple[str, ...] = ()
    needs_count: bool = False


class Counts(Value):
    """Targets by state."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    dead_letter: int = 0
    skipped: int = 0
    aborted: int = 0


class DomainProgress(Value):
    """One domain's share of a campaign."""

    domain: str
    total: int
    done: int
    charged: int
    limit: int


class InFlight(Value):
    """A host being worked on."""

    host: str
    step: str
    since: Instant
    attempt: int = 0
    detail: str = ""


class RecentFailure(Value):
    """A host that ended badly."""

    host: str
    at: Instant
    cause: str


class Campaign(Value):
    """A campaign as operators see it."""

    id: str
    key: str
    operation: OperationKind
    mode: RebootMode
    state: CampaignState
    state_reason: str = ""
    created_at: Instant
    created_by: str
    reason: str = ""
    selector: Selector = Selector()
    limits: Limits = Limits()
    limits_resolved: tuple[str, ...] = ()
    target_count: int
    counts: Counts = Counts()
    eta: Instant | None = None
    waiting_for: str = ""
    waiting_code: str = ""
    waiting_since: Instant | None = None
    next_step: str = ""
    next_at: Instant | None = None
    deadline_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    wave: int = 0
    wave_count: int = 0
    domains: tuple[DomainProgress, ...] = ()
    in_flight: tuple[InFlight, ...] = ()
    failures: tuple[RecentFailure, ...] = ()
    retry_of: str = ""
    window_opens_at: Instant | None = None
    window_closes_at: Instant | None = None
    as_of: Instant
    held_by: str = ""
    dead_letters_open: int = 0


class Consequence(Value):
    """Part of what is still going to happen; `hosts` shows the first 50."""

    kind: str
    host_count: int
    hosts: tuple[str, ...] = ()
    text: str


class Task(Value):
    """A task as operators see it."""

    id: str
    campaign_id: str
    host_id: str
    host: str
    state: TaskState
    since: Instant | None = None
    step: str = ""
    attempt: int = 0
    token: Token | None = None
    boot_before: str = ""
    boot_after: str = ""
    deadline_at: Instant | None = None
    next_attempt_at: Instant | None = None
    reason: str = ""
    reason_code: str = ""
    evidence: tuple[Evidence, ...] = ()
    wave: int = 0
    started_at: Instant | None = None
    ended_at: Instant | None = None
    waiting_for: str = ""


class BmcSeen(Value):
    """What a host's BMC told of the machine behind it, as stored; `graceful` says why no soft off is sent to it."""

    system: str = ""
    system_uuid: str = ""
    chosen_by: str = ""
    manufacturer: str = ""
    model: str = ""
    at: Instant | None = None
    graceful: str = ""


class Host(Value):
    """A host as operators see it."""

    id: str
    name: str
    fabric: str = ""
    rack: str = ""
    feeds: tuple[str, ...] = ()
    site: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    model: str = ""
    address: str = ""
    serial: str = ""
    bmc: BmcRef | None = None
    state: str = ""
    verdict: Verdict = Verdict.UNKNOWN
    boot_id: str = ""
    last_heard_at: Instant | None = None
    enrolled_at: Instant
    drained_by: str = ""
    drain_reason: str = ""
    note: str = ""
    charged_to: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    condition: Condition | None = None
    facts: HostFacts | None = None
    task_id: str = ""
    token: Token | None = None
    system_uuid: str = ""
    bmc_seen: BmcSeen | None = None


class HostCause(Value):
    """One cause that stands between a host and its work, with its own next step."""

    code: str
    text: str
    held_by: str = ""
    since: Instant | None = None
    next_step: str = ""
    next_at: Instant | None = None


class HostWhy(Value):
    """What a host is waiting for, who holds it, since when, and what happens next; `causes` has them one by one."""

    host: str
    host_id: str
    state: str
    verdict: Verdict = Verdict.UNKNOWN
    boot_id: str = ""
    waiting_for: str = ""
    code: str = ""
    held_by: str = ""
    since: Instant | None = None
    next_step: str = ""
    next_at: Instant | None = None
    charged_to: tuple[str, ...] = ()
    campaign_id: str = ""
    task_state: TaskState | None = None
    as_of: Instant
    causes: tuple[HostCause, ...] = ()


class InventoryChange(Value):
    """One difference between a file and what is known."""

    kind: str
    host_id: str
    name: str
    fields: tuple[str, ...] = ()


class Imported(Value):
    """What an inventory file changes: as many differences as an answer holds, and the totals of them all."""

    changes: tuple[InventoryChange, ...] = ()
    unchanged: int = 0
    applied: bool = False
    added: int = 0
    changed: int = 0
    removed: int = 0
    fleet: int = 0
    """Enrolled hosts before it."""
    needs_count: bool = False
    """The exact number of removed hosts must be stated."""


class Drained(Value):
    """Hosts that a person takes out of service, and the domains that this puts over their budgets, with the holders."""

    hosts: tuple[str, ...] = ()
    over_budget: tuple[str, ...] = ()


class ChargeHolder(Value):
    """A host that is out of service, and why."""

    host: str
    cause: str
    since: Instant


class Domain(Value):
    """A failure domain as operators see it."""

    name: str
    kind: str
    enrolled: int
    charged: int
    limit: int
    limit_from: str
    budget: str = ""
    rounding: str = ""
    holders: tuple[ChargeHolder, ...] = ()
    brake: str = ""


class Hold(Value):
    """A hold as operators see it."""

    id: str
    host_id: str
    host: str
    kind: HoldKind
    reason: str
    owner: str
    at: Instant
    until: Instant | None = None


class DeadLetter(Value):
    """A dead letter as operators see it."""

    id: str
    campaign_id: str
    host_id: str
    host: str
    at: Instant
    cause: str
    text: str
    suggestion: str
    evidence: tuple[Evidence, ...] = ()
    state: DeadLetterState
    resolution: Resolution | None = None
    retried_by: str = ""
    attempts: int = 0


class AuditEntry(Value):
    """An audit entry as operators see it."""

    id: str
    at: Instant
    actor: str
    action: str
    host: str = ""
    campaign_id: str = ""
    reason: str = ""
    result: str = ""
    detail: str = ""
    host_id: str = ""


class BmcVerb(StrEnum):
    """What a probe of a BMC does; none of these changes power."""

    POWER_STATE = "power_state"
    LOCATE_ON = "locate_on"
    LOCATE_OFF = "locate_off"
    VERIFY_SERIAL = "verify_serial"


class BmcProbe(Value):
    """What a BMC answered."""

    power: str = "unknown"
    conditions: tuple[str, ...] = ()
    fault: str = ""
    text: str = ""
    at: Instant
    bmc_seen: BmcSeen | None = None


class Status(Value):
    """How the control plane itself is."""

    coordinator: str
    leader: str = ""
    leader_address: str = ""
    leader_since: Instant | None = None
    store_unavailable_since: Instant | None = None
    store_problem: str = ""
    hosts: int = 0
    hosts_heard: int | None = None
    """None: unknown, as whoever answers does not lead."""
    campaigns_running: int = 0
    dead_letters_open: int = 0
    brakes: tuple[str, ...] = ()
    now: Instant
    version: str = ""
    leaderless_since: Instant | None = None
    leader_problem: str = ""
    next_step: str = ""
    hosts_dead: int = 0
    hosts_out_of_service: int = 0
