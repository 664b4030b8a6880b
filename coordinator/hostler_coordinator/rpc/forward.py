"""Passes operators' calls on to the leader as they are, bytes in and bytes out; meaning and roles are the edge's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
from google.rpc import status_pb2

from hostler_coordinator.rpc.statuses import DETAILS_KEY, NOTICE_KEY, StatusError, in_trouble, make_status, unavailable
from hostler_coordinator.service.trouble import LEADER_CHANGED, Trouble, leader_silent
from hostler_coordinator.transport_words import in_words, never_sent

if TYPE_CHECKING:
    from hostler_coordinator.service.callers import Caller

CALLER_KEY = "hostler-caller-bin"
"""Metadata of a forwarded call: the original caller's name. Believed from a coordinator only."""
_NOT_ANSWERED = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED}


class LeaderUnreachableError(StatusError):
    """The leader gave no answer: `trouble` says so in words. `in_doubt`: it may have done what was asked."""

    def __init__(self, trouble: Trouble, *, in_doubt: bool) -> None:
        consequence = "it may have been done all the same" if in_doubt else "nothing was changed"
        super().__init__(in_trouble(trouble, consequence, in_doubt=in_doubt))
        self.trouble = trouble


class Forwarder:
    """One channel to the leader of the day. `dial` opens a channel to an address; `now` is epoch seconds.

    `trouble` is set from the first call that the leader of the day leaves without an answer until one that it answers.
    """

    def __init__(self, dial: Callable[[str], grpc.aio.Channel], now: Callable[[], float]) -> None:
        self._dial = dial
        self._now = now
        self._leader = ("", "")
        self._channel: Any = None
        self.trouble: Trouble | None = None

    async def unary(
        self, path: str, raw: bytes, caller: Caller, leader: tuple[str, str], timeout_s: float
    ) -> tuple[bytes, bytes]:
        """The leader's answer, and the notice that came with it or nothing; raises StatusError with its own status."""
        call = (await self._to(leader)).unary_unary(path)(raw, timeout=timeout_s, metadata=_metadata(caller))
        with self._in_our_words(leader):
            answer: bytes = await call
            trailing: Any = await call.trailing_metadata()
        return answer, next((value for key, value in trailing or () if key == NOTICE_KEY), b"")

    async def stream(
        self, path: str, raw: bytes, caller: Caller, leader: tuple[str, str], timeout_s: float
    ) -> AsyncIterator[bytes]:
        """The leader's answers; raises StatusError with the leader's own status."""
        call = (await self._to(leader)).unary_stream(path)(raw, timeout=timeout_s, metadata=_metadata(caller))
        try:
            with self._in_our_words(leader):
                async for answer in call:
                    yield answer
        finally:
            call.cancel()

    async def close(self) -> None:
        """Let go of the channel."""
        channel, self._channel, self._leader = self._channel, None, ("", "")
        if channel is not None:
            await channel.close()

    async def _to(self, leader: tuple[str, str]) -> Any:
        if self._channel is None or self._leader != leader:
            old = self._channel
            self._channel, self._leader, self.trouble = self._dial(leader[1]), leader, None
            if old is not None:
                await old.close()
        return self._channel

    @contextmanager
    def _in_our_words(self, leader: tuple[str, str]) -> Iterator[None]:
        """Turn what a forwarded call ends with into StatusError; our own cancellation passes."""
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise self._said(error, leader) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled us: the channel was closed under the call, because another coordinator leads now.
            text = f"{leader[0]} no longer leads; what was asked of it may have been done all the same"
            raise StatusError(unavailable(text, None, 1.0, LEADER_CHANGED, fix="ask again", in_doubt=True)) from error
        else:
            self._heard(leader)

    def _said(self, error: grpc.aio.AioRpcError, leader: tuple[str, str]) -> StatusError:
        """The leader's status with its details; what the transport says is put in our words."""
        trailing: Any = error.trailing_metadata() or ()
        for key, value in trailing:
            if key == DETAILS_KEY:
                self._heard(leader)
                return StatusError(status_pb2.Status.FromString(value))
        details = error.details() or ""
        if error.code() not in _NOT_ANSWERED:
            return StatusError(make_status(error.code(), details))
        name, address = leader
        since = self.trouble.since if self.trouble is not None else self._now()
        trouble = leader_silent(name, address, since, in_words(details))
        if leader == self._leader:
            self.trouble = trouble
        return LeaderUnreachableError(trouble, in_doubt=not never_sent(details))

    def _heard(self, leader: tuple[str, str]) -> None:
        if leader == self._leader:
            self.trouble = None


def _metadata(caller: Caller) -> tuple[tuple[str, bytes], ...]:
    return ((CALLER_KEY, caller.name.encode()),)
