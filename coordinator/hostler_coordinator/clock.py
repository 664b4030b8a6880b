"""The machine's clock behind the Clock port; never goes back within one process, whatever is done to the wall clock."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Epoch seconds that advance with the monotonic clock: a step of the wall clock moves no deadline."""

    def __init__(self) -> None:
        """Tie the two clocks together once."""
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Epoch seconds, UTC."""
        return self._offset + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
