"""The verbs of hosts: see them, ask why, drain and undrain, and their papers; power and reboots are campaigns."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hostler_contract import codec
from hostler_contract.pb.hostler.v1 import fleet_pb2 as pb
from hostler_contract.views import Host, HostWhy
from hostler_coordinator.cli import api, flags, inventory, powering
from hostler_coordinator.cli.errors import needed, usage
from hostler_coordinator.cli.host_screens import HOST_COLUMNS, host_row, host_screen, why_screen
from hostler_coordinator.cli.run import Run, is_interactive
from hostler_coordinator.cli.selecting import select, select_any
from hostler_coordinator.cli.verbs import noun, verb
from hostler_coordinator.phrases import counted

app = noun("host", "Machines: what they are, what they wait for, and what a person does to them.")


@verb(app, "list", "hostler host list -l fabric=ib-a --state silent", 'hostler host list "gpu-[001-016]" -o wide')
def list_verb(
    run: Run,
    *,
    hosts: flags.Hosts = None,
    label: flags.Labels = None,
    from_file: flags.FromFile = None,
    every: flags.All = False,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only hosts in this state, such as silent; may be repeated."),
    ] = None,
) -> None:
    """List hosts: all of them, or those selected."""
    selector = select_any(hosts, label, from_file, every)
    request = pb.ListHostsRequest(states=state or ())
    if selector is not None:
        codec.fill_message(selector, request.selector)
    found = list(run.pages(api.LIST_HOSTS, request, "hosts", Host))
    now = run.list_clock()
    rows = [host_row(item, now) for item in found] if run.output.for_people else []
    run.output.show(
        found, [item.name for item in found], lambda: run.output.table(HOST_COLUMNS, rows, empty="no hosts")
    )


@verb(app, "show", "hostler host show gpu-001", "hostler host show gpu-001 -o yaml")
def show_verb(run: Run, host: flags.HostName) -> None:
    """Show one host: identity, domains, health, BMC, who has it drained, what it is charged to."""
    found = codec.from_message(Host, run.call(api.GET_HOST, pb.GetHostRequest(host=host)).host)
    now = run.list_clock()
    run.output.show(found, [found.name], lambda: host_screen(found, now, run.output.width))


@verb(app, "why", "hostler host why gpu-003", "hostler host why gpu-003 -o json | jq -r .held_by")
def why_verb(run: Run, host: flags.HostName) -> None:
    """Say in one sentence what a host waits for, who holds it, since when, and what happens next."""
    why = codec.from_message(HostWhy, run.call(api.EXPLAIN_HOST, pb.ExplainHostRequest(host=host)).why)
    run.output.show(why, [why.host], lambda: why_screen(why, wide=run.output.is_wide, width=run.output.width))


def _mark(run: Run, method: api.Method[Any, Any], request: Any, *, yes: bool, word: str) -> None:
    """Drain or undrain; more than one host is shown and asked about first."""
    request_all = request.selector.all
    if (is_interactive() or request_all) and not yes and not request.dry_run:
        rehearsal = type(request)()
        rehearsal.CopyFrom(request)
        rehearsal.dry_run = True
        shown = run.call(method, rehearsal)
        touched, refused = list(shown.hosts), bool(_over(shown)) and not request.force
        if (len(touched) > 1 or request_all) and not refused:
            run.output.aside([*touched, *_over(shown)])
            run.confirm(f"{word.capitalize()} {counted(len(touched), 'host')}?", yes=False, action=word)
    answer = run.call(method, request)
    hosts, over = list(answer.hosts), _over(answer)
    will = f"would {word}" if request.dry_run else f"{word}ed"
    said = [f"{will} {len(hosts)}: {', '.join(hosts)}" if hosts else "no host changed"]
    document: dict[str, object] = {"hosts": hosts, "dry_run": request.dry_run}
    if isinstance(request, pb.DrainHostsRequest):
        document |= {"over_budget": over, "refused": bool(over) and not request.force}
    if over and not request.force:
        said = [f"would refuse to {word} {len(hosts)}: {', '.join(hosts)}; it needs --force with --reason"]
    run.output.show(document, hosts, lambda: [*said, *(f"over budget: {one}" for one in over)])


def _over(answer: Any) -> list[str]:
    """Budgets that a drain goes over; an undrain goes over none."""
    return list(answer.over_budget) if isinstance(answer, pb.DrainHostsResponse) else []


@verb(app, "drain", 'hostler host drain gpu-003 --reason "fan replaced"')
def drain_verb(
    run: Run,
    *,
    hosts: flags.Hosts = None,
    label: flags.Labels = None,
    from_file: flags.FromFile = None,
    every: flags.All = False,
    reason: flags.Reason = "",
    force: Annotated[
        bool, typer.Option("--force", help="Go over the budgets of their domains; needs --reason.", show_default=False)
    ] = False,
    yes: flags.Yes = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Take hosts out of service in your name; charged like any other work, and only `undrain` ends it.

    It stays within the budgets of their domains, one where none is set; hosts that are out of service already cost
    nothing. All of it is done or nothing.
    """
    if force:
        needed(reason, "--force goes over budgets", "--reason", "add --reason TEXT")
    request = pb.DrainHostsRequest(reason=reason, force=force, dry_run=dry_run)
    codec.fill_message(select(hosts, label, from_file, every), request.selector)
    _mark(run, api.DRAIN_HOSTS, request, yes=yes, word="drain")


@verb(app, "undrain", 'hostler host undrain gpu-003 --reason "fan replaced"')
def undrain_verb(
    run: Run,
    *,
    hosts: flags.Hosts = None,
    label: flags.Labels = None,
    from_file: flags.FromFile = None,
    every: flags.All = False,
    reason: flags.Reason = "",
    yes: flags.Yes = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Give drained hosts back to service."""
    request = pb.UndrainHostsRequest(reason=reason, dry_run=dry_run)
    codec.fill_message(select(hosts, label, from_file, every), request.selector)
    _mark(run, api.UNDRAIN_HOSTS, request, yes=yes, word="undrain")


@verb(app, "note", 'hostler host note gpu-003 "loose cable, see ticket 4711"', "hostler host note gpu-003 --remove")
def note_verb(
    run: Run,
    *,
    host: flags.HostName,
    note: Annotated[str, typer.Argument(metavar="[TEXT]", help="The note.", show_default=False)] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Take the note off again.", show_default=False)] = False,
    dry_run: flags.DryRun = False,
    reason: flags.Reason = "",
) -> None:
    """Pin a note to a host, for whoever looks next; a new one takes the place of the old."""
    if remove and note.strip():
        raise usage("a note and --remove contradict each other", flag="--remove", fix="give one of the two")
    if not remove:
        needed(note, "an empty note says nothing", "TEXT", "give a TEXT, or --remove to take the note off")
    text = note.strip()
    request = pb.NoteHostRequest(host=host, note=text, reason=reason, dry_run=dry_run)
    found = codec.from_message(Host, run.call(api.NOTE_HOST, request).host)
    will = ("would be" if dry_run else "was") if remove else ("would note" if dry_run else "noted")
    said = f"the note on {found.name} {will} taken off" if remove else f"{will} on {found.name}: {text}"
    run.output.show(found, [found.name], lambda: [said])


powering.register(app)
inventory.register(app)
