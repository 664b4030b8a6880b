"""The verbs of the audit log: who did what, when and why; read only."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from hostler_contract import codec
from hostler_contract.pb.hostler.v1 import audit_pb2 as pb
from hostler_contract.views import AuditEntry
from hostler_coordinator.cli import api
from hostler_coordinator.cli.ages import check_when, instant_of, moment_of
from hostler_coordinator.cli.errors import Faults
from hostler_coordinator.cli.output import Format
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.tables import Column
from hostler_coordinator.cli.verbs import noun, verb

app = noun("audit", "Who did what, when and why; append-only.")

COLUMNS = (
    Column("AT"),
    Column("ACTOR", rank=3),
    Column("ACTION"),
    Column("HOST", rank=1),
    Column("CAMPAIGN", rank=2),
    Column("RESULT", rank=1),
    Column("ID", wide=True, rank=6),
    Column("DETAIL", wide=True, rank=5),
    Column("REASON", rank=4, flex=True),
)
NEWEST_DEFAULT = 200

HostFlag = Annotated[str, typer.Option("--host", metavar="HOST", help="Only this host's.", show_default=False)]
CampaignFlag = Annotated[
    str, typer.Option("--campaign", metavar="CAMPAIGN", help="Only this campaign's.", show_default=False)
]
ActorFlag = Annotated[
    str, typer.Option("--actor", metavar="ACTOR", help="Only this person's or rule's.", show_default=False)
]
ActionFlag = Annotated[
    str,
    typer.Option("--action", metavar="ACTION", help="Only this action, such as host.power-cycle.", show_default=False),
]
FromFlag = Annotated[
    str,
    typer.Option(
        "--from", metavar="WHEN", help="From a moment with its offset, or so long ago: 6h.", show_default=False
    ),
]
ToFlag = Annotated[
    str,
    typer.Option("--to", metavar="WHEN", help="Up to a moment with its offset, or so long ago.", show_default=False),
]


def _filter(run: Run, *, host: str, campaign: str, actor: str, action: str, since: str, until: str) -> pb.AuditFilter:
    faults = Faults()
    faults.take(check_when, since, "--from")
    faults.take(check_when, until, "--to")
    faults.done()
    chosen = pb.AuditFilter(host=host, campaign_id=campaign, actor=actor, action=action)
    now = run.server_now() if since or until else None
    for flag, text in (("from", since), ("to", until)):
        if text:
            at = instant_of(text, f"--{flag}", now, ahead=False)
            getattr(chosen, flag).FromNanoseconds(round(at * 1000) * 1_000_000)
    return chosen


@verb(app, "list", "hostler audit list --host gpu-003 --from 24h", "hostler audit list --campaign c-7f3a -o json")
def list_verb(
    run: Run,
    *,
    host: HostFlag = "",
    campaign: CampaignFlag = "",
    actor: ActorFlag = "",
    action: ActionFlag = "",
    since: FromFlag = "",
    until: ToFlag = "",
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="The newest so many entries.")
    ] = (NEWEST_DEFAULT),
) -> None:
    """List the newest --limit audit entries, the newest last; `audit export` gives all."""
    chosen = _filter(run, host=host, campaign=campaign, actor=actor, action=action, since=since, until=until)
    request = pb.ListAuditRequest(filter=chosen, newest_first=True)
    entries = run.pages(api.LIST_AUDIT, request, "entries", AuditEntry)
    found = [entry for entry, _ in zip(entries, range(limit + 1), strict=False)]
    if len(found) > limit:
        found.pop()
        run.output.warn(f"older entries are left out: raise --limit {limit}, narrow it down, or use audit export")
    found.reverse()
    rows = [_row(item) for item in found]
    run.output.show(found, [item.id for item in found], lambda: run.output.table(COLUMNS, rows, empty="no entries"))


def _row(entry: AuditEntry) -> tuple[object, ...]:
    at = moment_of(entry.at)
    return (
        at,
        entry.actor,
        entry.action,
        entry.host,
        entry.campaign_id,
        entry.result,
        entry.id,
        entry.detail,
        entry.reason,
    )


@verb(app, "export", "hostler audit export --from 2026-07-01T00:00Z -o json > audit.jsonl")
def export_verb(
    run: Run,
    *,
    host: HostFlag = "",
    campaign: CampaignFlag = "",
    actor: ActorFlag = "",
    action: ActionFlag = "",
    since: FromFlag = "",
    until: ToFlag = "",
) -> None:
    """Write every matching entry as it arrives, oldest first: JSON lines with -o json, CSV otherwise."""
    chosen = _filter(run, host=host, campaign=campaign, actor=actor, action=action, since=since, until=until)
    entries = _stream(run, pb.ExportAuditRequest(filter=chosen))
    if run.output.for_people:
        _as_csv(entries)
        return
    for entry in entries:
        if run.output.format is Format.NAME:
            run.output.line(entry.id)
        else:
            run.output.record(entry)


def _stream(run: Run, request: pb.ExportAuditRequest) -> Iterator[AuditEntry]:
    for answer in run.connection.stream(api.EXPORT_AUDIT, request, resume=False):
        for item in answer.entries:
            yield codec.from_message(AuditEntry, item)


def _as_csv(entries: Iterator[AuditEntry]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(AuditEntry.model_fields)
    for entry in entries:
        writer.writerow(entry.model_dump(mode="json").values())
