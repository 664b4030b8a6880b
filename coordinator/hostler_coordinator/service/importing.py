"""Applies an inventory file: the difference first, then each host's record; reading the file is the inventory's."""

# ruff: noqa: FBT001 - the fields of the request, in the order of the interface

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
from hostler_contract.hosts import HostRecord
from hostler_coordinator import inventory
from hostler_coordinator.pages import ANSWER_BYTES
from hostler_coordinator.phrases import counted
from hostler_coordinator.refusals import BadField, Refused
from hostler_coordinator.service.hosts import OWN_OPERATIONS, remove_host
from hostler_coordinator.service.writing import attempt, audit, check_reason, write_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostler_coordinator.draft import Draft
    from hostler_coordinator.inventory_rows import Entry
    from hostler_coordinator.service.callers import Caller
    from hostler_coordinator.service.desk import Desk
    from hostler_coordinator.state import State

REMOVED_MOST = 20
REMOVED_SHARE = 10
"""More hosts than this, or more than this fraction of the fleet, are removed only when their number is stated."""


@dataclass(frozen=True, slots=True)
class Step:
    """One host's share of an import: an entry of the file, or none when the host is to go."""

    host_id: str
    change: V.InventoryChange
    entry: Entry | None


class Import:
    """Imports of inventory files."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def import_inventory(
        self,
        caller: Caller,
        content: bytes,
        form: str,
        dry_run: bool,
        remove_missing: bool,
        reason: str,
        expect_removed: int = 0,
    ) -> V.Imported:
        """What differs, the totals, and whether it was applied.

        Removing more than 20 hosts, or more than a tenth of the fleet, needs their exact number, and a number that is
        given must be exact. A charged host keeps its domains: moving it is refused by name. Raises BadField(s),
        Refused before anything is written; Unavailable, after which importing again does the rest.
        """
        desk = self._desk
        async with attempt(desk, caller, "inventory.import", reason=reason, dry_run=dry_run):
            why = check_reason(reason)
            known = tuple(desk.store.state.hosts.values())
            entries = inventory.parse_inventory(content, form)
            changes = inventory.diff(known, entries, remove_missing=remove_missing)
            steps = _steps(known, entries, changes)
            for step in steps:
                _refuse_moving(desk.store.state, step, desk.now())
            told = _told(known, changes, applied=not dry_run)
            _check_removed(told, expect_removed, dry_run=dry_run)

            def make(draft: Draft, step: Step) -> None:
                _apply(draft, step, desk.now())
                detail = f"{step.change.name} {step.change.kind}: {', '.join(step.change.fields)}"
                audit(
                    draft,
                    desk,
                    caller,
                    f"host.{_VERBS[step.change.kind]}",
                    host=step.host_id,
                    reason=why,
                    detail=detail,
                )

            if not dry_run:
                await write_each(desk, steps, make, lambda step: _cost(desk.store.state, step))
        return told


_VERBS = {"added": "enrol", "changed": "change", "removed": "remove"}


def _told(known: Sequence[HostRecord], changes: Sequence[V.InventoryChange], *, applied: bool) -> V.Imported:
    totals = Counter(change.kind for change in changes)
    fleet = sum(1 for host in known if host.retired is None)
    removed = totals["removed"]
    return V.Imported(
        changes=_bounded([change for change in changes if change.kind != "unchanged"]),
        unchanged=totals["unchanged"],
        applied=applied,
        added=totals["added"],
        changed=totals["changed"],
        removed=removed,
        fleet=fleet,
        needs_count=removed > REMOVED_MOST or removed * REMOVED_SHARE > fleet,
    )


def _check_removed(told: V.Imported, expected: int, *, dry_run: bool) -> None:
    """Law 10 for removals: a file cut short must not take the fleet away, whoever said yes."""
    removed = counted(told.removed, "host")
    if expected < 0:
        fix = "give the exact number of hosts to be removed, or leave it out"
        raise BadField("expect_removed", expected, "is negative", fix)
    if expected and expected != told.removed:
        reason = f"the file removes {removed}, and {expected} were expected"
        raise Refused("count-differs", "inventory", reason, fix="look at the difference, then state the count it shows")
    if told.needs_count and not expected and not dry_run:
        reason = f"it removes {removed} of {told.fleet}: the exact count must be stated"
        fix = f"give --expect-removed {told.removed}, if that is what you mean"
        raise Refused("count-needed", "inventory", reason, fix=fix)


def _steps(known: Sequence[HostRecord], entries: Sequence[Entry], changes: Sequence[V.InventoryChange]) -> list[Step]:
    pairs = inventory.match(known, entries)
    by_id = {host.id if host else entry.derived_id: entry for entry, host in pairs}
    return [
        Step(change.host_id, change, by_id.get(change.host_id) if change.kind != "removed" else None)
        for change in changes
        if change.kind != "unchanged"
    ]


def _cost(state: State, step: Step) -> int:
    host = state.hosts.get(step.host_id)
    return OWN_OPERATIONS + (len(host.domains) + len(state.holds(host.id)) if host else 0)


def _apply(draft: Draft, step: Step, now: float) -> None:
    record = draft.record(f"hosts/{step.host_id}", HostRecord)
    if step.entry is not None:
        _refuse_moving(draft.state, step, now)
        draft.charge(step.host_id)  # relied on: nobody may charge it while its domains change
        draft.put(inventory.apply(step.entry, record, now))
    elif record is not None:
        remove_host(draft, record)


def _refuse_moving(state: State, step: Step, now: float) -> None:
    """A charge names the domains it counts in; they may not change beneath it."""
    record, charge = state.hosts.get(step.host_id), state.charge(step.host_id)
    if record is None or charge is None or step.entry is None:
        return
    after = inventory.apply(step.entry, record, now)
    if after.domains != record.domains:
        causes = ", ".join(f"{cause.kind.value.replace('_', ' ')} {cause.ref}".strip() for cause in charge.causes)
        raise Refused(
            "charged-host-moves",
            f"host {record.name}",
            f"it is out of service and would move from {', '.join(record.domains)} to {', '.join(after.domains)}",
            holder=causes,
            since=charge.since,
            fix="import again when it is back in service, or leave its domains as they are",
        )


def _bounded(changes: Sequence[V.InventoryChange]) -> tuple[V.InventoryChange, ...]:
    """As many as an answer holds; the rest is counted by kind."""
    shown: list[V.InventoryChange] = []
    byte_count = 0
    for change in changes:
        byte_count += len(change.model_dump_json())
        if byte_count > ANSWER_BYTES:
            break
        shown.append(change)
    rest = Counter(change.kind for change in changes[len(shown) :])
    more = (V.InventoryChange(kind=kind, host_id="", name=f"and {count} more") for kind, count in rest.items())
    return (*shown, *more)
