"""The Store port: one suite on the store in memory and on a real etcd, so that the fake cannot drift."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from etcd_fixtures import wait_until
from hostler_contract.campaigns import AuditRecord
from hostler_contract.codec import to_record
from hostler_contract.hosts import Claim, Hold, HostRecord
from hostler_contract.work import Token
from hostler_coordinator.clock import SystemClock
from hostler_coordinator.draft import Draft
from hostler_coordinator.enact import audit_id
from hostler_coordinator.etcd import Election, EtcdClient, Leadership
from hostler_coordinator.ports import Committed, Lost
from hostler_coordinator.refusals import Refused
from hostler_coordinator.store import EtcdStore, unguarded_put
from memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from etcd_fixtures import SharedEtcd

HOST = HostRecord(id="h1", name="gpu-1", fabric="ib-a", enrolled_at=1.0)


@dataclass
class Bench:
    """A store under test, and a way to end its term."""

    store: MemoryStore | EtcdStore
    leadership: Leadership | None

    async def depose(self) -> None:
        if isinstance(self.store, MemoryStore):
            self.store.leading = False
        elif self.leadership is not None:
            await self.leadership.resign()


@pytest_asyncio.fixture(params=["memory", "etcd"])
async def bench(request: pytest.FixtureRequest, etcd: SharedEtcd) -> AsyncIterator[Bench]:
    if request.param == "memory":
        yield Bench(MemoryStore(), None)
        return
    store = EtcdStore(etcd.client, etcd.prefix.decode(), SystemClock(), lambda: None)
    following = asyncio.create_task(store.follow())
    async with asyncio.timeout(10):
        await store.loaded()
        leadership = await Election(etcd.client, store.leader_key, b"me", ttl_s=5).campaign()
        await store.lead_with(leadership)
    yield Bench(store, leadership)
    following.cancel()
    await leadership.resign()
    await asyncio.gather(following, return_exceptions=True)


def written(bench: Bench, *records: HostRecord | Claim | Hold) -> Draft:
    draft = Draft(bench.store.state)
    for record in records:
        draft.put(record)
    return draft


async def test_a_commit_is_in_the_state_when_it_returns(bench: Bench) -> None:
    result = await bench.store.commit(written(bench, HOST).change())
    assert isinstance(result, Committed)
    assert bench.store.state.hosts["h1"] == HOST
    assert bench.store.state.revision_of("hosts/h1") == result.revision


async def test_a_change_that_relied_on_old_truth_is_lost_whole(bench: Bench) -> None:
    await bench.store.commit(written(bench, HOST).change())
    stale = written(bench, HOST.model_copy(update={"note": "stale"}), Claim(host="h1"))
    await bench.store.commit(written(bench, HOST.model_copy(update={"note": "new"})).change())
    assert await bench.store.commit(stale.change()) == Lost(deposed=False)
    assert bench.store.state.hosts["h1"].note == "new"
    assert bench.store.state.revision_of("claims/h1") == 0


async def test_a_record_can_be_created_once(bench: Bench) -> None:
    first, second = written(bench, HOST), written(bench, HOST)
    assert isinstance(await bench.store.commit(first.change()), Committed)
    assert await bench.store.commit(second.change()) == Lost(deposed=False)


async def test_a_prefix_that_must_be_empty(bench: Bench) -> None:
    draft = written(bench, Claim(host="h1"))
    draft.rely_on_empty("holds/h1/")
    hold = Hold(id="a", host="h1", reason="r", owner="o", at=1.0)
    await bench.store.commit(written(bench, hold).change())
    assert await bench.store.commit(draft.change()) == Lost(deposed=False)
    fresh = written(bench, Claim(host="h1"))
    fresh.rely_on_empty("holds/h2/")
    assert isinstance(await bench.store.commit(fresh.change()), Committed)


async def test_a_deleted_record_is_gone_and_can_be_made_again(bench: Bench) -> None:
    await bench.store.commit(written(bench, HOST).change())
    draft = Draft(bench.store.state)
    draft.delete("hosts/h1")
    await bench.store.commit(draft.change())
    assert "h1" not in bench.store.state.hosts
    assert isinstance(await bench.store.commit(written(bench, HOST).change()), Committed)


async def test_a_deposed_leader_writes_nothing(bench: Bench) -> None:
    draft = written(bench, HOST)
    await bench.depose()
    assert await bench.store.commit(draft.change()) == Lost(deposed=True)
    assert not bench.store.state.hosts


async def test_the_newest_token_is_asked_of_the_store(bench: Bench) -> None:
    token = Token(epoch=0, counter=7)
    await bench.store.commit(written(bench, Claim(host="h1", token=token)).change())
    assert await bench.store.still_newest("h1", token)
    assert not await bench.store.still_newest("h1", Token(epoch=0, counter=6))
    await bench.depose()
    assert not await bench.store.still_newest("h1", token)


async def test_audit_is_read_in_order_and_from_a_point_on(bench: Bench) -> None:
    draft = Draft(bench.store.state)
    for number in range(5):
        draft.put(AuditRecord(id=f"{number:020d}-x", at=float(number), actor="a", action="b"), blind=True)
    await bench.store.commit(draft.change())
    everything = await bench.store.audit("", 100)
    assert [entry.at for entry in everything] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [entry.at for entry in await bench.store.audit(everything[2].id, 1)] == [3.0]
    third = everything[3].id
    assert [entry.at for entry in await bench.store.audit(everything[0].id, 100, third)] == [1.0, 2.0]
    assert list(await bench.store.audit(third, 100, third)) == []
    assert list(await bench.store.audit(third, 100, everything[0].id)) == []


async def test_two_processes_see_each_others_writes(etcd: SharedEtcd) -> None:
    stores = [EtcdStore(etcd.client, etcd.prefix.decode(), SystemClock(), lambda: None) for _ in range(2)]
    following = [asyncio.create_task(store.follow()) for store in stores]
    async with asyncio.timeout(10):
        for store in stores:
            await store.loaded()
        leadership = await Election(etcd.client, stores[0].leader_key, b"me").campaign()
        await stores[0].lead_with(leadership)
        draft = Draft(stores[0].state)
        draft.put(HOST)
        await stores[0].commit(draft.change())
        await wait_until(lambda: "h1" in stores[1].state.hosts)
    assert stores[1].state.hosts["h1"] == HOST
    for task in following:
        task.cancel()
    await leadership.resign()
    await asyncio.gather(*following, return_exceptions=True)


async def test_a_compacted_watch_is_answered_by_reading_everything(etcd: SharedEtcd) -> None:
    store = EtcdStore(etcd.client, etcd.prefix.decode(), SystemClock(), lambda: None)
    following = asyncio.create_task(store.follow())
    async with asyncio.timeout(20):
        await store.loaded()
        leadership = await Election(etcd.client, store.leader_key, b"me").campaign()
        await store.lead_with(leadership)
        draft = Draft(store.state)
        draft.put(HOST)
        await store.commit(draft.change())
        following.cancel()
        async with EtcdClient(etcd.endpoints) as other:
            key = etcd.prefix + b"hosts/h1"
            await other.delete(key)
            revision = await other.put(etcd.prefix + b"claims/h1", b'{"host":"h1"}')
            await other.compact(revision)
        following = asyncio.create_task(store.follow())
        await wait_until(lambda: "h1" not in store.state.hosts and store.state.revision_of("claims/h1") > 0)
    following.cancel()
    await leadership.resign()
    await asyncio.gather(following, return_exceptions=True)
    assert not store.state.hosts


async def test_an_unreadable_record_is_named_and_hides_nothing_else(etcd: SharedEtcd) -> None:
    async with EtcdClient(etcd.endpoints) as other:
        await other.put(etcd.prefix + b"claims/h1", b'{"schema_version":1,"x')
        await other.put(etcd.prefix + b"hosts/\xff\xfe", b"{}")
        await other.put(etcd.prefix + b"hosts/h1", HOST.model_dump_json().encode())
        store = EtcdStore(etcd.client, etcd.prefix.decode(), SystemClock(), lambda: None)
        following = asyncio.create_task(store.follow())
        async with asyncio.timeout(10):
            await store.loaded()
            assert store.state.hosts["h1"] == HOST
            assert set(store.state.unreadable) == {"claims/h1", "hosts/\\xff\\xfe"}
            with pytest.raises(Refused, match="claims/h1"):
                Draft(store.state).claim("h1")
            await other.put(etcd.prefix + b"claims/h1", b'{"host":"h1"}')
            await wait_until(lambda: "claims/h1" not in store.state.unreadable)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_change_too_large_for_etcd_is_refused_and_the_store_works_on(etcd: SharedEtcd) -> None:
    store = EtcdStore(etcd.client, etcd.prefix.decode(), SystemClock(), lambda: None)
    following = asyncio.create_task(store.follow())
    async with asyncio.timeout(20):
        await store.loaded()
        leadership = await Election(etcd.client, store.leader_key, b"me").campaign()
        await store.lead_with(leadership)
        bench = Bench(store, leadership)
        for note in ("n" * 1_700_000, "n" * 3_000_000):
            with pytest.raises(Refused, match=r"hosts/h1: .*--max-request-bytes") as caught:
                await store.commit(written(bench, HOST.model_copy(update={"note": note})).change())
            assert caught.value.code == "change-too-large"
        many = [Claim(host=f"h{number}") for number in range(101)]
        with pytest.raises(
            Refused, match="claims/h0, claims/h1, claims/h10 and 98 more: it has 102 operations"
        ) as caught:
            await store.commit(written(bench, *many).change())
        assert caught.value.code == "change-too-large"
        assert store.unavailable is None
        assert leadership.alive
        assert isinstance(await store.commit(written(bench, HOST).change()), Committed)
        assert store.state.hosts["h1"] == HOST
        assert store.state.revision_of("claims/h0") == 0
    following.cancel()
    await leadership.resign()
    await asyncio.gather(following, return_exceptions=True)


async def test_fc_d07_reading_everything_does_not_read_the_audit(etcd: SharedEtcd) -> None:
    """It has no bound: a coordinator that starts over half a million entries must not hold them all."""
    calls: list[str] = []

    async def load() -> int:
        calls.clear()
        client = etcd.another(observer=lambda method, _seconds, _outcome: calls.append(method))
        async with client:
            store = EtcdStore(client, etcd.prefix.decode(), SystemClock(), lambda: None)
            following = asyncio.create_task(store.follow())
            async with asyncio.timeout(10):
                await store.loaded()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        assert set(store.state.hosts) == {"h1"}
        return len(calls)

    await etcd.client.put(etcd.prefix + b"hosts/h1", to_record(HOST))
    before = await load()
    entries = [AuditRecord(id=audit_id(1.0, f"{n:05d}"), at=1.0, actor="a", action="b") for n in range(2_000)]
    for first in range(0, len(entries), 100):
        puts = [unguarded_put(etcd.prefix.decode(), entry) for entry in entries[first : first + 100]]
        await etcd.client.txn([], puts)
    assert await load() == before
