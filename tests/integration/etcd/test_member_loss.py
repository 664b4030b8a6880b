"""Three real members under kills, freezes and removals: nothing is lost, repeated or decided on old truth."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from etcd_fixtures import wait_until
from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.etcd import (
    EtcdClient,
    MemberStatus,
    OutcomeUnknown,
    Put,
    StoreUnavailable,
    mod_revision_is,
)

pytestmark = pytest.mark.integration

KEY = b"/seq"


@dataclass
class Traffic:
    """A counter raised by compare-and-swap, and what a watch saw of it."""

    written: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)

    async def write(self, client: EtcdClient) -> None:
        while True:
            with contextlib.suppress(StoreUnavailable, OutcomeUnknown):
                now = (await client.get(KEY)).kv
                count, revision = (int(now.value), now.mod_revision) if now else (0, 0)
                result = await client.txn([mod_revision_is(KEY, revision)], [Put(KEY, b"%d" % (count + 1))])
                assert result.succeeded
                self.written.append(count + 1)
            await asyncio.sleep(0.02)

    async def watch(self, client: EtcdClient) -> None:
        async with aclosing(client.watch(KEY, 1)) as batches:
            async for batch in batches:
                self.seen.extend(int(event.kv.value) for event in batch.events)


@asynccontextmanager
async def traffic(cluster: EtcdCluster) -> AsyncIterator[Traffic]:
    """Writes and watches meanwhile; at the end everything written must have been seen, once and in order."""
    going = Traffic()
    async with EtcdClient(cluster.endpoints, request_timeout_s=1.0) as writer, EtcdClient(cluster.endpoints) as reader:
        tasks = [asyncio.create_task(going.write(writer)), asyncio.create_task(going.watch(reader))]
        try:
            await wait_until(lambda: len(going.seen) >= 3)
            yield going
            written = len(going.written)
            await wait_until(lambda: len(going.seen) > written, 20.0)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results), results
    assert going.seen == list(range(1, len(going.seen) + 1))
    assert set(going.written) <= set(going.seen) | {going.seen[-1] + 1}


async def raft_leader(cluster: EtcdCluster) -> int:
    async with EtcdClient(cluster.endpoints) as client:
        answers = (await client.status()).values()
    leads = [isinstance(answer, MemberStatus) and answer.is_leader for answer in answers]
    return leads.index(True)


async def goes_on(going: Traffic, timeout_s: float = 20.0) -> None:
    """New writes come through."""
    before = len(going.written)
    await wait_until(lambda: len(going.written) >= before + 3, timeout_s)


async def test_killed_frozen_and_removed_members_lose_and_repeat_nothing(etcd_cluster3: EtcdCluster) -> None:
    async with traffic(etcd_cluster3) as going:
        leader = await raft_leader(etcd_cluster3)
        await etcd_cluster3.kill(leader)
        await goes_on(going)
        await etcd_cluster3.restart(leader)
        await etcd_cluster3.wait_ready()

        frozen = await raft_leader(etcd_cluster3)
        etcd_cluster3.pause(frozen)
        await goes_on(going)
        etcd_cluster3.resume(frozen)
        await etcd_cluster3.wait_ready()

        async with EtcdClient(etcd_cluster3.endpoints, deadline_s=20.0) as client:
            removed = (frozen + 1) % 3
            gone = (await client.status())[etcd_cluster3.endpoints[removed]]
            assert isinstance(gone, MemberStatus)
            await client.member_remove(gone.member_id)
            await goes_on(going)
            assert len(await client.members()) == 2


async def test_all_members_down_is_named_and_survived(etcd_cluster3: EtcdCluster) -> None:
    async with (
        EtcdClient(etcd_cluster3.endpoints, request_timeout_s=0.5, deadline_s=1.0) as client,
        traffic(etcd_cluster3) as going,
    ):
        await asyncio.gather(*(etcd_cluster3.kill(index) for index in range(3)))
        down_at = time.monotonic()
        with pytest.raises(StoreUnavailable) as caught:
            await client.get(KEY)
        assert caught.value.since >= down_at
        assert client.unavailable_since == caught.value.since
        for index in range(3):
            await etcd_cluster3.restart(index)
        await etcd_cluster3.wait_ready()
        await goes_on(going)
        await client.get(KEY)
        assert client.unavailable_since is None
    assert len(etcd_cluster3.pids) == 3
