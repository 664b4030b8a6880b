"""What people see of failure domains and set of them: lists, budgets, releases of the brake; the ledger charges."""

# ruff: noqa: FBT001 - the fields of the requests, in the order of the interface

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.campaigns import BrakeRelease, Selector
from hostler_coordinator import views
from hostler_coordinator.limits import KINDS, effective_limit, format_budget, parse_budget
from hostler_coordinator.names import nearest
from hostler_coordinator.pages import natural, page, scope_of
from hostler_coordinator.planner.silence import brakes
from hostler_coordinator.refusals import BadField, NotFound, Refused
from hostler_coordinator.service.finding import hosts_selected
from hostler_coordinator.service.writing import attempt, audit, check_reason, write, write_each

if TYPE_CHECKING:
    from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
    from hostler_contract.domains import Budget
    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.draft import Draft
    from hostler_coordinator.service.callers import Caller
    from hostler_coordinator.service.desk import Desk

RELEASE_S = 3_600.0
"""A released brake holds off for this long."""


class DomainActs:
    """Failure domains."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def list_domains(self, page_size: int, page_token: str, kind: str) -> tuple[tuple[V.Domain, ...], str]:
        """Domains of a kind, or of all. Raises BadField."""
        if kind and kind not in KINDS:
            raise BadField("kind", kind, "is no kind of domain", f"give one of {', '.join(KINDS)}, or leave it out")
        world = self._desk.world()
        found = brakes(world)
        return page(
            [name for name in world.state.domains if not kind or name.startswith(f"{kind}/")],
            key=natural,
            make=lambda name: views.domain(world, found, name),
            size=page_size,
            token=page_token,
            scope=scope_of("domains", kind),
        )

    async def get_domain(self, name: str) -> V.Domain:
        """One domain. Raises NotFound."""
        world = self._desk.world()
        self._check(name)
        return views.domain(world, brakes(world), name)

    def _check(self, name: str) -> None:
        known = list(self._desk.store.state.domains)
        if name not in known:
            near = nearest(name, known) or [domain for domain in known if domain.endswith(f"/{name}")]
            hint = f"did you mean {' or '.join(near)}?" if near else "look at `hostler domain list`"
            raise NotFound("domain", name, hint)

    async def set_budget(self, caller: Caller, name: str, budget: str, reason: str, dry_run: bool) -> V.Domain:
        """Say how many hosts of a domain may be out of service; "default" takes the budget off.

        A budget below what is out of service now stops starts and ends nothing. Raises NotFound, BadField.
        """
        desk = self._desk
        wanted: Budget | None = None

        def make(draft: Draft) -> None:
            self._check(name)
            before = draft.ledger(name)
            if before.budget == wanted or dry_run:
                return
            draft.put(before.model_copy(update={"budget": wanted, "budget_by": caller.name if wanted else ""}))
            detail = f"{name}: {format_budget(before.budget)} -> {format_budget(wanted)}"
            audit(draft, desk, caller, "domain.set-budget", reason=why, detail=detail)

        async with attempt(desk, caller, "domain.set-budget", reason=reason, dry_run=dry_run):
            why = check_reason(reason)
            wanted = parse_budget(budget)
            await write(desk, make)
        view = await self.get_domain(name)
        if not dry_run:
            return view
        limit, source, rounding = effective_limit(name, view.enrolled, wanted, None)
        if wanted is None and view.kind == "site":
            limit, source = desk.policy.site_boot_ceiling, "ceiling"
        shown = {"limit": limit, "limit_from": source, "rounding": rounding}
        return view.model_copy(update=shown | {"budget": format_budget(wanted) if wanted else ""})

    async def release_brake(
        self, caller: Caller, hosts: tuple[str, ...], reason: str, dry_run: bool
    ) -> tuple[tuple[str, ...], float]:
        """Let out-of-band action go on for named hosts for an hour although many fell silent at once.

        Raises BadField; Refused not-braked for a host that no brake binds.
        """
        desk = self._desk
        until = desk.now() + RELEASE_S
        async with attempt(desk, caller, "brake.release", reason=reason, dry_run=dry_run):
            why = check_reason(reason, needed=True)
            chosen = hosts_selected(desk.store.state, Selector(hosts=hosts))
            found = brakes(desk.world())
            for host in chosen:
                if not any(domain in found for domain in host.domains):
                    raise Refused("not-braked", f"host {host.name}", "no brake binds it now", fix="leave it out")

            def make(draft: Draft, host: HostRecord) -> None:
                release = BrakeRelease(host=host.id, by=caller.name, reason=why, at=desk.now(), until=until)
                draft.put(release)
                audit(draft, desk, caller, "brake.release", host=host.id, reason=why)

            if not dry_run:
                await write_each(desk, chosen, make, lambda _: 2)
        return tuple(host.name for host in chosen), until
