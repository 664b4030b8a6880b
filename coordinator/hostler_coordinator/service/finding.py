"""Finds what a request names, or says what is near it; what becomes of it is the services'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.campaigns import Selector
from hostler_coordinator.names import nearest
from hostler_coordinator.refusals import NotFound, Refused
from hostler_coordinator.selector import select
from hostler_coordinator.standing import task_of

if TYPE_CHECKING:
    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.service.desk import Desk
    from hostler_coordinator.state import State


def read_at(desk: Desk) -> float:
    """When what is read here now was true, epoch seconds: now, or up to when old records are known to be."""
    as_of = desk.status_parts().as_of
    return desk.world().now if as_of is None else as_of


def host_named(state: State, name: str) -> HostRecord:
    """A host by id or name, retired ones included. Raises NotFound naming what is near."""
    found = state.host(name)
    if found is None:
        near = nearest(name, [host.name for host in state.hosts.values()])
        raise NotFound("host", name, f"did you mean {' or '.join(near)}?" if near else "look at `hostler host list`")
    return found


def hosts_selected(state: State, selector: Selector) -> tuple[HostRecord, ...]:
    """The hosts of a selector, retired ones left out. Raises BadField."""
    return select(selector, tuple(state.hosts.values())).hosts


def refuse_in_flight(state: State, host: HostRecord, what: str) -> None:
    """Raises Refused, naming the campaign, while a task holds the host."""
    task = task_of(state, host.id)
    if task is not None:
        raise Refused(
            "in-flight",
            f"host {host.name}",
            f"a task is in flight ({task.state.value.replace('_', ' ')}), so it cannot be {what}",
            holder=f"campaign {task.campaign}",
            since=task.since,
            fix=f"wait for it, or abort campaign {task.campaign}",
        )
