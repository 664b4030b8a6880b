"""The verbs of holds: hands off this host until then, because of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from hostler_contract import codec
from hostler_contract.campaigns import Selector
from hostler_contract.hosts import HoldKind
from hostler_contract.pb.hostler.v1 import fleet_pb2 as pb
from hostler_contract.views import Hold
from hostler_coordinator.cli import api, flags
from hostler_coordinator.cli.ages import age_of, check_when, instant_of, moment_of
from hostler_coordinator.cli.errors import Faults, Problem, needed
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.selecting import select
from hostler_coordinator.cli.submitting import lines_of, new_key
from hostler_coordinator.cli.tables import Column
from hostler_coordinator.cli.verbs import noun, verb, with_key_hint

app = noun("hold", "Hands off a host until a moment, for a reason; binds every actor.")

COLUMNS = (
    Column("ID"),
    Column("HOST"),
    Column("KIND", rank=2),
    Column("OWNER", rank=1),
    Column("AGE", rank=3, right=True),
    Column("UNTIL", rank=1),
    Column("REASON", rank=1, flex=True),
)


def _show(run: Run, holds: Sequence[Hold], head: Sequence[str], *, empty: str) -> None:
    now = run.list_clock()
    rows = [
        (item.id, item.host, item.kind, item.owner, age_of(item.at, now), moment_of(item.until), item.reason)
        for item in holds
    ]
    run.output.show(
        holds, [item.id for item in holds], lambda: lines_of(head, run.output.table(COLUMNS, rows, empty=empty))
    )


@verb(
    app,
    "add",
    'hostler hold add gpu-003 --until 4h --reason "BIOS update by hand" --kind firmware',
    'hostler hold add -l rack=r07 --until 2026-07-01T22:00Z --reason "power work"',
)
def add_verb(
    run: Run,
    *,
    hosts: flags.Hosts = None,
    label: flags.Labels = None,
    from_file: flags.FromFile = None,
    every: flags.All = False,
    until: Annotated[
        str,
        typer.Option(
            "--until", metavar="WHEN", help="A moment with its offset, or a time from now; without it, until removed."
        ),
    ] = "",
    kind: Annotated[HoldKind, typer.Option("--kind", help="What the hold is for.")] = HoldKind.HANDS_OFF,
    reason: flags.Reason = "",
    key: flags.Key = None,
    dry_run: flags.DryRun = False,
) -> None:
    """Keep every hand off these hosts: no work starts on them, and no rescue."""
    faults = Faults()
    faults.take(needed, reason, "a hold needs a reason", "--reason", "add --reason TEXT")
    faults.take(check_when, until, "--until")
    selector = faults.take(select, hosts, label, from_file, every) or Selector()
    faults.done()
    chosen = key or new_key()
    request = pb.AddHoldRequest(kind=f"HOLD_KIND_{kind.name}", reason=reason, dry_run=dry_run, key=chosen)
    codec.fill_message(selector, request.selector)
    if until:
        ends_at = instant_of(until, "--until", run.status().now, ahead=True)
        request.until.FromNanoseconds(round(ends_at * 1000) * 1_000_000)
    try:
        answer = run.call(api.ADD_HOLD, request)
    except Problem as problem:
        raise with_key_hint(problem, chosen) from problem
    if answer.repeated_key and key is not None:
        run.output.warn(f"key {chosen} was used before for this very request; nothing new was held")
    found = [codec.from_message(Hold, item) for item in answer.holds]
    _show(run, found, [f"would hold {len(found)}" if dry_run else f"held {len(found)}"], empty="no host")


@verb(app, "list", "hostler hold list", "hostler hold list -o json")
def list_verb(run: Run) -> None:
    """List holds."""
    found = list(run.pages(api.LIST_HOLDS, pb.ListHoldsRequest(), "holds", Hold))
    _show(run, found, [], empty="no holds")


@verb(app, "remove", 'hostler hold remove hold-12 --reason "update done"')
def remove_verb(
    run: Run,
    hold: Annotated[str, typer.Argument(metavar="ID", help="Id of the hold.")],
    reason: flags.Reason = "",
    dry_run: flags.DryRun = False,
) -> None:
    """Remove a hold before its time."""
    request = pb.RemoveHoldRequest(id=hold, reason=reason, dry_run=dry_run)
    found = codec.from_message(Hold, run.call(api.REMOVE_HOLD, request).hold)
    said = "would remove" if dry_run else "removed"
    run.output.show(found, [found.id], lambda: [f"{said} {found.id} from {found.host} ({found.reason}, {found.owner})"])
