"""Leases and the one stream that keeps all of a client's leases alive. What hangs on a lease is its holder's affair."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque

import grpc
import grpc.aio

from hostler_coordinator.etcd.connection import Connection, Stream, StreamBroken
from hostler_coordinator.etcd.methods import LEASE_KEEP_ALIVE
from hostler_coordinator.etcd.pb import wire_pb2 as wire
from hostler_coordinator.etcd.transport import Transport

RENEWALS_PER_TTL = 3
ANSWERS_PER_TTL = 4  # an answer may take a quarter of the TTL, so that two more members can be tried in time
MARGIN_SHARE = 0.1
LEASES_MAX = 64


class Lease:
    """A lease as its holder may believe in it.

    The time is counted from *before* each request was sent, and ends a tenth of the TTL early, so belief ends before
    etcd can give the lease to somebody else. One gap remains that no clock closes: a raft leader that has been deposed
    without knowing it may still answer renewals for an election time-out. That is why every decisive write compares the
    leader key's create_revision as well.
    """

    def __init__(self, lease_id: int, ttl_s: int, asked_at: float) -> None:
        self.id = lease_id
        self.ttl_s = ttl_s
        self.lost = asyncio.Event()
        self.sent_at: deque[float] = deque(maxlen=2 * RENEWALS_PER_TTL)
        self.next_renewal_at = asked_at + ttl_s / RENEWALS_PER_TTL
        self._timer: asyncio.TimerHandle | None = None
        self.believed_until = 0.0
        self.renewed(asked_at, ttl_s)

    @property
    def alive(self) -> bool:
        """True while the holder may believe that the lease is its own. Right even after the process was frozen."""
        return not self.lost.is_set() and time.monotonic() < self.believed_until

    def renewed(self, asked_at: float, ttl_s: int) -> None:
        """Note the answer to a request sent at ``asked_at``: the lease lives for ``ttl_s`` seconds more."""
        self.believed_until = max(self.believed_until, asked_at + ttl_s * (1.0 - MARGIN_SHARE))
        self._stop_timer()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, self.believed_until - time.monotonic()), self.end)

    def end(self) -> None:
        """The lease is no more, or may be no more: stop believing in it."""
        self._stop_timer()
        self.believed_until = 0.0
        self.lost.set()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def answer_wait_s(self) -> float:
        """How long an answer to a renewal may take before another member is asked."""
        return self.ttl_s / ANSWERS_PER_TTL


class LeaseKeeper:
    """Renews every lease entrusted to it on one stream, on whichever member answers."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._leases: dict[int, Lease] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def keep(self, lease: Lease) -> None:
        """Renew ``lease`` until it is lost or let go of."""
        if len(self._leases) >= LEASES_MAX:
            raise ValueError(f"a client keeps at most {LEASES_MAX} leases; etcd is no place for one lease per host")
        self._leases[lease.id] = lease
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="etcd-lease-keeper")

    def let_go(self, lease: Lease) -> None:
        """Stop renewing and stop believing."""
        self._leases.pop(lease.id, None)
        lease.end()
        self._wake.set()

    async def close(self) -> None:
        """End every lease here; on the server each runs out by itself."""
        for lease in tuple(self._leases.values()):
            self.let_go(lease)
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        failures = 0
        while self._leases:
            connection = self._transport.current
            started = time.monotonic()
            try:
                async with self._transport.stream(connection, LEASE_KEEP_ALIVE) as stream:
                    await self._renew_on(stream)
                continue  # nothing was left to keep; a lease may have come while the stream was taken down
            except (StreamBroken, grpc.aio.AioRpcError) as broken:
                code = broken.code if isinstance(broken, StreamBroken) else broken.code()
                self._transport.observe(LEASE_KEEP_ALIVE.name, time.monotonic() - started, code.name.lower())
            failures = 0 if self._any_answer_since(started) else failures + 1
            self._ask_again_at_once(connection)
            await self._transport.back_off(failures)

    def _any_answer_since(self, moment: float) -> bool:
        return any(lease.believed_until - lease.ttl_s * (1 - MARGIN_SHARE) >= moment for lease in self._leases.values())

    def _ask_again_at_once(self, connection: Connection) -> None:
        self._transport.move_on(connection)
        now = time.monotonic()
        for lease in tuple(self._leases.values()):
            lease.sent_at.clear()  # answers to these can no longer come
            lease.next_renewal_at = now
            if not lease.alive:
                self.let_go(lease)

    async def _renew_on(self, stream: Stream[wire.LeaseKeepAliveRequest, wire.LeaseKeepAliveResponse]) -> None:
        reader = asyncio.get_running_loop().create_task(self._read(stream))
        reader.add_done_callback(lambda _: self._wake.set())
        try:
            while self._leases and not reader.done():
                self._wake.clear()
                await self._send_due(stream)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._idle_s()):
                        await self._wake.wait()
            if reader.done():
                reader.result()
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _send_due(self, stream: Stream[wire.LeaseKeepAliveRequest, wire.LeaseKeepAliveResponse]) -> None:
        for lease in tuple(self._leases.values()):
            now = time.monotonic()
            if not lease.alive:
                self.let_go(lease)
            elif lease.sent_at and now - lease.sent_at[0] >= lease.answer_wait_s:
                raise StreamBroken(grpc.StatusCode.DEADLINE_EXCEEDED, "a renewal was not answered in time")
            elif now >= lease.next_renewal_at:
                lease.sent_at.append(now)
                lease.next_renewal_at = now + lease.ttl_s / RENEWALS_PER_TTL
                await stream.send(wire.LeaseKeepAliveRequest(id=lease.id), lease.answer_wait_s)

    def _idle_s(self) -> float:
        """Until the next renewal is due or the next answer overdue."""
        now = time.monotonic()
        due = [lease.next_renewal_at for lease in self._leases.values()]
        overdue = [lease.sent_at[0] + lease.answer_wait_s for lease in self._leases.values() if lease.sent_at]
        return max(0.005, min(due + overdue, default=now) - now)

    async def _read(self, stream: Stream[wire.LeaseKeepAliveRequest, wire.LeaseKeepAliveResponse]) -> None:
        while True:
            answer = await stream.receive(None)
            lease = self._leases.get(answer.id)
            if lease is None or not lease.sent_at:
                continue
            asked_at = lease.sent_at.popleft()  # answers to one lease come in the order of its requests
            self._transport.observe(LEASE_KEEP_ALIVE.name, time.monotonic() - asked_at, "ok")
            if answer.ttl <= 0:
                self.let_go(lease)
            else:
                lease.renewed(asked_at, answer.ttl)
