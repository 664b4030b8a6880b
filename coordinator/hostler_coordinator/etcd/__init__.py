"""The etcd adapter: a thin asyncio client and an election on top of it; it knows nothing of hosts, tasks or campaigns.

`generate.sh OUTPUT_FOLDER` writes the message classes (committed in `pb/`) from `wire.proto`.
"""

from __future__ import annotations

from hostler_coordinator.etcd.client import EtcdClient
from hostler_coordinator.etcd.election import Election, LeaderInfo, Leadership
from hostler_coordinator.etcd.errors import (
    AuthFailed,
    ClusterChanged,
    Compacted,
    EtcdError,
    NoSpace,
    OutcomeUnknown,
    RequestRefused,
    RequestTooLarge,
    StoreUnavailable,
    WatchCancelled,
)
from hostler_coordinator.etcd.keys import prefix_end
from hostler_coordinator.etcd.leases import Lease
from hostler_coordinator.etcd.losses import Loss, LossCause
from hostler_coordinator.etcd.members import Alarm, Member, MemberStatus
from hostler_coordinator.etcd.transport import Login, Observer, TlsFiles
from hostler_coordinator.etcd.txn import (
    OPS_MAX,
    Compare,
    Delete,
    Deleted,
    Get,
    Op,
    OpResult,
    Put,
    Stored,
    TxnResult,
    absent,
    create_revision_is,
    delete_prefix,
    get_prefix,
    lease_is,
    mod_revision_is,
    prefix_empty,
    prefix_unchanged_since,
    present,
    value_is,
    version_is,
)
from hostler_coordinator.etcd.values import Event, Got, KeyValue, Listing
from hostler_coordinator.etcd.watch import WatchBatch

__all__ = [
    "OPS_MAX",
    "Alarm",
    "AuthFailed",
    "ClusterChanged",
    "Compacted",
    "Compare",
    "Delete",
    "Deleted",
    "Election",
    "EtcdClient",
    "EtcdError",
    "Event",
    "Get",
    "Got",
    "KeyValue",
    "LeaderInfo",
    "Leadership",
    "Lease",
    "Listing",
    "Login",
    "Loss",
    "LossCause",
    "Member",
    "MemberStatus",
    "NoSpace",
    "Observer",
    "Op",
    "OpResult",
    "OutcomeUnknown",
    "Put",
    "RequestRefused",
    "RequestTooLarge",
    "StoreUnavailable",
    "Stored",
    "TlsFiles",
    "TxnResult",
    "WatchBatch",
    "WatchCancelled",
    "absent",
    "create_revision_is",
    "delete_prefix",
    "get_prefix",
    "lease_is",
    "mod_revision_is",
    "prefix_empty",
    "prefix_end",
    "prefix_unchanged_since",
    "present",
    "value_is",
    "version_is",
]
