"""What etcd does with a request, as a state machine without time, network or tasks; faults are put around it.

Answers have etcd's own words and codes, as the client sorts failures by them. Leases end when whoever keeps the time
says so.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message import Message

from hostler_coordinator.etcd import methods
from hostler_coordinator.etcd.pb import wire_pb2 as wire

OPS_MOST = 128
REQUEST_BYTES_MOST = 1_572_864
DB_BYTES = 20_480
CLUSTER_ID = 0x5EED
_COMPACTED = "etcdserver: mvcc: required revision has been compacted"
_FUTURE = "etcdserver: mvcc: required revision is a future revision"
_NO_LEASE = "etcdserver: requested lease not found"
_RELATIONS = {
    wire.Compare.EQUAL: operator.eq,
    wire.Compare.NOT_EQUAL: operator.ne,
    wire.Compare.GREATER: operator.gt,
    wire.Compare.LESS: operator.lt,
}
_TARGETS = {
    wire.Compare.VERSION: "version",
    wire.Compare.CREATE: "create_revision",
    wire.Compare.MOD: "mod_revision",
    wire.Compare.VALUE: "value",
    wire.Compare.LEASE: "lease",
}

Push = Callable[[wire.WatchResponse], None]


class Refusal(Exception):
    """An answer that is an error: a gRPC status and etcd's words."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


@dataclass
class HeldLease:
    """A lease and the keys on it."""

    ttl_s: int
    keys: set[bytes] = field(default_factory=set)


@dataclass
class Watcher:
    """Who is told of changes to which keys."""

    key: bytes
    range_end: bytes
    want_before: bool
    push: Push


class EtcdModel:
    """One cluster: a single history, whichever member is asked."""

    def __init__(self, members: tuple[str, ...] = ("m1",)) -> None:
        self.members = members
        self.revision = 1
        self.compacted = 0
        self.leases: dict[int, HeldLease] = {}
        self.full = False
        self.granted: Callable[[int], None] = lambda _: None
        """Called with the id of a lease that was granted or renewed, so that its end can be timed."""
        self._versions: dict[bytes, list[tuple[int, wire.KeyValue | None]]] = {}
        """Key -> its life: revision and value, None once deleted; oldest first."""
        self._keys: list[bytes] = []
        self._history: list[wire.Event] = []
        self._watchers: dict[int, Watcher] = {}
        self._next_id = 1000
        self._unary: dict[type[Message], Callable[[Any], Any]] = {
            wire.RangeRequest: lambda request: self._range(request, self.revision),
            wire.TxnRequest: self._txn,
            wire.PutRequest: lambda put: self._single(wire.RequestOp(request_put=put)).response_put,
            wire.DeleteRangeRequest: self._delete_range,
            wire.CompactionRequest: lambda request: self._compact(request.revision),
            wire.LeaseGrantRequest: self._grant,
            wire.LeaseRevokeRequest: lambda request: self._revoke(request.id),
            wire.LeaseTimeToLiveRequest: lambda request: self._time_to_live(request.id),
            wire.StatusRequest: lambda _: self._status(),
            wire.MemberListRequest: lambda _: self._member_list(),
            wire.AlarmRequest: lambda _: self._alarms(),
            wire.DefragmentRequest: lambda _: wire.DefragmentResponse(),
        }

    # -- entrance ----------------------------------------------------------------------------------------------------

    def answer(self, member: str, method: methods.Method[Any, Any], request: Message) -> Message:
        """Carry a unary request out; raises Refusal."""
        if request.ByteSize() > REQUEST_BYTES_MOST:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: request is too large")
        carry_out = self._unary.get(type(request))
        if carry_out is None:
            raise Refusal(grpc.StatusCode.UNIMPLEMENTED, f"{method.path} is not simulated")
        response: Any = carry_out(request)
        response.header.CopyFrom(self._header(member))
        answer: Message = response
        return answer

    def keep_alive(self, member: str, request: wire.LeaseKeepAliveRequest) -> wire.LeaseKeepAliveResponse:
        """Renew; a lease that is gone is answered with a TTL of 0."""
        lease = self.leases.get(request.id)
        if lease is not None:
            self.granted(request.id)
        ttl_s = lease.ttl_s if lease is not None else 0
        return wire.LeaseKeepAliveResponse(header=self._header(member), id=request.id, ttl=ttl_s)

    def watch(self, member: str, request: wire.WatchCreateRequest, push: Push) -> int | None:
        """Begin to tell of changes; returns the watcher's id, None when it is refused (which is told, too)."""
        start = request.start_revision
        if start and start < self.compacted:
            header, revision = self._header(member), self.compacted
            push(wire.WatchResponse(header=header, created=True, canceled=True, compact_revision=revision))
            return None
        watcher_id = self._new_id()
        watcher = Watcher(request.key, request.range_end, request.prev_kv, push)
        push(wire.WatchResponse(header=self._header(member), watch_id=watcher_id, created=True))
        past = [one for one in self._history if start and one.kv.mod_revision >= start]
        self._tell(watcher, past)
        self._watchers[watcher_id] = watcher
        return watcher_id

    def unwatch(self, watcher_id: int) -> None:
        """Tell no more."""
        self._watchers.pop(watcher_id, None)

    def expire(self, lease_id: int) -> None:
        """The time of a lease is over: its keys go, all at one revision."""
        lease = self.leases.pop(lease_id, None)
        if lease is not None and lease.keys:
            self._apply([(key, None) for key in sorted(lease.keys)])

    # -- reading -----------------------------------------------------------------------------------------------------

    def _header(self, member: str) -> wire.Header:
        number = self.members.index(member) + 1
        return wire.Header(cluster_id=CLUSTER_ID, member_id=number, revision=self.revision, raft_term=2)

    def _matching(self, key: bytes, range_end: bytes) -> list[bytes]:
        if not range_end:
            return [key] if key in self._versions else []
        first = bisect.bisect_left(self._keys, key)
        last = len(self._keys) if range_end == b"\0" else bisect.bisect_left(self._keys, range_end)
        return self._keys[first:last]

    def _at(self, key: bytes, revision: int) -> wire.KeyValue | None:
        for changed, kv in reversed(self._versions.get(key, ())):
            if changed <= revision:
                return kv
        return None

    def _range(self, request: wire.RangeRequest, newest: int) -> wire.RangeResponse:
        revision = request.revision or newest
        if revision > newest:
            raise Refusal(grpc.StatusCode.OUT_OF_RANGE, _FUTURE)
        if request.revision and revision < self.compacted:
            raise Refusal(grpc.StatusCode.OUT_OF_RANGE, _COMPACTED)
        found = [kv for key in self._matching(request.key, request.range_end) if (kv := self._at(key, revision))]
        shown = found[: request.limit] if request.limit else found
        response = wire.RangeResponse(count=len(found), more=len(shown) < len(found))
        if not request.count_only:
            response.kvs.extend(_without_value(kv) if request.keys_only else kv for kv in shown)
        return response

    def _status(self) -> wire.StatusResponse:
        return wire.StatusResponse(version="3.5.16", leader=1, raft_term=2, raft_index=self.revision, db_size=DB_BYTES)

    def _member_list(self) -> wire.MemberListResponse:
        members = [wire.Member(id=n, name=m, client_urls=[f"http://{m}"]) for n, m in enumerate(self.members, 1)]
        return wire.MemberListResponse(members=members)

    def _alarms(self) -> wire.AlarmResponse:
        return wire.AlarmResponse(alarms=[wire.AlarmMember(member_id=1, alarm=wire.NOSPACE)] if self.full else [])

    # -- writing -----------------------------------------------------------------------------------------------------

    def _single(self, op: wire.RequestOp) -> wire.ResponseOp:
        return self._txn(wire.TxnRequest(success=[op])).responses[0]

    def _delete_range(self, request: wire.DeleteRangeRequest) -> wire.DeleteRangeResponse:
        return self._single(wire.RequestOp(request_delete_range=request)).response_delete_range

    def _txn(self, request: wire.TxnRequest) -> wire.TxnResponse:
        if max(len(request.compare), len(request.success), len(request.failure)) > OPS_MOST:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: too many operations in txn request")
        for ops in (request.success, request.failure):
            self._refuse_bad(ops)
        holds = all(self._holds(compare) for compare in request.compare)
        ops = request.success if holds else request.failure
        if self.full and any(op.HasField("request_put") for op in ops):
            raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded")
        response = wire.TxnResponse(succeeded=holds)
        writes: list[tuple[bytes, wire.PutRequest | None]] = []
        for op in ops:
            response.responses.append(self._op(op, writes))
        self._apply(writes)
        for one in response.responses:
            getattr(one, one.WhichOneof("response")).header.revision = self.revision
        return response

    def _refuse_bad(self, ops: Iterable[wire.RequestOp]) -> None:
        seen: set[bytes] = set()
        for op in ops:
            if not op.HasField("request_put"):
                continue
            put = op.request_put
            if put.key in seen:
                raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request")
            if not put.key:
                raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: key is not provided")
            if put.lease and put.lease not in self.leases:
                raise Refusal(grpc.StatusCode.NOT_FOUND, _NO_LEASE)
            seen.add(put.key)

    def _holds(self, compare: wire.Compare) -> bool:
        relation, target = _RELATIONS[compare.result], _TARGETS[compare.target]
        operand = getattr(compare, target)
        keys = self._matching(compare.key, compare.range_end)
        found = [kv for key in keys if (kv := self._at(key, self.revision)) is not None]
        if not found and compare.target == wire.Compare.VALUE:
            return False  # an absent key has no value that anything could be compared with
        return all(relation(getattr(kv, target), operand) for kv in found or [wire.KeyValue()])

    def _op(self, op: wire.RequestOp, writes: list[tuple[bytes, wire.PutRequest | None]]) -> wire.ResponseOp:
        if op.HasField("request_put"):
            put = op.request_put
            writes.append((put.key, put))
            before = self._at(put.key, self.revision) if put.prev_kv else None
            return wire.ResponseOp(response_put=wire.PutResponse(prev_kv=before))
        if op.HasField("request_delete_range"):
            request = op.request_delete_range
            keys = self._matching(request.key, request.range_end)
            gone = [kv for key in keys if (kv := self._at(key, self.revision)) is not None]
            writes.extend((kv.key, None) for kv in gone)
            shown = gone if request.prev_kv else []
            return wire.ResponseOp(response_delete_range=wire.DeleteRangeResponse(deleted=len(gone), prev_kvs=shown))
        return wire.ResponseOp(response_range=self._range(op.request_range, self.revision))

    def _apply(self, writes: list[tuple[bytes, wire.PutRequest | None]]) -> None:
        """All at one new revision; nothing to write leaves the revision as it is."""
        if not writes:
            return
        self.revision += 1
        events = [self._write(key, put) for key, put in writes]
        self._history.extend(events)
        for watcher in tuple(self._watchers.values()):
            self._tell(watcher, events)

    def _write(self, key: bytes, put: wire.PutRequest | None) -> wire.Event:
        before = self._at(key, self.revision)
        if before is not None and before.lease in self.leases:
            self.leases[before.lease].keys.discard(key)
        if key not in self._versions:
            bisect.insort(self._keys, key)
        life = self._versions.setdefault(key, [])
        if put is None:
            life.append((self.revision, None))
            gone = wire.KeyValue(key=key, mod_revision=self.revision)
            return wire.Event(type=wire.Event.DELETE, kv=gone, prev_kv=before)
        kv = wire.KeyValue(
            key=key,
            value=put.value,
            lease=put.lease,
            mod_revision=self.revision,
            create_revision=before.create_revision if before is not None else self.revision,
            version=before.version + 1 if before is not None else 1,
        )
        life.append((self.revision, kv))
        if put.lease:
            self.leases[put.lease].keys.add(key)
        return wire.Event(type=wire.Event.PUT, kv=kv, prev_kv=before)

    def _tell(self, watcher: Watcher, events: list[wire.Event]) -> None:
        mine = [one for one in events if _inside(one.kv.key, watcher.key, watcher.range_end)]
        if not mine:
            return
        shown = mine if watcher.want_before else [wire.Event(type=one.type, kv=one.kv) for one in mine]
        watcher.push(wire.WatchResponse(header=self._header(self.members[0]), events=shown))

    def _compact(self, revision: int) -> wire.CompactionResponse:
        if revision <= self.compacted:
            raise Refusal(grpc.StatusCode.OUT_OF_RANGE, _COMPACTED)
        if revision > self.revision:
            raise Refusal(grpc.StatusCode.OUT_OF_RANGE, _FUTURE)
        self.compacted = revision
        self._history = [one for one in self._history if one.kv.mod_revision >= revision]
        for key, life in self._versions.items():
            old = [one for one in life if one[0] <= revision]
            self._versions[key] = [*old[-1:], *life[len(old) :]]
        return wire.CompactionResponse()

    # -- leases ------------------------------------------------------------------------------------------------------

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _grant(self, request: wire.LeaseGrantRequest) -> wire.LeaseGrantResponse:
        lease_id = request.id or self._new_id()
        self.leases[lease_id] = HeldLease(request.ttl)
        self.granted(lease_id)
        return wire.LeaseGrantResponse(id=lease_id, ttl=request.ttl)

    def _revoke(self, lease_id: int) -> wire.LeaseRevokeResponse:
        if lease_id not in self.leases:
            raise Refusal(grpc.StatusCode.NOT_FOUND, _NO_LEASE)
        self.expire(lease_id)
        return wire.LeaseRevokeResponse()

    def _time_to_live(self, lease_id: int) -> wire.LeaseTimeToLiveResponse:
        lease = self.leases.get(lease_id)
        if lease is None:
            return wire.LeaseTimeToLiveResponse(id=lease_id, ttl=-1)
        return wire.LeaseTimeToLiveResponse(id=lease_id, ttl=lease.ttl_s, granted_ttl=lease.ttl_s)


def _inside(key: bytes, start: bytes, range_end: bytes) -> bool:
    if not range_end:
        return key == start
    return key >= start and (range_end == b"\0" or key < range_end)


def _without_value(kv: wire.KeyValue) -> wire.KeyValue:
    bare = wire.KeyValue()
    bare.CopyFrom(kv)
    bare.ClearField("value")
    return bare
