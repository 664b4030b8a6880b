"""A full store: writes are refused with the member's name, reads go on, and work resumes when the alarm is disarmed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.etcd import EtcdClient, NoSpace, Put

pytestmark = pytest.mark.integration

QUOTA_BYTES = 8 * 1024 * 1024


async def fill(client: EtcdClient) -> None:
    """Write until refused: etcd learns its size only when its backend commits, every 100 ms."""
    for _ in range(150):
        await client.put(b"/k", bytes(500_000))
        await asyncio.sleep(0.02)


async def test_fc_a19_nospace_names_the_member_and_ends_with_the_disarming(tmp_path: Path) -> None:
    async with (
        EtcdCluster(tmp_path, quota_bytes=QUOTA_BYTES) as cluster,
        EtcdClient(cluster.endpoints) as client,
    ):
        lease = await client.lease_grant(2)
        with pytest.raises(NoSpace) as caught:
            await fill(client)
        (alarm,) = await client.alarms()
        assert alarm.kind == "nospace"
        assert caught.value.members == (f"{alarm.member_id:x}",)
        assert "disarm" in str(caught.value)
        assert client.unavailable_since is None  # a full store still answers
        assert (await client.get(b"/k")).kv is not None
        with pytest.raises(NoSpace):
            await client.txn([], [Put(b"/other", b"")])

        await client.compact((await client.get(b"/k")).revision, physical=True)
        await client.defragment(cluster.endpoints[0])
        with pytest.raises(NoSpace):  # space alone is not enough: the alarm is still armed
            await client.put(b"/k", b"")
        assert lease.alive  # renewals were answered all along
        await client.disarm(alarm)
        assert await client.alarms() == ()
        await client.put(b"/k", b"works again")
