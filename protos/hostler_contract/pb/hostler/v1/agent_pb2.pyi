from hostler_contract.pb.hostler.v1 import work_pb2 as _work_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Usability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    USABILITY_UNSPECIFIED: _ClassVar[Usability]
    USABILITY_STARTING: _ClassVar[Usability]
    USABILITY_USABLE: _ClassVar[Usability]
    USABILITY_UNUSABLE: _ClassVar[Usability]
    USABILITY_UNKNOWN: _ClassVar[Usability]

class JournalPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOURNAL_PHASE_UNSPECIFIED: _ClassVar[JournalPhase]
    JOURNAL_PHASE_ACCEPTED: _ClassVar[JournalPhase]
    JOURNAL_PHASE_INTENT: _ClassVar[JournalPhase]
    JOURNAL_PHASE_ACTING: _ClassVar[JournalPhase]
    JOURNAL_PHASE_DONE: _ClassVar[JournalPhase]

class Step(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_UNSPECIFIED: _ClassVar[Step]
    STEP_ACCEPTED: _ClassVar[Step]
    STEP_DRAINING: _ClassVar[Step]
    STEP_DRAINED: _ClassVar[Step]
    STEP_CHECKING: _ClassVar[Step]
    STEP_ACTING: _ClassVar[Step]
    STEP_POST_BOOT: _ClassVar[Step]

class OutcomeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_KIND_UNSPECIFIED: _ClassVar[OutcomeKind]
    OUTCOME_KIND_REFUSED: _ClassVar[OutcomeKind]
    OUTCOME_KIND_FAILED: _ClassVar[OutcomeKind]
    OUTCOME_KIND_STOPPED: _ClassVar[OutcomeKind]
    OUTCOME_KIND_DONE: _ClassVar[OutcomeKind]
USABILITY_UNSPECIFIED: Usability
USABILITY_STARTING: Usability
USABILITY_USABLE: Usability
USABILITY_UNUSABLE: Usability
USABILITY_UNKNOWN: Usability
JOURNAL_PHASE_UNSPECIFIED: JournalPhase
JOURNAL_PHASE_ACCEPTED: JournalPhase
JOURNAL_PHASE_INTENT: JournalPhase
JOURNAL_PHASE_ACTING: JournalPhase
JOURNAL_PHASE_DONE: JournalPhase
STEP_UNSPECIFIED: Step
STEP_ACCEPTED: Step
STEP_DRAINING: Step
STEP_DRAINED: Step
STEP_CHECKING: Step
STEP_ACTING: Step
STEP_POST_BOOT: Step
OUTCOME_KIND_UNSPECIFIED: OutcomeKind
OUTCOME_KIND_REFUSED: OutcomeKind
OUTCOME_KIND_FAILED: OutcomeKind
OUTCOME_KIND_STOPPED: OutcomeKind
OUTCOME_KIND_DONE: OutcomeKind

class SessionRequest(_message.Message):
    __slots__ = ("hello", "heartbeat", "pull", "started", "progress", "outcome")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    PULL_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    heartbeat: Heartbeat
    pull: Pull
    started: Started
    progress: Progress
    outcome: Outcome
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., pull: _Optional[_Union[Pull, _Mapping]] = ..., started: _Optional[_Union[Started, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., outcome: _Optional[_Union[Outcome, _Mapping]] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("welcome", "heartbeat_reply", "assignment", "go", "stop", "reattach", "outcome_recorded")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_REPLY_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    GO_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    REATTACH_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_RECORDED_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    heartbeat_reply: HeartbeatReply
    assignment: Assignment
    go: Go
    stop: Stop
    reattach: Reattach
    outcome_recorded: OutcomeRecorded
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., heartbeat_reply: _Optional[_Union[HeartbeatReply, _Mapping]] = ..., assignment: _Optional[_Union[Assignment, _Mapping]] = ..., go: _Optional[_Union[Go, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ..., reattach: _Optional[_Union[Reattach, _Mapping]] = ..., outcome_recorded: _Optional[_Union[OutcomeRecorded, _Mapping]] = ...) -> None: ...

class HostFacts(_message.Message):
    __slots__ = ("hostname", "address", "kernel", "architecture", "cpu_count", "memory_bytes", "uptime_s", "chassis_serial", "system_uuid", "model", "agent_version", "soft_reboot_count")
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    CPU_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    UPTIME_S_FIELD_NUMBER: _ClassVar[int]
    CHASSIS_SERIAL_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_UUID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    SOFT_REBOOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    hostname: str
    address: str
    kernel: str
    architecture: str
    cpu_count: int
    memory_bytes: int
    uptime_s: float
    chassis_serial: str
    system_uuid: str
    model: str
    agent_version: str
    soft_reboot_count: int
    def __init__(self, hostname: _Optional[str] = ..., address: _Optional[str] = ..., kernel: _Optional[str] = ..., architecture: _Optional[str] = ..., cpu_count: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., uptime_s: _Optional[float] = ..., chassis_serial: _Optional[str] = ..., system_uuid: _Optional[str] = ..., model: _Optional[str] = ..., agent_version: _Optional[str] = ..., soft_reboot_count: _Optional[int] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("usability", "usability_reason", "blocked_by", "drained_for", "shutting_down", "can_drain")
    USABILITY_FIELD_NUMBER: _ClassVar[int]
    USABILITY_REASON_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_BY_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FOR_FIELD_NUMBER: _ClassVar[int]
    SHUTTING_DOWN_FIELD_NUMBER: _ClassVar[int]
    CAN_DRAIN_FIELD_NUMBER: _ClassVar[int]
    usability: Usability
    usability_reason: str
    blocked_by: str
    drained_for: str
    shutting_down: bool
    can_drain: bool
    def __init__(self, usability: _Optional[_Union[Usability, str]] = ..., usability_reason: _Optional[str] = ..., blocked_by: _Optional[str] = ..., drained_for: _Optional[str] = ..., shutting_down: _Optional[bool] = ..., can_drain: _Optional[bool] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("host_id", "facts", "boot_id", "newest_token", "journal", "condition")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    NEWEST_TOKEN_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    facts: HostFacts
    boot_id: str
    newest_token: _work_pb2.Token
    journal: Journal
    condition: Condition
    def __init__(self, host_id: _Optional[str] = ..., facts: _Optional[_Union[HostFacts, _Mapping]] = ..., boot_id: _Optional[str] = ..., newest_token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., journal: _Optional[_Union[Journal, _Mapping]] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class Journal(_message.Message):
    __slots__ = ("task_id", "token", "phase", "boot_before", "damage")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    BOOT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    DAMAGE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    token: _work_pb2.Token
    phase: JournalPhase
    boot_before: str
    damage: str
    def __init__(self, task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., phase: _Optional[_Union[JournalPhase, str]] = ..., boot_before: _Optional[str] = ..., damage: _Optional[str] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("sequence", "condition")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    condition: Condition
    def __init__(self, sequence: _Optional[int] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class Pull(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Started(_message.Message):
    __slots__ = ("task_id", "token", "boot_id")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    token: _work_pb2.Token
    boot_id: str
    def __init__(self, task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., boot_id: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("task_id", "token", "step", "detail")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    token: _work_pb2.Token
    step: Step
    detail: str
    def __init__(self, task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., step: _Optional[_Union[Step, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("task_id", "token", "kind", "code", "text", "boot_id", "permanent")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    token: _work_pb2.Token
    kind: OutcomeKind
    code: str
    text: str
    boot_id: str
    permanent: bool
    def __init__(self, task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., kind: _Optional[_Union[OutcomeKind, str]] = ..., code: _Optional[str] = ..., text: _Optional[str] = ..., boot_id: _Optional[str] = ..., permanent: _Optional[bool] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("coordinator", "host_name", "heartbeat_interval_s", "reattach_span_s", "endpoints")
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    HOST_NAME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    REATTACH_SPAN_S_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    coordinator: str
    host_name: str
    heartbeat_interval_s: float
    reattach_span_s: float
    endpoints: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, coordinator: _Optional[str] = ..., host_name: _Optional[str] = ..., heartbeat_interval_s: _Optional[float] = ..., reattach_span_s: _Optional[float] = ..., endpoints: _Optional[_Iterable[str]] = ...) -> None: ...

class HeartbeatReply(_message.Message):
    __slots__ = ("sequence", "next_interval_s")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    next_interval_s: float
    def __init__(self, sequence: _Optional[int] = ..., next_interval_s: _Optional[float] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("task_id", "token", "operation", "mode", "campaign_id", "actor", "reason", "boot_before", "drain_timeout_s", "soak_s", "force", "shutdown_timeout_s")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_ID_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BOOT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    DRAIN_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    SOAK_S_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    SHUTDOWN_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    token: _work_pb2.Token
    operation: _work_pb2.OperationKind
    mode: _work_pb2.RebootMode
    campaign_id: str
    actor: str
    reason: str
    boot_before: str
    drain_timeout_s: float
    soak_s: float
    force: bool
    shutdown_timeout_s: float
    def __init__(self, task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., operation: _Optional[_Union[_work_pb2.OperationKind, str]] = ..., mode: _Optional[_Union[_work_pb2.RebootMode, str]] = ..., campaign_id: _Optional[str] = ..., actor: _Optional[str] = ..., reason: _Optional[str] = ..., boot_before: _Optional[str] = ..., drain_timeout_s: _Optional[float] = ..., soak_s: _Optional[float] = ..., force: _Optional[bool] = ..., shutdown_timeout_s: _Optional[float] = ...) -> None: ...

class Go(_message.Message):
    __slots__ = ("task_id", "token", "expires_in_s", "boot_id")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_S_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    token: _work_pb2.Token
    expires_in_s: float
    boot_id: str
    def __init__(self, task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., expires_in_s: _Optional[float] = ..., boot_id: _Optional[str] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("task_id", "token", "reason")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    token: _work_pb2.Token
    reason: str
    def __init__(self, task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class Reattach(_message.Message):
    __slots__ = ("span_s", "reason")
    SPAN_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    span_s: float
    reason: str
    def __init__(self, span_s: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class OutcomeRecorded(_message.Message):
    __slots__ = ("task_id", "token")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    token: _work_pb2.Token
    def __init__(self, task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ...) -> None: ...
