"""What every service works with: the store, the leader's view and its clock; no meaning of any request lives here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hostler_contract.hosts import HostRecord
from hostler_contract.views import BmcProbe, BmcVerb
from hostler_coordinator.planner.turn import Plan
from hostler_coordinator.planner.world import World
from hostler_coordinator.policy import Policy
from hostler_coordinator.ports import Store
from hostler_coordinator.service.trouble import Trouble


@dataclass(frozen=True, slots=True)
class StatusParts:
    """What this process knows of itself, its leader and its store."""

    coordinator: str
    version: str = ""
    leader: str = ""
    leader_address: str = ""
    leader_since: float | None = None
    store_unavailable_since: float | None = None
    store_problem: str = ""
    leaderless_since: float | None = None
    leader_problem: str = ""
    trouble: Trouble | None = None
    """Why nothing is decided now; None while this coordinator leads over a store that works."""
    as_of: float | None = None
    """Up to when the records here are known to be true; None: now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The leader's desk. `world` and `plan` answer with the newest there is at the moment of asking.

    wake: ask the engine for a turn. new_id: at least 8 random characters of a-z2-7. probe: one look at a BMC, which
    changes no power. changed: returns at the next change of state or plan, after the given seconds at the latest.
    sleep: waits through the clock.
    """

    store: Store
    world: Callable[[], World]
    plan: Callable[[], Plan]
    now: Callable[[], float]
    wake: Callable[[], None]
    policy: Policy
    new_id: Callable[[], str]
    probe: Callable[[HostRecord, BmcVerb], Awaitable[BmcProbe]]
    status_parts: Callable[[], StatusParts]
    changed: Callable[[float], Awaitable[None]]
    sleep: Callable[[float], Awaitable[None]]
