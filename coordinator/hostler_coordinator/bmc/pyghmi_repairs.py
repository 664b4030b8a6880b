"""Three repairs of pyghmi 1.6.19's I/O loop for the worker process; no BMC operation belongs here.

1. Two of its locks are taken in both orders by two paths; one lock for both cannot deadlock.
2. An answer that arrives between sending and falling asleep is noticed only at the next time-out (0.5 to 1 s, in 1.5
   to 7 % of calls on a fast path), and a dead I/O thread is never noticed. The replacement looks once more before it
   sleeps and sleeps with a bound. Its deadlines are read by the I/O thread, so they must come from pyghmi's own clock:
   taken from another one they lie in the past, and every wait on a silent BMC becomes a loop without a pause.
3. The kernel's word that a BMC's port is closed never reaches its sockets, so a dead BMC costs the whole ladder of
   time-outs. The sockets ask for it, and whoever waits for that BMC gets ConnectionRefusedError at once.
All replace private names, so they are applied to exactly the version that they were measured with.
"""

from __future__ import annotations

import errno
import importlib.metadata
import socket as sockets
import struct
import threading
import time
from typing import Any

REPAIRED_VERSION = "1.6.19"
SLACK_S = 0.05  # the I/O thread's clock ticks in hundredths of a second
SENDS_MAX = 8
ERRORS_PER_LOOK_MAX = 64
_IP_RECVERR, _IPV6_RECVERR = 11, 25  # linux/in.h, linux/in6.h: Python's socket module does not name them
_ANCILLARY_BYTES = 512


def apply() -> bool:
    """Patch pyghmi's session module; False (and untouched) when another version is installed."""
    if importlib.metadata.version("pyghmi") != REPAIRED_VERSION:
        return False
    from pyghmi.ipmi.private import session  # noqa: PLC0415 - pyghmi is imported in the worker process only

    session.WAITING_SESSIONS = session.KEEPALIVE_SESSIONS
    refusals = _Refusals(session)
    session._io_wait = _waiter(session, refusals)  # noqa: SLF001 - the defect is in there
    session._io_recvfrom = refusals.receive  # noqa: SLF001
    session._io_sendto = _send  # noqa: SLF001
    session.Session._assignsocket = _listening_for_refusals(session.Session._assignsocket)  # noqa: SLF001
    return True


class _Refusals:
    """Closed ports that the kernel has told of. The I/O thread notes them, the one thread that waits asks for them."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._refused: set[Any] = set()
        self.waiting: set[threading.Event] = set()

    def receive(self, socket: Any, size: int) -> Any:
        """The next datagram, None when there is none; what the kernel reports instead is noted."""
        socket.setblocking(False)
        try:
            return socket.recvfrom(size)
        except OSError:
            self._note(socket)
        try:
            return socket.recvfrom(size)  # the error may have stood before a datagram
        except OSError:
            return None

    def _note(self, socket: Any) -> None:
        for _ in range(ERRORS_PER_LOOK_MAX):
            try:
                _, ancillary, _, address = socket.recvmsg(1, _ANCILLARY_BYTES, sockets.MSG_ERRQUEUE)
            except OSError:
                return
            if any(_is_refusal(*item) for item in ancillary) and address in self._session.Session.bmc_handlers:
                self._refused.add(address)
                for wake in tuple(self.waiting):
                    wake.set()

    def raise_if_refused(self) -> None:
        """Give up every session with a BMC whose port is closed, and raise if one of them waited for an answer."""
        waited = False
        while self._refused:
            handlers = self._session.Session.bmc_handlers.get(self._refused.pop(), {})
            for broken in list(handlers.values()):
                waited = _give_up(broken) or waited
        if waited:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "the BMC's UDP port is closed")


def _is_refusal(_level: int, kind: int, data: bytes) -> bool:
    return kind in {_IP_RECVERR, _IPV6_RECVERR} and struct.unpack_from("=I", data)[0] == errno.ECONNREFUSED


def _give_up(session: Any) -> bool:
    """Mark it broken, so that nothing of it is sent again; True if something of it was still unanswered."""
    waited = bool(session.logging or session.incommand)
    session.logged = 0  # no logout: nobody is there to hear it, and it would wait for the command that failed
    session.incommand = False
    session._mark_broken("the BMC's UDP port is closed")  # noqa: SLF001 - pyghmi has no public name for it
    return waited


def _listening_for_refusals(assign: Any) -> Any:
    @classmethod  # type: ignore[misc]  # it takes the place of one
    def assign_socket(_cls: Any, server: Any = None, forbiddensockets: Any = ()) -> Any:
        socket = assign(server, forbiddensockets)
        socket.setsockopt(sockets.IPPROTO_IP, _IP_RECVERR, 1)
        if socket.family == sockets.AF_INET6:
            socket.setsockopt(sockets.IPPROTO_IPV6, _IPV6_RECVERR, 1)
        return socket

    return assign_socket


def _send(socket: Any, packet: bytes, address: Any) -> None:
    """Send one datagram. An error that stands on the socket from another one is reported *instead of* sending."""
    socket.setblocking(True)
    for _ in range(SENDS_MAX):
        try:
            socket.sendto(packet, address)
        except ConnectionRefusedError:
            continue
        except OSError:
            return  # as pyghmi has it: lost on the way out is lost on the way
        return


def _waiter(session: Any, refusals: _Refusals) -> Any:
    def io_wait(timeout: float, myaddr: Any = None, evq: Any = None) -> None:
        wake = threading.Event()
        refusals.waiting.add(wake)
        try:
            refusals.raise_if_refused()
            if evq is not None:
                evq.append(wake)
            _wait(session, wake, timeout, myaddr)
            refusals.raise_if_refused()
        finally:
            refusals.waiting.discard(wake)

    return io_wait


def _wait(session: Any, wake: threading.Event, timeout: float, address: Any) -> None:
    give_up_at = time.monotonic() + timeout
    deadline = session._monotonic_time() + timeout  # noqa: SLF001 - the I/O thread compares it with that clock
    session.ioqueue.append((deadline, wake, address))
    if _already_there(session, address):
        return
    if deadline < session.selectdeadline:
        socket = session.iosockets[0]
        _send(socket, b"\x01", (session.myself, socket.getsockname()[1]))
    while not wake.wait(max(0.0, timeout) + SLACK_S):
        if not session.iothread.is_alive():
            raise RuntimeError("pyghmi's I/O thread has died")
        if time.monotonic() > give_up_at:
            return


def _already_there(session: Any, address: Any) -> bool:
    if address is None:
        return bool(session.sessionqueue)
    handlers = session.Session.bmc_handlers.get(address, {})
    return any(handler.pktqueue for handler in list(handlers.values()))
