"""A leader that is slow, or whose store is slow, goes on leading; one that is cut off stops before etcd says so."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from etcd_fixtures import SharedEtcd, wait_until
from hostler_coordinator.etcd import Election, EtcdClient, Leadership

pytestmark = pytest.mark.integration

TTL_S = 3


class SlowWay:
    """A TCP relay in front of etcd: what etcd says arrives `delay_s` seconds late, in order, until it is cut."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.partition(":")
        self._port = int(port)
        self.endpoint = ""
        self.delay_s = 0.0
        self.accepted = 0
        self._cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SlowWay]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.endpoint = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            self.cut()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)

    def cut(self) -> None:
        self._cut = True
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, there_writer}
        try:
            await asyncio.gather(
                self._pump(reader, there_writer, late=False), self._pump(there_reader, writer, late=True)
            )
        finally:
            self._writers -= {writer, there_writer}
            self._serving.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, late: bool) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(1000)
        sender = asyncio.create_task(self._deliver(queue, writer))
        try:
            with suppress(OSError):
                while data := await reader.read(65536):
                    await queue.put((time.monotonic() + (self.delay_s if late else 0.0), data))
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
            writer.transport.abort()

    @staticmethod
    async def _deliver(queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while True:
                arrives_at, data = await queue.get()
                await asyncio.sleep(arrives_at - time.monotonic())
                writer.write(data)
                await writer.drain()


@contextmanager
def beside_the_loop(way: SlowWay) -> Iterator[SlowWay]:
    """The relay on a thread of its own, where a blocked event loop does not stop it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    running = way.running()
    try:
        yield asyncio.run_coroutine_threadsafe(running.__aenter__(), loop).result(5.0)
    finally:
        asyncio.run_coroutine_threadsafe(running.__aexit__(None, None, None), loop).result(5.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5.0)
        loop.close()


class Streams:
    """Counts the keepalive streams that broke, as the client's observer."""

    def __init__(self) -> None:
        self.broken = 0
        self.renewals = 0

    def __call__(self, method: str, _seconds: float, outcome: str) -> None:
        if method == "LeaseKeepAlive":
            self.renewals += outcome == "ok"
            self.broken += outcome != "ok"


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
