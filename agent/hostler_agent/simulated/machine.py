"""One simulated machine: power, boots and faults as a state machine over time; processes and files are in `yard`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class Power(StrEnum):
    """Where the machine is. STUCK is powered on and never gets to its operating system."""

    OFF = "off"
    BOOTING = "booting"
    UP = "up"
    STUCK = "stuck"
    GOING_OFF = "going_off"


class Fault(StrEnum):
    """What can be switched on. The `bmc_*` ones are carried out by the BMC's hook and by whoever runs the BMC."""

    HANG = "hang"
    HANG_ON_REBOOT = "hang-on-reboot"
    NO_BOOT = "no-boot"
    SLOW_BOOT = "slow-boot"
    BMC_DEAD = "bmc-dead"
    BMC_SLOW = "bmc-slow"
    BMC_LIES = "bmc-lies"
    BMC_WRONG_PASSWORD = "bmc-wrong-password"  # noqa: S105 - the name of a fault
    SOFT_IGNORED = "soft-ignored"
    REBOOT_IGNORED = "reboot-ignored"
    REBOOT_FAILS = "reboot-fails"
    INHIBITED = "inhibited"
    BUSY = "busy"
    UNUSABLE = "unusable"


CLEAR = "clear"
SLOW_FACTOR = 5.0
SOFT_OFF_S = 0.5
AGENT_RESTART_S = 1.0


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """What `machines.json` says of one host. `agent` are settings of agent.yaml."""

    host: str
    host_id: str
    boot_seconds: float = 2.0
    power: bool = True
    faults: tuple[Fault, ...] = ()
    serial: str = ""
    address: str = ""
    agent: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Order:
    """Who asked the machine for something: task and token are the agent's, empty for the BMC."""

    cause: str
    task: str = ""
    token: str = ""


class Yard(Protocol):
    """Where the machines stand: processes, files, and the ground truth."""

    def start_agent(self, machine: Machine) -> int:
        """Fork the agent; returns its pid."""

    def kill_agent(self, pid: int) -> None:
        """SIGKILL."""

    def stop_agent(self, pid: int) -> None:
        """SIGSTOP."""

    def resume_agent(self, pid: int) -> None:
        """SIGCONT."""

    def record(self, machine: Machine, effect: str, order: Order) -> None:
        """Append one line of ground truth."""

    def changed(self, machine: Machine) -> None:
        """Bring the machine's files up to date."""


class Machine:
    """Give it orders and the time; it tells the yard what happens."""

    def __init__(self, spec: MachineSpec, yard: Yard) -> None:
        self.spec = spec
        self.faults: set[Fault] = set(spec.faults)
        self.power = Power.OFF
        self.boot_id = ""
        self.soft_reboots = 0
        """What its service manager counts on the present boot."""
        self.pid: int | None = None
        self.due_at: float | None = None
        self._order = Order("start")
        self._yard = yard

    @property
    def is_on(self) -> bool:
        """What the BMC answers."""
        return self.power is not Power.OFF

    def switch_on_first(self, now: float) -> None:
        """As found when the simulation starts: up at once, or off."""
        if self.spec.power:
            self._boot(now)
        self._yard.changed(self)

    # --- orders of the BMC --------------------------------------------------------------------------------------------

    def command(self, verb: str, now: float) -> None:
        """Carry a power command out as a chassis does: what makes no sense now does nothing."""
        order = Order("bmc")
        if verb == "on" and not self.is_on:
            self._yard.record(self, "power_on", order)
            self._begin_boot(order, now)
        elif verb == "off" and self.is_on:
            self._yard.record(self, "power_off", order)
            self._go_down(order)
            self._off()
        elif verb == "reset" and self.is_on:
            self._yard.record(self, "power_reset", order)
            self._go_down(order)
            self._begin_boot(order, now)
        elif verb == "soft" and self._hears_soft():
            self._yard.record(self, "soft_off", order)
            self.power, self.due_at, self._order = Power.GOING_OFF, now + SOFT_OFF_S, order
        self._yard.changed(self)

    def _hears_soft(self) -> bool:
        """Only an operating system that runs takes notice of the button."""
        return self.power is Power.UP and not self.faults & {Fault.SOFT_IGNORED, Fault.HANG}

    # --- orders of the agent and of chance ----------------------------------------------------------------------------

    def reboot(self, boot_id: str, order: Order, now: float) -> None:
        """The agent's reboot command; one of another boot is too late and does nothing."""
        if self.power is not Power.UP or boot_id != self.boot_id or Fault.REBOOT_IGNORED in self.faults:
            return
        if Fault.HANG_ON_REBOOT in self.faults:
            self.faults.discard(Fault.HANG_ON_REBOOT)
            self.faults.add(Fault.HANG)
            self._hang()
        else:
            self._go_down(order)
            self._begin_boot(order, now)
        self._yard.changed(self)

    def soft_reboot(self, boot_id: str, order: Order, now: float) -> None:
        """The agent's order to restart user space alone: the agent ends and is started again, on the same boot."""
        if self.power is not Power.UP or boot_id != self.boot_id or Fault.REBOOT_IGNORED in self.faults:
            return
        self.soft_reboots += 1
        self._yard.record(self, "soft_reboot", order)
        if self.pid is not None:
            self._yard.kill_agent(self.pid)
            self.pid = None
        self.due_at = now + AGENT_RESTART_S
        self._yard.changed(self)

    def crash(self, now: float) -> None:
        """A spontaneous reboot."""
        if self.power is Power.UP:
            order = Order("crash")
            self._go_down(order)
            self._begin_boot(order, now)
            self._yard.changed(self)

    def set_fault(self, fault: Fault) -> None:
        """Switch a fault on; `hang` takes hold at once, or at the end of a boot under way."""
        self.faults.add(fault)
        if fault is Fault.HANG and self.power is Power.UP:
            self._hang()
        self._yard.changed(self)

    def clear_faults(self) -> None:
        """All faults off. A machine stuck in its boot stays there until its power is switched."""
        if Fault.HANG in self.faults and self.pid is not None:
            self._yard.resume_agent(self.pid)
        self.faults.clear()
        self._yard.changed(self)

    # --- time ---------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Do what is due."""
        if self.due_at is None or now < self.due_at:
            return
        self.due_at = None
        if self.power is Power.BOOTING:
            self._boot(now)
        elif self.power is Power.GOING_OFF:
            self._go_down(self._order)
            self._off()
        elif self.power is Power.UP and self.pid is None:
            self.pid = self._yard.start_agent(self)
        self._yard.changed(self)

    def agent_ended(self, now: float) -> None:
        """The agent died on a machine that lives: start it again, as systemd would."""
        self.pid = None
        if self.power is Power.UP:
            self.due_at = now + AGENT_RESTART_S

    def _begin_boot(self, order: Order, now: float) -> None:
        self._order = order
        if Fault.NO_BOOT in self.faults:
            self.power, self.due_at = Power.STUCK, None
            return
        factor = SLOW_FACTOR if Fault.SLOW_BOOT in self.faults else 1.0
        self.power, self.due_at = Power.BOOTING, now + self.spec.boot_seconds * factor

    def _boot(self, now: float) -> None:
        del now
        self.boot_id = str(uuid.uuid4())
        self.power, self.due_at = Power.UP, None
        self._yard.record(self, "boot", self._order)
        self.pid = self._yard.start_agent(self)
        if Fault.HANG in self.faults:
            self._hang()

    def _hang(self) -> None:
        self._yard.record(self, "hang", Order("crash"))
        if self.pid is not None:
            self._yard.stop_agent(self.pid)

    def _go_down(self, order: Order) -> None:
        """Everything that ran ends; only a system that ran goes down. A hang ends with the boot it befell."""
        if self.pid is not None:
            self._yard.kill_agent(self.pid)
            self.pid = None
        if self.power in {Power.UP, Power.GOING_OFF}:
            self._yard.record(self, "down", order)
            self.faults.discard(Fault.HANG)
        self.boot_id, self.soft_reboots = "", 0

    def _off(self) -> None:
        self.power, self.due_at = Power.OFF, None
