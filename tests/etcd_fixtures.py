"""Real etcd for tests: one shared member per session, a fresh prefix for each test, and clusters of three to hurt."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio

from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.etcd import EtcdClient, Observer
from hostler_coordinator.etcd.connection import Connection
from simulator.etcd_model import EtcdModel
from simulator.etcd_wire import Cluster, SimConnection


@dataclass(frozen=True)
class SharedEtcd:
    """A running etcd, a client of it, and a prefix that no other test uses."""

    endpoints: tuple[str, ...]
    client: EtcdClient
    prefix: bytes
    another: Callable[..., EtcdClient]
    """One more client of the same cluster."""


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
        prefix = f"/test/{uuid.uuid4().hex}/".encode()
        yield SharedEtcd(etcd_server.endpoints, client, prefix, partial(EtcdClient, etcd_server.endpoints))


class ShortRoad:
    """Everything arrives, and every message lets others run."""

    async def travel(self, source: str, target: str) -> None:
        """At once, but not before whoever is ready."""
        await asyncio.sleep(0)


def simulated_client(cluster: Cluster, observer: Observer | None = None) -> EtcdClient:
    """The product's client of a simulated cluster."""

    def dial(endpoint: str, _: object) -> Connection:
        return cast("Connection", SimConnection("test", endpoint, cluster, ShortRoad()))

    return EtcdClient(cluster.model.members, dial=dial, observer=observer)


@pytest.fixture(params=["real", "simulated"])
def server_or_none(request: pytest.FixtureRequest) -> EtcdCluster | None:
    """The shared member, and then none, for a simulated one."""
    return request.getfixturevalue("etcd_server") if request.param == "real" else None


@pytest_asyncio.fixture
async def either_etcd(server_or_none: EtcdCluster | None) -> AsyncIterator[SharedEtcd]:
    """The same promises hold for a real member and for the simulator's, so that the fake cannot drift."""
    another: Callable[..., EtcdClient]
    if server_or_none is not None:
        another = partial(EtcdClient, server_or_none.endpoints)
    else:
        another = partial(simulated_client, Cluster(EtcdModel()))
    async with another() as client:
        yield SharedEtcd(client.endpoints, client, f"/test/{uuid.uuid4().hex}/".encode(), another)


@pytest_asyncio.fixture
async def etcd_cluster3(tmp_path: Path) -> AsyncIterator[EtcdCluster]:
    """Three members of this test's own."""
    cluster = EtcdCluster(tmp_path / "etcd", members=3)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop(grace_s=0.0)
