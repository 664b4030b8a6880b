"""Two repairs of pyghmi 1.6.19's I/O loop for the worker process; no BMC operation belongs here.

1. Two of its locks are taken in both orders by two paths; one lock for both cannot deadlock.
2. An answer that arrives between sending and falling asleep is noticed only at the next time-out (0.5 to 1 s, in 1.5
   to 7 % of calls on a fast path), and a dead I/O thread is never noticed. The replacement looks once more before it
   sleeps and sleeps with a bound.
Both replace private names, so they are applied to exactly the version that they were measured with.
"""

from __future__ import annotations

import importlib.metadata
import threading
import time
from typing import Any

REPAIRED_VERSION = "1.6.19"
PAUSE_S = 0.005
"""A worker that waits for a dead BMC must not spend a whole core on looking; an answer waits at most this long."""


def apply() -> bool:
    """Patch pyghmi's session module; False (and untouched) when another version is installed."""
    if importlib.metadata.version("pyghmi") != REPAIRED_VERSION:
        return False
    from pyghmi.ipmi.private import session  # noqa: PLC0415 - pyghmi is imported in the worker process only

    session.WAITING_SESSIONS = session.KEEPALIVE_SESSIONS
    session._io_wait = _waiter(session)  # noqa: SLF001 - the defect is in there
    return True


def _waiter(session: Any) -> Any:
    def io_wait(timeout: float, myaddr: Any = None, evq: Any = None) -> None:
        wake = threading.Event()
        if evq is not None:
            evq.append(wake)
        deadline = timeout + time.monotonic()
        session.ioqueue.append((deadline, wake, myaddr))
        if _already_there(session, myaddr):
            return
        if deadline < session.selectdeadline:
            socket = session.iosockets[0]
            socket.sendto(b"\x01", (session.myself, socket.getsockname()[1]))
        while not wake.wait(max(0.0, timeout) + 0.05):
            if not session.iothread.is_alive():
                raise RuntimeError("pyghmi's I/O thread has died")
            if time.monotonic() > deadline:
                return
        if not _already_there(session, myaddr):
            # Woken for nothing, as happens without end while a BMC does not answer.
            time.sleep(PAUSE_S)  # noqa: TID251 - a worker process of one thread, inside pyghmi's own waiting

    return io_wait


def _already_there(session: Any, address: Any) -> bool:
    if address is None:
        return bool(session.sessionqueue)
    handlers = session.Session.bmc_handlers.get(address, {})
    return any(handler.pktqueue for handler in list(handlers.values()))
