"""Hosts: who they are, what they report, who has a claim on them, and the holds that say hands off."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from hostler_contract.moments import Instant
from hostler_contract.shapes import Record, Value
from hostler_contract.work import Token


class BmcRef(Value):
    """Where a host's BMC is and where its credentials lie (`file:PATH`, `env:NAME`), never what they are."""

    protocol: str = "ipmi"
    address: str = ""
    port: int = 623
    credentials: str = ""
    serial: str = ""


class DrainMark(Value):
    """A person's own drain; only a person ends it."""

    owner: str
    reason: str
    at: Instant


class Retirement(Value):
    """Out of charge and denominator, under a ticket."""

    ticket: str
    by: str
    at: Instant
    reason: str = ""


class HostRecord(Record):
    """One enrolled machine. Key: `hosts/<id>`. The id never changes; name, address, serial and BMC may."""

    id: str
    name: str
    fabric: str = ""
    rack: str = ""
    feeds: tuple[str, ...] = ()
    site: str = "site"
    labels: dict[str, str] = Field(default_factory=dict)
    model: str = ""
    address: str = ""
    serial: str = ""
    system_uuid: str = ""
    """UUID of the host's own system, as its BMC tells it; empty where the inventory knows none."""
    bmc: BmcRef | None = None
    enrolled_at: Instant
    boot_id: str | None = None
    """Newest boot id heard, durable; None until the host was first heard."""
    unexpected_boot_at: Instant | None = None
    """When it last came back on a boot that no task of ours had caused."""
    drain: DrainMark | None = None
    retired: Retirement | None = None
    note: str = ""
    flags: tuple[str, ...] = ()

    @property
    def domains(self) -> tuple[str, ...]:
        """Every failure domain the host belongs to, as `kind/name`, in a fixed order."""
        named = (("fabric", self.fabric), ("rack", self.rack), *(("feed", feed) for feed in self.feeds))
        return (*(f"{kind}/{name}" for kind, name in named if name), f"site/{self.site}")


class BmcFacts(Record):
    """What a host's BMC told of the machine behind it, kept so that a change is noticed. Key: `bmcfacts/<host>`.

    They hold for the binding under which they were learned: with another BMC or serial they are learned anew.
    """

    host: str
    binding: str
    """Protocol, address, port, serial and UUID of the inventory at that time."""
    system: str = ""
    """The Redfish system that power orders go to; empty for IPMI, which knows only one."""
    system_uuid: str = ""
    chosen_by: str = ""
    """Why it is that system: "the UUID", "the serial number", "power and a Reset action"."""
    manufacturer: str = ""
    model: str = ""
    at: Instant = 0.0

    @property
    def of_model(self) -> str:
        """Manufacturer and model in one; empty while unknown."""
        return f"{self.manufacturer} {self.model}".strip()


class BmcModel(Record):
    """What was found about all BMCs of one manufacturer and model. Key: `bmcmodels/<key of the name>`."""

    name: str
    graceful_not_honoured: str = ""
    """What was seen: on which host, and how fast it was off. Empty: nothing speaks against a soft off."""
    host: str = ""
    at: Instant = 0.0


class Claim(Record):
    """The newest token issued for a host, and the one task that may act on it. Key: `claims/<host>`."""

    host: str
    token: Token = Token()
    refused: Token = Token()
    """The newest overtaken token whose order was refused where it would have acted, and that is in the audit."""
    task: str = ""
    """`campaign/host` of the task that holds the host; empty when none does."""
    at: Instant = 0.0


class HoldKind(StrEnum):
    """Why hands are off; every kind binds every actor."""

    HANDS_OFF = "hands_off"
    FIRMWARE = "firmware"
    CRASH_DUMP = "crash_dump"


class Hold(Record):
    """Hands off this host until T, because R. Key: `holds/<host>/<id>`."""

    id: str
    host: str
    kind: HoldKind = HoldKind.HANDS_OFF
    reason: str
    owner: str
    at: Instant
    until: Instant | None = None


class Usability(StrEnum):
    """What the agent says of its host since boot."""

    STARTING = "starting"
    USABLE = "usable"
    UNUSABLE = "unusable"
    UNKNOWN = "unknown"


class Condition(Value):
    """What the agent knows of its host now."""

    usability: Usability = Usability.UNKNOWN
    usability_reason: str = ""
    blocked_by: str = ""
    drained_for: str = ""
    shutting_down: bool = False
    can_drain: bool = False


class HostFacts(Value):
    """What the agent read of its machine; -1 and empty mean unknown."""

    hostname: str = ""
    address: str = ""
    kernel: str = ""
    architecture: str = ""
    cpu_count: int = 0
    memory_bytes: int = 0
    uptime_s: float = 0.0
    chassis_serial: str = ""
    system_uuid: str = ""
    model: str = ""
    agent_version: str = ""
    soft_reboot_count: int = -1


class JournalPhase(StrEnum):
    """How far the agent had got, by its own disk."""

    ACCEPTED = "accepted"
    INTENT = "intent"
    ACTING = "acting"
    DONE = "done"


class Journal(Value):
    """What the agent's disk says it was doing."""

    task_id: str = ""
    token: Token = Token()
    phase: JournalPhase | None = None
    boot_before: str = ""
    damage: str = ""
