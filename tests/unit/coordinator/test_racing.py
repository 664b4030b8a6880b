"""Reads that wait are left alone: the caller goes on at once, the read ends with its call, and nothing is kept."""

from __future__ import annotations

import asyncio

import pytest

from hostler_coordinator.racing import left_waiting, read_within, until_either_ends


class Call:
    """A call as gRPC has it: a read waits until a message comes or the call ends, and does not like to be cancelled."""

    def __init__(self) -> None:
        self.message: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.read_cancelled = False

    async def read(self) -> str:
        try:
            return await asyncio.shield(self.message)
        except asyncio.CancelledError:
            self.read_cancelled = True
            raise

    def end(self, error: Exception | None = None) -> None:
        self.message.set_exception(error or ConnectionError("the call has ended"))


async def settled() -> None:
    """Let what is ready run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_the_read_brings_is_handed_on() -> None:
    call = Call()
    reading = asyncio.create_task(read_within(None, call.read()))
    await settled()
    call.message.set_result("beat")
    assert await reading == "beat"
    assert left_waiting() == 0


async def test_what_the_read_raises_is_handed_on() -> None:
    call = Call()
    call.end()
    with pytest.raises(ConnectionError, match="ended"):
        await read_within(5.0, call.read())
    assert left_waiting() == 0


async def test_a_read_that_took_too_long_waits_on_and_ends_with_its_call() -> None:
    call = Call()
    with pytest.raises(TimeoutError, match="nothing came"):
        await read_within(0.01, call.read())
    await settled()
    assert left_waiting() == 1
    assert not call.read_cancelled
    call.end()
    await settled()
    assert left_waiting() == 0
    assert not call.read_cancelled


async def test_a_cancelled_caller_goes_at_once_and_its_read_ends_with_its_call() -> None:
    call = Call()
    caller = asyncio.create_task(read_within(None, call.read()))
    await settled()
    caller.cancel()
    done, _ = await asyncio.wait({caller}, timeout=1.0)
    assert done == {caller}
    assert caller.cancelled()
    assert left_waiting() == 1
    assert not call.read_cancelled
    call.message.set_result("too late for anybody")
    await settled()
    assert left_waiting() == 0


async def test_a_caller_that_times_out_around_the_read_goes_at_once() -> None:
    call = Call()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await read_within(None, call.read())
    assert left_waiting() == 1
    assert not call.read_cancelled
    call.end()
    await settled()
    assert left_waiting() == 0


async def test_the_side_that_ends_first_ends_the_others_but_never_the_read() -> None:
    call = Call()
    written = asyncio.Event()

    async def write() -> None:
        written.set()
        raise ValueError("cannot be written")

    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(ValueError, match="cannot be written"):
        await until_either_ends(write(), wait(), reading=call.read())
    assert written.is_set()
    assert left_waiting() == 1
    assert not call.read_cancelled
    call.end()
    await settled()
    assert left_waiting() == 0
