import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from hostler_contract.pb.hostler.v1 import agent_pb2 as _agent_pb2
from hostler_contract.pb.hostler.v1 import campaign_pb2 as _campaign_pb2
from hostler_contract.pb.hostler.v1 import work_pb2 as _work_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HoldKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOLD_KIND_UNSPECIFIED: _ClassVar[HoldKind]
    HOLD_KIND_HANDS_OFF: _ClassVar[HoldKind]
    HOLD_KIND_FIRMWARE: _ClassVar[HoldKind]
    HOLD_KIND_CRASH_DUMP: _ClassVar[HoldKind]
HOLD_KIND_UNSPECIFIED: HoldKind
HOLD_KIND_HANDS_OFF: HoldKind
HOLD_KIND_FIRMWARE: HoldKind
HOLD_KIND_CRASH_DUMP: HoldKind

class Bmc(_message.Message):
    __slots__ = ("protocol", "address", "port", "credentials", "serial")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    protocol: str
    address: str
    port: int
    credentials: str
    serial: str
    def __init__(self, protocol: _Optional[str] = ..., address: _Optional[str] = ..., port: _Optional[int] = ..., credentials: _Optional[str] = ..., serial: _Optional[str] = ...) -> None: ...

class BmcSeen(_message.Message):
    __slots__ = ("system", "system_uuid", "chosen_by", "manufacturer", "model", "at", "graceful")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_UUID_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_BY_FIELD_NUMBER: _ClassVar[int]
    MANUFACTURER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    GRACEFUL_FIELD_NUMBER: _ClassVar[int]
    system: str
    system_uuid: str
    chosen_by: str
    manufacturer: str
    model: str
    at: _timestamp_pb2.Timestamp
    graceful: str
    def __init__(self, system: _Optional[str] = ..., system_uuid: _Optional[str] = ..., chosen_by: _Optional[str] = ..., manufacturer: _Optional[str] = ..., model: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., graceful: _Optional[str] = ...) -> None: ...

class Host(_message.Message):
    __slots__ = ("id", "name", "fabric", "rack", "feeds", "site", "labels", "model", "address", "serial", "bmc", "state", "verdict", "boot_id", "last_heard_at", "enrolled_at", "drained_by", "drain_reason", "note", "charged_to", "flags", "condition", "facts", "task_id", "token", "system_uuid", "bmc_seen")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FABRIC_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    SITE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    BMC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARD_AT_FIELD_NUMBER: _ClassVar[int]
    ENROLLED_AT_FIELD_NUMBER: _ClassVar[int]
    DRAINED_BY_FIELD_NUMBER: _ClassVar[int]
    DRAIN_REASON_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    CHARGED_TO_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_UUID_FIELD_NUMBER: _ClassVar[int]
    BMC_SEEN_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    fabric: str
    rack: str
    feeds: _containers.RepeatedScalarFieldContainer[str]
    site: str
    labels: _containers.ScalarMap[str, str]
    model: str
    address: str
    serial: str
    bmc: Bmc
    state: str
    verdict: _work_pb2.Verdict
    boot_id: str
    last_heard_at: _timestamp_pb2.Timestamp
    enrolled_at: _timestamp_pb2.Timestamp
    drained_by: str
    drain_reason: str
    note: str
    charged_to: _containers.RepeatedScalarFieldContainer[str]
    flags: _containers.RepeatedScalarFieldContainer[str]
    condition: _agent_pb2.Condition
    facts: _agent_pb2.HostFacts
    task_id: str
    token: _work_pb2.Token
    system_uuid: str
    bmc_seen: BmcSeen
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., fabric: _Optional[str] = ..., rack: _Optional[str] = ..., feeds: _Optional[_Iterable[str]] = ..., site: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., model: _Optional[str] = ..., address: _Optional[str] = ..., serial: _Optional[str] = ..., bmc: _Optional[_Union[Bmc, _Mapping]] = ..., state: _Optional[str] = ..., verdict: _Optional[_Union[_work_pb2.Verdict, str]] = ..., boot_id: _Optional[str] = ..., last_heard_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., enrolled_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., drained_by: _Optional[str] = ..., drain_reason: _Optional[str] = ..., note: _Optional[str] = ..., charged_to: _Optional[_Iterable[str]] = ..., flags: _Optional[_Iterable[str]] = ..., condition: _Optional[_Union[_agent_pb2.Condition, _Mapping]] = ..., facts: _Optional[_Union[_agent_pb2.HostFacts, _Mapping]] = ..., task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., system_uuid: _Optional[str] = ..., bmc_seen: _Optional[_Union[BmcSeen, _Mapping]] = ...) -> None: ...

class ListHostsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "selector", "states")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    selector: _campaign_pb2.Selector
    states: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., selector: _Optional[_Union[_campaign_pb2.Selector, _Mapping]] = ..., states: _Optional[_Iterable[str]] = ...) -> None: ...

class ListHostsResponse(_message.Message):
    __slots__ = ("hosts", "next_page_token", "as_of")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[Host]
    next_page_token: str
    as_of: _timestamp_pb2.Timestamp
    def __init__(self, hosts: _Optional[_Iterable[_Union[Host, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetHostRequest(_message.Message):
    __slots__ = ("host",)
    HOST_FIELD_NUMBER: _ClassVar[int]
    host: str
    def __init__(self, host: _Optional[str] = ...) -> None: ...

class GetHostResponse(_message.Message):
    __slots__ = ("host",)
    HOST_FIELD_NUMBER: _ClassVar[int]
    host: Host
    def __init__(self, host: _Optional[_Union[Host, _Mapping]] = ...) -> None: ...

class HostCause(_message.Message):
    __slots__ = ("code", "text", "held_by", "since", "next_step", "next_at")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_FIELD_NUMBER: _ClassVar[int]
    code: str
    text: str
    held_by: str
    since: _timestamp_pb2.Timestamp
    next_step: str
    next_at: _timestamp_pb2.Timestamp
    def __init__(self, code: _Optional[str] = ..., text: _Optional[str] = ..., held_by: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_step: _Optional[str] = ..., next_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class HostWhy(_message.Message):
    __slots__ = ("host", "host_id", "state", "verdict", "boot_id", "waiting_for", "code", "held_by", "since", "next_step", "next_at", "charged_to", "campaign_id", "task_state", "as_of", "causes")
    HOST_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_FIELD_NUMBER: _ClassVar[int]
    CHARGED_TO_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_STATE_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    host: str
    host_id: str
    state: str
    verdict: _work_pb2.Verdict
    boot_id: str
    waiting_for: str
    code: str
    held_by: str
    since: _timestamp_pb2.Timestamp
    next_step: str
    next_at: _timestamp_pb2.Timestamp
    charged_to: _containers.RepeatedScalarFieldContainer[str]
    campaign_id: str
    task_state: _work_pb2.TaskState
    as_of: _timestamp_pb2.Timestamp
    causes: _containers.RepeatedCompositeFieldContainer[HostCause]
    def __init__(self, host: _Optional[str] = ..., host_id: _Optional[str] = ..., state: _Optional[str] = ..., verdict: _Optional[_Union[_work_pb2.Verdict, str]] = ..., boot_id: _Optional[str] = ..., waiting_for: _Optional[str] = ..., code: _Optional[str] = ..., held_by: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_step: _Optional[str] = ..., next_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., charged_to: _Optional[_Iterable[str]] = ..., campaign_id: _Optional[str] = ..., task_state: _Optional[_Union[_work_pb2.TaskState, str]] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., causes: _Optional[_Iterable[_Union[HostCause, _Mapping]]] = ...) -> None: ...

class ExplainHostRequest(_message.Message):
    __slots__ = ("host",)
    HOST_FIELD_NUMBER: _ClassVar[int]
    host: str
    def __init__(self, host: _Optional[str] = ...) -> None: ...

class ExplainHostResponse(_message.Message):
    __slots__ = ("why",)
    WHY_FIELD_NUMBER: _ClassVar[int]
    why: HostWhy
    def __init__(self, why: _Optional[_Union[HostWhy, _Mapping]] = ...) -> None: ...

class DrainHostsRequest(_message.Message):
    __slots__ = ("selector", "reason", "dry_run", "force")
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    selector: _campaign_pb2.Selector
    reason: str
    dry_run: bool
    force: bool
    def __init__(self, selector: _Optional[_Union[_campaign_pb2.Selector, _Mapping]] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ..., force: _Optional[bool] = ...) -> None: ...

class DrainHostsResponse(_message.Message):
    __slots__ = ("hosts", "over_budget")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    OVER_BUDGET_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedScalarFieldContainer[str]
    over_budget: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hosts: _Optional[_Iterable[str]] = ..., over_budget: _Optional[_Iterable[str]] = ...) -> None: ...

class UndrainHostsRequest(_message.Message):
    __slots__ = ("selector", "reason", "dry_run")
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    selector: _campaign_pb2.Selector
    reason: str
    dry_run: bool
    def __init__(self, selector: _Optional[_Union[_campaign_pb2.Selector, _Mapping]] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class UndrainHostsResponse(_message.Message):
    __slots__ = ("hosts",)
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hosts: _Optional[_Iterable[str]] = ...) -> None: ...

class NoteHostRequest(_message.Message):
    __slots__ = ("host", "note", "reason", "dry_run")
    HOST_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    host: str
    note: str
    reason: str
    dry_run: bool
    def __init__(self, host: _Optional[str] = ..., note: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class NoteHostResponse(_message.Message):
    __slots__ = ("host",)
    HOST_FIELD_NUMBER: _ClassVar[int]
    host: Host
    def __init__(self, host: _Optional[_Union[Host, _Mapping]] = ...) -> None: ...

class RetireHostRequest(_message.Message):
    __slots__ = ("host", "ticket", "reason", "dry_run")
    HOST_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    host: str
    ticket: str
    reason: str
    dry_run: bool
    def __init__(self, host: _Optional[str] = ..., ticket: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class RetireHostResponse(_message.Message):
    __slots__ = ("host", "consequence")
    HOST_FIELD_NUMBER: _ClassVar[int]
    CONSEQUENCE_FIELD_NUMBER: _ClassVar[int]
    host: Host
    consequence: str
    def __init__(self, host: _Optional[_Union[Host, _Mapping]] = ..., consequence: _Optional[str] = ...) -> None: ...

class RebindHostRequest(_message.Message):
    __slots__ = ("host", "serial", "bmc", "reason", "dry_run")
    HOST_FIELD_NUMBER: _ClassVar[int]
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    BMC_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    host: str
    serial: str
    bmc: Bmc
    reason: str
    dry_run: bool
    def __init__(self, host: _Optional[str] = ..., serial: _Optional[str] = ..., bmc: _Optional[_Union[Bmc, _Mapping]] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class RebindHostResponse(_message.Message):
    __slots__ = ("host",)
    HOST_FIELD_NUMBER: _ClassVar[int]
    host: Host
    def __init__(self, host: _Optional[_Union[Host, _Mapping]] = ...) -> None: ...

class RemoveHostRequest(_message.Message):
    __slots__ = ("host", "reason", "dry_run")
    HOST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    host: str
    reason: str
    dry_run: bool
    def __init__(self, host: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class RemoveHostResponse(_message.Message):
    __slots__ = ("host_id", "consequence")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    CONSEQUENCE_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    consequence: str
    def __init__(self, host_id: _Optional[str] = ..., consequence: _Optional[str] = ...) -> None: ...

class ImportInventoryRequest(_message.Message):
    __slots__ = ("content", "format", "dry_run", "remove_missing", "reason", "expect_removed")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REMOVE_MISSING_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EXPECT_REMOVED_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    format: str
    dry_run: bool
    remove_missing: bool
    reason: str
    expect_removed: int
    def __init__(self, content: _Optional[bytes] = ..., format: _Optional[str] = ..., dry_run: _Optional[bool] = ..., remove_missing: _Optional[bool] = ..., reason: _Optional[str] = ..., expect_removed: _Optional[int] = ...) -> None: ...

class InventoryChange(_message.Message):
    __slots__ = ("kind", "host_id", "name", "fields")
    KIND_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    host_id: str
    name: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, kind: _Optional[str] = ..., host_id: _Optional[str] = ..., name: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportInventoryResponse(_message.Message):
    __slots__ = ("changes", "unchanged", "applied", "added", "changed", "removed", "fleet", "needs_count")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    FLEET_FIELD_NUMBER: _ClassVar[int]
    NEEDS_COUNT_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[InventoryChange]
    unchanged: int
    applied: bool
    added: int
    changed: int
    removed: int
    fleet: int
    needs_count: bool
    def __init__(self, changes: _Optional[_Iterable[_Union[InventoryChange, _Mapping]]] = ..., unchanged: _Optional[int] = ..., applied: _Optional[bool] = ..., added: _Optional[int] = ..., changed: _Optional[int] = ..., removed: _Optional[int] = ..., fleet: _Optional[int] = ..., needs_count: _Optional[bool] = ...) -> None: ...

class ProbeBmcRequest(_message.Message):
    __slots__ = ("host", "verb", "reason")
    class Verb(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERB_UNSPECIFIED: _ClassVar[ProbeBmcRequest.Verb]
        VERB_POWER_STATE: _ClassVar[ProbeBmcRequest.Verb]
        VERB_LOCATE_ON: _ClassVar[ProbeBmcRequest.Verb]
        VERB_LOCATE_OFF: _ClassVar[ProbeBmcRequest.Verb]
        VERB_VERIFY_SERIAL: _ClassVar[ProbeBmcRequest.Verb]
    VERB_UNSPECIFIED: ProbeBmcRequest.Verb
    VERB_POWER_STATE: ProbeBmcRequest.Verb
    VERB_LOCATE_ON: ProbeBmcRequest.Verb
    VERB_LOCATE_OFF: ProbeBmcRequest.Verb
    VERB_VERIFY_SERIAL: ProbeBmcRequest.Verb
    HOST_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    host: str
    verb: ProbeBmcRequest.Verb
    reason: str
    def __init__(self, host: _Optional[str] = ..., verb: _Optional[_Union[ProbeBmcRequest.Verb, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class ProbeBmcResponse(_message.Message):
    __slots__ = ("power", "conditions", "fault", "text", "at", "bmc_seen")
    POWER_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    BMC_SEEN_FIELD_NUMBER: _ClassVar[int]
    power: str
    conditions: _containers.RepeatedScalarFieldContainer[str]
    fault: str
    text: str
    at: _timestamp_pb2.Timestamp
    bmc_seen: BmcSeen
    def __init__(self, power: _Optional[str] = ..., conditions: _Optional[_Iterable[str]] = ..., fault: _Optional[str] = ..., text: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., bmc_seen: _Optional[_Union[BmcSeen, _Mapping]] = ...) -> None: ...

class Domain(_message.Message):
    __slots__ = ("name", "kind", "enrolled", "charged", "limit", "limit_from", "budget", "rounding", "holders", "brake")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ENROLLED_FIELD_NUMBER: _ClassVar[int]
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FROM_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    ROUNDING_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    BRAKE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    enrolled: int
    charged: int
    limit: int
    limit_from: str
    budget: str
    rounding: str
    holders: _containers.RepeatedCompositeFieldContainer[ChargeHolder]
    brake: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., enrolled: _Optional[int] = ..., charged: _Optional[int] = ..., limit: _Optional[int] = ..., limit_from: _Optional[str] = ..., budget: _Optional[str] = ..., rounding: _Optional[str] = ..., holders: _Optional[_Iterable[_Union[ChargeHolder, _Mapping]]] = ..., brake: _Optional[str] = ...) -> None: ...

class ChargeHolder(_message.Message):
    __slots__ = ("host", "cause", "since")
    HOST_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    host: str
    cause: str
    since: _timestamp_pb2.Timestamp
    def __init__(self, host: _Optional[str] = ..., cause: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListDomainsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "kind")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    kind: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., kind: _Optional[str] = ...) -> None: ...

class ListDomainsResponse(_message.Message):
    __slots__ = ("domains", "next_page_token", "as_of")
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    domains: _containers.RepeatedCompositeFieldContainer[Domain]
    next_page_token: str
    as_of: _timestamp_pb2.Timestamp
    def __init__(self, domains: _Optional[_Iterable[_Union[Domain, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetDomainRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetDomainResponse(_message.Message):
    __slots__ = ("domain",)
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    domain: Domain
    def __init__(self, domain: _Optional[_Union[Domain, _Mapping]] = ...) -> None: ...

class SetDomainBudgetRequest(_message.Message):
    __slots__ = ("name", "budget", "reason", "dry_run")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    name: str
    budget: str
    reason: str
    dry_run: bool
    def __init__(self, name: _Optional[str] = ..., budget: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class SetDomainBudgetResponse(_message.Message):
    __slots__ = ("domain",)
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    domain: Domain
    def __init__(self, domain: _Optional[_Union[Domain, _Mapping]] = ...) -> None: ...

class Hold(_message.Message):
    __slots__ = ("id", "host_id", "host", "kind", "reason", "owner", "at", "until")
    ID_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    id: str
    host_id: str
    host: str
    kind: HoldKind
    reason: str
    owner: str
    at: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., host_id: _Optional[str] = ..., host: _Optional[str] = ..., kind: _Optional[_Union[HoldKind, str]] = ..., reason: _Optional[str] = ..., owner: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AddHoldRequest(_message.Message):
    __slots__ = ("selector", "kind", "reason", "until", "dry_run", "key")
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    selector: _campaign_pb2.Selector
    kind: HoldKind
    reason: str
    until: _timestamp_pb2.Timestamp
    dry_run: bool
    key: str
    def __init__(self, selector: _Optional[_Union[_campaign_pb2.Selector, _Mapping]] = ..., kind: _Optional[_Union[HoldKind, str]] = ..., reason: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., dry_run: _Optional[bool] = ..., key: _Optional[str] = ...) -> None: ...

class AddHoldResponse(_message.Message):
    __slots__ = ("holds", "repeated_key")
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    REPEATED_KEY_FIELD_NUMBER: _ClassVar[int]
    holds: _containers.RepeatedCompositeFieldContainer[Hold]
    repeated_key: bool
    def __init__(self, holds: _Optional[_Iterable[_Union[Hold, _Mapping]]] = ..., repeated_key: _Optional[bool] = ...) -> None: ...

class ListHoldsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListHoldsResponse(_message.Message):
    __slots__ = ("holds", "next_page_token", "as_of")
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    holds: _containers.RepeatedCompositeFieldContainer[Hold]
    next_page_token: str
    as_of: _timestamp_pb2.Timestamp
    def __init__(self, holds: _Optional[_Iterable[_Union[Hold, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RemoveHoldRequest(_message.Message):
    __slots__ = ("id", "reason", "dry_run")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    dry_run: bool
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class RemoveHoldResponse(_message.Message):
    __slots__ = ("hold",)
    HOLD_FIELD_NUMBER: _ClassVar[int]
    hold: Hold
    def __init__(self, hold: _Optional[_Union[Hold, _Mapping]] = ...) -> None: ...

class ReleaseBrakeRequest(_message.Message):
    __slots__ = ("hosts", "reason", "dry_run")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    dry_run: bool
    def __init__(self, hosts: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class ReleaseBrakeResponse(_message.Message):
    __slots__ = ("hosts", "until")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedScalarFieldContainer[str]
    until: _timestamp_pb2.Timestamp
    def __init__(self, hosts: _Optional[_Iterable[str]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("coordinator", "leader", "leader_address", "leader_since", "store_unavailable_since", "store_problem", "hosts", "hosts_heard", "campaigns_running", "dead_letters_open", "brakes", "now", "version", "leaderless_since", "leader_problem", "next_step", "hosts_dead", "hosts_out_of_service")
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    LEADER_SINCE_FIELD_NUMBER: _ClassVar[int]
    STORE_UNAVAILABLE_SINCE_FIELD_NUMBER: _ClassVar[int]
    STORE_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_HEARD_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGNS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_OPEN_FIELD_NUMBER: _ClassVar[int]
    BRAKES_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LEADERLESS_SINCE_FIELD_NUMBER: _ClassVar[int]
    LEADER_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    HOSTS_DEAD_FIELD_NUMBER: _ClassVar[int]
    HOSTS_OUT_OF_SERVICE_FIELD_NUMBER: _ClassVar[int]
    coordinator: str
    leader: str
    leader_address: str
    leader_since: _timestamp_pb2.Timestamp
    store_unavailable_since: _timestamp_pb2.Timestamp
    store_problem: str
    hosts: int
    hosts_heard: int
    campaigns_running: int
    dead_letters_open: int
    brakes: _containers.RepeatedScalarFieldContainer[str]
    now: _timestamp_pb2.Timestamp
    version: str
    leaderless_since: _timestamp_pb2.Timestamp
    leader_problem: str
    next_step: str
    hosts_dead: int
    hosts_out_of_service: int
    def __init__(self, coordinator: _Optional[str] = ..., leader: _Optional[str] = ..., leader_address: _Optional[str] = ..., leader_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., store_unavailable_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., store_problem: _Optional[str] = ..., hosts: _Optional[int] = ..., hosts_heard: _Optional[int] = ..., campaigns_running: _Optional[int] = ..., dead_letters_open: _Optional[int] = ..., brakes: _Optional[_Iterable[str]] = ..., now: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[str] = ..., leaderless_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., leader_problem: _Optional[str] = ..., next_step: _Optional[str] = ..., hosts_dead: _Optional[int] = ..., hosts_out_of_service: _Optional[int] = ...) -> None: ...
