"""Where the agent's tasks meet: the situation, the orders that came in, and who wants to know; no rules."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from hostler_agent.decide import Situation
from hostler_agent.session import Order

INBOX_MAX = 64


@dataclass(frozen=True, slots=True)
class Received:
    """An order, the stream it came on, and a moment before which it cannot have been sent."""

    order: Order
    stream: int
    sent_after: float


class Board:
    """Single-threaded: every change is one synchronous `update`, so nobody sees half of one."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.why = "starting"
        self.ticked_at = 0.0
        self._inbox: deque[Received] = deque(maxlen=INBOX_MAX)
        self._watchers: list[asyncio.Event] = []

    def watch(self) -> asyncio.Event:
        """An event that is set at every change."""
        event = asyncio.Event()
        self._watchers.append(event)
        return event

    def unwatch(self, event: asyncio.Event) -> None:
        """End a watch."""
        self._watchers.remove(event)

    def update(self, **changes: Any) -> None:
        """Replace fields of the situation."""
        self.put(replace(self.situation, **changes))

    def put(self, situation: Situation) -> None:
        """Replace the situation."""
        if situation != self.situation:
            self.situation = situation
            self._wake()

    def deliver(self, received: Received) -> None:
        """Hand an order to the work loop. Beyond the bound the oldest is dropped: everything is said again."""
        self._inbox.append(received)
        self._wake()

    def take(self) -> Received | None:
        """The oldest order that was not yet looked at."""
        return self._inbox.popleft() if self._inbox else None

    def poke(self) -> None:
        """Have everybody look again, though the situation is the same."""
        self._wake()

    def _wake(self) -> None:
        for event in self._watchers:
            event.set()


async def wait_event(event: asyncio.Event, timeout_s: float) -> None:
    """Return when the event is set or the time is over; clears the event."""
    try:
        async with asyncio.timeout(max(0.0, timeout_s)):
            await event.wait()
    except TimeoutError:
        return
    finally:
        event.clear()
