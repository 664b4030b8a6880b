"""Leases and the streams that keep all of a client's leases alive. What hangs on a lease is its holder's affair."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial

import grpc
import grpc.aio

from hostler_coordinator.etcd.connection import Connection, Stream, StreamBroken
from hostler_coordinator.etcd.losses import Loss, LossCause
from hostler_coordinator.etcd.methods import LEASE_KEEP_ALIVE
from hostler_coordinator.etcd.moments import monotonic
from hostler_coordinator.etcd.pb import wire_pb2 as wire
from hostler_coordinator.etcd.transport import Transport

RENEWALS_PER_TTL = 3
SILENCE_SHARE = 0.5  # nothing heard for this share of the TTL: ask another member too, beside the one that is silent
NEXT_MEMBER_SHARE = 0.25  # and, still nothing heard, a third this much later
UNANSWERED_MAX = 2 * RENEWALS_PER_TTL
MARGIN_SHARE = 0.1
LEASES_MAX = 64
STALL_S = 0.05  # a timer this late means that the process stood still, and the store's answers lie unread
READ_AFTER_STALL_S = 0.1
DOUBT_SHARE = 1.0  # a process that goes on stalling is in doubt for this share of the TTL at most; then it is told
_IDLE_MIN_S = 0.005
_IDLE_MAX_S = 60.0
_SILENCE = frozenset({grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED})  # we gave up a silent member
_EXPIRED = Loss(LossCause.EXPIRED, "etcd says that the lease is no more: it ran out or was revoked")
_LET_GO = Loss(LossCause.STOPPED, "its holder let the lease go")


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
        self.loss: Loss | None = None
        self.trouble = ""
        """How the last keepalive stream broke since the last renewal; empty while members are merely silent."""
        self.first_renewal_at = asked_at + ttl_s / RENEWALS_PER_TTL
        self.believed_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._renewed_at = asked_at
        self.renewed(asked_at, ttl_s)

    @property
    def alive(self) -> bool:
        """True while the holder may believe that the lease is its own. Right even after the process was frozen."""
        return not self.lost.is_set() and monotonic() < self.believed_until

    def renewed(self, asked_at: float, ttl_s: int) -> None:
        """Note the answer to a request sent at ``asked_at``: the lease lives for ``ttl_s`` seconds more."""
        if self.lost.is_set():
            return
        self.trouble = ""
        self._renewed_at = max(self._renewed_at, asked_at)
        self.believed_until = max(self.believed_until, asked_at + ttl_s * (1.0 - MARGIN_SHARE))
        self._after(self.believed_until - monotonic(), self._doubt)

    def end(self, loss: Loss) -> None:
        """The lease is no more, or may be no more: stop believing in it. The first reason stays."""
        self._stop_timer()
        self.believed_until = 0.0
        self.loss = self.loss or loss
        self.lost.set()

    def expiry(self) -> Loss:
        """Why belief has ended, or will have: no renewal was answered in time."""
        cause = LossCause.UNREACHABLE if self.trouble else LossCause.NOT_RENEWED
        age_s = monotonic() - self._renewed_at
        why = self.trouble or "no member answered, or this process stood still"
        return Loss(cause, f"the lease of {self.ttl_s} s was not renewed for {age_s:.1f} s: {why}")

    def _doubt(self) -> None:
        """Belief has ended (``alive`` says so already). An answer may lie unread that proves the lease to have lasted
        all along, so nobody is told before there was time to read it, and more time while the process lags.
        """
        self._after(READ_AFTER_STALL_S, partial(self._run_out, monotonic() + READ_AFTER_STALL_S))

    def _run_out(self, due_at: float) -> None:
        now = monotonic()
        if now - due_at > STALL_S and now < self.believed_until + DOUBT_SHARE * self.ttl_s:
            self._doubt()
        else:
            self.end(self.expiry())

    def _after(self, delay_s: float, act: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(max(0.0, delay_s), act)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Line:
    """One keepalive stream to one member. Requests on it may overlap; their answers come in their order."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.opened_at = monotonic()
        self.wake = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._next_at: dict[int, float] = {}
        self._unanswered: dict[int, deque[float]] = {}

    def due_at(self, lease: Lease) -> float | None:
        """When ``lease`` is to be renewed here; None while too many requests are unanswered."""
        if len(self._unanswered.get(lease.id, ())) >= UNANSWERED_MAX:
            return None
        return self._next_at.get(lease.id, max(self.opened_at, lease.first_renewal_at))

    def asked(self, lease: Lease, now: float) -> None:
        """Note a request before it is sent."""
        self._unanswered.setdefault(lease.id, deque()).append(now)
        self._next_at[lease.id] = now + lease.ttl_s / RENEWALS_PER_TTL

    def answered(self, lease_id: int) -> float | None:
        """When the request was sent that is being answered now."""
        waiting = self._unanswered.get(lease_id)
        return waiting.popleft() if waiting else None

    def forget_all_but(self, leases: dict[int, Lease]) -> None:
        """Drop what is noted of leases that are kept no longer."""
        for gone in self._next_at.keys() - leases.keys():
            del self._next_at[gone]
            self._unanswered.pop(gone, None)


class LeaseKeeper:
    """Renews every lease entrusted to it on one stream; on several, to several members, while none of them answers.

    A late answer is an answer: it tears nothing down, and counts from the moment of its request.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._leases: dict[int, Lease] = {}
        self._lines: list[_Line] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._heard_at = 0.0
        self._failures = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def keep(self, lease: Lease) -> None:
        """Renew ``lease`` until it is lost or let go of."""
        if len(self._leases) >= LEASES_MAX:
            raise ValueError(f"a client keeps at most {LEASES_MAX} leases; etcd is no place for one lease per host")
        if not self._leases:
            self._heard_at = monotonic()
        self._leases[lease.id] = lease
        self._wake_all()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="etcd-lease-keeper")

    def let_go(self, lease: Lease, loss: Loss = _LET_GO) -> None:
        """Stop renewing and stop believing."""
        self._leases.pop(lease.id, None)
        lease.end(loss)
        self._wake_all()

    async def close(self) -> None:
        """End every lease here; on the server each runs out by itself."""
        for lease in tuple(self._leases.values()):
            self.let_go(lease, Loss(LossCause.STOPPED, "this client of the store was closed"))
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _wake_all(self) -> None:
        self._wake.set()
        for line in self._lines:
            line.wake.set()

    # --- which members are asked --------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Until no lease is left. From that look to the end nothing is awaited: a lease that comes finds the task done,
        or is seen by it.
        """
        try:
            while self._drop_lost():
                self._wake.clear()
                await self._mend()
                planned = monotonic() + self._quiet_s()
                await _woken(self._wake, planned)
                if monotonic() - planned > STALL_S:
                    await asyncio.sleep(READ_AFTER_STALL_S)  # read before judging who is silent
        finally:
            for line in tuple(self._lines):
                self._drop(line)

    def _drop_lost(self) -> bool:
        """Keep no lease that is lost; True while any is left."""
        for lease in tuple(self._leases.values()):
            if lease.lost.is_set():
                self.let_go(lease)
        return bool(self._leases)

    async def _mend(self) -> None:
        """Take away the lines that broke, and see to it that somebody is asked."""
        for line in [line for line in self._lines if line.task is None or line.task.done()]:
            self._lines.remove(line)
            self._transport.move_on(line.connection)
            self._failures += 1
        if not self._lines:
            if self._failures:
                await self._transport.back_off(self._failures)
            self._open(self._transport.current)
        elif self._quiet_s() <= 0.0 and (connection := self._another()) is not None:
            self._open(connection)

    def _quiet_s(self) -> float:
        """How long to wait yet before another member is asked too; at most `_IDLE_MAX_S`."""
        ttl_s = min((lease.ttl_s for lease in self._leases.values()), default=_IDLE_MAX_S)
        if not self._lines or self._another() is None:
            return _IDLE_MAX_S
        silent_at = self._heard_at + SILENCE_SHARE * ttl_s
        return max(silent_at, self._lines[-1].opened_at + NEXT_MEMBER_SHARE * ttl_s) - monotonic()

    def _another(self) -> Connection | None:
        """The next member that is not being asked."""
        endpoints = self._transport.endpoints
        asked = {line.connection.endpoint for line in self._lines}
        first = endpoints.index(self._lines[-1].connection.endpoint)
        order = [*endpoints[first:], *endpoints[:first]]
        return next((self._transport.connection(name) for name in order if name not in asked), None)

    def _open(self, connection: Connection) -> None:
        line = _Line(connection)
        line.task = asyncio.get_running_loop().create_task(self._serve(line), name="etcd-lease-line")
        line.task.add_done_callback(lambda _: self._wake.set())
        self._lines.append(line)

    def _drop(self, line: _Line) -> None:
        self._lines.remove(line)
        if line.task is not None:
            self._ending.add(line.task)
            line.task.add_done_callback(self._ending.discard)
            line.task.cancel()

    def _heard(self, line: _Line) -> None:
        """This line answers: it alone is kept, and a member that was passed over is passed over for requests too."""
        self._heard_at = monotonic()
        self._failures = 0
        if line not in self._lines:
            return
        for other in tuple(self._lines):
            if other is not line:
                if other.opened_at < line.opened_at:
                    self._transport.move_on(other.connection)
                self._drop(other)

    # --- one line -----------------------------------------------------------------------------------------------------

    async def _serve(self, line: _Line) -> None:
        """Ask and listen until the stream breaks."""
        try:
            async with self._transport.stream(line.connection, LEASE_KEEP_ALIVE) as stream:
                await self._converse(line, stream)
        except (StreamBroken, grpc.aio.AioRpcError) as broken:
            code = broken.code if isinstance(broken, StreamBroken) else broken.code()
            details = broken.details if isinstance(broken, StreamBroken) else broken.details()
            self._transport.observe(LEASE_KEEP_ALIVE.name, monotonic() - line.opened_at, code.name.lower())
            if code in _SILENCE:
                return
            for lease in self._leases.values():
                lease.trouble = f"{line.connection.endpoint}: {details or 'no details'} ({code.name.lower()})"

    async def _converse(
        self, line: _Line, stream: Stream[wire.LeaseKeepAliveRequest, wire.LeaseKeepAliveResponse]
    ) -> None:
        reader = asyncio.get_running_loop().create_task(self._read(line, stream))
        reader.add_done_callback(lambda _: line.wake.set())
        try:
            while not reader.done():
                line.wake.clear()
                await self._send_due(line, stream)
                await _woken(line.wake, self._next_due(line))
            reader.result()
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _send_due(
        self, line: _Line, stream: Stream[wire.LeaseKeepAliveRequest, wire.LeaseKeepAliveResponse]
    ) -> None:
        line.forget_all_but(self._leases)
        for lease in tuple(self._leases.values()):
            now = monotonic()
            due_at = line.due_at(lease)
            if due_at is not None and now >= due_at and not lease.lost.is_set():
                line.asked(lease, now)
                await stream.send(wire.LeaseKeepAliveRequest(id=lease.id), lease.ttl_s)

    def _next_due(self, line: _Line) -> float:
        due = (line.due_at(lease) for lease in self._leases.values())
        return min((moment for moment in due if moment is not None), default=monotonic() + _IDLE_MAX_S)

    async def _read(self, line: _Line, stream: Stream[wire.LeaseKeepAliveRequest, wire.LeaseKeepAliveResponse]) -> None:
        while True:
            answer = await stream.receive(None)
            self._heard(line)
            line.wake.set()
            asked_at = line.answered(answer.id)
            lease = self._leases.get(answer.id)
            if lease is None or asked_at is None:
                continue
            self._transport.observe(LEASE_KEEP_ALIVE.name, monotonic() - asked_at, "ok")
            if answer.ttl <= 0:
                self.let_go(lease, _EXPIRED)
            else:
                lease.renewed(asked_at, answer.ttl)


async def _woken(wake: asyncio.Event, until: float) -> None:
    """Wait for ``wake``, at most until the monotonic moment ``until``."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(_IDLE_MIN_S, until - monotonic())):
            await wake.wait()
