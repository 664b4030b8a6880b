"""One leader among many candidates, by a key bound to a lease. What a leader does, and the fencing of its writes,
belong to their rooms; this one hands out the compare that fences them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import grpc

from hostler_coordinator.etcd.client import EtcdClient
from hostler_coordinator.etcd.errors import (
    Compacted,
    EtcdError,
    NoSpace,
    OutcomeUnknown,
    RequestRefused,
    StoreUnavailable,
    WatchCancelled,
)
from hostler_coordinator.etcd.leases import Lease
from hostler_coordinator.etcd.losses import Loss, LossCause, holder_text
from hostler_coordinator.etcd.txn import Compare, Delete, Get, Put, absent, create_revision_is
from hostler_coordinator.etcd.values import Got, KeyValue, Listing

RESIGN_DEADLINE_S = 2.0
RETRY_S = 0.5
DOUBT_LOOK_S = 0.02
# A candidate looks at the key again this often even if its watch says nothing: it never waits for ever on one stream.
LOOK_AGAIN_S = 15.0
_RETRIED = (StoreUnavailable, OutcomeUnknown, NoSpace, Compacted, WatchCancelled)


@dataclass(frozen=True, slots=True)
class LeaderInfo:
    """Who leads: the value it campaigned with, and the revision that marks its term."""

    value: bytes
    create_revision: int


class Leadership:
    """A term of leadership. ``alive`` is checked before every act, ``lost`` wakes whoever waits, and ``guard()`` goes
    into every write, because between a check and a write a process can be frozen.
    """

    def __init__(self, client: EtcdClient, key: bytes, value: bytes, create_revision: int, lease: Lease) -> None:
        self.key = key
        self.value = value
        self.create_revision = create_revision
        self.lost = asyncio.Event()
        self.loss: Loss | None = None
        self._client = client
        self._lease = lease
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._follow(), name="etcd-leadership")

    @property
    def alive(self) -> bool:
        """True while this process may believe that it leads."""
        return not self.lost.is_set() and self._lease.alive

    @property
    def believed_until(self) -> float:
        """Monotonic seconds until which leadership is believed in without another renewal."""
        return self._lease.believed_until if self.alive else 0.0

    @property
    def lease_id(self) -> int:
        """The etcd lease that the leader key hangs on."""
        return self._lease.id

    async def settled(self) -> bool:
        """Whether this process may believe that it leads, once that is certain. After a stall a renewal's answer may
        lie unread; that is waited for, about a TTL at most. Nothing may be done meanwhile.
        """
        while not self.alive and not self.lost.is_set():  # noqa: ASYNC110  either may end the doubt, which is rare
            await asyncio.sleep(DOUBT_LOOK_S)
        return self.alive

    @property
    def why_over(self) -> Loss:
        """Why this term is over or, where nothing but its holder ends it, that it was asked to."""
        if self.loss is not None:
            return self.loss
        if self._lease.loss is not None:
            return self._lease.loss
        return Loss(LossCause.STOPPED, "it was asked to stop") if self.alive else self._lease.expiry()

    def guard(self) -> Compare:
        """The compare that makes a write fail once this term is over."""
        return create_revision_is(self.key, self.create_revision)

    async def resign(self) -> None:
        """Stop believing, then let the next candidate in at once. Never raises for an unreachable store: the lease runs
        out by itself.
        """
        self._lose(self.why_over)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(EtcdError):
            await self._client.txn([self.guard()], [Delete(self.key)], idempotent=True, deadline_s=RESIGN_DEADLINE_S)
        with contextlib.suppress(EtcdError):
            await self._client.lease_revoke(self._lease, deadline_s=RESIGN_DEADLINE_S)

    def compare_failed(self, found: KeyValue | None) -> None:
        """A guarded write was refused by its guard: the term is over. ``found`` is what stood at the leader key."""
        holder = "no leader key" if found is None else f"the leader key of {_who(_info(found))}"
        self._lose(Loss(LossCause.COMPARE_FAILED, f"a guarded write found {holder}"))

    def _lose(self, loss: Loss) -> None:
        """The first reason stays."""
        self.loss = self.loss or loss
        self.lost.set()

    async def _follow(self) -> None:
        """Lost is whichever comes first: the lease's end here, or the key's end in the store."""
        key_gone = asyncio.ensure_future(self._key_gone())
        lease_lost = asyncio.ensure_future(self._lease.lost.wait())
        try:
            await asyncio.wait({key_gone, lease_lost}, return_when=asyncio.FIRST_COMPLETED)
            self._lose(self._lease.loss or key_gone.result())
        finally:
            self._lose(Loss(LossCause.UNWATCHED, "this process follows the leader key no more"))
            for task in (key_gone, lease_lost):
                task.cancel()
            await asyncio.gather(key_gone, lease_lost, return_exceptions=True)

    async def _key_gone(self) -> Loss:
        """Return when the key is no longer ours; a person may delete it while the lease lives on."""
        try:
            async with aclosing(_observe(self._client, self.key)) as leaders:
                async for info in leaders:
                    if info is None:
                        return Loss(LossCause.KEY_GONE, "the leader key is gone: deleted by hand, or with its lease")
                    if info.create_revision != self.create_revision:
                        return Loss(LossCause.OVERTAKEN, f"overtaken by {_who(info)}")
        except EtcdError as error:  # what waiting does not cure; the rest is tried again
            return Loss(LossCause.UNWATCHED, f"the leader key cannot be watched: {error}")
        return Loss(LossCause.UNWATCHED, "the watch of the leader key ended")


class Election:
    """A candidate for the key ``key``. A lease is taken only for the moment of trying, so a candidate that waits has no
    session that could die unseen.
    """

    def __init__(self, client: EtcdClient, key: bytes, value: bytes, *, ttl_s: int = 5) -> None:
        self._client = client
        self._key = key
        self._value = value
        self._ttl_s = ttl_s

    async def campaign(self) -> Leadership:
        """Wait until this candidate leads, through any trouble of the store; cancel to stop.

        Raises:
            AuthFailed, ClusterChanged: waiting would not help.
        """
        while True:
            try:
                leader = await self._client.get(self._key)
                if leader.kv is None:
                    leadership = await self._try()
                    if leadership is not None:
                        return leadership
                else:
                    await self._until_gone(leader)
            except _RETRIED:
                await asyncio.sleep(RETRY_S)

    @contextlib.asynccontextmanager
    async def lead(self) -> AsyncIterator[Leadership]:
        """Campaign on entry, resign on exit."""
        leadership = await self.campaign()
        try:
            yield leadership
        finally:
            await leadership.resign()

    def observe(self) -> AsyncGenerator[LeaderInfo | None, None]:
        """Who leads now, then every change (None: nobody). While the store is unreachable nothing new is said; see
        ``EtcdClient.unavailable_since``.
        """
        return _observe(self._client, self._key)

    async def _try(self) -> Leadership | None:
        lease = await self._client.lease_grant(self._ttl_s, deadline_s=self._ttl_s)
        create_revision: int | None = None
        try:
            create_revision = await self._claim(lease)
            if create_revision is not None and lease.alive:  # the answer can come after the lease has run out
                return Leadership(self._client, self._key, self._value, create_revision, lease)
            create_revision = None
        except RequestRefused as refused:
            if (
                refused.code is not grpc.StatusCode.NOT_FOUND
            ):  # the lease ran out on the server before the claim arrived
                raise
        finally:
            if create_revision is None:
                with contextlib.suppress(EtcdError):
                    await self._client.lease_revoke(lease, deadline_s=RESIGN_DEADLINE_S)
        return None

    async def _claim(self, lease: Lease) -> int | None:
        """The term's revision, or None when somebody else was first."""
        result = await self._client.txn(
            [absent(self._key)],
            [Put(self._key, self._value, lease.id)],
            [Get(self._key)],
            idempotent=True,
            deadline_s=self._ttl_s,
        )
        if result.succeeded:
            return result.revision
        found = result.responses[0]
        if isinstance(found, Listing) and found.kvs and found.kvs[0].lease == lease.id:
            return found.kvs[0].create_revision  # an earlier attempt of this very claim did land
        return None

    async def _until_gone(self, leader: Got) -> None:
        with contextlib.suppress(TimeoutError):
            async with (
                asyncio.timeout(LOOK_AGAIN_S),
                aclosing(self._client.watch(self._key, leader.revision + 1, exact=True)) as batches,
            ):
                async for batch in batches:
                    if batch.events[-1].deleted:
                        return


async def _observe(client: EtcdClient, key: bytes) -> AsyncGenerator[LeaderInfo | None, None]:
    said: list[LeaderInfo | None] = []
    while True:
        try:
            got = await client.get(key)
            news = [_info(got.kv)]
            async with aclosing(client.watch(key, got.revision + 1, exact=True)) as batches:
                while True:
                    for info in news:
                        if said != [info]:
                            said = [info]
                            yield info
                    batch = await anext(batches)
                    news = [None if event.deleted else _info(event.kv) for event in batch.events]
        except _RETRIED:
            await asyncio.sleep(RETRY_S)


def _who(info: LeaderInfo | None) -> str:
    return "nobody" if info is None else f"{holder_text(info.value)} since revision {info.create_revision}"


def _info(kv: KeyValue | None) -> LeaderInfo | None:
    return None if kv is None else LeaderInfo(kv.value, kv.create_revision)
