"""The port `Host` on a real Linux machine; each question is answered by a module of its own beside this one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hostler_agent.decide import Blocker
from hostler_agent.host import boot, busy, facts, inhibitors, reboot
from hostler_agent.ports import ActResult, Reading
from hostler_agent.session import Assignment
from hostler_contract.hosts import HostFacts
from hostler_contract.work import OperationKind

FACTS_ONCE_KEYS = ("chassis_serial", "system_uuid", "model")


class Machine:
    """`sysroot` is `/`, or a captured tree with `proc/`, `sys/` and `dev/` in tests."""

    def __init__(
        self,
        *,
        sysroot: Path,
        reboot_command: Sequence[str],
        soft_reboot_command: Sequence[str] = ("systemctl", "soft-reboot"),
        command_deadline_s: float,
        gpu_processes_block: bool,
        people_block: bool,
        hostname: str = "",
        address: str = "",
    ) -> None:
        self._sysroot = sysroot
        self._soft_reboot_command = tuple(soft_reboot_command)
        self._reboot_command = tuple(reboot_command)
        self._deadline_s = command_deadline_s
        self._gpu_processes_block = gpu_processes_block
        self._people_block = people_block
        self._hostname = hostname
        self._address = address

    async def read(self) -> Reading:
        """Boot id from the kernel, the rest from the manager; each unknown on its own."""
        manager = await boot.manager_state(self._deadline_s)
        return Reading(
            boot_id=boot.boot_id(self._sysroot),
            soft_reboots=manager.soft_reboots,
            userspace_start=manager.userspace_start,
            shutting_down=manager.shutting_down,
        )

    async def facts(self) -> HostFacts:
        """Facts as of now."""
        manager = await boot.manager_state(self._deadline_s)
        return facts.read_facts(
            self._sysroot,
            hostname=self._hostname,
            address=self._address,
            soft_reboots=manager.soft_reboots,
        )

    async def blockers(self) -> tuple[Blocker, ...]:
        """Busy GPUs, logged-in people, inhibitors that are taken."""
        found: list[Blocker] = []
        if self._gpu_processes_block:
            found += busy.gpu_processes(self._sysroot)
        if self._people_block:
            found += busy.people()
        found += await inhibitors.blocking_shutdown(self._deadline_s)
        return tuple(found)

    async def reboot(self, order: Assignment) -> ActResult:
        """Say who asked, then reboot the host, or only its user space where the order is for that."""
        command = self._soft_reboot_command if order.operation is OperationKind.SOFT_REBOOT else self._reboot_command
        return await reboot.give_command(command, order, self._deadline_s)
