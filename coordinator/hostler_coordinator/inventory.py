"""What an inventory file would change: matches its entries with known hosts, says the difference, and makes records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hostler_contract.hosts import BmcRef, HostRecord
from hostler_contract.views import InventoryChange
from hostler_coordinator.inventory_files import read_rows
from hostler_coordinator.inventory_rows import DEFAULT_PORTS, Entry, make_entry
from hostler_coordinator.names import natural_key
from hostler_coordinator.refusals import BadField, BadFields

MOST_PROBLEMS = 100
_COMPARED = ("name", "fabric", "rack", "feeds", "site", "model", "address", "serial", "system_uuid")


def parse_inventory(content: bytes, form: str = "") -> list[Entry]:
    """Read a YAML or CSV file (`form` "yaml", "csv", or "" to tell by looking) into checked entries, in file order.

    Raises BadField when the file cannot be used at all, and BadFields with one problem per bad field, which
    names the line; at most 100 of them. Two entries may not share id, name, serial or BMC address.
    """
    rows, problems = read_rows(content, form)
    entries: list[Entry] = []
    for row in rows:
        entry = make_entry(row, problems)
        if entry is not None:
            entries.append(entry)
        if len(problems) >= MOST_PROBLEMS:
            break
    problems += _repeated(entries)
    if problems:
        raise BadFields(problems[:MOST_PROBLEMS])
    return entries


def match(known: Sequence[HostRecord], entries: Sequence[Entry]) -> list[tuple[Entry, HostRecord | None]]:
    """Pair each entry with the host it speaks of: by id, else by serial, never by name or address. None: a new host.

    Raises BadFields where id and serial point to different hosts, or two entries to the same one.
    """
    by_id = {host.id: host for host in known}
    by_serial = {host.serial.upper(): host for host in known if host.serial}
    pairs: list[tuple[Entry, HostRecord | None]] = []
    taken: dict[str, int] = {}
    problems: list[BadField] = []
    for entry in entries:
        same_serial = by_serial.get(entry.serial.upper()) if entry.serial else None
        host = by_id.get(entry.id) if entry.id else same_serial or by_id.get(entry.derived_id)
        if entry.id and same_serial and same_serial.id != entry.id:
            problems.append(_other_host(entry, same_serial))
        elif host and host.id in taken:
            reason = f"is the host of line {taken[host.id]} again ({host.name})"
            problems.append(BadField(f"line {entry.line}", entry.name, reason, "list each host once"))
        else:
            pairs.append((entry, host))
            taken.update({host.id: entry.line} if host else {})
    if problems:
        raise BadFields(problems[:MOST_PROBLEMS])
    return pairs


def diff(known: Sequence[HostRecord], entries: Sequence[Entry], *, remove_missing: bool) -> list[InventoryChange]:
    """Say what importing would do: added, changed and unchanged in file order, then removed in order of name.

    Hosts that the file lacks are removed only with `remove_missing`, retired ones never (their ticket stays on
    record). Raises BadFields where the outcome would give two hosts one name, serial or BMC.
    """
    pairs = match(known, entries)
    kept_ids = {host.id for _, host in pairs if host}
    absent = [host for host in known if host.id not in kept_ids]
    removed = [host for host in absent if remove_missing and not host.retired]
    removed_ids = {host.id for host in removed}
    after = [(entry, host, apply(entry, host, 0.0)) for entry, host in pairs]
    problems = _clashes(after, [host for host in absent if host.id not in removed_ids])
    if problems:
        raise BadFields(problems[:MOST_PROBLEMS])
    changes = [_change(host, record) for _, host, record in after]
    removed.sort(key=lambda host: natural_key(host.name))
    return changes + [InventoryChange(kind="removed", host_id=host.id, name=host.name) for host in removed]


def apply(entry: Entry, known: HostRecord | None, now: float) -> HostRecord:
    """The record that an entry makes: what the file says over what is known; a new host is enrolled at `now`."""
    fields: dict[str, Any] = dict(entry.fields)
    if "bmc" in fields:
        fields["bmc"] = _bmc(fields["bmc"], known)
    if known is None:
        return HostRecord(id=entry.derived_id, enrolled_at=now, **_without_empty_site(fields))
    return known.model_copy(update=_without_empty_site(fields))


def _without_empty_site(fields: dict[str, Any]) -> dict[str, Any]:
    """Every host is at a site; a file that leaves it empty means the one there is."""
    return {key: value for key, value in fields.items() if key != "site" or value}


def _bmc(given: dict[str, Any] | None, known: HostRecord | None) -> BmcRef | None:
    if given is None:
        return None
    before = known.bmc.model_dump() if known and known.bmc else {}
    if "protocol" in given and given["protocol"] != before.get("protocol"):
        before["port"] = DEFAULT_PORTS[given["protocol"]]
    return BmcRef(**{**before, **given})


def _change(before: HostRecord | None, after: HostRecord) -> InventoryChange:
    if before is None:
        fields = tuple(f"{key}: {value}" for key, value in _shown(after).items() if value and key != "name")
        return InventoryChange(kind="added", host_id=after.id, name=after.name, fields=fields)
    old, new = _shown(before), _shown(after)
    keys = dict.fromkeys([*old, *new])
    fields = tuple(
        f"{key}: {old.get(key) or '(none)'} -> {new.get(key) or '(none)'}"
        for key in keys
        if old.get(key) != new.get(key)
    )
    return InventoryChange(kind="changed" if fields else "unchanged", host_id=after.id, name=after.name, fields=fields)


def _shown(host: HostRecord) -> dict[str, str]:
    """Every imported field as text, in a fixed order; credentials are references, never secrets."""
    shown = {key: getattr(host, key) for key in _COMPARED}
    shown["feeds"] = ";".join(host.feeds)
    if host.bmc:
        shown.update((f"bmc.{key}", str(value)) for key, value in host.bmc.model_dump().items())
    shown.update((f"labels.{key}", host.labels[key]) for key in sorted(host.labels))
    return shown


def _other_host(entry: Entry, holder: HostRecord) -> BadField:
    reason = f"belongs to {holder.name} (id {holder.id}), not to id {entry.id}"
    fix = "correct one of the two, or move the identity with `hostler host rebind`"
    return BadField(f"line {entry.line}: serial", entry.serial, reason, fix)


def _repeated(entries: Sequence[Entry]) -> Iterator[BadField]:
    """Two lines that claim the same; the BMC counts with its port, since a gateway may serve several."""
    seen: dict[tuple[str, str], int] = {}
    for entry in entries:
        claims = {"id": entry.id, "name": entry.name, "serial": entry.serial.upper()}
        if (bmc := entry.fields.get("bmc")) and bmc.get("address"):
            claims["bmc.address"] = _endpoint(_bmc(bmc, None))
        for key, value in claims.items():
            first = seen.setdefault((key, value), entry.line) if value else entry.line
            if first != entry.line:
                yield BadField(f"line {entry.line}: {key}", value, f"is on line {first} too", "correct one of the two")


def _clashes(
    after: Sequence[tuple[Entry, HostRecord | None, HostRecord]], untouched: Sequence[HostRecord]
) -> list[BadField]:
    """What two hosts would share once imported, and BMCs that would have no address."""
    problems: list[BadField] = []
    owners: dict[tuple[str, str], str] = {}
    for host in untouched:
        owners.update(dict.fromkeys(_unique(host).items(), host.name))
    for entry, _, record in after:
        if record.bmc and not record.bmc.address:
            fix = "give the address at which the BMC answers"
            problems.append(BadField(f"line {entry.line}: bmc.address", "", "is missing", fix))
        for key, value in _unique(record).items():
            owner = owners.setdefault((key, value), record.name + "\0" + record.id)
            if owner != record.name + "\0" + record.id:
                reason = f"belongs to {owner.partition(chr(0))[0]} already"
                fix = "correct it, or import both hosts in one file"
                problems.append(BadField(f"line {entry.line}: {key}", value, reason, fix))
    return problems


def _unique(host: HostRecord) -> dict[str, str]:
    claims = {"id": host.id, "name": host.name, "serial": host.serial.upper(), "bmc.address": _endpoint(host.bmc)}
    return {key: value for key, value in claims.items() if value}


def _endpoint(bmc: BmcRef | None) -> str:
    return f"{bmc.address.lower()} port {bmc.port}" if bmc and bmc.address else ""
