"""Real etcd for tests: one shared member per session, a fresh prefix for each test, and clusters of three to hurt."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.etcd import EtcdClient


@dataclass(frozen=True)
class SharedEtcd:
    """A running etcd, a client of it, and a prefix that no other test uses."""

    endpoints: tuple[str, ...]
    client: EtcdClient
    prefix: bytes


async def wait_until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Wait for a condition, with a bound."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "the condition did not become true in time"
        await asyncio.sleep(0.01)


@pytest.fixture(scope="session")
def etcd_server() -> Iterator[EtcdCluster]:
    """One member for the whole session; its data live in memory where there is /dev/shm."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="hostler-etcd-", dir=memory if memory.is_dir() else None))
    cluster = EtcdCluster(folder)
    try:
        asyncio.run(cluster.start())
        yield cluster
    finally:
        asyncio.run(cluster.stop(grace_s=0.0))
        shutil.rmtree(folder, ignore_errors=True)


@pytest_asyncio.fixture
async def etcd(etcd_server: EtcdCluster) -> AsyncIterator[SharedEtcd]:
    """The shared member, through a client of this test's own, on a fresh prefix."""
    async with EtcdClient(etcd_server.endpoints) as client:
        yield SharedEtcd(etcd_server.endpoints, client, f"/test/{uuid.uuid4().hex}/".encode())


@pytest_asyncio.fixture
async def etcd_cluster3(tmp_path: Path) -> AsyncIterator[EtcdCluster]:
    """Three members of this test's own."""
    cluster = EtcdCluster(tmp_path / "etcd", members=3)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop(grace_s=0.0)
