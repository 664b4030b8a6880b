import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OperationKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_KIND_UNSPECIFIED: _ClassVar[OperationKind]
    OPERATION_KIND_REBOOT: _ClassVar[OperationKind]
    OPERATION_KIND_POWER_ON: _ClassVar[OperationKind]
    OPERATION_KIND_POWER_OFF: _ClassVar[OperationKind]
    OPERATION_KIND_SOFT_REBOOT: _ClassVar[OperationKind]

class RebootMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REBOOT_MODE_UNSPECIFIED: _ClassVar[RebootMode]
    REBOOT_MODE_SOFT: _ClassVar[RebootMode]
    REBOOT_MODE_HARD: _ClassVar[RebootMode]

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATE_UNSPECIFIED: _ClassVar[TaskState]
    TASK_STATE_PENDING: _ClassVar[TaskState]
    TASK_STATE_RESERVED: _ClassVar[TaskState]
    TASK_STATE_ACTING: _ClassVar[TaskState]
    TASK_STATE_PROVING: _ClassVar[TaskState]
    TASK_STATE_BACKING_OFF: _ClassVar[TaskState]
    TASK_STATE_POWER_CYCLING: _ClassVar[TaskState]
    TASK_STATE_POWER_CYCLED: _ClassVar[TaskState]
    TASK_STATE_STOPPING: _ClassVar[TaskState]
    TASK_STATE_SUCCEEDED: _ClassVar[TaskState]
    TASK_STATE_FAILED: _ClassVar[TaskState]
    TASK_STATE_DEAD_LETTER: _ClassVar[TaskState]
    TASK_STATE_SKIPPED: _ClassVar[TaskState]
    TASK_STATE_ABORTED: _ClassVar[TaskState]

class EvidenceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVIDENCE_KIND_UNSPECIFIED: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_ASKED: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_ACCEPTED: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_DRAINED: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_GO_GIVEN: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_POWER_OFF_SEEN: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_POWER_ON_SEEN: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_BOOT_CHANGED: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_AGENT_BACK: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_INVENTORY_INTACT: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_USABLE: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_ATTEMPT_FAILED: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_NOTE: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_USERSPACE_RESTARTED: _ClassVar[EvidenceKind]

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    VERDICT_OK: _ClassVar[Verdict]
    VERDICT_NOTICE: _ClassVar[Verdict]
    VERDICT_SUSPECT: _ClassVar[Verdict]
    VERDICT_DEGRADED: _ClassVar[Verdict]
    VERDICT_BAD: _ClassVar[Verdict]
    VERDICT_DEAD: _ClassVar[Verdict]
    VERDICT_UNKNOWN: _ClassVar[Verdict]
OPERATION_KIND_UNSPECIFIED: OperationKind
OPERATION_KIND_REBOOT: OperationKind
OPERATION_KIND_POWER_ON: OperationKind
OPERATION_KIND_POWER_OFF: OperationKind
OPERATION_KIND_SOFT_REBOOT: OperationKind
REBOOT_MODE_UNSPECIFIED: RebootMode
REBOOT_MODE_SOFT: RebootMode
REBOOT_MODE_HARD: RebootMode
TASK_STATE_UNSPECIFIED: TaskState
TASK_STATE_PENDING: TaskState
TASK_STATE_RESERVED: TaskState
TASK_STATE_ACTING: TaskState
TASK_STATE_PROVING: TaskState
TASK_STATE_BACKING_OFF: TaskState
TASK_STATE_POWER_CYCLING: TaskState
TASK_STATE_POWER_CYCLED: TaskState
TASK_STATE_STOPPING: TaskState
TASK_STATE_SUCCEEDED: TaskState
TASK_STATE_FAILED: TaskState
TASK_STATE_DEAD_LETTER: TaskState
TASK_STATE_SKIPPED: TaskState
TASK_STATE_ABORTED: TaskState
EVIDENCE_KIND_UNSPECIFIED: EvidenceKind
EVIDENCE_KIND_ASKED: EvidenceKind
EVIDENCE_KIND_ACCEPTED: EvidenceKind
EVIDENCE_KIND_DRAINED: EvidenceKind
EVIDENCE_KIND_GO_GIVEN: EvidenceKind
EVIDENCE_KIND_POWER_OFF_SEEN: EvidenceKind
EVIDENCE_KIND_POWER_ON_SEEN: EvidenceKind
EVIDENCE_KIND_BOOT_CHANGED: EvidenceKind
EVIDENCE_KIND_AGENT_BACK: EvidenceKind
EVIDENCE_KIND_INVENTORY_INTACT: EvidenceKind
EVIDENCE_KIND_USABLE: EvidenceKind
EVIDENCE_KIND_ATTEMPT_FAILED: EvidenceKind
EVIDENCE_KIND_NOTE: EvidenceKind
EVIDENCE_KIND_USERSPACE_RESTARTED: EvidenceKind
VERDICT_UNSPECIFIED: Verdict
VERDICT_OK: Verdict
VERDICT_NOTICE: Verdict
VERDICT_SUSPECT: Verdict
VERDICT_DEGRADED: Verdict
VERDICT_BAD: Verdict
VERDICT_DEAD: Verdict
VERDICT_UNKNOWN: Verdict

class Token(_message.Message):
    __slots__ = ("epoch", "counter")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    counter: int
    def __init__(self, epoch: _Optional[int] = ..., counter: _Optional[int] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("kind", "at", "detail")
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    kind: EvidenceKind
    at: _timestamp_pb2.Timestamp
    detail: str
    def __init__(self, kind: _Optional[_Union[EvidenceKind, str]] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., detail: _Optional[str] = ...) -> None: ...
