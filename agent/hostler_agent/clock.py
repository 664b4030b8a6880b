"""The real clock; the only room besides `__main__` that reads time."""

from __future__ import annotations

import asyncio
import time


class BootClock:
    """Seconds since the kernel started, suspension included; not moved by NTP steps or a person's `date`."""

    def now(self) -> float:
        """Seconds since boot."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def sleep(self, duration_s: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(duration_s)
