"""Lanes of the pool: a bounded set of workers each, so that slow work never stands in the way of power work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from enum import Enum

from hostler_coordinator.bmc.answers import Verb
from hostler_coordinator.bmc.worker_process import WorkerProcess


class LaneName(Enum):
    """Power orders and states; event logs (long); BMCs that have stopped answering."""

    POWER = "power"
    READINGS = "readings"
    SLOW = "slow"


def lane_for(verb: Verb, *, silent: bool) -> LaneName:
    """The lane an operation belongs to."""
    if silent:
        return LaneName.SLOW
    return LaneName.READINGS if verb is Verb.SEL else LaneName.POWER


class Lane:
    """At most `size` workers, started when first needed, the warm ones used first."""

    def __init__(self, size: int, recycle_after: int, start: Callable[[], WorkerProcess]) -> None:
        self._free = asyncio.Semaphore(size)
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._recycle_after = recycle_after
        self._start = start
        self._closed = False

    @property
    def busy(self) -> int:
        """Number of workers that are at work now."""
        return len(self._busy)

    @contextlib.asynccontextmanager
    async def worker(self, wait_s: float) -> AsyncIterator[WorkerProcess]:
        """Borrow a worker; TimeoutError when none is free within `wait_s` seconds."""
        async with asyncio.timeout(wait_s):
            await self._free.acquire()
        worker = self._idle.pop() if self._idle else self._start()
        self._busy.add(worker)
        try:
            yield worker
        finally:
            self._busy.discard(worker)
            try:
                if self._closed or worker.operations >= self._recycle_after:
                    await worker.kill()
                else:
                    self._idle.append(worker)
            finally:
                self._free.release()

    async def close(self) -> None:
        """Kill every worker; those at work answer as wedged."""
        self._closed = True
        for worker in (*self._idle, *self._busy):
            await worker.kill()
        self._idle.clear()
