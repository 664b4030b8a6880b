"""Reboot, power and locate for one host: what changes power is a campaign of one, what only looks is a probe."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from hostler_contract.campaigns import Limits, Selector
from hostler_contract.pb.hostler.v1 import fleet_pb2 as pb
from hostler_contract.work import RebootMode
from hostler_coordinator.cli import api, flags
from hostler_coordinator.cli.campaigns import Force, ModeFlag, Operation, build_request
from hostler_coordinator.cli.errors import usage
from hostler_coordinator.cli.probing import locate, power_status, verify_serial
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.submitting import Consent, submit_campaign
from hostler_coordinator.cli.verbs import verb


class PowerAction(StrEnum):
    """What `host power` does."""

    ON = "on"
    OFF = "off"
    STATUS = "status"
    VERIFY_SERIAL = "verify-serial"


OPERATIONS = {PowerAction.ON: Operation.POWER_ON, PowerAction.OFF: Operation.POWER_OFF}
PROBES = {PowerAction.STATUS: power_status, PowerAction.VERIFY_SERIAL: verify_serial}
ActionArgument = Annotated[str, typer.Argument(metavar="on|off|status|verify-serial", help="What to do.")]


def register(app: typer.Typer) -> None:
    """Add these verbs to the hosts' own."""
    verb(app, "reboot", 'hostler host reboot gpu-003 --mode hard --reason "hung driver" --wait')(reboot_verb)
    verb(app, "power", "hostler host power status gpu-003", "hostler host power off gpu-003 --yes --wait")(power_verb)
    verb(app, "locate", "hostler host locate gpu-003", "hostler host locate gpu-003 --off")(locate_verb)


def _one(host: str) -> Selector:
    if not host.strip(" ,:"):
        raise usage(f"host {host!r} names nothing", flag="HOST", fix="name one host")
    return Selector(hosts=(host,))


def reboot_verb(
    run: Run,
    *,
    host: flags.HostName,
    mode: ModeFlag = RebootMode.SOFT,
    reason: flags.Reason = "",
    force: Force = False,
    key: flags.Key = None,
    yes: flags.Yes = False,
    wait: flags.Wait = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Reboot one host: a campaign of one, with the same checks, ledger and proof as any other."""
    request = build_request(
        _one(host), operation=Operation.REBOOT, mode=mode, limits=Limits(), reason=reason, force=force
    )
    submit_campaign(run, request, Consent(yes=yes, key=key, wait=wait, dry_run=dry_run))


def power_verb(
    run: Run,
    *,
    action: ActionArgument,
    host: flags.HostName,
    reason: flags.Reason = "",
    force: Force = False,
    key: flags.Key = None,
    yes: flags.Yes = False,
    wait: flags.Wait = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Switch one host on or off, or ask its BMC for the power state or the serial.

    Switching is a campaign of one; asking changes nothing.
    """
    words = set(PowerAction)
    if action not in words and host in words:  # `host power gpu-003 off` reads as well
        action, host = host, action
    if action not in words:
        raise usage(f"{action!r} is none of {', '.join(PowerAction)}", flag="ACTION", fix="hostler host power --help")
    chosen = PowerAction(action)
    if chosen in PROBES:
        PROBES[chosen](run, host, reason)
        return
    request = build_request(
        _one(host), operation=OPERATIONS[chosen], mode=RebootMode.SOFT, limits=Limits(), reason=reason, force=force
    )
    submit_campaign(run, request, Consent(yes=yes, key=key, wait=wait, dry_run=dry_run))


def locate_verb(
    run: Run,
    *,
    host: flags.HostName,
    off: Annotated[bool, typer.Option("--off", help="Switch the LED off again.", show_default=False)] = False,
    reason: flags.Reason = "",
    dry_run: flags.DryRun = False,
) -> None:
    """Light a host's locate LED, for whoever stands in front of the rack."""
    what = "locate LED off" if off else "locate LED on"
    if dry_run:
        run.call(api.GET_HOST, pb.GetHostRequest(host=host))
        run.output.show(
            {"host": host, "action": what, "dry_run": True, "reason": reason},
            [host],
            lambda: [f"would switch {what} on {host}"],
        )
        return
    locate(run, host, reason, off=off)
