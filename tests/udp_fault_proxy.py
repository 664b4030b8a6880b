"""A UDP proxy between an IPMI client and a BMC that loses, delays and duplicates datagrams; it understands none."""

from __future__ import annotations

import heapq
import random
import selectors
import socket
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

Address = tuple[str, int]


@dataclass(frozen=True)
class PacketFaults:
    """Chances in [0, 1], seconds, and extra copies of each datagram, per direction."""

    lose_requests: float = 0.0
    lose_replies: float = 0.0
    delay_requests_s: float = 0.0
    delay_replies_s: float = 0.0
    extra_requests: int = 0
    extra_replies: int = 0


class UdpFaultProxy:
    """Serve on 127.0.0.1 while the context is open. `faults` may be replaced at any moment; a seed gives the chance."""

    def __init__(self, upstream: Address, faults: PacketFaults | None = None, seed: int = 1) -> None:
        self.faults = faults or PacketFaults()
        self.requests = 0
        self.replies = 0
        self._upstream = upstream
        self._chance = random.Random(seed)
        self._front = _socket()
        self.address: Address = self._front.getsockname()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._front, selectors.EVENT_READ, None)
        self._backs: dict[Address, socket.socket] = {}
        self._due: list[tuple[float, int, socket.socket, bytes, Address]] = []
        self._sequence = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(5)
        for each in (self._front, *self._backs.values()):
            each.close()
        self._selector.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            self._send_due()
            wait_s = 0.05 if not self._due else min(0.05, max(0.0, self._due[0][0] - time.monotonic()))
            for key, _ in self._selector.select(wait_s):
                self._receive(key.fileobj, key.data)

    def _receive(self, source: object, client: Address | None) -> None:
        assert isinstance(source, socket.socket)
        try:
            data, sender = source.recvfrom(65535)
        except (BlockingIOError, ConnectionError):
            return
        faults = self.faults
        if client is None:
            self.requests += 1
            back = self._back(sender)
            self._schedule(
                back, data, self._upstream, faults.lose_requests, faults.delay_requests_s, faults.extra_requests
            )
        else:
            self.replies += 1
            self._schedule(self._front, data, client, faults.lose_replies, faults.delay_replies_s, faults.extra_replies)

    def _back(self, client: Address) -> socket.socket:
        """One socket towards the BMC per client, so that sessions stay apart."""
        if client not in self._backs:
            self._backs[client] = _socket()
            self._selector.register(self._backs[client], selectors.EVENT_READ, client)
        return self._backs[client]

    def _schedule(
        self, through: socket.socket, data: bytes, to: Address, lose: float, delay_s: float, extra: int
    ) -> None:
        if self._chance.random() < lose:
            return
        for _ in range(1 + extra):
            self._sequence += 1
            heapq.heappush(self._due, (time.monotonic() + delay_s, self._sequence, through, data, to))

    def _send_due(self) -> None:
        while self._due and self._due[0][0] <= time.monotonic():
            _, _, through, data, to = heapq.heappop(self._due)
            try:
                through.sendto(data, to)
            except OSError:
                continue  # the other side is gone; that is its affair


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    made.setblocking(False)
    return made
