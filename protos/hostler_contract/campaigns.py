"""Campaigns as asked, as resolved and as stored; how limits are read and counted lives in the coordinator."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from hostler_contract.moments import Instant
from hostler_contract.shapes import Record, Value
from hostler_contract.work import OperationKind, RebootMode


class CampaignState(StrEnum):
    """Where a campaign stands."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    ABORTING = "aborting"
    SUCCEEDED = "succeeded"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    ABORTED = "aborted"


ENDED = frozenset({CampaignState.SUCCEEDED, CampaignState.INCOMPLETE, CampaignState.FAILED, CampaignState.ABORTED})
"""States that nothing leaves."""


class Selector(Value):
    """Which hosts, as typed."""

    hosts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    all: bool = False


class Limits(Value):
    """Limits as typed by the operator; see `campaign.proto` for the forms."""

    max_down: tuple[str, ...] = ()
    rate: str = ""
    waves: str = ""
    max_failures: tuple[str, ...] = ()
    attempts: int = 0
    deadline_s: float = 0.0
    windows: tuple[str, ...] = ()
    soak_s: float = 0.0
    drain_timeout_s: float = 0.0


class CampaignRequest(Value):
    """What the operator asks for; its digest goes with the idempotency key."""

    operation: OperationKind = OperationKind.REBOOT
    mode: RebootMode = RebootMode.SOFT
    selector: Selector = Selector()
    limits: Limits = Limits()
    reason: str = ""
    force: bool = False
    retry_of: str = ""


class Window(Value):
    """A weekly maintenance window in one time zone; wall-clock minutes since midnight of `weekday` (Monday = 0)."""

    text: str
    weekdays: tuple[int, ...]
    start_minute: int
    end_minute: int
    """May be at most 1440 more than `start_minute`: a window may cross midnight."""
    zone: str


class ResolvedLimits(Value):
    """Limits as counts, fixed at submit. Domains are `kind/name`; `total` counts among the campaign's targets."""

    domains: dict[str, int] = Field(default_factory=dict)
    total: int | None = None
    starts_per_minute: float | None = None
    wave_sizes: tuple[int, ...] = ()
    """Sizes of all waves in order, summing to the number of targets; empty means one wave."""
    max_failures: int | None = None
    max_failures_by_domain: dict[str, int] = Field(default_factory=dict)
    attempts: int = 2
    windows: tuple[Window, ...] = ()
    soak_s: float = 0.0
    drain_timeout_s: float = 900.0
    words: tuple[str, ...] = ()
    """Each limit in words, its rounding included."""


class CampaignRecord(Record):
    """Key: `campaigns/<id>`. Targets are stored beside it in immutable chunks."""

    id: str
    key: str
    caller: str
    digest: str
    request: CampaignRequest
    limits: ResolvedLimits
    state: CampaignState = CampaignState.PENDING
    state_reason: str = ""
    state_since: Instant
    paused_by_rule: bool = False
    """Paused by its own limit rather than by a person; a person is called."""
    created_at: Instant
    deadline_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    target_count: int
    chunk_count: int
    summary: dict[str, int] | None = None
    """Targets by the state they ended in, once their tasks are kept no longer."""
    failures_forgiven: int = 0
    """Failures counted before the last resume; the failure limit counts anew from there."""


class Targets(Record):
    """One immutable chunk of a campaign's targets, in order. Key: `targets/<campaign>/<chunk as 5 digits>`."""

    campaign: str
    chunk: int
    hosts: tuple[str, ...]


class KeyRecord(Record):
    """An idempotency key and its result. Key: `keys/<sha-256 of caller and key>`. Outlives the campaign."""

    caller: str
    key: str
    digest: str
    campaign: str
    at: Instant


class LeaderRecord(Record):
    """Value of the leader key."""

    name: str
    address: str
    since: Instant


class EpochRecord(Record):
    """Restore epoch, raised when the store is restored from a backup. Key: `epoch`."""

    epoch: int = 0
    at: Instant
    by: str


class AuditRecord(Record):
    """Append-only. Key: `audit/<time in microseconds as 20 digits>-<suffix>`."""

    id: str
    at: Instant
    actor: str
    action: str
    host: str = ""
    campaign: str = ""
    reason: str = ""
    result: str = "done"
    detail: str = ""


class BrakeRelease(Record):
    """A person let out-of-band action go on for a host in spite of mass silence. Key: `releases/<host>`."""

    host: str
    by: str
    reason: str
    at: Instant
    until: Instant
