"""One look at a host's BMC: what was asked, what it answered, and what that means; what changes power is a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hostler_contract import codec
from hostler_contract.pb.hostler.v1 import fleet_pb2 as pb
from hostler_contract.views import BmcProbe, Host
from hostler_coordinator.cli import api
from hostler_coordinator.cli.ages import moment_of
from hostler_coordinator.cli.errors import Problem
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.tables import facts

UNKNOWN = "unknown"
CREDENTIALS_FIX = (
    "correct what the inventory's bmc.credentials names, on every coordinator, or the account at the BMC; "
    "do not repeat this before: each try counts against the account"
)
LASTING = {
    "auth": CREDENTIALS_FIX,
    "credentials": "correct the file or variable that bmc.credentials names, on every coordinator",
    "cipher": "set the BMC to cipher suite 3 or 17, or to a TLS that is in use today",
    "not_supported": "this BMC cannot do it; look at it by hand",
    "identity": "correct bmc.address in the inventory, or bind the host to its new board: hostler host rebind --help",
    "protocol": "look at this BMC's firmware; its answer is not understood",
    "hardware": "look at the machine; its power control reports a fault",
}
"""Faults that trying again does not cure, and what to do: these are refusals, so that no script repeats them."""


def power_status(run: Run, host: str, reason: str) -> None:
    """Write a host's power state, as its BMC tells it; raises Problem."""
    found = _ask(run, host, reason, pb.ProbeBmcRequest.VERB_POWER_STATE, "tell its power state")
    says = found.text.removeprefix(f"power {found.power}").lstrip(" ,")
    _show(run, host, found, {}, (("power", found.power), ("says", says)))


def verify_serial(run: Run, host: str, reason: str) -> None:
    """Write whether the machine behind a BMC is the one of the inventory; raises Problem when it is another."""
    known = codec.from_message(Host, run.call(api.GET_HOST, pb.GetHostRequest(host=host)).host)
    found = _ask(run, host, reason, pb.ProbeBmcRequest.VERB_VERIFY_SERIAL, "tell its serial numbers")
    expected = known.bmc.serial if known.bmc else ""
    told = {part.strip().casefold() for part in found.text.split(",")}
    if expected and expected.strip().casefold() not in told:
        raise Problem(
            "FAILED_PRECONDITION",
            f"the machine behind the BMC of {host} says it is {found.text or 'nothing'}, and the inventory expects "
            f"{expected}: power orders to it are refused",
            reason="serial-mismatch",
            fix=LASTING["identity"],
            details={"expected": expected, "told": found.text},
        )
    verdict = (
        f"this is {host}: the serial is the one of the inventory"
        if expected
        else "not verified: the inventory has no bmc.serial for this host, so power orders go out unverified"
    )
    pairs = (("serial", found.text), ("expected", expected), ("verdict", verdict))
    _show(run, host, found, {"expected": expected, "matches": True if expected else None}, pairs)


def locate(run: Run, host: str, reason: str, *, off: bool) -> None:
    """Switch a host's locate LED and write what was done; raises Problem."""
    verb = pb.ProbeBmcRequest.VERB_LOCATE_OFF if off else pb.ProbeBmcRequest.VERB_LOCATE_ON
    found = _ask(run, host, reason, verb, f"switch its locate LED {'off' if off else 'on'}")
    said = "off" if off else "on; it stays on until: hostler host locate --off " + host
    _show(run, host, found, {"locate_led": "off" if off else "on"}, (("locate LED", said),))


def _ask(run: Run, host: str, reason: str, verb: pb.ProbeBmcRequest.Verb, what: str) -> BmcProbe:
    request = pb.ProbeBmcRequest(host=host, verb=verb, reason=reason)
    found = codec.from_message(BmcProbe, run.call(api.PROBE_BMC, request))
    if not found.fault:
        return found
    lasting = LASTING.get(found.fault)
    raise Problem(
        "UNAVAILABLE" if lasting is None else "FAILED_PRECONDITION",
        f"the BMC of {host} did not {what}: {found.text or found.fault.replace('_', ' ')}",
        reason=found.fault,
        fix=lasting
        or f"see that the BMC answers on its network (its address: hostler host show {host}), then try again",
    )


def _show(run: Run, host: str, found: BmcProbe, more: dict[str, Any], pairs: Sequence[tuple[str, object]]) -> None:
    document = {"host": host, **found.model_dump(mode="json"), **more}
    lines = (("host", host), *pairs, ("at", moment_of(found.at)))
    run.output.show(document, [host], lambda: facts(lines, width=run.output.width))
