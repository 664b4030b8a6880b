"""Passes operators' calls on to the leader as they are, bytes in and bytes out; meaning and roles are the edge's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
from google.rpc import status_pb2

from hostler_coordinator.rpc.statuses import DETAILS_KEY, StatusError, make_status, unavailable

if TYPE_CHECKING:
    from hostler_coordinator.service.callers import Caller

CALLER_KEY = "hostler-caller-bin"
"""Metadata of a forwarded call: the original caller's name. Believed from a coordinator only."""


class Forwarder:
    """One channel to the leader of the day. `dial` opens a channel to an address."""

    def __init__(self, dial: Callable[[str], grpc.aio.Channel]) -> None:
        self._dial = dial
        self._address = ""
        self._channel: Any = None

    async def unary(self, path: str, raw: bytes, caller: Caller, leader: tuple[str, str], timeout_s: float) -> bytes:
        """The leader's answer; raises StatusError with the leader's own status."""
        call = (await self._to(leader)).unary_unary(path)(raw, timeout=timeout_s, metadata=_metadata(caller))
        with _in_our_words(leader):
            answer: bytes = await call
        return answer

    async def stream(
        self, path: str, raw: bytes, caller: Caller, leader: tuple[str, str], timeout_s: float
    ) -> AsyncIterator[bytes]:
        """The leader's answers; raises StatusError with the leader's own status."""
        call = (await self._to(leader)).unary_stream(path)(raw, timeout=timeout_s, metadata=_metadata(caller))
        try:
            with _in_our_words(leader):
                async for answer in call:
                    yield answer
        finally:
            call.cancel()

    async def close(self) -> None:
        """Let go of the channel."""
        channel, self._channel, self._address = self._channel, None, ""
        if channel is not None:
            await channel.close()

    async def _to(self, leader: tuple[str, str]) -> Any:
        if self._channel is None or self._address != leader[1]:
            old = self._channel
            self._channel, self._address = self._dial(leader[1]), leader[1]
            if old is not None:
                await old.close()
        return self._channel


@contextmanager
def _in_our_words(leader: tuple[str, str]) -> Iterator[None]:
    """Turn what a forwarded call ends with into StatusError; our own cancellation passes."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise StatusError(_status(error, leader)) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled us: the channel was closed under the call, because another coordinator leads now.
        raise StatusError(unavailable(f"{leader[0]} no longer leads", None, 1.0, "leader-changed")) from error


def _metadata(caller: Caller) -> tuple[tuple[str, bytes], ...]:
    return ((CALLER_KEY, caller.name.encode()),)


def _status(error: grpc.aio.AioRpcError, leader: tuple[str, str]) -> Any:
    """The leader's status with its details; what the transport says is put in our words."""
    trailing: Any = error.trailing_metadata() or ()
    for key, value in trailing:
        if key == DETAILS_KEY:
            return status_pb2.Status.FromString(value)
    name, address = leader
    if error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
        return unavailable(f"leader {name} at {address} cannot be reached: {error.details()}", None, 1.0, "no-leader")
    return make_status(error.code(), error.details() or "")
