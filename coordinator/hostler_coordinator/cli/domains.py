"""The verbs of fabrics and of every other failure domain: how full they are, who fills them, what their budget is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from hostler_contract import codec
from hostler_contract.pb.hostler.v1 import fleet_pb2 as pb
from hostler_contract.views import Domain
from hostler_coordinator.cli import api, flags
from hostler_coordinator.cli.ages import age_of
from hostler_coordinator.cli.errors import usage
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.submitting import lines_of
from hostler_coordinator.cli.tables import Column, facts
from hostler_coordinator.cli.verbs import noun, verb

fabric_app = noun("fabric", "Fabrics: how many of their hosts are out of service, and who holds them.")
domain_app = noun("domain", "Failure domains (fabrics, racks, feeds, site) and their budgets.")

KINDS = ("fabric", "rack", "feed", "site")
COLUMNS = (
    Column("DOMAIN"),
    Column("HOSTS", right=True, rank=2),
    Column("DOWN", right=True),
    Column("LIMIT", right=True),
    Column("FROM", rank=3),
    Column("BUDGET", wide=True, rank=4),
    Column("ROUNDING", wide=True, rank=5),
    Column("BRAKE", rank=1, flex=True),
)

DomainName = Annotated[
    str, typer.Argument(metavar="DOMAIN", help="Name of the domain, such as fabric/ib-a or rack/r07.")
]


def _list(run: Run, kind: str) -> None:
    found = list(run.pages(api.LIST_DOMAINS, pb.ListDomainsRequest(kind=kind), "domains", Domain))
    rows = [
        (item.name, item.enrolled, item.charged, item.limit, item.limit_from, item.budget, item.rounding, item.brake)
        for item in found
    ]
    empty = f"no {kind or 'domain'}s"
    run.output.show(found, [item.name for item in found], lambda: run.output.table(COLUMNS, rows, empty=empty))


def _get(run: Run, name: str) -> Domain:
    return codec.from_message(Domain, run.call(api.GET_DOMAIN, pb.GetDomainRequest(name=name)).domain)


def _show(run: Run, domain: Domain, head: Sequence[str] = ()) -> None:
    now = run.list_clock()
    run.output.show(domain, [domain.name], lambda: lines_of(head, _screen(run, domain, now)))


def _screen(run: Run, domain: Domain, now: float | None) -> Iterable[str]:
    limit = f"{domain.limit} ({domain.limit_from}{': ' + domain.rounding if domain.rounding else ''})"
    yield from facts(
        (
            ("domain", domain.name),
            ("hosts", domain.enrolled),
            ("down", domain.charged),
            ("limit", limit),
            ("budget", domain.budget),
            ("brake", domain.brake),
        ),
        width=run.output.width,
    )
    if domain.holders:
        rows = [(item.host, age_of(item.since, now), item.cause) for item in domain.holders]
        columns = (Column("HELD BY"), Column("FOR", rank=1, right=True), Column("CAUSE", flex=True))
        yield ""
        yield from run.output.table(columns, rows, empty="")
        if domain.charged > len(rows):
            yield f"... and {domain.charged - len(rows)} more"


@verb(fabric_app, "list", "hostler fabric list", "hostler fabric list -o json")
def fabric_list_verb(run: Run) -> None:
    """List fabrics with their limit and how many hosts are down."""
    _list(run, "fabric")


@verb(fabric_app, "show", "hostler fabric show ib-a")
def fabric_show_verb(
    run: Run, name: Annotated[str, typer.Argument(metavar="FABRIC", help="Name of the fabric, such as ib-a.")]
) -> None:
    """Show one fabric and every host that fills its budget."""
    _show(run, _get(run, name if name.startswith("fabric/") else f"fabric/{name}"))


@verb(domain_app, "list", "hostler domain list --kind rack", "hostler domain list -o wide")
def domain_list_verb(
    run: Run,
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help=f"Only one kind: {', '.join(KINDS)}.", show_default=False)
    ] = "",
) -> None:
    """List failure domains with their limit and how many hosts are down."""
    if kind and kind not in KINDS:
        raise usage(f"{kind!r} is none of {', '.join(KINDS)}", flag="--kind")
    _list(run, kind)


@verb(domain_app, "show", "hostler domain show rack/r07", "hostler domain show fabric/ib-a -o json | jq .holders")
def domain_show_verb(run: Run, name: DomainName) -> None:
    """Show one domain and every host that fills its budget."""
    _show(run, _get(run, name))


@verb(
    domain_app,
    "set-budget",
    'hostler domain set-budget fabric/ib-a 5% --reason "new cooling"',
    "hostler domain set-budget rack/r07 default",
)
def set_budget_verb(
    run: Run,
    name: DomainName,
    budget: Annotated[
        str, typer.Argument(metavar="BUDGET", help="A count (3), a share of the enrolled hosts (5%), or default.")
    ],
    reason: flags.Reason = "",
    dry_run: flags.DryRun = False,
) -> None:
    """Set how many hosts of a domain may be out of service at once, over all campaigns together."""
    before = _get(run, name)
    request = pb.SetDomainBudgetRequest(name=name, budget=budget, reason=reason, dry_run=dry_run)
    after = codec.from_message(Domain, run.call(api.SET_DOMAIN_BUDGET, request).domain)
    said = "the limit would go" if dry_run else "the limit went"
    _show(run, after, [f"{said} from {before.limit} to {after.limit}"])
