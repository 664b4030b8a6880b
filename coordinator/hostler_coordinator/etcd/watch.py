"""A watch that survives the loss of members: resumed from its revision, without a gap and without a repeat. What the
events mean is the reader's affair.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import grpc
import grpc.aio

from hostler_coordinator.etcd.connection import Stream, StreamBroken
from hostler_coordinator.etcd.errors import AuthFailed, Compacted, Failure, WatchCancelled, sort_failure
from hostler_coordinator.etcd.keys import prefix_end
from hostler_coordinator.etcd.methods import WATCH
from hostler_coordinator.etcd.moments import monotonic
from hostler_coordinator.etcd.pb import wire_pb2 as wire
from hostler_coordinator.etcd.transport import Transport
from hostler_coordinator.etcd.values import Event, event

TOKEN_RENEWALS_MAX = 3


@dataclass(frozen=True, slots=True)
class WatchBatch:
    """Whole revisions, in order; ``revision`` is the last of them, and a reader may go on from ``revision + 1``."""

    revision: int
    events: tuple[Event, ...]


class Watch:
    """One watch over its whole life. Memory is bounded by HTTP/2 flow control: nothing is read ahead of the reader, so
    a slow reader holds at most one message and the transport's window, and etcd keeps the rest.
    """

    def __init__(
        self, transport: Transport, key: bytes, *, exact: bool, start_revision: int, want_before: bool
    ) -> None:
        self._transport = transport
        self._key = key
        self._exact = exact
        self._next = start_revision
        self._want_before = want_before
        self._held: list[wire.Event] = []
        self._renewals = 0
        self._failures = 0

    async def batches(self) -> AsyncGenerator[WatchBatch, None]:
        """See ``EtcdClient.watch``."""
        while True:
            connection = self._transport.current
            started = monotonic()
            self._held = []
            try:
                async with self._transport.stream(connection, WATCH) as stream:
                    await self._create(stream, connection.endpoint)
                    while True:
                        batch = self._take(await stream.receive(None))
                        if batch is not None:
                            yield batch
            except StreamBroken as broken:
                self._after_break(broken.code, broken.details, started)
            except grpc.aio.AioRpcError as error:
                self._after_break(error.code(), error.details() or "", started)
            self._failures += 1
            self._transport.move_on(connection)
            await self._transport.back_off(self._failures)

    async def _create(self, stream: Stream[wire.WatchRequest, wire.WatchResponse], endpoint: str) -> None:
        create = wire.WatchCreateRequest(
            key=self._key or b"\0",
            range_end=b"" if self._exact else prefix_end(self._key),
            start_revision=self._next,
            progress_notify=True,
            prev_kv=self._want_before,
            fragment=True,
        )
        timeout_s = self._transport.request_timeout_s
        await stream.send(wire.WatchRequest(create_request=create), timeout_s)
        answer = await stream.receive(timeout_s)
        self._refuse_cancelled(answer)  # "created" and "canceled" in one answer is a refusal, not a success
        if not answer.created:
            raise StreamBroken(grpc.StatusCode.INTERNAL, "the first answer was not about the creation")
        self._transport.check_cluster(answer.header.cluster_id, endpoint)
        # The revision of a "created" answer says nothing of what has been delivered: it is a starting point only where
        # the reader named none.
        self._next = self._next or answer.header.revision + 1

    def _take(self, answer: wire.WatchResponse) -> WatchBatch | None:
        """Whole revisions of an answer. Of a fragmented one the last revision is held back until it is complete."""
        self._refuse_cancelled(answer)
        self._failures = self._renewals = 0
        self._held.extend(answer.events)
        if answer.fragment:
            last = self._held[-1].kv.mod_revision if self._held else 0
            whole = [held for held in self._held if held.kv.mod_revision < last]
            self._held = [held for held in self._held if held.kv.mod_revision >= last]
        else:
            whole, self._held = self._held, []
            if not whole:  # a progress notice: everything up to its revision has been delivered
                self._next = max(self._next, answer.header.revision + 1)
        fresh = tuple(event(message) for message in whole if message.kv.mod_revision >= self._next)
        if not fresh:
            return None
        self._next = fresh[-1].kv.mod_revision + 1
        return WatchBatch(self._next - 1, fresh)

    def _refuse_cancelled(self, answer: wire.WatchResponse) -> None:
        if answer.compact_revision:
            raise Compacted(answer.compact_revision)
        if not answer.canceled:
            return
        reason = answer.cancel_reason
        if "auth token" in reason and self._transport.forget_token() and self._renewals < TOKEN_RENEWALS_MAX:
            self._renewals += 1
            raise StreamBroken(grpc.StatusCode.UNAUTHENTICATED, reason)
        raise WatchCancelled(reason)

    def _after_break(self, code: grpc.StatusCode, details: str, started: float) -> None:
        """Decide whether asking again can help; return if so."""
        self._transport.observe(WATCH.name, monotonic() - started, code.name.lower())
        failure = sort_failure(code, details)
        if failure in {Failure.IN_DOUBT, Failure.NOT_APPLIED}:
            return
        if failure in {Failure.TOKEN, Failure.AUTH}:
            if self._transport.forget_token() and self._renewals < TOKEN_RENEWALS_MAX:
                self._renewals += 1
                return
            raise AuthFailed(f"{WATCH.name}: {details}")
        raise WatchCancelled(f"{details} ({code.name.lower()})")
