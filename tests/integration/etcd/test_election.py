"""One leader at most, and one soon again, whatever happens to processes, members and the way between them."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing

import pytest

from etcd_fixtures import SharedEtcd, wait_until
from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.etcd import Election, EtcdClient, LeaderInfo, MemberStatus, Put
from integration.etcd.ways import Cut

pytestmark = pytest.mark.integration

TTL_S = 2


async def test_a_resigned_leader_is_followed_at_once_and_everybody_sees_it(etcd: SharedEtcd) -> None:
    key = etcd.prefix + b"leader"
    one, two = (Election(etcd.client, key, name, ttl_s=TTL_S) for name in (b"one", b"two"))
    async with aclosing(one.observe()) as leaders:
        assert await anext(leaders) is None
        first = await one.campaign()
        assert await anext(leaders) == LeaderInfo(b"one", first.create_revision)
        waiting = asyncio.create_task(two.campaign())
        assert (await etcd.client.txn([first.guard()], [Put(etcd.prefix + b"w", b"1")])).succeeded
        await first.resign()
        second = await asyncio.wait_for(waiting, 1.5)
        assert await anext(leaders) is None
        assert await anext(leaders) == LeaderInfo(b"two", second.create_revision)
    assert first.lost.is_set()
    assert not first.alive
    assert second.alive
    assert not (await etcd.client.txn([first.guard()], [Put(etcd.prefix + b"w", b"2")])).succeeded
    await second.resign()


async def test_a_leader_key_deleted_by_hand_ends_the_term(etcd: SharedEtcd) -> None:
    leadership = await Election(etcd.client, etcd.prefix + b"leader", b"me", ttl_s=TTL_S).campaign()
    await etcd.client.delete(leadership.key)
    await asyncio.wait_for(leadership.lost.wait(), 2.0)
    assert not leadership.alive
    await leadership.resign()


async def test_fc_a15_two_candidates_cut_off_and_exactly_one_leads_after_healing(etcd: SharedEtcd) -> None:
    key = etcd.prefix + b"leader"
    async with (
        Cut(etcd.endpoints[0]).running() as way,
        EtcdClient([way.endpoint], request_timeout_s=0.5, deadline_s=1.0) as client_a,
        EtcdClient([way.endpoint], request_timeout_s=0.5, deadline_s=1.0) as client_b,
    ):
        old = await Election(client_a, key, b"a", ttl_s=TTL_S).campaign()
        again = Election(client_a, key, b"a", ttl_s=TTL_S)
        blocked = asyncio.create_task(Election(client_b, key, b"b", ttl_s=TTL_S).campaign())
        way.cut()
        cut_at = time.monotonic()
        await asyncio.wait_for(old.lost.wait(), TTL_S)
        assert time.monotonic() - cut_at < TTL_S
        back = asyncio.create_task(again.campaign())
        await wait_until(lambda: time.monotonic() - cut_at > TTL_S + 1.5, TTL_S + 3.0)
        assert not blocked.done()
        assert not back.done()
        way.is_cut = False
        done, waiting = await asyncio.wait({blocked, back}, timeout=TTL_S + 1.5, return_when=asyncio.FIRST_COMPLETED)
        assert (len(done), len(waiting)) == (1, 1)
        leadership = done.pop().result()
        assert leadership.alive
        stored = (await etcd.client.get(key)).kv
        assert stored is not None
        assert stored.create_revision == leadership.create_revision
        assert not (await etcd.client.txn([old.guard()], [Put(etcd.prefix + b"w", b"")])).succeeded
        waiting.pop().cancel()
        await leadership.resign()
        await old.resign()


async def test_the_lease_of_the_leader_survives_the_loss_of_the_raft_leader(etcd_cluster3: EtcdCluster) -> None:
    async with EtcdClient(etcd_cluster3.endpoints) as client:
        leadership = await Election(client, b"/leader", b"me", ttl_s=5).campaign()
        answers = (await client.status()).values()
        leads = [isinstance(answer, MemberStatus) and answer.is_leader for answer in answers]
        await etcd_cluster3.kill(leads.index(True))
        killed_at = time.monotonic()
        await wait_until(lambda: leadership.believed_until > killed_at + 5.5, 10.0)
        assert leadership.alive
        await leadership.resign()


CANDIDATE = """
import asyncio, sys
from hostler_coordinator.etcd import Election, EtcdClient

async def main():
    async with EtcdClient([sys.argv[1]]) as client:
        leadership = await Election(client, sys.argv[2].encode(), b"frozen", ttl_s=2).campaign()
        print("leads", leadership.create_revision, flush=True)
        sys.stdin.readline()
        print("alive" if leadership.alive else "lost", flush=True)
        await leadership.lost.wait()

asyncio.run(main())
"""


async def test_a_frozen_leader_is_replaced_and_says_lost_when_it_thaws(etcd: SharedEtcd) -> None:
    key = etcd.prefix + b"leader"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CANDIDATE, etcd.endpoints[0], key.decode(),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = await asyncio.wait_for(process.stdout.readline(), 20.0)
        assert said.startswith(b"leads ")
        process.send_signal(19)  # SIGSTOP
        standby = await asyncio.wait_for(Election(etcd.client, key, b"standby", ttl_s=TTL_S).campaign(), TTL_S * 3)
        assert standby.create_revision > int(said.split()[1])
        process.stdin.write(b"?\n")
        process.send_signal(18)  # SIGCONT
        assert await asyncio.wait_for(process.stdout.readline(), 5.0) == b"lost\n"
        assert await asyncio.wait_for(process.wait(), 10.0) == 0
        assert standby.alive
        await standby.resign()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
