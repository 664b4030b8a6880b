"""The outermost loop of a fleet's supervisor: signals, the reason when it fails, and its exit status."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from hostler_coordinator.cli.errors import Problem
from hostler_coordinator.dev.addresses import NoFreeBlock
from hostler_coordinator.dev.debian import FetchFailed
from hostler_coordinator.dev.etcd_server import EtcdNotReady, EtcdUnusable
from hostler_coordinator.dev.fleet import Fleet, FleetFailed
from hostler_coordinator.dev.premises import Premises, write_text
from hostler_coordinator.dev.shape import Shape

LOOK_S = 0.5
REASON_CHARS_MAX = 1000
# What a person can do something about; anything else is a bug and shows its trace.
EXPECTED = (Problem, NoFreeBlock, FetchFailed, EtcdNotReady, EtcdUnusable, FleetFailed, TimeoutError, OSError)


def supervise(place: Premises, shape: Shape, say: Callable[[str], None], *, bound_to: int | None = None) -> str | None:
    """Run a fleet in a folder that was prepared, until SIGTERM, SIGINT or SIGHUP, or the end of the parent `bound_to`.

    Returns None, or why it failed; the reason is kept in `failed` too.
    """
    said = [""]

    def tell(line: str) -> None:
        if line != said[0]:
            said[0] = line
            write_text(place.progress, line + "\n")
            say(line)

    try:
        asyncio.run(_run(Fleet(place, shape, tell), bound_to))
    except EXPECTED as error:
        reason = (str(error) or type(error).__name__)[:REASON_CHARS_MAX]
        write_text(place.failed, reason + "\n")
        return reason
    return None


async def _run(fleet: Fleet, bound_to: int | None) -> None:
    work = asyncio.create_task(fleet.run(), name="fleet")
    told_to_end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, told_to_end.set)
    ending = asyncio.create_task(told_to_end.wait())
    while not (await asyncio.wait([work, ending], timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED))[0]:
        if bound_to is not None and os.getppid() != bound_to:
            break
    ending.cancel()
    work.cancel()  # once: a second cancel would break the taking down off
    with contextlib.suppress(asyncio.CancelledError):
        await work
