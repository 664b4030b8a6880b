import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from hostler_contract.pb.hostler.v1 import work_pb2 as _work_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CampaignState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAMPAIGN_STATE_UNSPECIFIED: _ClassVar[CampaignState]
    CAMPAIGN_STATE_PENDING: _ClassVar[CampaignState]
    CAMPAIGN_STATE_RUNNING: _ClassVar[CampaignState]
    CAMPAIGN_STATE_PAUSED: _ClassVar[CampaignState]
    CAMPAIGN_STATE_ABORTING: _ClassVar[CampaignState]
    CAMPAIGN_STATE_SUCCEEDED: _ClassVar[CampaignState]
    CAMPAIGN_STATE_INCOMPLETE: _ClassVar[CampaignState]
    CAMPAIGN_STATE_FAILED: _ClassVar[CampaignState]
    CAMPAIGN_STATE_ABORTED: _ClassVar[CampaignState]
CAMPAIGN_STATE_UNSPECIFIED: CampaignState
CAMPAIGN_STATE_PENDING: CampaignState
CAMPAIGN_STATE_RUNNING: CampaignState
CAMPAIGN_STATE_PAUSED: CampaignState
CAMPAIGN_STATE_ABORTING: CampaignState
CAMPAIGN_STATE_SUCCEEDED: CampaignState
CAMPAIGN_STATE_INCOMPLETE: CampaignState
CAMPAIGN_STATE_FAILED: CampaignState
CAMPAIGN_STATE_ABORTED: CampaignState

class Selector(_message.Message):
    __slots__ = ("hosts", "labels", "all")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.RepeatedScalarFieldContainer[str]
    all: bool
    def __init__(self, hosts: _Optional[_Iterable[str]] = ..., labels: _Optional[_Iterable[str]] = ..., all: _Optional[bool] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_down", "rate", "waves", "max_failures", "attempts", "deadline_s", "windows", "soak_s", "drain_timeout_s")
    MAX_DOWN_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    WAVES_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    SOAK_S_FIELD_NUMBER: _ClassVar[int]
    DRAIN_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    max_down: _containers.RepeatedScalarFieldContainer[str]
    rate: str
    waves: str
    max_failures: _containers.RepeatedScalarFieldContainer[str]
    attempts: int
    deadline_s: float
    windows: _containers.RepeatedScalarFieldContainer[str]
    soak_s: float
    drain_timeout_s: float
    def __init__(self, max_down: _Optional[_Iterable[str]] = ..., rate: _Optional[str] = ..., waves: _Optional[str] = ..., max_failures: _Optional[_Iterable[str]] = ..., attempts: _Optional[int] = ..., deadline_s: _Optional[float] = ..., windows: _Optional[_Iterable[str]] = ..., soak_s: _Optional[float] = ..., drain_timeout_s: _Optional[float] = ...) -> None: ...

class CampaignRequest(_message.Message):
    __slots__ = ("operation", "mode", "selector", "limits", "reason", "force", "retry_of")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    RETRY_OF_FIELD_NUMBER: _ClassVar[int]
    operation: _work_pb2.OperationKind
    mode: _work_pb2.RebootMode
    selector: Selector
    limits: Limits
    reason: str
    force: bool
    retry_of: str
    def __init__(self, operation: _Optional[_Union[_work_pb2.OperationKind, str]] = ..., mode: _Optional[_Union[_work_pb2.RebootMode, str]] = ..., selector: _Optional[_Union[Selector, _Mapping]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., reason: _Optional[str] = ..., force: _Optional[bool] = ..., retry_of: _Optional[str] = ...) -> None: ...

class PlanCampaignRequest(_message.Message):
    __slots__ = ("request",)
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: CampaignRequest
    def __init__(self, request: _Optional[_Union[CampaignRequest, _Mapping]] = ...) -> None: ...

class PlanCampaignResponse(_message.Message):
    __slots__ = ("plan",)
    PLAN_FIELD_NUMBER: _ClassVar[int]
    plan: Plan
    def __init__(self, plan: _Optional[_Union[Plan, _Mapping]] = ...) -> None: ...

class PlannedWave(_message.Message):
    __slots__ = ("number", "host_count", "hosts")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    HOST_COUNT_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    number: int
    host_count: int
    hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., host_count: _Optional[int] = ..., hosts: _Optional[_Iterable[str]] = ...) -> None: ...

class PlannedDomain(_message.Message):
    __slots__ = ("domain", "enrolled", "targets", "charged_now", "limit", "limit_from", "rounding", "peak_down", "free")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    ENROLLED_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    CHARGED_NOW_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FROM_FIELD_NUMBER: _ClassVar[int]
    ROUNDING_FIELD_NUMBER: _ClassVar[int]
    PEAK_DOWN_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    domain: str
    enrolled: int
    targets: int
    charged_now: int
    limit: int
    limit_from: str
    rounding: str
    peak_down: int
    free: int
    def __init__(self, domain: _Optional[str] = ..., enrolled: _Optional[int] = ..., targets: _Optional[int] = ..., charged_now: _Optional[int] = ..., limit: _Optional[int] = ..., limit_from: _Optional[str] = ..., rounding: _Optional[str] = ..., peak_down: _Optional[int] = ..., free: _Optional[int] = ...) -> None: ...

class PlannedBlocked(_message.Message):
    __slots__ = ("host", "code", "why")
    HOST_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    host: str
    code: str
    why: str
    def __init__(self, host: _Optional[str] = ..., code: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("plan_token", "target_count", "waves", "domains", "blocked", "expected_duration_s", "expected_from", "notes", "needs_count")
    PLAN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TARGET_COUNT_FIELD_NUMBER: _ClassVar[int]
    WAVES_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_DURATION_S_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FROM_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    NEEDS_COUNT_FIELD_NUMBER: _ClassVar[int]
    plan_token: str
    target_count: int
    waves: _containers.RepeatedCompositeFieldContainer[PlannedWave]
    domains: _containers.RepeatedCompositeFieldContainer[PlannedDomain]
    blocked: _containers.RepeatedCompositeFieldContainer[PlannedBlocked]
    expected_duration_s: float
    expected_from: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    needs_count: bool
    def __init__(self, plan_token: _Optional[str] = ..., target_count: _Optional[int] = ..., waves: _Optional[_Iterable[_Union[PlannedWave, _Mapping]]] = ..., domains: _Optional[_Iterable[_Union[PlannedDomain, _Mapping]]] = ..., blocked: _Optional[_Iterable[_Union[PlannedBlocked, _Mapping]]] = ..., expected_duration_s: _Optional[float] = ..., expected_from: _Optional[str] = ..., notes: _Optional[_Iterable[str]] = ..., needs_count: _Optional[bool] = ...) -> None: ...

class SubmitCampaignRequest(_message.Message):
    __slots__ = ("key", "request", "expect_count", "plan_token", "confirmed")
    KEY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    EXPECT_COUNT_FIELD_NUMBER: _ClassVar[int]
    PLAN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    key: str
    request: CampaignRequest
    expect_count: int
    plan_token: str
    confirmed: bool
    def __init__(self, key: _Optional[str] = ..., request: _Optional[_Union[CampaignRequest, _Mapping]] = ..., expect_count: _Optional[int] = ..., plan_token: _Optional[str] = ..., confirmed: _Optional[bool] = ...) -> None: ...

class SubmitCampaignResponse(_message.Message):
    __slots__ = ("campaign", "repeated_key")
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    REPEATED_KEY_FIELD_NUMBER: _ClassVar[int]
    campaign: Campaign
    repeated_key: bool
    def __init__(self, campaign: _Optional[_Union[Campaign, _Mapping]] = ..., repeated_key: _Optional[bool] = ...) -> None: ...

class Counts(_message.Message):
    __slots__ = ("pending", "running", "succeeded", "failed", "dead_letter", "skipped", "aborted")
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    ABORTED_FIELD_NUMBER: _ClassVar[int]
    pending: int
    running: int
    succeeded: int
    failed: int
    dead_letter: int
    skipped: int
    aborted: int
    def __init__(self, pending: _Optional[int] = ..., running: _Optional[int] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ..., dead_letter: _Optional[int] = ..., skipped: _Optional[int] = ..., aborted: _Optional[int] = ...) -> None: ...

class DomainProgress(_message.Message):
    __slots__ = ("domain", "total", "done", "charged", "limit")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    domain: str
    total: int
    done: int
    charged: int
    limit: int
    def __init__(self, domain: _Optional[str] = ..., total: _Optional[int] = ..., done: _Optional[int] = ..., charged: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class InFlight(_message.Message):
    __slots__ = ("host", "step", "since", "attempt", "detail")
    HOST_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    host: str
    step: str
    since: _timestamp_pb2.Timestamp
    attempt: int
    detail: str
    def __init__(self, host: _Optional[str] = ..., step: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempt: _Optional[int] = ..., detail: _Optional[str] = ...) -> None: ...

class RecentFailure(_message.Message):
    __slots__ = ("host", "at", "cause")
    HOST_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    host: str
    at: _timestamp_pb2.Timestamp
    cause: str
    def __init__(self, host: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cause: _Optional[str] = ...) -> None: ...

class Campaign(_message.Message):
    __slots__ = ("id", "key", "operation", "mode", "state", "state_reason", "created_at", "created_by", "reason", "selector", "limits", "limits_resolved", "target_count", "counts", "eta", "waiting_for", "waiting_code", "waiting_since", "next_step", "next_at", "deadline_at", "started_at", "ended_at", "wave", "wave_count", "domains", "in_flight", "failures", "retry_of", "window_opens_at", "window_closes_at", "as_of", "held_by", "dead_letters_open")
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    TARGET_COUNT_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    ETA_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    WAITING_CODE_FIELD_NUMBER: _ClassVar[int]
    WAITING_SINCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    WAVE_FIELD_NUMBER: _ClassVar[int]
    WAVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    RETRY_OF_FIELD_NUMBER: _ClassVar[int]
    WINDOW_OPENS_AT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_CLOSES_AT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_OPEN_FIELD_NUMBER: _ClassVar[int]
    id: str
    key: str
    operation: _work_pb2.OperationKind
    mode: _work_pb2.RebootMode
    state: CampaignState
    state_reason: str
    created_at: _timestamp_pb2.Timestamp
    created_by: str
    reason: str
    selector: Selector
    limits: Limits
    limits_resolved: _containers.RepeatedScalarFieldContainer[str]
    target_count: int
    counts: Counts
    eta: _timestamp_pb2.Timestamp
    waiting_for: str
    waiting_code: str
    waiting_since: _timestamp_pb2.Timestamp
    next_step: str
    next_at: _timestamp_pb2.Timestamp
    deadline_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    wave: int
    wave_count: int
    domains: _containers.RepeatedCompositeFieldContainer[DomainProgress]
    in_flight: _containers.RepeatedCompositeFieldContainer[InFlight]
    failures: _containers.RepeatedCompositeFieldContainer[RecentFailure]
    retry_of: str
    window_opens_at: _timestamp_pb2.Timestamp
    window_closes_at: _timestamp_pb2.Timestamp
    as_of: _timestamp_pb2.Timestamp
    held_by: str
    dead_letters_open: int
    def __init__(self, id: _Optional[str] = ..., key: _Optional[str] = ..., operation: _Optional[_Union[_work_pb2.OperationKind, str]] = ..., mode: _Optional[_Union[_work_pb2.RebootMode, str]] = ..., state: _Optional[_Union[CampaignState, str]] = ..., state_reason: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_by: _Optional[str] = ..., reason: _Optional[str] = ..., selector: _Optional[_Union[Selector, _Mapping]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., limits_resolved: _Optional[_Iterable[str]] = ..., target_count: _Optional[int] = ..., counts: _Optional[_Union[Counts, _Mapping]] = ..., eta: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., waiting_for: _Optional[str] = ..., waiting_code: _Optional[str] = ..., waiting_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_step: _Optional[str] = ..., next_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deadline_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., wave: _Optional[int] = ..., wave_count: _Optional[int] = ..., domains: _Optional[_Iterable[_Union[DomainProgress, _Mapping]]] = ..., in_flight: _Optional[_Iterable[_Union[InFlight, _Mapping]]] = ..., failures: _Optional[_Iterable[_Union[RecentFailure, _Mapping]]] = ..., retry_of: _Optional[str] = ..., window_opens_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., window_closes_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., held_by: _Optional[str] = ..., dead_letters_open: _Optional[int] = ...) -> None: ...

class GetCampaignRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetCampaignResponse(_message.Message):
    __slots__ = ("campaign",)
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    campaign: Campaign
    def __init__(self, campaign: _Optional[_Union[Campaign, _Mapping]] = ...) -> None: ...

class ListCampaignsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[CampaignState]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[CampaignState, str]]] = ...) -> None: ...

class ListCampaignsResponse(_message.Message):
    __slots__ = ("campaigns", "next_page_token", "as_of")
    CAMPAIGNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    campaigns: _containers.RepeatedCompositeFieldContainer[Campaign]
    next_page_token: str
    as_of: _timestamp_pb2.Timestamp
    def __init__(self, campaigns: _Optional[_Iterable[_Union[Campaign, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class WatchCampaignRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class WatchCampaignResponse(_message.Message):
    __slots__ = ("campaign",)
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    campaign: Campaign
    def __init__(self, campaign: _Optional[_Union[Campaign, _Mapping]] = ...) -> None: ...

class PauseCampaignRequest(_message.Message):
    __slots__ = ("id", "reason", "dry_run")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    dry_run: bool
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class Consequence(_message.Message):
    __slots__ = ("kind", "host_count", "hosts", "text")
    KIND_FIELD_NUMBER: _ClassVar[int]
    HOST_COUNT_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    host_count: int
    hosts: _containers.RepeatedScalarFieldContainer[str]
    text: str
    def __init__(self, kind: _Optional[str] = ..., host_count: _Optional[int] = ..., hosts: _Optional[_Iterable[str]] = ..., text: _Optional[str] = ...) -> None: ...

class PauseCampaignResponse(_message.Message):
    __slots__ = ("campaign", "consequences")
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    CONSEQUENCES_FIELD_NUMBER: _ClassVar[int]
    campaign: Campaign
    consequences: _containers.RepeatedCompositeFieldContainer[Consequence]
    def __init__(self, campaign: _Optional[_Union[Campaign, _Mapping]] = ..., consequences: _Optional[_Iterable[_Union[Consequence, _Mapping]]] = ...) -> None: ...

class ResumeCampaignRequest(_message.Message):
    __slots__ = ("id", "reason", "dry_run")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    dry_run: bool
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class ResumeCampaignResponse(_message.Message):
    __slots__ = ("campaign", "consequences")
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    CONSEQUENCES_FIELD_NUMBER: _ClassVar[int]
    campaign: Campaign
    consequences: _containers.RepeatedCompositeFieldContainer[Consequence]
    def __init__(self, campaign: _Optional[_Union[Campaign, _Mapping]] = ..., consequences: _Optional[_Iterable[_Union[Consequence, _Mapping]]] = ...) -> None: ...

class AbortCampaignRequest(_message.Message):
    __slots__ = ("id", "reason", "dry_run")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    dry_run: bool
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class AbortCampaignResponse(_message.Message):
    __slots__ = ("campaign", "consequences")
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    CONSEQUENCES_FIELD_NUMBER: _ClassVar[int]
    campaign: Campaign
    consequences: _containers.RepeatedCompositeFieldContainer[Consequence]
    def __init__(self, campaign: _Optional[_Union[Campaign, _Mapping]] = ..., consequences: _Optional[_Iterable[_Union[Consequence, _Mapping]]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("id", "campaign_id", "host_id", "host", "state", "since", "step", "attempt", "token", "boot_before", "boot_after", "deadline_at", "next_attempt_at", "reason", "reason_code", "evidence", "wave", "started_at", "ended_at", "waiting_for")
    ID_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    BOOT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    BOOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_AT_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REASON_CODE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    WAVE_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    id: str
    campaign_id: str
    host_id: str
    host: str
    state: _work_pb2.TaskState
    since: _timestamp_pb2.Timestamp
    step: str
    attempt: int
    token: _work_pb2.Token
    boot_before: str
    boot_after: str
    deadline_at: _timestamp_pb2.Timestamp
    next_attempt_at: _timestamp_pb2.Timestamp
    reason: str
    reason_code: str
    evidence: _containers.RepeatedCompositeFieldContainer[_work_pb2.Evidence]
    wave: int
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    waiting_for: str
    def __init__(self, id: _Optional[str] = ..., campaign_id: _Optional[str] = ..., host_id: _Optional[str] = ..., host: _Optional[str] = ..., state: _Optional[_Union[_work_pb2.TaskState, str]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., step: _Optional[str] = ..., attempt: _Optional[int] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., boot_before: _Optional[str] = ..., boot_after: _Optional[str] = ..., deadline_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_attempt_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., reason_code: _Optional[str] = ..., evidence: _Optional[_Iterable[_Union[_work_pb2.Evidence, _Mapping]]] = ..., wave: _Optional[int] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., waiting_for: _Optional[str] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("campaign_id", "page_size", "page_token", "states", "host")
    CAMPAIGN_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    campaign_id: str
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[_work_pb2.TaskState]
    host: str
    def __init__(self, campaign_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_work_pb2.TaskState, str]]] = ..., host: _Optional[str] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks", "next_page_token", "as_of")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    next_page_token: str
    as_of: _timestamp_pb2.Timestamp
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("campaign_id", "host")
    CAMPAIGN_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    campaign_id: str
    host: str
    def __init__(self, campaign_id: _Optional[str] = ..., host: _Optional[str] = ...) -> None: ...

class GetTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...
