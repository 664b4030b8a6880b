"""The outermost loop of a fleet's supervisor: signals, the reason when it fails, and its exit status."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

from hostler_coordinator.cli.errors import Problem
from hostler_coordinator.dev.addresses import NoFreeBlock
from hostler_coordinator.dev.debian import FetchFailed
from hostler_coordinator.dev.etcd_server import EtcdNotReady, EtcdUnusable
from hostler_coordinator.dev.fleet import Fleet, FleetFailed
from hostler_coordinator.dev.premises import Premises, write_text
from hostler_coordinator.dev.shape import Shape

REASON_CHARS_MAX = 1000
# What a person can do something about; anything else is a bug and shows its trace.
EXPECTED = (Problem, NoFreeBlock, FetchFailed, EtcdNotReady, EtcdUnusable, FleetFailed, TimeoutError, OSError)


def supervise(place: Premises, shape: Shape, say: Callable[[str], None]) -> int:
    """Run a fleet in a folder that was prepared, until SIGTERM, SIGINT or SIGHUP.

    Returns 0, or 1 when it failed: the reason is said, and kept in `failed`.
    """
    said = [""]

    def tell(line: str) -> None:
        if line != said[0]:
            said[0] = line
            write_text(place.progress, line + "\n")
            say(line)

    try:
        asyncio.run(_run(Fleet(place, shape, tell)))
    except EXPECTED as error:
        reason = (str(error) or type(error).__name__)[:REASON_CHARS_MAX]
        write_text(place.failed, reason + "\n")
        say(f"the fleet ended: {reason}")
        return 1
    return 0


async def _run(fleet: Fleet) -> None:
    work = asyncio.current_task()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if work is not None:
            loop.add_signal_handler(number, work.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await fleet.run()
