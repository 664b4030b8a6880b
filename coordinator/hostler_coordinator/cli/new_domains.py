"""Which failure domains an import brings into being, and what holds in them; the import itself is `inventory`'s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler_contract.pb.hostler.v1 import fleet_pb2 as pb
from hostler_contract.views import Domain, InventoryChange
from hostler_coordinator.cli import api
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.tables import fold

KINDS = {"fabric": "fabric", "rack": "rack", "feeds": "feed", "site": "site"}
SHOWN_MOST = 12


def unknown_domains(run: Run, changes: Sequence[InventoryChange]) -> list[str]:
    """The domains that these changes name and no host belongs to yet, in order of the file."""
    wanted = named(changes)
    if not wanted:
        return []
    known = {item.name for item in run.pages(api.LIST_DOMAINS, pb.ListDomainsRequest(), "domains", Domain)}
    return [name for name in wanted if name not in known]


def named(changes: Sequence[InventoryChange]) -> list[str]:
    """Every domain that these changes put hosts into, each once."""
    return list(dict.fromkeys(name for change in changes for name in _named(change)))


def _named(change: InventoryChange) -> Iterator[str]:
    """Fields are told as `rack: r07`, or `rack: r06 -> r07` where one changes."""
    for field in change.fields:
        key, _, value = field.partition(": ")
        if key in KINDS:
            yield from (f"{KINDS[key]}/{name}" for name in value.split(" -> ")[-1].split(";") if name != "(none)")


def told(names: Sequence[str], width: int | None) -> Iterator[str]:
    """Say which domains are new, that each has a limit of one, and how another is set; a site has only its ceiling."""
    sites = [name for name in names if name.startswith("site/")]
    limited = [name for name in names if name not in sites]
    if sites:
        yield from fold(f"new site: {_listed(sites)}", width)
    if limited:
        yield from fold(f"new domains, each with a limit of 1: {_listed(limited)}", width)
        yield from fold(f"set another limit with: hostler domain set-budget {limited[0]} 5%", width)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_MOST} more" if len(names) > SHOWN_MOST else ""
    return f"{', '.join(names[:SHOWN_MOST])}{more}"
