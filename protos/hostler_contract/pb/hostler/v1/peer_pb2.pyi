from hostler_contract.pb.hostler.v1 import agent_pb2 as _agent_pb2
from hostler_contract.pb.hostler.v1 import work_pb2 as _work_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RelayRequest(_message.Message):
    __slots__ = ("coordinator", "messages", "refused")
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    coordinator: str
    messages: _containers.RepeatedCompositeFieldContainer[RelayedFromAgent]
    refused: _containers.RepeatedCompositeFieldContainer[RefusedOrder]
    def __init__(self, coordinator: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[RelayedFromAgent, _Mapping]]] = ..., refused: _Optional[_Iterable[_Union[RefusedOrder, _Mapping]]] = ...) -> None: ...

class RefusedOrder(_message.Message):
    __slots__ = ("host_id", "task_id", "token", "order", "by", "why", "age_s")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    task_id: str
    token: _work_pb2.Token
    order: str
    by: str
    why: str
    age_s: float
    def __init__(self, host_id: _Optional[str] = ..., task_id: _Optional[str] = ..., token: _Optional[_Union[_work_pb2.Token, _Mapping]] = ..., order: _Optional[str] = ..., by: _Optional[str] = ..., why: _Optional[str] = ..., age_s: _Optional[float] = ...) -> None: ...

class RelayedFromAgent(_message.Message):
    __slots__ = ("host_id", "session", "attached", "message", "detached", "heard", "age_s")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETACHED_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    session: int
    attached: _agent_pb2.Hello
    message: _agent_pb2.SessionRequest
    detached: Detached
    heard: Heard
    age_s: float
    def __init__(self, host_id: _Optional[str] = ..., session: _Optional[int] = ..., attached: _Optional[_Union[_agent_pb2.Hello, _Mapping]] = ..., message: _Optional[_Union[_agent_pb2.SessionRequest, _Mapping]] = ..., detached: _Optional[_Union[Detached, _Mapping]] = ..., heard: _Optional[_Union[Heard, _Mapping]] = ..., age_s: _Optional[float] = ...) -> None: ...

class Detached(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Heard(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RelayResponse(_message.Message):
    __slots__ = ("messages", "term")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[RelayedToAgent]
    term: int
    def __init__(self, messages: _Optional[_Iterable[_Union[RelayedToAgent, _Mapping]]] = ..., term: _Optional[int] = ...) -> None: ...

class RelayedToAgent(_message.Message):
    __slots__ = ("host_id", "session", "message")
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    host_id: str
    session: int
    message: _agent_pb2.SessionResponse
    def __init__(self, host_id: _Optional[str] = ..., session: _Optional[int] = ..., message: _Optional[_Union[_agent_pb2.SessionResponse, _Mapping]] = ...) -> None: ...
