"""No read that waits on a stream to etcd is ever cancelled, whoever gives up, and none is left once its call ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from grpc.aio import _call

from etcd_fixtures import SharedEtcd, wait_until
from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.etcd import Election, EtcdClient, StoreUnavailable
from hostler_coordinator.racing import left_waiting

pytestmark = pytest.mark.integration

PROMPT_S = 0.5


class Reads:
    """Every read of a stream in this process: made, waiting now, and cancelled while it waited."""

    def __init__(self) -> None:
        self.made = 0
        self.waiting = 0
        self.cancelled = 0


@pytest_asyncio.fixture
async def reads(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Reads]:
    seen = Reads()
    real = _call.StreamStreamCall.read

    async def read(call: Any) -> Any:
        seen.made += 1
        seen.waiting += 1
        try:
            return await real(call)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            seen.cancelled += task is not None and task.cancelling() > 0  # grpc raises it too, for a cancelled call
            raise
        finally:
            seen.waiting -= 1

    monkeypatch.setattr(_call.StreamStreamCall, "read", read)
    yield seen
    await wait_until(lambda: left_waiting() == 0, 5.0)
    assert (seen.waiting, seen.cancelled) == (0, 0)
    assert seen.made > 0


async def cancelled_promptly(task: asyncio.Task[Any]) -> None:
    before = time.monotonic()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=5.0)
    assert done == {task}
    assert task.cancelled()
    assert time.monotonic() - before < PROMPT_S


async def watch_all(client: EtcdClient, prefix: bytes) -> None:
    async with aclosing(client.watch(prefix, 0)) as batches:
        async for _ in batches:
            pass


async def test_watchers_that_are_cancelled_or_time_out(etcd: SharedEtcd, reads: Reads) -> None:
    async with EtcdClient(etcd.endpoints) as client:
        watchers = [asyncio.create_task(watch_all(client, etcd.prefix + b"%d" % n)) for n in range(20)]
        await wait_until(lambda: reads.waiting == 20 and reads.made == 40)
        for watcher in watchers[:10]:
            await cancelled_promptly(watcher)
        await wait_until(lambda: reads.waiting == 10)  # the others live on, on the same connection
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await watch_all(client, etcd.prefix)
        await wait_until(lambda: reads.waiting == 10)
        for watcher in watchers[10:]:
            await cancelled_promptly(watcher)


async def test_candidates_that_stop_waiting_and_leaders_that_resign(etcd: SharedEtcd, reads: Reads) -> None:
    key = etcd.prefix + b"leader"
    async with EtcdClient(etcd.endpoints) as client:
        leadership = await Election(client, key, b"me", ttl_s=5).campaign()
        waiting = asyncio.create_task(Election(client, key, b"you", ttl_s=5).campaign())
        await wait_until(lambda: reads.waiting >= 3)
        await cancelled_promptly(waiting)
        await leadership.resign()
        await wait_until(lambda: reads.waiting == 0)


async def test_a_client_that_is_closed_under_its_watches_and_leases(etcd: SharedEtcd, reads: Reads) -> None:
    async with EtcdClient(etcd.endpoints) as client:
        watcher = asyncio.create_task(watch_all(client, etcd.prefix))
        lease = await client.lease_grant(5)
        await wait_until(lambda: reads.waiting == 2)
    await wait_until(lambda: reads.waiting == 0)
    assert lease.lost.is_set()
    watcher.cancel()
    await asyncio.gather(watcher, return_exceptions=True)


async def test_streams_of_a_member_that_falls_silent(etcd_cluster3: EtcdCluster, reads: Reads) -> None:
    async with EtcdClient(etcd_cluster3.endpoints[:1], request_timeout_s=0.5, deadline_s=1.0) as client:
        watcher = asyncio.create_task(watch_all(client, b"/"))
        await wait_until(lambda: reads.waiting == 1 and reads.made == 2)
        etcd_cluster3.pause(0)
        with pytest.raises(StoreUnavailable):
            await client.get(b"/k")
        await cancelled_promptly(watcher)  # while its creation on the silent member waits for an answer
        await wait_until(lambda: reads.waiting == 0)
        etcd_cluster3.resume(0)
