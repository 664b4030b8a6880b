"""Connections of the product's own etcd client to the simulated cluster: delays, losses, freezes and broken streams.

The client's code runs as it is; only what would be a gRPC channel is put in its place. Messages cross as bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Protocol

import grpc
import grpc.aio
from google.protobuf.message import Message

from hostler_coordinator.etcd.connection import Metadata, StreamBroken
from hostler_coordinator.etcd.methods import LEASE_KEEP_ALIVE, WATCH, Method
from hostler_coordinator.etcd.pb import wire_pb2 as wire
from simulator.etcd_model import EtcdModel, Refusal

PING_EVERY_S = 6.0
PING_WITHIN_S = 2.0


class Road(Protocol):
    """How messages get from one place to another."""

    async def travel(self, source: str, target: str) -> None:
        """Return when a message would have arrived, or never; raises ConnectionRefusedError when nobody listens."""


class Cluster:
    """The members, who may be frozen, and the time that leases have."""

    def __init__(self, model: EtcdModel) -> None:
        self.model = model
        self._thawed: dict[str, asyncio.Event] = {}
        self._ends: dict[int, asyncio.TimerHandle] = {}
        model.granted = self._time_lease

    def freeze(self, member: str) -> None:
        """It answers nothing until it is thawed."""
        self._thawed.setdefault(member, asyncio.Event()).clear()

    def thaw(self, member: str) -> None:
        """It goes on, and answers what has waited."""
        self._thawed.setdefault(member, asyncio.Event()).set()

    async def attention(self, member: str) -> None:
        """Wait until this member works."""
        if (thawed := self._thawed.get(member)) is not None:
            await thawed.wait()

    def _time_lease(self, lease_id: int) -> None:
        if (timer := self._ends.pop(lease_id, None)) is not None:
            timer.cancel()
        lease = self.model.leases[lease_id]
        self._ends[lease_id] = asyncio.get_running_loop().call_later(lease.ttl_s, self._end_lease, lease_id)

    def _end_lease(self, lease_id: int) -> None:
        """A cluster that is frozen as a whole lets no lease end: nobody is there to propose it."""
        if self._thawed and not any(self._works(member) for member in self.model.members):
            self._ends[lease_id] = asyncio.get_running_loop().call_later(1.0, self._end_lease, lease_id)
            return
        self._ends.pop(lease_id, None)
        self.model.expire(lease_id)

    def _works(self, member: str) -> bool:
        thawed = self._thawed.get(member)
        return thawed is None or thawed.is_set()


class SimStream:
    """A stream as `connection.Stream` is one to the client."""

    def __init__(self, connection: SimConnection, method: Method[Any, Any]) -> None:
        self._connection = connection
        self._method = method
        self._inbox: deque[Message] = deque()
        self._outbox: deque[Message] = deque()
        self._changed = asyncio.Event()
        self._to_send = asyncio.Event()
        self._broken: StreamBroken | None = None
        self._watchers: list[int] = []
        self._tasks = [asyncio.create_task(self._deliver()), asyncio.create_task(self._ping())]

    async def send(self, request: Message, timeout_s: float) -> None:
        """Put a message on its way."""
        self._raise_if_broken()
        with self._connection.failing(self):
            async with asyncio.timeout(timeout_s):
                await self._connection.there()
                self._take(copied(request))
        self._raise_if_broken()

    async def receive(self, timeout_s: float | None) -> Message:
        """The next message, in order."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._inbox:
                    self._raise_if_broken()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise StreamBroken(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer in time") from error
        return self._inbox.popleft()

    def cancel(self) -> None:
        """End it from this side."""
        self.end(grpc.StatusCode.CANCELLED, "the stream was given up")

    def end(self, code: grpc.StatusCode, details: str) -> None:
        """It is over; nothing that is under way arrives any more."""
        if self._broken is not None:
            return
        self._broken = StreamBroken(code, details)
        for watcher in self._watchers:
            self._connection.cluster.model.unwatch(watcher)
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._changed.set()

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise StreamBroken(self._broken.code, self._broken.details)

    def _take(self, request: Message) -> None:
        model, member = self._connection.cluster.model, self._connection.endpoint
        if self._method.path == LEASE_KEEP_ALIVE.path and isinstance(request, wire.LeaseKeepAliveRequest):
            self._push(model.keep_alive(member, request))
        elif self._method.path == WATCH.path and isinstance(request, wire.WatchRequest):
            watcher = model.watch(member, request.create_request, self._push)
            if watcher is not None:
                self._watchers.append(watcher)

    def _push(self, response: Message) -> None:
        self._outbox.append(copied(response))
        self._to_send.set()

    async def _deliver(self) -> None:
        """Carry answers to the client one after the other."""
        with self._connection.failing(self):
            while True:
                while not self._outbox:
                    self._to_send.clear()
                    await self._to_send.wait()
                await self._connection.back()
                self._inbox.append(self._outbox.popleft())
                self._changed.set()

    async def _ping(self) -> None:
        """The transport notices a member that has fallen silent."""
        with self._connection.failing(self):
            while True:
                await asyncio.sleep(PING_EVERY_S)
                async with asyncio.timeout(PING_WITHIN_S):
                    await self._connection.there()
                    await self._connection.back()


class SimConnection:
    """One client's connection to one member, as `connection.Connection` is one."""

    def __init__(self, client: str, endpoint: str, cluster: Cluster, road: Road) -> None:
        self.endpoint = endpoint
        self.cluster = cluster
        self._client = client
        self._road = road
        self._streams: list[SimStream] = []

    async def there(self) -> None:
        """A message gets from the client to a member that works."""
        await self._road.travel(self._client, self.endpoint)
        await self.cluster.attention(self.endpoint)

    async def back(self) -> None:
        """A message gets from the member to the client."""
        await self.cluster.attention(self.endpoint)
        await self._road.travel(self.endpoint, self._client)

    async def unary(self, method: Method[Any, Any], request: Message, timeout_s: float, metadata: Metadata) -> Any:
        """One request, one answer; what the client is told when it comes too late is that its deadline is over."""
        del metadata
        try:
            async with asyncio.timeout(timeout_s):
                await self.there()
                answer = self._answer(method, copied(request))
                await self.back()
        except TimeoutError:
            raise rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded") from None
        except ConnectionRefusedError:
            raise rpc_error(grpc.StatusCode.UNAVAILABLE, "failed to connect: connection refused") from None
        if isinstance(answer, Refusal):
            raise rpc_error(answer.code, answer.details)
        return copied(answer)

    def _answer(self, method: Method[Any, Any], request: Message) -> Message | Refusal:
        try:
            return self.cluster.model.answer(self.endpoint, method, request)
        except Refusal as refusal:
            return refusal

    @contextlib.asynccontextmanager
    async def stream(self, method: Method[Any, Any], metadata: Metadata) -> AsyncIterator[SimStream]:
        """An open stream, cancelled on the way out."""
        del metadata
        stream = SimStream(self, method)
        self._streams.append(stream)
        try:
            yield stream
        finally:
            self._streams.remove(stream)
            stream.cancel()

    @contextlib.contextmanager
    def failing(self, stream: SimStream) -> Any:
        """What goes wrong on the way ends the stream."""
        try:
            yield
        except TimeoutError:
            stream.end(grpc.StatusCode.UNAVAILABLE, "ping timeout")
        except ConnectionRefusedError:
            stream.end(grpc.StatusCode.UNAVAILABLE, "failed to connect: connection refused")

    def answered(self) -> None:
        """Nothing to note: this channel cannot get stuck."""

    def fell_silent(self) -> None:
        """The client has given this member up: its streams move on."""
        for stream in tuple(self._streams):
            stream.cancel()

    async def close(self) -> None:
        """Close at once."""
        for stream in tuple(self._streams):
            stream.cancel()


def copied(message: Message) -> Message:
    """As it arrives on the other side: nothing is shared."""
    return type(message).FromString(message.SerializeToString())


def rpc_error(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    """As gRPC raises it."""
    return grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=details, debug_error_string=details
    )
