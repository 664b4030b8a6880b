import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from hostler_contract.pb.hostler.v1 import campaign_pb2 as _campaign_pb2
from hostler_contract.pb.hostler.v1 import work_pb2 as _work_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeadLetterState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEAD_LETTER_STATE_UNSPECIFIED: _ClassVar[DeadLetterState]
    DEAD_LETTER_STATE_OPEN: _ClassVar[DeadLetterState]
    DEAD_LETTER_STATE_RETRIED: _ClassVar[DeadLetterState]
    DEAD_LETTER_STATE_RESOLVED: _ClassVar[DeadLetterState]

class ResolutionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESOLUTION_KIND_UNSPECIFIED: _ClassVar[ResolutionKind]
    RESOLUTION_KIND_FIXED: _ClassVar[ResolutionKind]
    RESOLUTION_KIND_RMA: _ClassVar[ResolutionKind]
    RESOLUTION_KIND_IGNORED: _ClassVar[ResolutionKind]
DEAD_LETTER_STATE_UNSPECIFIED: DeadLetterState
DEAD_LETTER_STATE_OPEN: DeadLetterState
DEAD_LETTER_STATE_RETRIED: DeadLetterState
DEAD_LETTER_STATE_RESOLVED: DeadLetterState
RESOLUTION_KIND_UNSPECIFIED: ResolutionKind
RESOLUTION_KIND_FIXED: ResolutionKind
RESOLUTION_KIND_RMA: ResolutionKind
RESOLUTION_KIND_IGNORED: ResolutionKind

class Resolution(_message.Message):
    __slots__ = ("kind", "ticket", "reason", "by", "at")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    kind: ResolutionKind
    ticket: str
    reason: str
    by: str
    at: _timestamp_pb2.Timestamp
    def __init__(self, kind: _Optional[_Union[ResolutionKind, str]] = ..., ticket: _Optional[str] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("id", "campaign_id", "host_id", "host", "at", "cause", "text", "suggestion", "evidence", "state", "resolution", "retried_by", "attempts")
    ID_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SUGGESTION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_FIELD_NUMBER: _ClassVar[int]
    RETRIED_BY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    campaign_id: str
    host_id: str
    host: str
    at: _timestamp_pb2.Timestamp
    cause: str
    text: str
    suggestion: str
    evidence: _containers.RepeatedCompositeFieldContainer[_work_pb2.Evidence]
    state: DeadLetterState
    resolution: Resolution
    retried_by: str
    attempts: int
    def __init__(self, id: _Optional[str] = ..., campaign_id: _Optional[str] = ..., host_id: _Optional[str] = ..., host: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cause: _Optional[str] = ..., text: _Optional[str] = ..., suggestion: _Optional[str] = ..., evidence: _Optional[_Iterable[_Union[_work_pb2.Evidence, _Mapping]]] = ..., state: _Optional[_Union[DeadLetterState, str]] = ..., resolution: _Optional[_Union[Resolution, _Mapping]] = ..., retried_by: _Optional[str] = ..., attempts: _Optional[int] = ...) -> None: ...

class ListDeadLettersRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states", "campaign_id")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_ID_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[DeadLetterState]
    campaign_id: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[DeadLetterState, str]]] = ..., campaign_id: _Optional[str] = ...) -> None: ...

class ListDeadLettersResponse(_message.Message):
    __slots__ = ("dead_letters", "next_page_token", "as_of")
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    dead_letters: _containers.RepeatedCompositeFieldContainer[DeadLetter]
    next_page_token: str
    as_of: _timestamp_pb2.Timestamp
    def __init__(self, dead_letters: _Optional[_Iterable[_Union[DeadLetter, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetDeadLetterRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetDeadLetterResponse(_message.Message):
    __slots__ = ("dead_letter",)
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    dead_letter: DeadLetter
    def __init__(self, dead_letter: _Optional[_Union[DeadLetter, _Mapping]] = ...) -> None: ...

class RetryDeadLettersRequest(_message.Message):
    __slots__ = ("ids", "reason", "key", "dry_run")
    IDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    key: str
    dry_run: bool
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., key: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class RetryDeadLettersResponse(_message.Message):
    __slots__ = ("campaign",)
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    campaign: _campaign_pb2.Campaign
    def __init__(self, campaign: _Optional[_Union[_campaign_pb2.Campaign, _Mapping]] = ...) -> None: ...

class ResolveDeadLetterRequest(_message.Message):
    __slots__ = ("id", "kind", "ticket", "reason", "dry_run", "force")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: ResolutionKind
    ticket: str
    reason: str
    dry_run: bool
    force: bool
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[_Union[ResolutionKind, str]] = ..., ticket: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ..., force: _Optional[bool] = ...) -> None: ...

class ResolveDeadLetterResponse(_message.Message):
    __slots__ = ("dead_letter",)
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    dead_letter: DeadLetter
    def __init__(self, dead_letter: _Optional[_Union[DeadLetter, _Mapping]] = ...) -> None: ...
