"""Paces what strains racks, feeds and nerves: power-ons per rack and feed (inrush), destructive orders over the fleet.

It only says when; who may act at all is decided elsewhere.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass

from hostler_coordinator.bmc.answers import BmcTarget
from hostler_coordinator.bmc.clock import REAL_TIME, Timing

DOMAINS_MAX = 100_000
_MINUTE_S = 60.0


@dataclass(frozen=True)
class PacingSettings:
    """One power-on per `power_on_gap_s` seconds and rack (and feed); `destructive_per_minute` orders over the fleet."""

    power_on_gap_s: float = 2.0
    destructive_per_minute: int = 60


class PacingState:
    """The slots given out; pure, times are monotonic seconds."""

    def __init__(self, settings: PacingSettings) -> None:
        self._settings = settings
        self._next_on: dict[str, float] = {}
        self._given = collections.deque[float](maxlen=settings.destructive_per_minute)

    def reserve_power_on(self, now: float, rack: str | None, feed: str | None) -> float:
        """Take the next moment that is free in the host's rack and feed alike; a host in neither need not wait."""
        domains = [f"rack {rack}"] * (rack is not None) + [f"feed {feed}"] * (feed is not None)
        at = max([now, *(self._next_on.get(domain, now) for domain in domains)])
        for domain in domains:
            self._next_on[domain] = at + self._settings.power_on_gap_s
        if len(self._next_on) > DOMAINS_MAX:
            self._next_on = {domain: free for domain, free in self._next_on.items() if free > now}
        return at

    def reserve_destructive(self, now: float) -> float:
        """Take the next moment at which the fleet-wide cap leaves room."""
        full = len(self._given) == self._settings.destructive_per_minute
        at = max(now, self._given[0] + _MINUTE_S) if full else now
        if self._given:
            at = max(at, self._given[-1])
        self._given.append(at)
        return at


class Pacing:
    """Waits for slots. One object for the whole coordinator."""

    def __init__(self, settings: PacingSettings | None = None, *, timing: Timing = REAL_TIME) -> None:
        self._state = PacingState(settings or PacingSettings())
        self._timing = timing

    async def power_on(self, target: BmcTarget) -> float:
        """Wait for the power-on slot of the host's rack and feed; return the seconds waited."""
        now = self._timing.monotonic()
        return await self._until(now, self._state.reserve_power_on(now, target.rack, target.feed))

    async def destructive(self) -> float:
        """Wait for a slot under the fleet-wide cap; return the seconds waited."""
        now = self._timing.monotonic()
        return await self._until(now, self._state.reserve_destructive(now))

    async def _until(self, now: float, at: float) -> float:
        if at > now:
            await self._timing.sleep(at - now)
        return max(0.0, at - now)
