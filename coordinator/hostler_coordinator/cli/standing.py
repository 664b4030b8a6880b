"""How the control plane itself stands, and letting go of the brake that mass silence puts on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from hostler_contract.moments import format_instant
from hostler_contract.pb.hostler.v1 import fleet_pb2 as pb
from hostler_contract.views import Status
from hostler_coordinator.cli import api, flags
from hostler_coordinator.cli.ages import age_of, moment_of
from hostler_coordinator.cli.errors import Faults, needed
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.tables import facts
from hostler_coordinator.cli.verbs import noun, verb
from hostler_coordinator.phrases import counted

brake_app = noun("brake", "The brake that stops out-of-band action while many hosts are silent at once.")


@verb(brake_app, "release", 'hostler brake release gpu-003 gpu-004 --reason "rack r07 lost power, seen on site"')
def release_verb(
    run: Run,
    *,
    hosts: Annotated[list[str], typer.Argument(metavar="HOST...", help="The hosts, by name.")],
    reason: flags.Reason = "",
    yes: flags.Yes = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Let out-of-band action go on for named hosts although many fell silent at once."""
    faults = Faults()
    for host in hosts:
        faults.take(needed, host.strip(" ,:"), "a blank host name selects nothing", "HOST", "name the hosts")
    faults.take(needed, reason, "releasing the brake needs a reason", "--reason", "add --reason TEXT")
    faults.done()
    if not dry_run:
        run.confirm(f"Let BMC action go on for {counted(len(hosts), 'host')}?", yes=yes, action="release")
    answer = run.call(api.RELEASE_BRAKE, pb.ReleaseBrakeRequest(hosts=hosts, reason=reason, dry_run=dry_run))
    until = answer.until.ToNanoseconds() / 1e9 if answer.HasField("until") else None
    released = list(answer.hosts)
    document = {
        "hosts": released,
        "until": format_instant(until) if until is not None else None,
        "dry_run": dry_run,
    }
    said = "would release" if dry_run else "released"
    run.output.show(document, released, lambda: [f"{said} until {moment_of(until)}: {', '.join(released)}"])


def status_verb(run: Run) -> None:
    """Show who leads, how many hosts are heard, what runs, and whether anything stands still."""
    status = run.status()
    run.output.show(status, [status.coordinator], lambda: _screen(status, run.output.width))


def _screen(status: Status, width: int | None) -> Iterable[str]:
    store = (
        f"UNAVAILABLE {_since(status.store_unavailable_since, status.now)}: {status.store_problem}; nothing is started"
        if status.store_unavailable_since is not None
        else "available"
    )
    heard = "unknown" if status.hosts_heard is None else status.hosts_heard
    return facts(
        (
            ("answered by", f"{status.coordinator} {status.version}"),
            ("leader", _leader(status)),
            ("store", store),
            ("hosts", f"{heard} of {status.hosts} heard, {_out_of_service(status)}"),
            ("campaigns", f"{status.campaigns_running} running"),
            ("dead letters", f"{status.dead_letters_open} open"),
            ("brakes", "; ".join(status.brakes) or ("none" if status.hosts_heard is not None else "unknown")),
            ("now", moment_of(status.now)),
            ("next", status.next_step),
        ),
        width=width,
    )


def _out_of_service(status: Status) -> str:
    """What is charged, and how many of those are dead: letters may be closed while their hosts are not back."""
    if not status.hosts_out_of_service:
        return "none out of service"
    dead = f", {status.hosts_dead} of them dead: hostler host list --state dead" if status.hosts_dead else ""
    return f"{status.hosts_out_of_service} out of service{dead}"


def _since(at: float | None, now: float) -> str:
    return f"since {moment_of(at)} (for {age_of(at, now)})"


def _leader(status: Status) -> str:
    """Who leads and for how long, or since when nobody does and why."""
    if not status.leader:
        return f"NONE {_since(status.leaderless_since, status.now)}: {status.leader_problem}"
    known = f"{status.leader} at {status.leader_address}"
    if status.leaderless_since is not None:
        return f"{known}, UNREACHABLE {_since(status.leaderless_since, status.now)}: {status.leader_problem}"
    return f"{known}, for {age_of(status.leader_since, status.now)}"


def register(app: typer.Typer) -> None:
    """Add `status` to the root."""
    verb(app, "status", "hostler status", "hostler status -o json")(status_verb)
