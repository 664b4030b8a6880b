"""A leader that is slow, or whose store is slow, goes on leading; one that is cut off stops before etcd says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

import memory_fleet
from etcd_fixtures import SharedEtcd, wait_until
from hostler_contract.campaigns import ResolvedLimits
from hostler_contract.hosts import Claim
from hostler_contract.work import Token
from hostler_coordinator.clock import SystemClock
from hostler_coordinator.draft import Draft
from hostler_coordinator.etcd import Election, EtcdClient, Leadership, LossCause
from hostler_coordinator.ports import Committed, Lost
from hostler_coordinator.store import EtcdStore
from integration.etcd.ways import SlowWay, Streams, beside_the_loop
from memory_store import MemoryStore

pytestmark = pytest.mark.integration

TTL_S = 3


class LedStore(MemoryStore):
    """A store in memory that takes commits for as long as a leadership is believed in."""

    leading: bool

    def __init__(self, leadership: Leadership) -> None:
        self.__dict__["leadership"] = leadership
        super().__init__()

    def __setattr__(self, name: str, value: object) -> None:
        if name != "leading":
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> bool:
        if name != "leading":
            raise AttributeError(name)
        leadership: Leadership = self.__dict__["leadership"]
        return leadership.alive


@dataclass
class Term:
    """A running engine, and whether its leadership was believed in at each of its commits."""

    fleet: memory_fleet.Fleet
    running: asyncio.Task[None]
    believed_at_commits: list[bool] = field(default_factory=list)

    def order(self, host: str) -> None:
        """Give the engine something to commit."""
        self.fleet.campaign(ResolvedLimits(domains={"fabric/ib-a": 2}), [host], name=f"of-{host}")
        self.fleet.engine.wake()


async def still_leads(leadership: Leadership, etcd: SharedEtcd) -> bool:
    stored = (await etcd.client.get(leadership.key)).kv
    return leadership.alive and stored is not None and stored.create_revision == leadership.create_revision


async def test_answers_that_come_late_keep_the_leader_and_its_stream(etcd: SharedEtcd) -> None:
    streams = Streams()
    async with (
        SlowWay(etcd.endpoints[0]).running() as way,
        EtcdClient([way.endpoint], request_timeout_s=5.0, observer=streams) as client,
    ):
        leadership = await Election(client, etcd.prefix + b"leader", b"me", ttl_s=TTL_S).campaign()
        way.delay_s = 1.2
        late_from = time.monotonic()
        await wait_until(lambda: leadership.believed_until > late_from + 3 * TTL_S, 3 * TTL_S + 2.0)
        assert await still_leads(leadership, etcd)
        assert not leadership.lost.is_set()
        assert streams.broken == 0
        assert way.accepted == 1
        way.delay_s = 0.0
        await leadership.resign()


async def test_a_blocked_event_loop_keeps_the_leader(etcd: SharedEtcd) -> None:
    streams = Streams()
    async with EtcdClient(etcd.endpoints, observer=streams) as client:
        leadership = await Election(client, etcd.prefix + b"leader", b"me", ttl_s=TTL_S).campaign()
        for _ in range(3):
            before = streams.renewals
            await wait_until(lambda before=before: streams.renewals > before, TTL_S)  # type: ignore[misc]
            time.sleep(1.5)  # noqa: ASYNC251 - the point of the test
            assert leadership.alive
            await asyncio.sleep(0)
        await wait_until(lambda: leadership.believed_until > time.monotonic() + 0.8 * TTL_S, TTL_S)
        assert await still_leads(leadership, etcd)
        assert streams.broken == 0
        await leadership.resign()


async def test_an_answer_that_came_during_a_stall_is_read_before_the_lease_is_given_up(etcd: SharedEtcd) -> None:
    with beside_the_loop(SlowWay(etcd.endpoints[0])) as way:
        async with EtcdClient([way.endpoint], request_timeout_s=5.0) as client:
            granted_at = time.monotonic()
            way.delay_s = 0.0
            lease = await client.lease_grant(TTL_S)
            way.delay_s = 0.7
            await wait_until(lambda: time.monotonic() > granted_at + TTL_S / 3 + 0.3, TTL_S)
            believed = lease.believed_until
            assert believed < granted_at + TTL_S  # nothing has been answered yet
            time.sleep(believed + 0.1 - time.monotonic())  # noqa: ASYNC251 - the point of the test
            assert not lease.alive  # never longer than what the requests answered so far allow
            way.delay_s = 0.0
            await wait_until(lambda: lease.alive, 1.0)
            assert not lease.lost.is_set()
            assert believed < lease.believed_until < granted_at + 2 * TTL_S
            assert await client.lease_revoke(lease)


@asynccontextmanager
async def engine_under(leadership: Leadership, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """An engine that runs on a store in memory and may act for as long as this leadership is alive."""
    monkeypatch.setattr(memory_fleet, "MemoryStore", lambda: LedStore(leadership))
    fleet = memory_fleet.Fleet(2)
    term = Term(fleet, asyncio.create_task(fleet.engine.run()))
    fleet.store.before_commit = lambda _: term.believed_at_commits.append(leadership.alive)
    term.order("gpu-001")
    await wait_until(lambda: bool(term.believed_at_commits))
    yield term
    await leadership.resign()
    await asyncio.wait_for(term.running, 5.0)


async def test_an_engine_waits_out_a_stall_whose_answer_lies_unread(
    etcd: SharedEtcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    with beside_the_loop(SlowWay(etcd.endpoints[0])) as way:
        async with EtcdClient([way.endpoint], request_timeout_s=5.0) as client:
            leadership = await Election(client, etcd.prefix + b"leader", b"me", ttl_s=TTL_S).campaign()
            async with engine_under(leadership, monkeypatch) as term:
                way.delay_s = 0.7
                answered = leadership.believed_until
                await wait_until(lambda: time.monotonic() > answered - 0.9 * TTL_S + TTL_S / 3 + 0.3, TTL_S)
                assert leadership.believed_until == answered  # the next renewal is on its way
                commits = len(term.believed_at_commits)
                time.sleep(answered + 0.1 - time.monotonic())  # noqa: ASYNC251 - the point of the test
                assert not leadership.alive
                term.order("gpu-002")  # work that waits for the engine while it is in doubt
                way.delay_s = 0.0
                await wait_until(lambda: leadership.alive, 1.0)
                await wait_until(lambda: len(term.believed_at_commits) > commits, 5.0)
                assert all(term.believed_at_commits)
                assert not term.running.done()
                assert leadership.loss is None
                assert await still_leads(leadership, etcd)


async def test_an_engine_survives_a_stall_past_its_belief_while_etcd_holds_the_lease(
    etcd: SharedEtcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with EtcdClient(etcd.endpoints) as client:
        leadership = await Election(client, etcd.prefix + b"leader", b"me", ttl_s=TTL_S).campaign()
        async with engine_under(leadership, monkeypatch) as term:
            time.sleep(leadership.believed_until + 0.1 - time.monotonic())  # noqa: ASYNC251 - the point of the test
            assert not leadership.alive
            await wait_until(lambda: leadership.alive, 1.0)
            commits = len(term.believed_at_commits)
            term.order("gpu-002")
            await wait_until(lambda: len(term.believed_at_commits) > commits, 5.0)
            assert all(term.believed_at_commits)
            assert not term.running.done()
            assert await still_leads(leadership, etcd)


async def test_what_asks_the_store_in_a_moment_of_doubt_waits_and_is_answered(etcd: SharedEtcd) -> None:
    store = EtcdStore(etcd.client, etcd.prefix.decode(), SystemClock(), lambda: None)
    following = asyncio.create_task(store.follow())
    async with EtcdClient(etcd.endpoints) as client:
        leadership = await Election(client, store.leader_key, b"me", ttl_s=TTL_S).campaign()
        await store.lead_with(leadership)
        time.sleep(leadership.believed_until + 0.1 - time.monotonic())  # noqa: ASYNC251 - the point of the test
        assert not leadership.alive
        draft = Draft(store.state)
        draft.put(Claim(host="h1", token=Token(epoch=0, counter=7)))
        assert isinstance(await store.commit(draft.change()), Committed)
        assert leadership.alive
        assert await store.still_newest("h1", Token(epoch=0, counter=7))
        await leadership.resign()
        assert await store.commit(draft.change()) == Lost(deposed=True)
        assert not await store.still_newest("h1", Token(epoch=0, counter=7))
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_an_engine_ends_after_a_stall_that_cost_the_lease(
    etcd: SharedEtcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with EtcdClient(etcd.endpoints) as client:
        leadership = await Election(client, etcd.prefix + b"leader", b"me", ttl_s=TTL_S).campaign()
        async with engine_under(leadership, monkeypatch) as term:
            commits = len(term.believed_at_commits)
            time.sleep(leadership.believed_until + 3.0 - time.monotonic())  # noqa: ASYNC251 - the point of the test
            term.order("gpu-002")
            await asyncio.wait_for(asyncio.shield(term.running), 5.0)
            assert len(term.believed_at_commits) == commits
            await asyncio.wait_for(leadership.lost.wait(), 5.0)
            assert leadership.loss is not None
            assert leadership.loss.cause in {LossCause.EXPIRED, LossCause.KEY_GONE}


async def test_a_leader_that_is_cut_off_stops_before_its_lease_ends_in_etcd(etcd: SharedEtcd) -> None:
    async with (
        SlowWay(etcd.endpoints[0]).running() as way,
        EtcdClient([way.endpoint], request_timeout_s=0.5, deadline_s=1.0) as client,
    ):
        leadership = await Election(client, etcd.prefix + b"leader", b"me", ttl_s=TTL_S).campaign()
        first = leadership.believed_until
        await wait_until(lambda: leadership.believed_until > first, TTL_S)
        believed = leadership.believed_until
        way.cut()
        await asyncio.wait_for(leadership.lost.wait(), TTL_S)
        assert not leadership.alive
        assert time.monotonic() - believed < 0.5
        left_s = await etcd.client.lease_time_to_live(leadership.lease_id)
        assert left_s is not None
        assert (await etcd.client.get(leadership.key)).kv is not None
        await leadership.resign()
