"""Runs the sides of one stream until the first of them ends; knows nothing of what they do.

A read that waits on a gRPC stream is never cancelled. grpc.aio (1.85) would cancel its whole call with it and forget
what its core may still hand over; the memory of the read stays valid, but what arrives meanwhile is lost and never
freed. So reads are left alone, and end by themselves once their call has ended. Whoever leaves one ends the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_left: set[asyncio.Task[Any]] = set()
"""Reads that nobody waits for any more; referenced until they end, so that they are not collected while they wait."""


def left_waiting() -> int:
    """How many reads wait that nobody waits for any more; none once their calls have ended."""
    return sum(not task.done() for task in _left)


async def until_either_ends(*works: Coroutine[Any, Any, object], reading: Coroutine[Any, Any, object]) -> None:
    """Run until the first of these ends, cancel the rest but `reading`, and raise what the first ones raised."""
    read = asyncio.ensure_future(reading)
    others = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait([read, *others], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in others:
            task.cancel()
        _leave(read)
        await asyncio.gather(*others, return_exceptions=True)
    for task in (read, *others):
        if task in done:
            task.result()


async def read_within(timeout_s: float | None, reading: Awaitable[T]) -> T:
    """What the read brings, or TimeoutError (None: wait for as long as its call lives).

    When the time is over, or the caller is cancelled, the read itself goes on until its call ends.
    """
    read = asyncio.ensure_future(_awaited(reading))
    done: set[asyncio.Task[T]] = set()
    try:
        done, _ = await asyncio.wait([read], timeout=timeout_s)
    finally:
        if not done:
            _leave(read)
    if not done:
        raise TimeoutError(f"nothing came within {timeout_s:.0f} s")
    return read.result()


async def _awaited(reading: Awaitable[T]) -> T:
    return await reading


def _leave(task: asyncio.Task[Any]) -> None:
    _left.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not warn: its call has ended, and that is all it can say
