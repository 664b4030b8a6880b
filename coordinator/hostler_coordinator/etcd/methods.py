"""The table of etcd's remote methods: path, message types, and whether a method changes anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from hostler_coordinator.etcd.pb import wire_pb2 as wire

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True)
class Method(Generic[Request, Response]):
    """A remote method. ``writes``: sending it twice is not the same as sending it once."""

    path: str
    request: type[Request]
    response: type[Response]
    writes: bool = False

    @property
    def name(self) -> str:
        """The method's short name, for messages and metrics."""
        return self.path.rsplit("/", 1)[1]


def _path(service: str, method: str) -> str:
    return f"/etcdserverpb.{service}/{method}"


RANGE = Method(_path("KV", "Range"), wire.RangeRequest, wire.RangeResponse)
PUT = Method(_path("KV", "Put"), wire.PutRequest, wire.PutResponse, writes=True)
DELETE_RANGE = Method(_path("KV", "DeleteRange"), wire.DeleteRangeRequest, wire.DeleteRangeResponse, writes=True)
TXN = Method(_path("KV", "Txn"), wire.TxnRequest, wire.TxnResponse, writes=True)
COMPACT = Method(_path("KV", "Compact"), wire.CompactionRequest, wire.CompactionResponse, writes=True)

WATCH = Method(_path("Watch", "Watch"), wire.WatchRequest, wire.WatchResponse)

LEASE_GRANT = Method(_path("Lease", "LeaseGrant"), wire.LeaseGrantRequest, wire.LeaseGrantResponse, writes=True)
LEASE_REVOKE = Method(_path("Lease", "LeaseRevoke"), wire.LeaseRevokeRequest, wire.LeaseRevokeResponse, writes=True)
LEASE_KEEP_ALIVE = Method(_path("Lease", "LeaseKeepAlive"), wire.LeaseKeepAliveRequest, wire.LeaseKeepAliveResponse)
LEASE_TIME_TO_LIVE = Method(
    _path("Lease", "LeaseTimeToLive"), wire.LeaseTimeToLiveRequest, wire.LeaseTimeToLiveResponse
)

STATUS = Method(_path("Maintenance", "Status"), wire.StatusRequest, wire.StatusResponse)
ALARM_LIST = Method(_path("Maintenance", "Alarm"), wire.AlarmRequest, wire.AlarmResponse)
ALARM_CHANGE = Method(_path("Maintenance", "Alarm"), wire.AlarmRequest, wire.AlarmResponse, writes=True)
DEFRAGMENT = Method(_path("Maintenance", "Defragment"), wire.DefragmentRequest, wire.DefragmentResponse, writes=True)

MEMBER_LIST = Method(_path("Cluster", "MemberList"), wire.MemberListRequest, wire.MemberListResponse)
MEMBER_REMOVE = Method(
    _path("Cluster", "MemberRemove"), wire.MemberRemoveRequest, wire.MemberRemoveResponse, writes=True
)

AUTHENTICATE = Method(_path("Auth", "Authenticate"), wire.AuthenticateRequest, wire.AuthenticateResponse)
AUTH_ENABLE = Method(_path("Auth", "AuthEnable"), wire.AuthEnableRequest, wire.AuthEnableResponse, writes=True)
USER_ADD = Method(_path("Auth", "UserAdd"), wire.AuthUserAddRequest, wire.AuthUserAddResponse, writes=True)
USER_GRANT_ROLE = Method(
    _path("Auth", "UserGrantRole"), wire.AuthUserGrantRoleRequest, wire.AuthUserGrantRoleResponse, writes=True
)
ROLE_ADD = Method(_path("Auth", "RoleAdd"), wire.AuthRoleAddRequest, wire.AuthRoleAddResponse, writes=True)
ROLE_GRANT = Method(
    _path("Auth", "RoleGrantPermission"),
    wire.AuthRoleGrantPermissionRequest,
    wire.AuthRoleGrantPermissionResponse,
    writes=True,
)
