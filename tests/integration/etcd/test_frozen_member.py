"""A member of three that freezes under the keepalive stream costs no leadership: another one is asked beside it."""

from __future__ import annotations

import time

import pytest

from etcd_fixtures import wait_until
from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.etcd import Election, EtcdClient, Leadership, MemberStatus, Put
from integration.etcd.ways import Streams

pytestmark = pytest.mark.integration

TTL_S = 4  # shorter than the pings need to end a stream to a frozen member (6 + 2 s): only asking another one helps
RAFT_LEADER_NOTICES_S = 4.0  # it looks for followers once per election time-out, 1 s when the machine is not busy
HELD_S = 12.0  # and long enough that the frozen member's stream does break meanwhile


async def raft_leader(client: EtcdClient) -> int:
    answers = (await client.status()).values()
    return [isinstance(answer, MemberStatus) and answer.is_leader for answer in answers].index(True)


async def held_through(leadership: Leadership, client: EtcdClient, until: float) -> None:
    """Believed in at every look, and right to be: a guarded write succeeds at the end."""

    def over() -> bool:
        assert leadership.alive, leadership.why_over
        return time.monotonic() > until

    await wait_until(over, HELD_S + 5.0)
    assert (await client.txn([leadership.guard()], [Put(b"/w", b"")])).succeeded


@pytest.mark.parametrize("raft_leads", [False, True], ids=["a follower", "the raft leader"])
async def test_the_member_that_is_asked_freezes(etcd_cluster3: EtcdCluster, raft_leads: bool) -> None:
    async with EtcdClient(etcd_cluster3.endpoints) as onlooker:
        leads = await raft_leader(onlooker)
        asked = leads if raft_leads else (leads + 1) % 3
        endpoints = [*etcd_cluster3.endpoints[asked:], *etcd_cluster3.endpoints[:asked]]
        streams = Streams()
        async with EtcdClient(endpoints, observer=streams) as client:
            leadership = await Election(client, b"/leader", b"me", ttl_s=TTL_S).campaign()
            await wait_until(lambda: streams.renewals >= 1, TTL_S)
            assert client.endpoint == etcd_cluster3.endpoints[asked]
            etcd_cluster3.pause(asked)
            frozen_at = time.monotonic()
            believed = leadership.believed_until
            await wait_until(lambda: leadership.believed_until > believed + 1.0, TTL_S)
            assert leadership.alive
            assert streams.broken == 0  # the frozen member's stream had not been given up when another one answered
            assert client.endpoint != etcd_cluster3.endpoints[asked]  # and nobody asks the frozen one any more
            await held_through(leadership, client, frozen_at + HELD_S)
            etcd_cluster3.resume(asked)
            await leadership.resign()
            assert (await onlooker.get(b"/leader")).kv is None


@pytest.mark.parametrize("raft_leader_left", [False, True], ids=["a follower is left", "the raft leader is left"])
async def test_two_frozen_members_end_the_leadership_in_time(
    etcd_cluster3: EtcdCluster, raft_leader_left: bool
) -> None:
    async with (
        EtcdClient(etcd_cluster3.endpoints) as onlooker,
        EtcdClient(etcd_cluster3.endpoints, request_timeout_s=0.5, deadline_s=1.0) as client,
    ):
        leads = await raft_leader(onlooker)
        left = leads if raft_leader_left else (leads + 1) % 3
        frozen = [index for index in range(3) if index != left]
        leadership = await Election(client, b"/leader", b"me", ttl_s=TTL_S).campaign()
        for index in frozen:
            etcd_cluster3.pause(index)
        frozen_at = time.monotonic()
        # A raft leader that does not know yet that nobody follows it goes on answering renewals.
        last_answer_s = RAFT_LEADER_NOTICES_S if raft_leader_left else 0.0
        believed = [leadership.believed_until]

        def over() -> bool:
            believed.append(leadership.believed_until)
            return leadership.lost.is_set()

        await wait_until(over, 2 * TTL_S + last_answer_s)
        assert max(believed) - frozen_at < TTL_S + last_answer_s
        assert leadership.loss is not None
        for index in frozen:
            etcd_cluster3.resume(index)
        await leadership.resign()
