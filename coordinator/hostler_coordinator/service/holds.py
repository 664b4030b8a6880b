"""Holds: "hands off this host until T, because R"; that they bind every actor is the planner's gate."""

# ruff: noqa: FBT001 - the fields of the requests, in the order of the interface

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from hostler_contract.campaigns import KeyRecord
from hostler_contract.hosts import Hold
from hostler_contract.moments import format_instant
from hostler_coordinator import views
from hostler_coordinator.pages import natural, page, scope_of
from hostler_coordinator.refusals import AlreadyDifferent, BadField, NotFound
from hostler_coordinator.service.finding import hosts_selected
from hostler_coordinator.service.submission import HOLDS, check_key, digest_of, first_use
from hostler_coordinator.service.writing import attempt, audit, check_reason, write, write_each

if TYPE_CHECKING:
    from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
    from hostler_contract.campaigns import Selector
    from hostler_contract.hosts import HoldKind, HostRecord
    from hostler_coordinator.draft import Draft
    from hostler_coordinator.service.callers import Caller
    from hostler_coordinator.service.desk import Desk
    from hostler_coordinator.state import State

MOST_PER_HOST = 32
LONGEST_S = 366 * 86_400.0


class HoldActs:
    """Holds, one per host and request; several may overlap on one host."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def add_hold(
        self,
        caller: Caller,
        selector: Selector,
        kind: HoldKind,
        reason: str,
        until: float | None,
        dry_run: bool,
        key: str = "",
    ) -> tuple[tuple[V.Hold, ...], bool]:
        """Hold every host of a selector; True when the key had been used for this very request before.

        Under a key, holds that were removed since are not added again, and the end that was first asked for stands:
        "4 hours from now" is another moment when it is asked again. Raises BadField for a missing reason, an end
        that has passed, or too many; AlreadyDifferent.
        """
        desk = self._desk
        async with attempt(desk, caller, "hold.add", reason=reason, dry_run=dry_run):
            why = check_reason(reason, needed=True)
            digest = digest_of({"hold": [selector.model_dump(mode="json"), kind.value, why]})
            if key and _known(desk.store.state, caller, check_key(key), digest):
                found = [h for h in desk.store.state.all_holds if h.id == _id_of(caller, key, h.host)]
                return tuple(views.hold(desk.world(), hold) for hold in found), True
            now = desk.now()
            _check_until(until, now)
            hosts = hosts_selected(desk.store.state, selector)
            holds = {
                host.id: Hold(
                    id=_id_of(caller, key, host.id) if key else f"hold-{desk.new_id()}",
                    host=host.id,
                    kind=kind,
                    reason=why,
                    owner=caller.name,
                    at=now,
                    until=until,
                )
                for host in hosts
            }
            for host in hosts:
                if len(desk.world().holds(host.id)) >= MOST_PER_HOST:
                    raise BadField("selector", host.name, f"has {MOST_PER_HOST} holds already", "remove some of them")

            def make(draft: Draft, host: HostRecord) -> None:
                if key and host is hosts[-1] and draft.state.key(caller.name, key) is None:
                    draft.put(KeyRecord(caller=caller.name, key=key, digest=digest, campaign=HOLDS, at=now))
                if key and draft.record(f"holds/{host.id}/{holds[host.id].id}", Hold) is not None:
                    return  # an earlier try with this key came so far
                for old in draft.state.holds(host.id):
                    if old.until is not None and old.until <= now:
                        draft.delete(f"holds/{old.host}/{old.id}")
                draft.put(holds[host.id])
                detail = f"{kind.value.replace('_', ' ')} until {format_instant(until) if until else 'removed'}"
                audit(draft, desk, caller, "hold.add", host=host.id, reason=why, detail=detail)

            if not dry_run:
                await write_each(desk, hosts, make, lambda host: 3 + len(desk.store.state.holds(host.id)))
        world = desk.world()
        return tuple(views.hold(world, hold) for hold in holds.values()), False

    async def list_holds(self, page_size: int, page_token: str) -> tuple[tuple[V.Hold, ...], str]:
        """Holds in force, by host. Raises BadField."""
        world = self._desk.world()
        return page(
            [hold for hold in world.state.all_holds if hold.until is None or hold.until > world.now],
            key=lambda hold: f"{natural(views.host_name(world, hold.host))}\0{round(hold.at * 1e6):018d}\0{hold.id}",
            make=lambda hold: views.hold(world, hold),
            size=page_size,
            token=page_token,
            scope=scope_of("holds"),
        )

    async def remove_hold(self, caller: Caller, hold_id: str, reason: str, dry_run: bool) -> V.Hold:
        """End a hold, whoever set it. Raises NotFound."""
        desk = self._desk

        def make(draft: Draft) -> Hold:
            found = next((hold for hold in draft.state.all_holds if hold.id == hold_id), None)
            if found is None:
                raise NotFound("hold", hold_id, "look at `hostler hold list`; it may have ended")
            if not dry_run:
                draft.delete(f"holds/{found.host}/{found.id}")
                detail = f"{found.id} of {found.owner}: {found.reason}"
                audit(draft, desk, caller, "hold.remove", host=found.host, reason=why, detail=detail)
            return found

        async with attempt(desk, caller, "hold.remove", reason=reason, dry_run=dry_run):
            why = check_reason(reason)
            return views.hold(desk.world(), await write(desk, make))


def _known(state: State, caller: Caller, key: str, digest: str) -> bool:
    """True for a key that was used for this very request; raises AlreadyDifferent when it was for another."""
    found = state.key(caller.name, key)
    if found is not None and found.digest != digest:
        raise AlreadyDifferent(key, first_use(found))
    return found is not None


def _id_of(caller: Caller, key: str, host: str) -> str:
    """The same key holds a host under the same id, so that asked twice it is held once."""
    text = f"{caller.name}\0{key}\0{host}"
    return f"hold-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _check_until(until: float | None, now: float) -> None:
    if until is None:
        return
    if until <= now:
        fix = f"give a time after {format_instant(now)}, with its offset, or leave it out"
        raise BadField("until", format_instant(until), "has passed already", fix)
    if until > now + LONGEST_S:
        raise BadField(
            "until", format_instant(until), "is more than a year ahead", "leave it out to hold until removed"
        )
