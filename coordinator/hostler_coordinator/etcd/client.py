"""The etcd client: reads, transactions, leases and watches as typed calls. Keys and values are bytes here; their
meaning belongs to the store adapter.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from types import TracebackType
from typing import Self

import grpc

from hostler_coordinator.etcd import methods
from hostler_coordinator.etcd.connection import Connection
from hostler_coordinator.etcd.errors import Compacted, EtcdError, RequestRefused
from hostler_coordinator.etcd.keys import prefix_end
from hostler_coordinator.etcd.leases import Lease, LeaseKeeper
from hostler_coordinator.etcd.members import (
    ALARM_KINDS,
    ALARM_TYPES,
    Alarm,
    Member,
    MemberStatus,
    member,
    member_status,
)
from hostler_coordinator.etcd.moments import monotonic
from hostler_coordinator.etcd.pb import wire_pb2 as wire
from hostler_coordinator.etcd.transport import Dial, Login, Observer, TlsFiles, Transport
from hostler_coordinator.etcd.txn import Compare, Op, TxnResult, txn_request, txn_result
from hostler_coordinator.etcd.values import Got, Listing, key_value, listing
from hostler_coordinator.etcd.watch import Watch, WatchBatch

PAGE_KEYS_MAX = 500
RELISTS_MAX = 3
DEFRAGMENT_TIMEOUT_S = 120.0


class EtcdClient:
    """A client of one etcd cluster, for one event loop; connections open at first use.

    Every call is bounded: an attempt by ``request_timeout_s``, the whole call by ``deadline_s``. Reads are
    linearizable: what they return was true after the call began. Any call can raise StoreUnavailable, AuthFailed,
    RequestRefused or ClusterChanged; writes also NoSpace and OutcomeUnknown. ``dial`` opens a connection to a member,
    and ``chance`` draws the pauses between attempts.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        tls: TlsFiles | None = None,
        *,
        login: Login | None = None,
        request_timeout_s: float = 2.0,
        deadline_s: float = 10.0,
        observer: Observer | None = None,
        dial: Dial = Connection,
        chance: random.Random | None = None,
    ) -> None:
        self._transport = Transport(
            endpoints,
            tls,
            login,
            request_timeout_s,
            deadline_s,
            observer,
            dial=dial,
            chance=chance or random.SystemRandom(),
        )
        self._keeper = LeaseKeeper(self._transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop believing in every lease and close every connection. Leases run out on the server by themselves."""
        await self._keeper.close()
        await self._transport.close()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The members this client knows, as given."""
        return self._transport.endpoints

    @property
    def endpoint(self) -> str:
        """The member in use now."""
        return self._transport.current.endpoint

    @property
    def unavailable_since(self) -> float | None:
        """Monotonic seconds at which the store fell silent, or None while it answers."""
        return self._transport.unavailable_since

    async def call(
        self, method: methods.Method[methods.Request, methods.Response], request: methods.Request
    ) -> methods.Response:
        """Any method of the table, for rooms of this package; a write is never repeated in doubt."""
        return await self._transport.call(method, request)

    # --- reads --------------------------------------------------------------------------------------------------------

    async def get(self, key: bytes, *, revision: int = 0, deadline_s: float | None = None) -> Got:
        """One key, now or (``revision``) as it was.

        Raises:
            Compacted: ``revision`` is no longer kept.
        """
        request = wire.RangeRequest(key=key, revision=revision)
        answer = await self._transport.call(methods.RANGE, request, deadline_s=deadline_s)
        kv = key_value(answer.kvs[0]) if answer.kvs else None
        return Got(revision or answer.header.revision, kv)

    async def count(self, prefix: bytes) -> int:
        """How many keys start with ``prefix``."""
        request = wire.RangeRequest(key=prefix or b"\0", range_end=prefix_end(prefix), count_only=True)
        return (await self._transport.call(methods.RANGE, request)).count

    async def range(self, prefix: bytes, *, revision: int = 0, page_keys: int = PAGE_KEYS_MAX) -> Listing:
        """Every key that starts with ``prefix``, all as of one revision, read in pages of at most ``page_keys``.

        Raises:
            Compacted: ``revision`` is no longer kept.
        """
        attempts_left = 1 if revision else RELISTS_MAX
        while True:
            try:
                pages = [page async for page in self.pages(prefix, revision=revision, page_keys=page_keys)]
            except Compacted:
                attempts_left -= 1
                if attempts_left == 0:
                    raise
            else:
                kvs = tuple(kv for page in pages for kv in page.kvs)
                return Listing(pages[0].revision, kvs, len(kvs))

    async def pages(
        self, prefix: bytes, *, revision: int = 0, page_keys: int = PAGE_KEYS_MAX, keys_only: bool = False
    ) -> AsyncGenerator[Listing, None]:
        """The keys of ``prefix`` page by page, every page as of the first one's revision; at least one page.

        Raises:
            Compacted: the revision was compacted between two pages.
        """
        start, end, limit = prefix or b"\0", prefix_end(prefix), max(1, page_keys)
        while True:
            request = wire.RangeRequest(key=start, range_end=end, limit=limit, revision=revision, keys_only=keys_only)
            try:
                answer = await self._transport.call(methods.RANGE, request)
            except RequestRefused as refused:
                if refused.code is not grpc.StatusCode.RESOURCE_EXHAUSTED or limit == 1:
                    raise
                limit = max(1, limit // 4)  # the page was larger than a message may be
                continue
            revision = revision or answer.header.revision
            yield listing(answer, revision)
            if not answer.more or not answer.kvs:
                return
            start = answer.kvs[-1].key + b"\0"

    # --- writes -------------------------------------------------------------------------------------------------------

    async def txn(
        self,
        compares: Sequence[Compare],
        success: Sequence[Op],
        failure: Sequence[Op] = (),
        *,
        idempotent: bool = False,
        deadline_s: float | None = None,
    ) -> TxnResult:
        """Carry out ``success`` if every compare holds, else ``failure``; all or nothing, at one revision.

        ``idempotent=True`` allows sending it again after an attempt whose outcome is unknown. Then the compares must
        make a second run harmless, and ``TxnResult.repeated`` says whether there may have been one.

        Raises:
            OutcomeUnknown: it may have been carried out; never with a repeat behind the caller's back.
            NoSpace: refused, with the members that are full.
            ValueError: more than ``OPS_MAX`` compares or operations.
        """
        request = txn_request(compares, success, failure)
        answer = await self._transport.call_noting(methods.TXN, request, idempotent=idempotent, deadline_s=deadline_s)
        return txn_result(answer.message, repeated=answer.repeated)

    async def put(self, key: bytes, value: bytes, *, lease: int = 0, idempotent: bool = False) -> int:
        """Store a value unconditionally; returns its revision."""
        request = wire.PutRequest(key=key, value=value, lease=lease)
        return (await self._transport.call(methods.PUT, request, idempotent=idempotent)).header.revision

    async def delete(self, key: bytes, *, idempotent: bool = False) -> int:
        """Delete one key; returns how many were there (0 or 1)."""
        request = wire.DeleteRangeRequest(key=key)
        return (await self._transport.call(methods.DELETE_RANGE, request, idempotent=idempotent)).deleted

    async def delete_prefix(self, prefix: bytes, *, idempotent: bool = False) -> int:
        """Delete every key that starts with ``prefix`` (not empty); returns how many there were."""
        if not prefix:
            raise ValueError("an empty prefix would delete the whole store")
        request = wire.DeleteRangeRequest(key=prefix, range_end=prefix_end(prefix))
        return (await self._transport.call(methods.DELETE_RANGE, request, idempotent=idempotent)).deleted

    async def compact(self, revision: int, *, physical: bool = False) -> None:
        """Forget the history before ``revision``; ``physical`` waits until the space can be reused.

        Raises:
            Compacted: it has been forgotten already.
        """
        request = wire.CompactionRequest(revision=revision, physical=physical)
        await self._transport.call(methods.COMPACT, request, idempotent=True)

    # --- watch --------------------------------------------------------------------------------------------------------

    def watch(
        self, prefix: bytes, start_revision: int, *, exact: bool = False, want_before: bool = False
    ) -> AsyncGenerator[WatchBatch, None]:
        """Every change to keys with ``prefix`` (``exact``: to that one key) from ``start_revision`` on (0: from now).

        Loss of members, restarts and lost connections are survived: the watch asks again from the revision after the
        last one it handed out. Close the iterator (``aclosing``) to end it.

        Raises:
            Compacted: the resume point is gone: read everything again and watch from that revision + 1.
            WatchCancelled: etcd ended it for another reason: the same cure.
            AuthFailed: this client may not watch.
        """
        watch = Watch(self._transport, prefix, exact=exact, start_revision=start_revision, want_before=want_before)
        return watch.batches()

    # --- leases -------------------------------------------------------------------------------------------------------

    async def lease_grant(self, ttl_s: int, *, keep: bool = True, deadline_s: float | None = None) -> Lease:
        """A new lease, renewed (``keep``) on the client's one keepalive stream until it is lost or revoked."""
        asked_at = monotonic()
        answer = await self._transport.call(
            methods.LEASE_GRANT, wire.LeaseGrantRequest(ttl=ttl_s), idempotent=True, deadline_s=deadline_s
        )
        if answer.error:
            raise RequestRefused(methods.LEASE_GRANT.name, grpc.StatusCode.FAILED_PRECONDITION, answer.error)
        lease = Lease(answer.id, answer.ttl, asked_at)
        if keep:
            self._keeper.keep(lease)
        return lease

    async def lease_revoke(self, lease: Lease, *, deadline_s: float | None = None) -> bool:
        """Stop believing, then delete the lease and every key on it; False when it was gone already."""
        self._keeper.let_go(lease)
        try:
            await self._transport.call(
                methods.LEASE_REVOKE, wire.LeaseRevokeRequest(id=lease.id), idempotent=True, deadline_s=deadline_s
            )
        except RequestRefused as refused:
            if refused.code is grpc.StatusCode.NOT_FOUND:
                return False
            raise
        return True

    async def lease_time_to_live(self, lease_id: int) -> int | None:
        """Seconds that etcd still gives the lease, or None when there is no such lease."""
        answer = await self._transport.call(methods.LEASE_TIME_TO_LIVE, wire.LeaseTimeToLiveRequest(id=lease_id))
        return None if answer.ttl < 0 else answer.ttl

    # --- members ------------------------------------------------------------------------------------------------------

    async def status(self, *, timeout_s: float = 2.0) -> dict[str, MemberStatus | EtcdError]:
        """What each endpoint says of itself, or the error with which it did not answer."""
        answers = await asyncio.gather(*(self._status(endpoint, timeout_s) for endpoint in self.endpoints))
        return dict(zip(self.endpoints, answers, strict=True))

    async def _status(self, endpoint: str, timeout_s: float) -> MemberStatus | EtcdError:
        try:
            answer = await self._transport.call_member(endpoint, methods.STATUS, wire.StatusRequest(), timeout_s)
        except EtcdError as error:
            return error
        return member_status(endpoint, answer)

    async def members(self) -> tuple[Member, ...]:
        """The cluster's list of its members."""
        answer = await self._transport.call(methods.MEMBER_LIST, wire.MemberListRequest(linearizable=True))
        return tuple(member(message) for message in answer.members)

    async def member_remove(self, member_id: int) -> None:
        """Take a member out of the cluster for good."""
        await self._transport.call(methods.MEMBER_REMOVE, wire.MemberRemoveRequest(id=member_id))

    async def alarms(self) -> tuple[Alarm, ...]:
        """The alarms that are armed."""
        answer = await self._transport.call(methods.ALARM_LIST, wire.AlarmRequest(action=wire.AlarmRequest.GET))
        return tuple(Alarm(alarm.member_id, ALARM_KINDS[alarm.alarm]) for alarm in answer.alarms)

    async def disarm(self, alarm: Alarm) -> None:
        """Disarm an alarm, after its cause has been cured."""
        request = wire.AlarmRequest(
            action=wire.AlarmRequest.DEACTIVATE, member_id=alarm.member_id, alarm=ALARM_TYPES[alarm.kind]
        )
        await self._transport.call(methods.ALARM_CHANGE, request, idempotent=True)

    async def defragment(self, endpoint: str, *, timeout_s: float = DEFRAGMENT_TIMEOUT_S) -> None:
        """Give the space of forgotten history back to the file system; the member answers nothing meanwhile."""
        await self._transport.call_member(endpoint, methods.DEFRAGMENT, wire.DefragmentRequest(), timeout_s)
