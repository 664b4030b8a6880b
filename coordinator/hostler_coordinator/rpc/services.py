"""What the edge needs behind it, as protocols: the services by name, and who leads; implementations live elsewhere."""

# ruff: noqa: FBT001 - dry runs and confirmations are arguments of the services, as they are fields of the requests

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from hostler_contract import views
    from hostler_contract.campaigns import CampaignRequest, CampaignState, Selector
    from hostler_contract.hosts import BmcRef, HoldKind
    from hostler_contract.work import DeadLetterState, ResolutionKind, TaskState
    from hostler_coordinator.service.callers import Caller
    from hostler_coordinator.service.trouble import Trouble


class Leadership(Protocol):
    """Who leads, as this coordinator knows it now."""

    def is_leader(self) -> bool:
        """Does this coordinator lead?"""
        ...

    def leader(self) -> tuple[str, str] | None:
        """Name and address of the leader; None while nobody is known to lead."""
        ...

    def trouble(self) -> Trouble:
        """Why this coordinator can have nothing decided: the store first, then a leader out of reach, then none."""
        ...

    def as_of(self) -> float | None:
        """Up to when (epoch seconds) the records read here are known to be true; None before they were read."""
        ...


class CampaignCalls(Protocol):
    """Campaigns and their tasks."""

    def as_of(self) -> float:
        """When what is listed now was true, epoch seconds."""
        ...

    async def plan(self, caller: Caller, request: CampaignRequest, /) -> views.Plan:
        """Work out what would happen."""
        ...

    async def submit(
        self, caller: Caller, key: str, request: CampaignRequest, expect_count: int, plan_token: str, confirmed: bool, /
    ) -> tuple[views.Campaign, bool]:
        """Store a campaign; True when the key was used for this very request before."""
        ...

    async def get(self, ident: str, /) -> views.Campaign:
        """One campaign."""
        ...

    async def list(
        self, page_size: int, page_token: str, states: tuple[CampaignState, ...], /
    ) -> tuple[tuple[views.Campaign, ...], str]:
        """A page of campaigns and the next page's token."""
        ...

    def watch(self, ident: str, /) -> AsyncIterator[views.Campaign]:
        """A campaign at once, and whenever it changes."""
        ...

    async def pause(
        self, caller: Caller, ident: str, reason: str, dry_run: bool, /
    ) -> tuple[views.Campaign, tuple[views.Consequence, ...]]:
        """Start nothing more."""
        ...

    async def resume(
        self, caller: Caller, ident: str, reason: str, dry_run: bool, /
    ) -> tuple[views.Campaign, tuple[views.Consequence, ...]]:
        """Go on."""
        ...

    async def abort(
        self, caller: Caller, ident: str, reason: str, dry_run: bool, /
    ) -> tuple[views.Campaign, tuple[views.Consequence, ...]]:
        """End it."""
        ...

    async def list_tasks(
        self, campaign_id: str, page_size: int, page_token: str, states: tuple[TaskState, ...], host: str, /
    ) -> tuple[tuple[views.Task, ...], str]:
        """A page of tasks."""
        ...

    async def get_task(self, campaign_id: str, host: str, /) -> views.Task:
        """One task."""
        ...


class FleetCalls(Protocol):
    """Hosts, domains, holds, and the state of the control plane."""

    def as_of(self) -> float:
        """When what is listed now was true, epoch seconds."""
        ...

    async def list_hosts(
        self, page_size: int, page_token: str, selector: Selector | None, states: tuple[str, ...], /
    ) -> tuple[tuple[views.Host, ...], str]:
        """A page of hosts."""
        ...

    async def get_host(self, host: str, /) -> views.Host:
        """One host."""
        ...

    async def explain_host(self, host: str, /) -> views.HostWhy:
        """What it waits for."""
        ...

    async def drain(
        self, caller: Caller, selector: Selector, reason: str, dry_run: bool, force: bool, /
    ) -> views.Drained:
        """Mark as drained by a person."""
        ...

    async def undrain(self, caller: Caller, selector: Selector, reason: str, dry_run: bool, /) -> tuple[str, ...]:
        """End such marks."""
        ...

    async def note(self, caller: Caller, host: str, note: str, reason: str, dry_run: bool, /) -> views.Host:
        """Write a note on a host."""
        ...

    async def retire(
        self, caller: Caller, host: str, ticket: str, reason: str, dry_run: bool, /
    ) -> tuple[views.Host, str]:
        """Take a host out of charge and denominator, and say what follows."""
        ...

    async def rebind(
        self, caller: Caller, host: str, serial: str, bmc: BmcRef | None, reason: str, dry_run: bool, /
    ) -> views.Host:
        """Carry an identity over to another board."""
        ...

    async def remove(self, caller: Caller, host: str, reason: str, dry_run: bool, /) -> tuple[str, str]:
        """Forget a host: its id, and what follows."""
        ...

    async def import_inventory(
        self,
        caller: Caller,
        content: bytes,
        file_format: str,
        dry_run: bool,
        remove_missing: bool,
        reason: str,
        expect_removed: int,
        /,
    ) -> views.Imported:
        """Compare, and apply: changes, totals, whether applied."""
        ...

    async def probe_bmc(self, caller: Caller, host: str, verb: views.BmcVerb, reason: str, /) -> views.BmcProbe:
        """Ask a BMC; changes no power."""
        ...

    async def list_domains(self, page_size: int, page_token: str, kind: str, /) -> tuple[tuple[views.Domain, ...], str]:
        """A page of domains."""
        ...

    async def get_domain(self, name: str, /) -> views.Domain:
        """One domain."""
        ...

    async def set_budget(self, caller: Caller, name: str, budget: str, reason: str, dry_run: bool, /) -> views.Domain:
        """Set a domain's own budget."""
        ...

    async def add_hold(
        self,
        caller: Caller,
        selector: Selector,
        kind: HoldKind,
        reason: str,
        until: float | None,
        dry_run: bool,
        key: str,
        /,
    ) -> tuple[tuple[views.Hold, ...], bool]:
        """Hands off these hosts; True when the key was used for this very request before."""
        ...

    async def list_holds(self, page_size: int, page_token: str, /) -> tuple[tuple[views.Hold, ...], str]:
        """A page of holds."""
        ...

    async def remove_hold(self, caller: Caller, ident: str, reason: str, dry_run: bool, /) -> views.Hold:
        """End a hold."""
        ...

    async def release_brake(
        self, caller: Caller, hosts: tuple[str, ...], reason: str, dry_run: bool, /
    ) -> tuple[tuple[str, ...], float]:
        """Let out-of-band action go on: the hosts, and until when."""
        ...

    async def status(self) -> views.Status:
        """How the control plane is."""
        ...


class DeadLetterCalls(Protocol):
    """Tasks that wait for a person."""

    def as_of(self) -> float:
        """When what is listed now was true, epoch seconds."""
        ...

    async def list(
        self, page_size: int, page_token: str, states: tuple[DeadLetterState, ...], campaign_id: str, /
    ) -> tuple[tuple[views.DeadLetter, ...], str]:
        """A page of dead letters."""
        ...

    async def get(self, ident: str, /) -> views.DeadLetter:
        """One dead letter."""
        ...

    async def retry(
        self, caller: Caller, ids: tuple[str, ...], reason: str, key: str, dry_run: bool, /
    ) -> views.Campaign:
        """Open a linked campaign."""
        ...

    async def resolve(
        self, caller: Caller, ident: str, kind: ResolutionKind, ticket: str, reason: str, dry_run: bool, force: bool, /
    ) -> views.DeadLetter:
        """Say what became of the host."""
        ...


class AuditCalls(Protocol):
    """Who did what; `filter` is service.audit.AuditFilter."""

    def as_of(self) -> float:
        """When what is listed now was true, epoch seconds."""
        ...

    async def list(self, page_size: int, page_token: str, wanted: Any, /) -> tuple[tuple[views.AuditEntry, ...], str]:
        """A page of entries, oldest first."""
        ...

    async def newest(self, page_size: int, page_token: str, wanted: Any, /) -> tuple[tuple[views.AuditEntry, ...], str]:
        """A page of entries, newest first."""
        ...

    def export(self, wanted: Any, /) -> AsyncIterator[tuple[views.AuditEntry, ...]]:
        """Everything that matches, oldest first, in batches."""
        ...
