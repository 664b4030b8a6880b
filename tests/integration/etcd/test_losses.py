"""Every way to lose a term says why: in the leadership, and in the log of whoever committed under it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from etcd_fixtures import SharedEtcd, wait_until
from hostler_contract.hosts import HostRecord
from hostler_coordinator.clock import SystemClock
from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.draft import Draft
from hostler_coordinator.etcd import Delete, Election, EtcdClient, Leadership, Loss, LossCause
from hostler_coordinator.ports import Lost
from hostler_coordinator.store import EtcdStore
from integration.etcd.ways import Cut

if TYPE_CHECKING:
    from hostler_coordinator.ports import Committed

pytestmark = pytest.mark.integration

TTL_S = 2
LONG_TTL_S = 20


async def ended(leadership: Leadership, timeout_s: float = 5.0) -> Loss:
    """Wait for the end; the reason must be there with it, and stay through the resigning."""
    await asyncio.wait_for(leadership.lost.wait(), timeout_s)
    loss = leadership.loss
    assert loss is not None
    assert not leadership.alive
    await leadership.resign()
    assert leadership.why_over is loss
    return loss


async def test_asked_to_stop(etcd: SharedEtcd) -> None:
    leadership = await Election(etcd.client, etcd.prefix + b"leader", b"me").campaign()
    assert leadership.loss is None
    assert leadership.why_over.cause is LossCause.STOPPED
    await leadership.resign()
    assert leadership.loss == Loss(LossCause.STOPPED, "it was asked to stop")
    assert str(leadership.loss) == "it was asked to stop (asked-to-stop)"


async def test_the_client_was_closed(etcd: SharedEtcd) -> None:
    async with EtcdClient(etcd.endpoints) as client:
        leadership = await Election(client, etcd.prefix + b"leader", b"me").campaign()
    assert (await ended(leadership)).text == "this client of the store was closed"


async def test_the_leader_key_was_deleted(etcd: SharedEtcd) -> None:
    leadership = await Election(etcd.client, etcd.prefix + b"leader", b"me", ttl_s=LONG_TTL_S).campaign()
    await etcd.client.delete(leadership.key)
    assert (await ended(leadership)).cause is LossCause.KEY_GONE


async def test_etcd_ended_the_lease(etcd: SharedEtcd) -> None:
    lease = await etcd.client.lease_grant(TTL_S)
    async with EtcdClient(etcd.endpoints) as other:
        taken = await other.lease_grant(5, keep=False)
        taken.id, own = lease.id, taken.id
        await other.lease_revoke(taken)
        taken.id = own
    await asyncio.wait_for(lease.lost.wait(), TTL_S)
    assert lease.loss is not None
    assert lease.loss.cause is LossCause.EXPIRED


async def test_overtaken_says_by_whom(etcd: SharedEtcd) -> None:
    key = etcd.prefix + b"leader"
    async with (
        Cut(etcd.endpoints[0]).running() as way,
        EtcdClient([way.endpoint], request_timeout_s=0.5) as client,
    ):
        leadership = await Election(client, key, b"me", ttl_s=LONG_TTL_S).campaign()
        way.cut()
        await etcd.client.txn([], [Delete(key)])
        other = await Election(etcd.client, key, b'{"name":"c2"}', ttl_s=LONG_TTL_S).campaign()
        way.is_cut = False
        loss = await ended(leadership)
        assert loss.cause is LossCause.OVERTAKEN
        assert loss.text == f'overtaken by {{"name":"c2"}} since revision {other.create_revision}'
        await other.resign()


async def test_members_that_are_silent(tmp_path: Path) -> None:
    async with EtcdCluster(tmp_path) as cluster, EtcdClient(cluster.endpoints, request_timeout_s=0.5) as client:
        leadership = await Election(client, b"/leader", b"me", ttl_s=TTL_S).campaign()
        cluster.pause(0)
        loss = await ended(leadership)
        cluster.resume(0)
    assert loss.cause is LossCause.NOT_RENEWED
    assert loss.text.startswith(f"the lease of {TTL_S} s was not renewed for ")
    assert "no member answered" in loss.text
    assert TTL_S * 0.9 <= float(loss.text.split(" for ")[1].split(" s:")[0]) < TTL_S * 2


async def test_members_that_cannot_be_reached(tmp_path: Path) -> None:
    async with EtcdCluster(tmp_path) as cluster, EtcdClient(cluster.endpoints, request_timeout_s=0.5) as client:
        leadership = await Election(client, b"/leader", b"me", ttl_s=TTL_S).campaign()
        await cluster.kill(0)
        loss = await ended(leadership)
        assert loss.cause is LossCause.UNREACHABLE
        assert f"{cluster.endpoints[0]}: " in loss.text
        assert "(unavailable)" in loss.text


async def test_a_guarded_write_that_was_refused_ends_the_term_and_the_log_says_so(etcd: SharedEtcd) -> None:
    store = EtcdStore(etcd.client, etcd.prefix.decode(), SystemClock(), lambda: None)
    following = asyncio.create_task(store.follow())
    async with (
        asyncio.timeout(20),
        Cut(etcd.endpoints[0]).running() as way,
        EtcdClient([way.endpoint], request_timeout_s=0.5) as client,
    ):
        leadership = await Election(client, store.leader_key, b"c1", ttl_s=LONG_TTL_S).campaign()
        await store.lead_with(leadership)
        way.cut()  # the election sees nothing; the store does
        await etcd.client.delete(store.leader_key)
        other = await Election(etcd.client, store.leader_key, b"c2", ttl_s=LONG_TTL_S).campaign()
        assert leadership.alive
        assert await commit_a_host(store) == Lost(deposed=True)
        assert not leadership.alive
        assert leadership.loss is not None
        assert leadership.loss.cause is LossCause.COMPARE_FAILED
        assert f"c2 since revision {other.create_revision}" in leadership.loss.text
        with capture_logs() as said:
            await store.lead_with(None)
        (entry,) = said
        assert entry["event"] == "commits end with the term"
        assert entry["cause"] == "compare-failed"
        assert entry["term"] == leadership.create_revision
        assert entry["reason"] == leadership.loss.text
        assert await commit_a_host(store) == Lost(deposed=True)
        await leadership.resign()
        await other.resign()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def commit_a_host(store: EtcdStore) -> Committed | Lost:
    draft = Draft(store.state)
    draft.put(HostRecord(id="h1", name="gpu-1", fabric="ib-a", enrolled_at=1.0))
    return await store.commit(draft.change())


async def test_belief_that_ended_with_nobody_told_yet_has_its_reason_too(tmp_path: Path) -> None:
    async with EtcdCluster(tmp_path) as cluster, EtcdClient(cluster.endpoints, request_timeout_s=0.5) as client:
        leadership = await Election(client, b"/leader", b"me", ttl_s=TTL_S).campaign()
        cluster.pause(0)
        await wait_until(lambda: not leadership.alive)
        assert leadership.why_over.cause is LossCause.NOT_RENEWED
        before = time.monotonic()
        await ended(leadership)
        assert time.monotonic() - before < TTL_S * 2 + 2
        cluster.resume(0)
