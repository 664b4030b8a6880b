"""A leader that is slow, or whose store is slow, goes on leading; one that is cut off stops before etcd says so."""

from __future__ import annotations

import asyncio
import time

import pytest

from etcd_fixtures import SharedEtcd, wait_until
from hostler_coordinator.etcd import Election, EtcdClient, Leadership
from integration.etcd.ways import SlowWay, Streams, beside_the_loop

pytestmark = pytest.mark.integration

TTL_S = 3


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
