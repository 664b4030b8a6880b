"""Time and chance as the out-of-band room sees them, so that tests need not wait; nothing else belongs here."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """`now` is epoch seconds UTC for dates, `monotonic` seconds for spans, `chance` a number in [0, 1)."""

    now: Callable[[], float]
    monotonic: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    chance: Callable[[], float]


REAL_TIME = Timing(now=time.time, monotonic=time.monotonic, sleep=asyncio.sleep, chance=random.SystemRandom().random)
