"""The clock of this package: the running loop's own seconds, so that it lives in one time with all timers."""

from __future__ import annotations

import asyncio
import time


def monotonic() -> float:
    """Seconds since some fixed moment; on a real loop, or without one, `time.monotonic()`."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
