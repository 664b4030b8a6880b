"""Which of a Redfish BMC's systems is the host itself, and whether it is still the one of before; pure, no requests."""

from __future__ import annotations

import uuid
from typing import Any

from hostler_coordinator.bmc.answers import BmcTarget, FaultClass, Machine, plain, same_serial
from hostler_coordinator.bmc.faults import BmcFaultError


def choose_system(
    found: dict[str, dict[str, Any]], target: BmcTarget, trouble: str = ""
) -> tuple[str, dict[str, Any], Machine]:
    """Pick the host's own system: by UUID, then by serial, then by having power and a Reset action; never the first.

    Raises BmcFaultError with IDENTITY when none or several qualify, or none has the inventory's UUID (FC-B06).
    """
    rules = (
        ("the UUID", lambda system: same_uuid(target.system_uuid, system.get("UUID"))),
        ("the serial number", lambda system: _same(target.serial, system.get("SerialNumber"))),
        ("power and a Reset action", _is_host),
    )
    for what, rule in rules:
        fitting = [path for path, system in found.items() if rule(system)]
        if len(fitting) > 1:
            # Duplicate UUIDs exist; of those, the one that can be switched is the host.
            switchable = [path for path in fitting if _is_host(found[path])]
            fitting = switchable if len(switchable) == 1 else fitting
        if len(fitting) > 1:
            raise BmcFaultError(
                FaultClass.IDENTITY,
                f"{len(fitting)} systems match by {what}: {', '.join(fitting)}; give its system_uuid in the inventory",
            )
        if fitting:
            path, system = fitting[0], found[fitting[0]]
            _refuse_other_uuid(path, system, target)
            return path, system, _machine(path, system, what)
    named = ", ".join(found) or "none"
    raise BmcFaultError(FaultClass.IDENTITY, f"none of the BMC's systems is this host (found: {named}){trouble}")


def refuse_change(machine: Machine, target: BmcTarget) -> None:
    """Raise BmcFaultError with IDENTITY when another system is chosen now than the one that is on record."""
    known = target.known
    moved = bool(known.system) and known.system != machine.system
    replaced = bool(known.system_uuid and machine.system_uuid) and not same_uuid(known.system_uuid, machine.system_uuid)
    if moved or replaced:
        raise BmcFaultError(
            FaultClass.IDENTITY,
            f"the host's system was {_named(known)}, and now {_named(machine)} is chosen by {machine.chosen_by};"
            " no power order is sent: see what has changed, then rebind the host (hostler host rebind)",
        )


def same_uuid(expected: str | None, told: object) -> bool:
    """True for the same UUID, also where one side has the first three fields the other way round (SMBIOS 2.6)."""
    if expected is None or not isinstance(told, str):
        return False
    try:
        one, other = uuid.UUID(expected), uuid.UUID(told)
    except ValueError:
        return same_serial(expected, (told,))
    return other in {one, uuid.UUID(bytes_le=one.bytes)}


def dig(document: Any, *keys: str) -> Any:
    """The value below `keys`, None where any of them is missing: firmware leaves out what it likes."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _refuse_other_uuid(path: str, system: dict[str, Any], target: BmcTarget) -> None:
    told = system.get("UUID")
    if target.system_uuid is not None and isinstance(told, str) and told and not same_uuid(target.system_uuid, told):
        raise BmcFaultError(
            FaultClass.IDENTITY,
            f"no system has the UUID {target.system_uuid}, {path} says {told}: correct system_uuid in the inventory",
        )


def _machine(path: str, system: dict[str, Any], chosen_by: str) -> Machine:
    return Machine(
        system=path,
        system_uuid=plain(system.get("UUID")),
        chosen_by=chosen_by,
        manufacturer=plain(system.get("Manufacturer")),
        model=plain(system.get("Model")),
    )


def _named(machine: Machine) -> str:
    return f"{machine.system} (UUID {machine.system_uuid})" if machine.system_uuid else machine.system


def _same(expected: str | None, told: object) -> bool:
    return expected is not None and isinstance(told, str) and same_serial(expected, (told,))


def _is_host(system: dict[str, Any]) -> bool:
    return "PowerState" in system and isinstance(dig(system, "Actions", "#ComputerSystem.Reset", "target"), str)
