"""Ways between a client and etcd that can be cut, healed and made slow, and an observer of what goes over them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress


class Cut:
    """A TCP relay in front of etcd that can be cut and healed: the way between one coordinator and the store."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.partition(":")
        self._port = int(port)
        self.is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self.endpoint = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Cut]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.endpoint = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            self._drop()
            await asyncio.sleep(0)

    def cut(self) -> None:
        self.is_cut = True
        self._drop()

    def _drop(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, there_writer}
        await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
        self._writers -= {writer, there_writer}

    @staticmethod
    async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


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
