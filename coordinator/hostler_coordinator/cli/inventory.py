"""A host's papers: retire, rebind, remove, import of the inventory; each shows what it would do before it does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from hostler_contract import codec
from hostler_contract.hosts import BmcRef
from hostler_contract.pb.hostler.v1 import fleet_pb2 as pb
from hostler_contract.views import Host, InventoryChange
from hostler_coordinator.cli import api, flags
from hostler_coordinator.cli.errors import Problem, usage
from hostler_coordinator.cli.host_screens import host_screen
from hostler_coordinator.cli.new_domains import told, unknown_domains
from hostler_coordinator.cli.run import Run, ask_count, is_interactive
from hostler_coordinator.cli.selecting import read_bounded
from hostler_coordinator.cli.submitting import lines_of
from hostler_coordinator.cli.tables import Column
from hostler_coordinator.cli.verbs import verb
from hostler_coordinator.phrases import counted

INVENTORY_BYTES_MAX = 8 * 1024 * 1024
CHANGE_COLUMNS = (
    Column("CHANGE"),
    Column("HOST"),
    Column("ID", wide=True, rank=2),
    Column("FIELDS", rank=1, flex=True),
)

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="Inventory in YAML or CSV; - for stdin (YAML).")]


def register(app: typer.Typer) -> None:
    """Add these verbs to the hosts' own."""
    verb(app, "retire", "hostler host retire gpu-003 --ticket RMA-1187 --reason 'GPU fell off the bus'")(retire_verb)
    verb(app, "rebind", "hostler host rebind gpu-003 --serial SN-77 --bmc ipmi://10.0.3.7")(rebind_verb)
    verb(app, "remove", "hostler host remove gpu-003 --reason 'sold' --dry-run")(remove_verb)
    verb(app, "import", "hostler host import fleet.yaml --dry-run", "hostler host import fleet.csv --yes")(import_verb)


def _show_host(run: Run, host: Host, said: str, *, dry_run: bool) -> None:
    head = f"would have {said}; nothing was changed" if dry_run else said
    now = run.list_clock()
    width = run.output.width
    run.output.show(host, [host.name], lambda: lines_of([head], host_screen(host, now, width)))


def retire_verb(
    run: Run,
    *,
    host: flags.HostName,
    rma: Annotated[str, typer.Option("--ticket", "--rma", metavar="TICKET", help="The ticket it goes under.")],
    reason: flags.Reason = "",
    yes: flags.Yes = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Take a host out of charge and denominator, under a ticket."""
    request = pb.RetireHostRequest(host=host, ticket=rma, reason=reason, dry_run=dry_run)
    if is_interactive() and not dry_run and not yes:
        rehearsal = pb.RetireHostRequest(host=host, ticket=rma, reason=reason, dry_run=True)
        run.output.aside([run.call(api.RETIRE_HOST, rehearsal).consequence])
        run.confirm(f"Retire {host} under {rma}?", yes=yes, action="retire")
    answer = run.call(api.RETIRE_HOST, request)
    retired = codec.from_message(Host, answer.host)
    said = f"retired {retired.name} under {rma}"
    _show_host(run, retired, f"{said}: {answer.consequence}" if answer.consequence else said, dry_run=dry_run)


def rebind_verb(
    run: Run,
    *,
    host: flags.HostName,
    serial: Annotated[str, typer.Option("--serial", metavar="SERIAL", help="Chassis serial of the new board.")],
    bmc: Annotated[
        str,
        typer.Option(
            "--bmc", metavar="URL", help="Its BMC: ipmi://HOST[:PORT] or redfish://HOST[:PORT].", show_default=False
        ),
    ] = "",
    credentials: Annotated[
        str,
        typer.Option(
            "--credentials", metavar="REF", help="Where its credentials lie: file:PATH or env:NAME.", show_default=False
        ),
    ] = "",
    reason: flags.Reason = "",
    yes: flags.Yes = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Carry a host's identity over to another board: new serial, new BMC, same id, history and charges."""
    if is_interactive() and not dry_run:
        run.confirm(f"Rebind {host} to serial {serial}?", yes=yes, action="rebind")
    request = pb.RebindHostRequest(host=host, serial=serial, reason=reason, dry_run=dry_run)
    if bmc:
        codec.fill_message(bmc_of(bmc, credentials, serial), request.bmc)
    elif credentials:
        raise usage("credentials without a BMC belong to nothing", flag="--credentials", fix="add --bmc URL")
    rebound = codec.from_message(Host, run.call(api.REBIND_HOST, request).host)
    _show_host(run, rebound, f"rebound {rebound.name} to serial {serial}", dry_run=dry_run)


def bmc_of(url: str, credentials: str, serial: str) -> BmcRef:
    """Read `ipmi://10.0.0.1:623`; raises Problem. Credentials may only be pointed at, never given."""
    protocol, separator, rest = url.partition("://")
    ports = {"ipmi": 623, "redfish": 443}
    if not separator or protocol not in ports or not rest or "@" in rest or "/" in rest:
        raise usage(f"--bmc {url!r} is not ipmi://HOST[:PORT] or redfish://HOST[:PORT]", flag="--bmc")
    if credentials and not credentials.startswith(("file:", "env:")):
        raise usage("credentials are pointed at, never given", flag="--credentials", fix="write file:PATH or env:NAME")
    address, colon, port = rest.rpartition(":")
    if not colon:
        address, port = rest, str(ports[protocol])
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise usage(f"--bmc {url!r}: {port!r} is no port", flag="--bmc")
    return BmcRef(protocol=protocol, address=address, port=int(port), credentials=credentials, serial=serial)


def remove_verb(
    run: Run,
    *,
    host: flags.HostName,
    reason: flags.Reason = "",
    yes: flags.Yes = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Forget a host for good; says first what follows from it."""
    rehearsal = run.call(api.REMOVE_HOST, pb.RemoveHostRequest(host=host, reason=reason, dry_run=True))
    if not dry_run:
        run.output.aside([rehearsal.consequence] if rehearsal.consequence and not yes else [])
        run.confirm(f"Remove {host} for good?", yes=yes, action="remove")
    answer = rehearsal
    if not dry_run:
        answer = run.call(api.REMOVE_HOST, pb.RemoveHostRequest(host=host, reason=reason))
    document = {"host": host, "host_id": answer.host_id, "consequence": answer.consequence, "dry_run": dry_run}
    said = f"would remove {host}" if dry_run else f"removed {host}"
    run.output.show(document, [host], lambda: [f"{said} ({answer.host_id}): {answer.consequence}".rstrip(": ")])


def import_verb(
    run: Run,
    *,
    file: FileArgument,
    format: Annotated[  # noqa: A002 - the flag's name
        str,
        typer.Option(
            "--format", metavar="yaml|csv", help="What the file is [default: by its name].", show_default=False
        ),
    ] = "",
    remove_missing: Annotated[
        bool, typer.Option("--remove-missing", help="Also remove hosts that the file lacks.", show_default=False)
    ] = False,
    expect_removed: Annotated[
        int,
        typer.Option(
            "--expect-removed", metavar="N", min=0, help="The exact number of hosts to be removed.", show_default=False
        ),
    ] = 0,
    reason: flags.Reason = "",
    yes: flags.Yes = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Bring hosts, domains and BMCs in from a file: the difference is shown first, then asked about.

    Hosts are matched by id, else by serial; what the file leaves out stays as it is. Every field: docs/inventory.md.

    \b
    hosts:
    - {id: h-gpu-001, name: gpu-001, serial: SN-0001,
       fabric: ib-a, rack: r07, feeds: [a1, b1], site: fra1,
       bmc: redfish://10.0.3.1, bmc.serial: SN-0001,
       bmc.credentials: "file:/etc/hostler/bmc/r07"}
    """  # noqa: D301 - the backspace keeps the lines as they are
    kind = format or ("csv" if file.lower().endswith(".csv") else "yaml")
    if kind not in {"yaml", "csv"}:
        raise usage(f"format {kind!r} is neither yaml nor csv", flag="--format")
    content = read_bounded(file, "FILE", INVENTORY_BYTES_MAX)
    request = pb.ImportInventoryRequest(
        content=content,
        format=kind,
        dry_run=True,
        remove_missing=remove_missing,
        reason=reason,
        expect_removed=expect_removed,
    )
    answer = run.call(api.IMPORT_INVENTORY, request)
    new = unknown_domains(run, _changes(answer))
    if not dry_run and any(item.kind != "unchanged" for item in answer.changes):
        if not yes:
            run.output.aside(_diff(run, _changes(answer), answer, new))
        request.expect_removed = _agree(run, answer, expect_removed, yes=yes)
        request.dry_run = False
        answer = run.call(api.IMPORT_INVENTORY, request)
    changes = _changes(answer)
    document = {
        "changes": [item.model_dump(mode="json") for item in changes],
        "new_domains": new,
        "unchanged": answer.unchanged,
        "added": answer.added,
        "changed": answer.changed,
        "removed": answer.removed,
        "fleet": answer.fleet,
        "needs_count": answer.needs_count,
        "applied": answer.applied,
    }
    end = ["applied" if answer.applied else "nothing was changed"]
    run.output.show(document, [item.name for item in changes], lambda: lines_of(_diff(run, changes, answer, new), end))


def _changes(answer: pb.ImportInventoryResponse) -> list[InventoryChange]:
    return [codec.from_message(InventoryChange, item) for item in answer.changes]


def _agree(run: Run, answer: pb.ImportInventoryResponse, expected: int, *, yes: bool) -> int:
    """The number of removed hosts that was agreed to; where many go, a yes alone is not enough. Raises Problem."""
    if not answer.needs_count or expected:
        run.confirm("Apply these changes?", yes=yes, action="import")
        return expected
    removed = f"{counted(answer.removed, 'host')} of {answer.fleet}"
    if yes or not is_interactive():
        raise usage(
            f"this removes {removed}, so the exact count must be stated",
            flag="--expect-removed",
            fix=f"if that is what you mean, add --expect-removed {answer.removed}",
        )
    typed = ask_count(f"This removes {removed}: type that number ({answer.removed}) to go on")
    if typed != str(answer.removed):
        raise Problem("ABORTED", f"nothing was changed: it removes {removed}, and you typed {typed or 'nothing'}")
    return answer.removed


def _diff(
    run: Run, changes: Sequence[InventoryChange], answer: pb.ImportInventoryResponse, new: Sequence[str]
) -> Iterable[str]:
    rows = [(item.kind, item.name, item.host_id, "; ".join(item.fields)) for item in changes]
    yield from run.output.table(CHANGE_COLUMNS, rows, empty="no difference")
    yield f"{answer.added} added, {answer.changed} changed, {answer.removed} removed, {answer.unchanged} unchanged"
    if answer.needs_count:
        yield f"removes {answer.removed} of {answer.fleet} hosts: needs --expect-removed {answer.removed}"
    yield from told(new, run.output.width)
