"""Hosts, domains and holds for operators in one service; what each request does is in the room of its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
from hostler_contract.campaigns import CampaignState
from hostler_contract.work import DeadLetterState
from hostler_coordinator import views
from hostler_coordinator.explain import host_why
from hostler_coordinator.pages import natural, page, scope_of
from hostler_coordinator.planner.silence import brakes
from hostler_coordinator.refusals import BadField
from hostler_coordinator.selector import select
from hostler_coordinator.service.domains import DomainActs
from hostler_coordinator.service.finding import host_named, read_at
from hostler_coordinator.service.holds import HoldActs
from hostler_coordinator.service.hosts import HostActs
from hostler_coordinator.service.importing import Import
from hostler_coordinator.service.trouble import marked
from hostler_coordinator.standing import STATES, host_state, is_dead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostler_contract.campaigns import Selector
    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.planner.world import World


class FleetService(HostActs, Import, DomainActs, HoldActs):
    """The fleet, as operators mean it. Runs on the leader."""

    def as_of(self) -> float:
        """When what is listed now was true, epoch seconds."""
        return read_at(self._desk)

    async def list_hosts(
        self, page_size: int, page_token: str, selector: Selector | None, states: Sequence[str]
    ) -> tuple[tuple[V.Host, ...], str]:
        """Hosts by name, of a selector and in some states; retired ones too. Raises BadField."""
        for index, state in enumerate(states):
            if state not in STATES:
                raise BadField(f"states[{index}]", state, "is no state of a host", f"give one of {', '.join(STATES)}")
        world = self._desk.world()
        wanted = set(states)
        found = [host for host in _listed(world, selector) if not wanted or host_state(world, host) in wanted]
        asked = selector.model_dump_json() if selector else ""
        return page(
            found,
            key=lambda host: f"{natural(host.name)}\0{host.id}",
            make=lambda host: views.host(world, host),
            size=page_size,
            token=page_token,
            scope=scope_of("hosts", asked, sorted(wanted)),
        )

    async def get_host(self, host: str) -> V.Host:
        """One host by name or id. Raises NotFound."""
        return views.host(self._desk.world(), host_named(self._desk.store.state, host))

    async def explain_host(self, host: str) -> V.HostWhy:
        """What a host waits for, who holds it, since when, and what is next; while nothing is decided, that first.

        Raises NotFound.
        """
        world, record = self._desk.world(), host_named(self._desk.store.state, host)
        why, parts = host_why(world, record), self._desk.status_parts()
        if parts.trouble is None:
            return why
        bare = why.model_copy(update={"causes": ()})
        return marked(bare, parts.trouble, world, record, world.now if parts.as_of is None else parts.as_of)

    async def status(self) -> V.Status:
        """How the control plane is, as far as this coordinator knows: one that does not lead hears no host."""
        parts, world = self._desk.status_parts(), self._desk.world()
        open_letters = [one for one in world.state.dead_letters.values() if one.state is DeadLetterState.OPEN]
        running = [one for one in world.state.open_campaigns.values() if one.state is CampaignState.RUNNING]
        live = [host for host in world.state.hosts.values() if host.retired is None]
        return V.Status(
            coordinator=parts.coordinator,
            leader=parts.leader,
            leader_address=parts.leader_address,
            leader_since=parts.leader_since,
            store_unavailable_since=parts.store_unavailable_since,
            store_problem=parts.store_problem,
            hosts=len(live),
            hosts_heard=None if world.blind else sum(1 for host in live if world.heard(host.id)),
            campaigns_running=len(running),
            dead_letters_open=len(open_letters),
            brakes=tuple(brake.text for _, brake in sorted(brakes(world).items())),
            now=world.now,
            version=parts.version,
            leaderless_since=parts.leaderless_since,
            leader_problem=parts.leader_problem,
            next_step=parts.trouble.next_step if parts.trouble else "",
            hosts_dead=sum(1 for host in live if is_dead(world, host)),
            hosts_out_of_service=sum(1 for host in live if world.state.charge(host.id) is not None),
        )


def _listed(world: World, selector: Selector | None) -> Sequence[HostRecord]:
    hosts = tuple(world.state.hosts.values())
    if selector is None:
        return hosts
    selection = select(selector, hosts)
    return (*selection.hosts, *selection.retired)
