"""One simulated machine over a yard that only writes down what it was asked for: restarts of user space alone."""

from __future__ import annotations

from hostler_agent.simulated.machine import AGENT_RESTART_S, Fault, Machine, MachineSpec, Order, Power

ORDER = Order("agent", "c-1/h1", "1.7")


class PaperYard:
    """Agents are numbers."""

    def __init__(self) -> None:
        self.started = 0
        self.killed: list[int] = []
        self.effects: list[tuple[str, str, str]] = []

    def start_agent(self, machine: Machine) -> int:
        self.started += 1
        return self.started

    def kill_agent(self, pid: int) -> None:
        self.killed.append(pid)

    def stop_agent(self, pid: int) -> None:
        raise AssertionError(pid)

    resume_agent = stop_agent

    def record(self, machine: Machine, effect: str, order: Order) -> None:
        self.effects.append((effect, machine.boot_id, order.token))

    def changed(self, machine: Machine) -> None:
        """Files are not kept here."""


def running() -> tuple[Machine, PaperYard]:
    yard = PaperYard()
    machine = Machine(MachineSpec("h1", "id-h1"), yard)
    machine.switch_on_first(0.0)
    return machine, yard


def test_fc_a07_a_soft_reboot_keeps_the_boot_id_and_is_no_boot_in_the_ground_truth() -> None:
    machine, yard = running()
    boot_id = machine.boot_id
    machine.soft_reboot(boot_id, ORDER, 10.0)
    assert (machine.power, machine.pid, machine.soft_reboots, yard.killed) == (Power.UP, None, 1, [1])
    machine.tick(10.0 + AGENT_RESTART_S)
    assert (machine.boot_id, machine.pid) == (boot_id, 2)
    assert yard.effects == [("boot", boot_id, ""), ("soft_reboot", boot_id, "1.7")]


def test_a_boot_counts_soft_reboots_from_zero() -> None:
    machine, _ = running()
    machine.soft_reboot(machine.boot_id, ORDER, 10.0)
    machine.command("reset", 20.0)
    machine.tick(30.0)
    assert (machine.power, machine.soft_reboots) == (Power.UP, 0)


def test_a_soft_reboot_of_another_boot_or_of_a_machine_that_ignores_it_does_nothing() -> None:
    machine, yard = running()
    machine.soft_reboot("another", ORDER, 10.0)
    machine.set_fault(Fault.REBOOT_IGNORED)
    machine.soft_reboot(machine.boot_id, ORDER, 10.0)
    machine.command("off", 20.0)
    machine.soft_reboot("", ORDER, 30.0)
    assert (machine.soft_reboots, yard.started) == (0, 1)
    assert "soft_reboot" not in {effect for effect, _, _ in yard.effects}
