"""The words of the out-of-band room: what is asked of a BMC and what it can answer; no I/O belongs here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class PowerState(Enum):
    """The host's main power as its BMC tells it. UNKNOWN is a value of its own, never off and never on (law 7)."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class Protocol(Enum):
    """How a BMC is spoken to."""

    IPMI = "ipmi"
    REDFISH = "redfish"


class Verb(Enum):
    """One BMC operation: one login, one question or one command, one logout."""

    STATUS = "status"
    ON = "on"
    OFF = "off"
    SOFT = "soft"
    SERIAL = "serial"
    MACHINE = "machine"
    LOCATE_ON = "locate-on"
    LOCATE_OFF = "locate-off"
    COLD_RESET = "cold-reset"
    SEL = "sel"
    RESET = "reset"
    CYCLE = "cycle"
    NMI = "nmi"

    @property
    def destructive(self) -> bool:
        """True when it changes power or restarts the BMC: such a verb is sent only after a confirmation (law 3)."""
        return self in _DESTRUCTIVE

    @property
    def single_shot(self) -> bool:
        """True when a second copy of the command would do a second thing: it goes on the wire once and never again."""
        return self in _SINGLE_SHOT


_SINGLE_SHOT = frozenset({Verb.SOFT, Verb.COLD_RESET, Verb.RESET, Verb.CYCLE, Verb.NMI})
_DESTRUCTIVE = _SINGLE_SHOT | {Verb.ON, Verb.OFF}


class Condition(Enum):
    """Fault bits beside the power bit (IPMI 2.0 table 28-3, first data byte of Get Chassis Status)."""

    OVERLOAD = "overload"
    POWER_FAULT = "power_fault"
    CONTROL_FAULT = "control_fault"


class FaultClass(Enum):
    """Why an operation brought nothing; the class decides who may try again and when (`retries`)."""

    AUTH = "auth"
    CIPHER = "cipher"
    NO_SLOTS = "no_slots"
    BUSY = "busy"
    WRONG_STATE = "wrong_state"
    NOT_READY = "not_ready"
    CONFLICT = "conflict"
    NOT_SUPPORTED = "not_supported"
    IDENTITY = "identity"
    UNREACHABLE = "unreachable"
    WEDGED = "wedged"
    PROTOCOL = "protocol"
    CREDENTIALS = "credentials"  # our own reference cannot be used; the BMC was not contacted
    # Found by the walks, not by one answer:
    UNTRUSTED = "untrusted"  # accepts orders, and its state says that nothing happened
    HARDWARE = "hardware"  # control fault: no power orders without a person (FC-B19)
    NO_FORCE = "no_force"  # only a hard off is left, and our own settings forbid it
    NOT_GRACEFUL = "not_graceful"  # the same, as a soft off to this model is a hard one (FC-B18)


@dataclass(frozen=True)
class Machine:
    """What a BMC tells of the machine behind it; "" is untold.

    `system` is the Redfish resource that power orders go to, `chosen_by` the rule that chose it. IPMI has one machine.
    """

    system: str = ""
    system_uuid: str = ""
    chosen_by: str = ""
    manufacturer: str = ""
    model: str = ""

    @property
    def of_model(self) -> str:
        """Manufacturer and model in one."""
        return f"{self.manufacturer} {self.model}".strip()


@dataclass(frozen=True)
class BmcTarget:
    """One BMC as the inventory knows it.

    `credentials_ref` is a reference (`file:…`, `env:…`), never a secret. `serial` and `system_uuid` are what the
    inventory expects to find behind this address; None where it knows nothing. `known` is what was found there before:
    another system now stops everything (FC-B06). `ca_file` is a PEM file for Redfish;
    None means the system's own trust store. Without `verify_tls` any certificate is accepted.
    """

    host_id: str
    protocol: Protocol
    address: str
    port: int
    credentials_ref: str
    serial: str | None = None
    system_uuid: str | None = None
    rack: str | None = None
    feed: str | None = None
    verify_tls: bool = True
    ca_file: str | None = None
    known: Machine = Machine()


@dataclass(frozen=True)
class BmcAnswer:
    """What came of one operation. Times are epoch seconds UTC; `text` is for people and never holds a secret.

    `ok` of a power order means *accepted*, nothing more (law 1). `sent` is True once the order may have reached the
    BMC, so a failed answer with `sent` false certainly changed nothing. `withheld` is why the caller's own check
    stopped the order. `raw_state` keeps the BMC's word for its power state, `host_state` what it says of the host
    behind it when that is not plainly running (FC-B20), `boot_progress` how far the boot is, each "" when unread.
    """

    ok: bool
    verb: Verb
    state: PowerState = PowerState.UNKNOWN
    raw_state: str = ""
    host_state: str = ""
    boot_progress: str = ""
    conditions: frozenset[Condition] = frozenset()
    fault: FaultClass | None = None
    code: int | None = None
    text: str = ""
    withheld: str = ""
    sent: bool = False
    serials: tuple[str, ...] = ()
    machine: Machine = Machine()
    events: tuple[str, ...] = ()
    retry_after_s: float | None = None
    asked_at: float = 0.0
    answered_at: float = 0.0
    tries: int = 1

    @property
    def system(self) -> str:
        """The Redfish system that was asked, "" for IPMI."""
        return self.machine.system


@dataclass(frozen=True)
class Confirmation:
    """The caller's last word before an order goes out: token newest, no hold, leadership kept, host still silent."""

    ok: bool
    why_not: str = ""


def power_state(raw: object) -> PowerState:
    """Normalise a BMC's word for power: only a plain on or off counts, all else is UNKNOWN (FC-B01, FC-B07)."""
    if not isinstance(raw, str):
        return PowerState.UNKNOWN
    word = raw.strip().casefold()
    if word == "on":
        return PowerState.ON
    return PowerState.OFF if word == "off" else PowerState.UNKNOWN


def chassis_reading(first_byte: int) -> tuple[PowerState, frozenset[Condition]]:
    """Read the first data byte of Get Chassis Status: (power by bit 0, fault conditions by bits 1, 3 and 4)."""
    bits = {Condition.OVERLOAD: 0x02, Condition.POWER_FAULT: 0x08, Condition.CONTROL_FAULT: 0x10}
    state = PowerState.ON if first_byte & 0x01 else PowerState.OFF
    return state, frozenset(condition for condition, bit in bits.items() if first_byte & bit)


def plain(told: object) -> str:
    """A firmware's word as it may be stored and shown: "" for what is no text, at most 100 printable characters."""
    if not isinstance(told, str):
        return ""
    return "".join(letter if letter.isprintable() else "?" for letter in told.strip()[:100])


def same_serial(expected: str, told: tuple[str, ...]) -> bool:
    """True when one of the serial numbers told is the expected one; case and outer blanks count for nothing."""
    wanted = expected.strip().casefold()
    return any(serial.strip().casefold() == wanted for serial in told)
