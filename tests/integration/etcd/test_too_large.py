"""A request larger than etcd takes is told from a store that is away, at every size at which something refuses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from etcd_fixtures import SharedEtcd
from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.etcd import EtcdClient, Put, RequestTooLarge

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("size", "who_refuses"),
    [
        (1_700_000, "request is too large"),
        (3_000_000, "received message larger than max"),
        (17_000_000, "Sent message larger than max"),
    ],
    ids=["etcd", "its transport", "our transport"],
)
async def test_too_many_bytes(etcd: SharedEtcd, size: int, who_refuses: str) -> None:
    heard: list[tuple[str, str]] = []
    async with EtcdClient(etcd.endpoints, observer=lambda name, _, outcome: heard.append((name, outcome))) as client:
        with pytest.raises(RequestTooLarge, match=who_refuses) as caught:
            await client.txn([], [Put(etcd.prefix + b"large", bytes(size))], idempotent=True)
        assert heard == [("Txn", "too_large")]  # asked once: asking again is in vain
        assert size < caught.value.size_bytes < size + 500
        assert "--max-request-bytes" in str(caught.value)
        assert client.unavailable_since is None
        await client.put(etcd.prefix + b"small", b"")
        assert (await client.get(etcd.prefix + b"large")).kv is None


async def test_too_many_operations_for_a_member_that_takes_few(tmp_path: Path) -> None:
    async with EtcdCluster(tmp_path, flags=("--max-txn-ops", "5")) as cluster, EtcdClient(cluster.endpoints) as client:
        with pytest.raises(RequestTooLarge, match="too many operations") as caught:
            await client.txn([], [Put(b"/%d" % n, b"") for n in range(6)])
        assert "--max-txn-ops" in str(caught.value)
        assert client.unavailable_since is None
        assert (await client.txn([], [Put(b"/%d" % n, b"") for n in range(5)])).succeeded
