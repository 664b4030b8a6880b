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
    from hostler_coordinator.state import State


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
