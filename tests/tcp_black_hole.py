"""A TCP proxy that can swallow what passes in either direction and keep every socket open; it understands nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet
from enum import StrEnum
from types import TracebackType
from typing import Self

HELD_MAX_BYTES = 1 << 20


class Way(StrEnum):
    """A direction: up is from the client to the server."""

    UP = "up"
    DOWN = "down"


class BlackHole:
    """Serve on 127.0.0.1 while the context is open, in front of one server port.

    In the hole nothing is forwarded, and no end or reset either, as when packets are dropped without a word. What was
    sent arrives after the healing, as TCP would send it again; what a client gave up in the meantime does not.
    """

    def __init__(self, upstream_port: int) -> None:
        self.dialled = 0
        """Connections that clients have opened so far."""
        self.closed: AbstractSet[Way] = frozenset()
        self._upstream_port = upstream_port
        self._pairs: list[_Pair] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for pair in self._pairs:
            pair.abort()
            await asyncio.gather(pair.dialling, return_exceptions=True)

    @property
    def port(self) -> int:
        """Where clients find it."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        assert isinstance(port, int)
        return port

    def swallow(self, *ways: Way) -> None:
        """From now on nothing passes these ways."""
        self.closed = frozenset(ways)

    def heal(self) -> None:
        """Let everything pass again."""
        self.closed = frozenset()
        for pair in self._pairs:
            pair.settle()

    def _accept(self) -> asyncio.Protocol:
        self.dialled += 1
        pair = _Pair(self, self._upstream_port)
        self._pairs.append(pair)
        return pair.ends[Way.UP]


class _Pair:
    """A client's connection and ours to the server behind it."""

    def __init__(self, hole: BlackHole, upstream_port: int) -> None:
        self._hole = hole
        self.ends = {Way.UP: _End(self, Way.UP), Way.DOWN: _End(self, Way.DOWN)}
        loop = asyncio.get_running_loop()
        dial = loop.create_connection(lambda: self.ends[Way.DOWN], "127.0.0.1", upstream_port)
        self.dialling: asyncio.Task[object] = asyncio.ensure_future(dial)

    def settle(self) -> None:
        """Pass on what waits and may pass; a client that gave up in the hole is not heard of again."""
        if self.ends[Way.UP].ended and self.ends[Way.UP].held:
            self.abort()
            return
        for way, end in self.ends.items():
            other = self.ends[Way.DOWN if way is Way.UP else Way.UP]
            if way in self._hole.closed or other.transport is None:
                continue
            if end.held:
                other.transport.write(bytes(end.held))
                end.held.clear()
            if end.ended:
                other.transport.close()

    def abort(self) -> None:
        """End both connections."""
        for end in self.ends.values():
            if end.transport is not None:
                end.transport.abort()


class _End(asyncio.Protocol):
    """One socket; `way` is where what it receives is going."""

    def __init__(self, pair: _Pair, way: Way) -> None:
        self._pair = pair
        self.way = way
        self.transport: asyncio.Transport | None = None
        self.held = bytearray()
        self.ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._pair.settle()

    def data_received(self, data: bytes) -> None:
        assert len(self.held) < HELD_MAX_BYTES
        self.held += data
        self._pair.settle()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        if not self._pair.ends[Way.UP].held:
            self._pair.settle()
