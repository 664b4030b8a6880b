"""One login to a Redfish BMC, in the worker process only; retries and decisions do not belong here.

pyghmi's Redfish `Command` cannot do this job: it takes the first of several systems or raises (FC-B06), sends resets
without looking at what the BMC allows (FC-B05), waits 60 s, and never deletes its session (FC-B04). Used of pyghmi
is its HTTPS connection, through `redfish_http`; everything above that is here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from hostler_coordinator.bmc.answers import BmcTarget, FaultClass, Machine, PowerState, Verb, power_state
from hostler_coordinator.bmc.credentials import Credentials
from hostler_coordinator.bmc.faults import BmcFaultError
from hostler_coordinator.bmc.redfish_http import Http
from hostler_coordinator.bmc.redfish_system import choose_system, dig, refuse_change
from hostler_coordinator.bmc.sessions import Reading

ROOT = "/redfish/v1/"
SYSTEMS_MAX = 32
PATH_CHARACTERS_MAX = 300
CHASSIS_MAX = 8
LOG_SERVICES_MAX = 8

# In order of preference. PushPowerButton and Nmi are never chosen for anything else, GracefulRestart never at all.
_RESET_TYPES = {
    Verb.ON: ("On", "ForceOn"),
    Verb.OFF: ("ForceOff",),
    Verb.SOFT: ("GracefulShutdown",),
    Verb.RESET: ("ForceRestart",),
    Verb.CYCLE: ("PowerCycle",),
    Verb.NMI: ("Nmi",),
}
_MANAGER_RESET_TYPES = ("GracefulRestart", "ForceRestart")
_RUNNING_HOST_STATES = frozenset({"", "enabled", "starting"})
_WANTED = {Verb.ON: PowerState.ON, Verb.OFF: PowerState.OFF}


class RedfishSession:
    """A `BmcSession` over Redfish: at most one session of ours per BMC, basic authentication where none can be had."""

    def __init__(self, target: BmcTarget, credentials: Credentials) -> None:
        """Log in and choose the host's system; raise BmcFaultError."""
        self._target = target
        self._http = Http(target)
        self._action: tuple[str, str] | None = None
        root = self._http.get(ROOT)
        self._http.log_in(credentials, _session_collection(root))
        try:
            self._root = root
            self._system_path, self._system, self._machine = self._choose_system()
            refuse_change(self._machine, target)
        except BaseException:
            self._http.log_out()
            raise

    def reading(self) -> Reading:
        """The power state of the host's own system, as just read."""
        raw = self._system.get("PowerState")
        state, host_state = power_state(raw), str(dig(self._system, "Status", "State") or "")
        running = state is not PowerState.ON or host_state.casefold() in _RUNNING_HOST_STATES
        return Reading(
            state=state,
            raw_state="" if raw is None else str(raw),
            host_state="" if running else host_state,
            boot_progress=str(dig(self._system, "BootProgress", "LastState") or ""),
            machine=self._machine,
        )

    def machine(self) -> Machine:
        """As the chosen system tells it."""
        return self._machine

    def serials(self) -> tuple[str, ...]:
        """Serial numbers of the system and of the chassis it is in."""
        told = [self._system.get("SerialNumber")]
        for link in _links(dig(self._system, "Links", "Chassis"))[:CHASSIS_MAX]:
            try:
                told.append(self._http.get(link).get("SerialNumber"))
            except BmcFaultError:  # one bad chassis does not spoil the others
                continue
        return tuple(dict.fromkeys(serial.strip() for serial in told if isinstance(serial, str) and serial.strip()))

    def sel(self, limit: int, budget_s: float) -> tuple[str, ...]:
        """The newest entries of the first log service that looks like the event log."""
        give_up_at = time.monotonic() + budget_s
        lines: list[str] = []
        path = self._log_entries_path()
        while path and time.monotonic() < give_up_at and len(lines) < limit * 10:
            page = self._http.get(path)
            lines += [_log_line(entry) for entry in page.get("Members", ()) if isinstance(entry, dict)]
            path = str(page.get("Members@odata.nextLink") or "")
        return tuple(sorted(lines)[-limit:])

    def _log_entries_path(self) -> str:
        """System's logs before the manager's, a SEL before other logs."""
        owners = [self._system, *self._managers()]
        services: list[str] = []
        for owner in owners:
            collection = dig(owner, "LogServices", "@odata.id")
            if isinstance(collection, str):
                services += _links(self._http.get(collection).get("Members"))[:LOG_SERVICES_MAX]
        services.sort(key=lambda path: "sel" not in path.rsplit("/", 1)[-1].casefold())
        if not services:
            raise BmcFaultError(FaultClass.NOT_SUPPORTED, "the BMC offers no log service")
        entries = dig(self._http.get(services[0]), "Entries", "@odata.id")
        if not isinstance(entries, str):
            raise BmcFaultError(FaultClass.NOT_SUPPORTED, f"{services[0]} offers no entries")
        return entries

    def locate(self, *, lit: bool) -> None:
        """Set the locating light, with the resource's ETag where it has one (FC-B08)."""
        if "LocationIndicatorActive" in self._system:
            self._http.patch(self._system_path, {"LocationIndicatorActive": lit})
        elif "IndicatorLED" in self._system:
            self._http.patch(self._system_path, {"IndicatorLED": "Lit" if lit else "Off"})
        else:
            raise BmcFaultError(FaultClass.NOT_SUPPORTED, f"{self._system_path} has no locating light")

    def prepare(self, verb: Verb) -> None:
        """Find the action and a reset type that this BMC lists for it; nothing unlisted is ever sent (FC-B05)."""
        owner, action, wanted = self._system, "#ComputerSystem.Reset", _RESET_TYPES.get(verb, ())
        if verb is Verb.COLD_RESET:
            managers = list(self._managers())
            owner, action, wanted = (managers[0] if managers else {}), "#Manager.Reset", _MANAGER_RESET_TYPES
        path = dig(owner, "Actions", action, "target")
        if not isinstance(path, str):
            raise BmcFaultError(FaultClass.NOT_SUPPORTED, f"the BMC offers no {action} for {self._system_path}")
        allowed = self._allowed(dig(owner, "Actions", action))
        usable = [name for name in wanted if allowed is None or name in allowed]
        if not usable:
            listed = ", ".join(sorted(allowed or ()))
            raise BmcFaultError(
                FaultClass.NOT_SUPPORTED, f"{verb.value} needs {' or '.join(wanted)}, the BMC allows only {listed}"
            )
        self._action = path, usable[0]

    def order(self, verb: Verb) -> str:
        """POST the prepared action once. A 409 for a state that is reached already is an acceptance."""
        if self._action is None:
            self.prepare(verb)
        path, reset_type = self._action or ("", "")
        try:
            self._http.post(path, {"ResetType": reset_type})
        except BmcFaultError as fault:
            if fault.fault is not FaultClass.CONFLICT or verb not in _WANTED:
                raise
            now = power_state(self._http.get(self._system_path).get("PowerState"))
            if now is not _WANTED[verb]:
                raise
            return f"already {now.value} (the BMC answered 409)"
        return f"{reset_type} accepted"

    def close(self) -> None:
        """Delete our session; a BMC that refuses even that is not worth an error."""
        self._http.log_out()

    def _allowed(self, action: Any) -> frozenset[str] | None:
        """Listed reset types, in the action itself or in its ActionInfo; None when the BMC lists none."""
        listed = dig(action, "ResetType@Redfish.AllowableValues")
        info = dig(action, "@Redfish.ActionInfo")
        if not isinstance(listed, list) and isinstance(info, str):
            parameters = self._http.get(info).get("Parameters") or ()
            for parameter in parameters:
                if dig(parameter, "Name") == "ResetType":
                    listed = parameter.get("AllowableValues")
        return frozenset(map(str, listed)) if isinstance(listed, list) and listed else None

    def _managers(self) -> Iterator[dict[str, Any]]:
        links = _links(dig(self._system, "Links", "ManagedBy"))
        if not links:
            collection = dig(self._root, "Managers", "@odata.id")
            members = _links(self._http.get(collection).get("Members")) if isinstance(collection, str) else []
            links = members if len(members) == 1 else []  # several, and none claims our system: not ours to guess
        for link in links[:1]:
            yield self._http.get(link)

    def _choose_system(self) -> tuple[str, dict[str, Any], Machine]:
        collection = dig(self._root, "Systems", "@odata.id")
        if not isinstance(collection, str):
            raise BmcFaultError(FaultClass.NOT_SUPPORTED, "the BMC has no Systems collection")
        members = _links(self._http.get(collection).get("Members"))
        paths = [path for path in members if len(path) <= PATH_CHARACTERS_MAX and path.isprintable()][:SYSTEMS_MAX]
        found, trouble = dict[str, dict[str, Any]](), ""
        for path in paths:
            try:
                found[path] = self._http.get(path)
            except BmcFaultError as fault:
                if fault.fault in {FaultClass.NOT_READY, FaultClass.UNREACHABLE, FaultClass.AUTH}:
                    raise
                trouble = f"; {path}: {fault.text}"
        return choose_system(found, self._target, trouble)


def _session_collection(root: dict[str, Any]) -> str | None:
    """Path of the session collection; None when the BMC has no session service."""
    linked = dig(root, "Links", "Sessions", "@odata.id")
    if isinstance(linked, str):
        return linked
    return f"{ROOT}SessionService/Sessions" if "SessionService" in root else None


def _log_line(entry: dict[str, Any]) -> str:
    parts = (entry.get("Created"), entry.get("Severity"), entry.get("Message"))
    return " ".join(str(part) for part in parts if part)[:500]


def _links(members: Any) -> list[str]:
    if not isinstance(members, list):
        return []
    found = (dig(member, "@odata.id") for member in members)
    return [path for path in found if isinstance(path, str)]
