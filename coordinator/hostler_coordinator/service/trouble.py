"""What keeps the control plane from deciding now, in words: no store, no leader; what is read meanwhile is marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostler_contract.moments import format_instant
from hostler_coordinator.standing import task_of

if TYPE_CHECKING:
    from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.planner.world import World

STORE = "store-unavailable"
NO_LEADER = "no-leader"
LEADER_CHANGED = "leader-changed"
LEADER_UNREACHABLE = "leader-unreachable"
_ON_RECORD = frozenset({"retired", "dead-letter", "dead", "drained", "held"})
"""Reasons of a host at rest that stand in the records; all others rest on what is heard."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why nothing is decided. `thing` is a clause without its time, `since` epoch seconds, `why` may be empty."""

    code: str
    thing: str
    since: float | None
    why: str
    next_step: str
    retry_after_s: float = 1.0

    @property
    def text(self) -> str:
        """`the store is unavailable since T: no etcd member answers`."""
        when = "" if self.since is None else f" since {format_instant(self.since)}"
        return f"{self.thing}{when}" + (f": {self.why}" if self.why else "")


def store_away(since: float, why: str) -> Trouble:
    """The store does not answer, or refuses writes."""
    step = "look at etcd; everything goes on by itself once it answers"
    return Trouble(STORE, "the store is unavailable", since, why, step, 2.0)


def leaderless(since: float | None) -> Trouble:
    """The store answers, and nobody leads."""
    step = "wait some seconds: another coordinator is elected; if none is, look at the coordinators"
    return Trouble(NO_LEADER, "no coordinator leads", since, "one is being elected", step)


def leader_silent(name: str, address: str, since: float | None, why: str) -> Trouble:
    """Who leads by the records cannot be reached from here."""
    step = "wait some seconds: another coordinator takes over if it is gone; if none does, look at that coordinator"
    return Trouble(LEADER_UNREACHABLE, f"leader {name} at {address} cannot be reached", since, why, step)


def marked(why: V.HostWhy, trouble: Trouble, world: World, host: HostRecord, as_of: float) -> V.HostWhy:
    """What a host waits for while nothing is decided: the trouble first, then what the records said before it."""
    known = _by_the_records(why, world, host)
    unheard = trouble.code == LEADER_UNREACHABLE
    text = f"{trouble.text}; {'what it decides is not known here' if unheard else 'nothing is started'}"
    text += f"; by the records as of {format_instant(as_of)}: {known}" if known else ""
    return why.model_copy(
        update={
            "waiting_for": text,
            "code": trouble.code,
            "since": trouble.since,
            "next_step": trouble.next_step,
            "next_at": None,
            "as_of": as_of,
        }
    )


def _by_the_records(why: V.HostWhy, world: World, host: HostRecord) -> str:
    task = task_of(world.state, host.id)
    if task is not None:
        return f"its task in campaign {task.campaign} is {task.state.value.replace('_', ' ')}"
    if why.campaign_id:
        return f"it waits for its turn in campaign {why.campaign_id}"
    return why.waiting_for if why.code in _ON_RECORD or world.holds(host.id) else ""
