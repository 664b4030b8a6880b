"""What the worker needs from a login to a BMC, whatever its protocol; those live in `ipmi` and `redfish`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from hostler_coordinator.bmc.answers import Condition, Machine, PowerState, Verb


@dataclass(frozen=True)
class Reading:
    """What a BMC says of power: see the fields of the same names in `BmcAnswer`."""

    state: PowerState
    raw_state: str = ""
    host_state: str = ""
    boot_progress: str = ""
    conditions: frozenset[Condition] = frozenset()
    machine: Machine = field(default_factory=Machine)


class BmcSession(Protocol):
    """One login. Every method raises `BmcFaultError`; `close` raises nothing. Orders are transmitted at most once."""

    def reading(self) -> Reading:
        """Read the power state; may ask the BMC more than once."""
        ...

    def serials(self) -> tuple[str, ...]:
        """Read the serial numbers of the machine behind this BMC: chassis, product, board, as far as it knows them."""
        ...

    def machine(self) -> Machine:
        """Manufacturer and model, and which system power orders go to, as far as it tells."""
        ...

    def sel(self, limit: int, budget_s: float) -> tuple[str, ...]:
        """Read the newest `limit` entries of the event log, oldest first, within `budget_s` seconds."""
        ...

    def locate(self, *, lit: bool) -> None:
        """Switch the chassis' locating light."""
        ...

    def prepare(self, verb: Verb) -> None:
        """Find out whether `verb` can be sent at all, before the caller's confirmation is asked."""
        ...

    def order(self, verb: Verb) -> str:
        """Transmit one destructive verb once; return what the BMC said, "" for a plain acceptance."""
        ...

    def close(self) -> None:
        """Log out, so that no session slot stays taken; errors do not matter any more."""
        ...
