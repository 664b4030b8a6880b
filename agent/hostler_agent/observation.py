"""Looks at the host again and again and writes what it sees on the board; judging it belongs to `decide`."""

from __future__ import annotations

from dataclasses import dataclass

from hostler_agent.board import Board, wait_event
from hostler_agent.logs import Logger
from hostler_agent.ports import Checks, Clock, Host, Verdict
from hostler_contract.hosts import Usability


@dataclass(frozen=True, slots=True)
class ObservationSettings:
    """How often to look, seconds: while the host is not usable or has a task, and otherwise."""

    busy_interval_s: float = 2.0
    idle_interval_s: float = 60.0


class Observation:
    """Keeps usability, blockers and the boot's marks up to date."""

    def __init__(
        self, board: Board, host: Host, checks: Checks, clock: Clock, log: Logger, settings: ObservationSettings
    ) -> None:
        self._board = board
        self._host = host
        self._checks = checks
        self._clock = clock
        self._log = log
        self._settings = settings

    async def keep(self) -> None:
        """Look for ever. Ends only when cancelled. A new task is looked at soon, not after the idle interval."""
        changed = self._board.watch()
        while True:
            await self.look()
            looked_at = self._clock.now()
            while (left_s := looked_at + self._interval_s() - self._clock.now()) > 0:
                await wait_event(changed, left_s)

    async def look(self) -> None:
        """One round: the boot, the blockers, the checks."""
        reading = await self._host.read()
        blockers = await self._host.blockers()
        verdict = await self._checks.run()
        before = self._board.situation
        if (verdict.usability, verdict.reason) != (before.usability, before.usability_reason):
            self._log.info("usability", usability=verdict.usability, reason=verdict.reason)
        self._board.update(
            boot_id=reading.boot_id or before.boot_id,
            soft_reboots=reading.soft_reboots,
            userspace_start=reading.userspace_start,
            shutting_down=reading.shutting_down,
            blockers=blockers,
            usability=verdict.usability,
            usability_reason=verdict.reason,
            usable_since=self._usable_since(verdict, before.usable_since),
        )

    def _usable_since(self, verdict: Verdict, since: float | None) -> float | None:
        """The start of the unbroken time of being usable."""
        if verdict.usability is not Usability.USABLE:
            return None
        return since if since is not None else self._clock.now()

    def _interval_s(self) -> float:
        situation = self._board.situation
        idle = situation.usability is Usability.USABLE and situation.entry.order is None
        return self._settings.idle_interval_s if idle else self._settings.busy_interval_s
