"""The operation `soft-reboot`: user space only; its evidence is the manager's count, which `decide` compares."""

from __future__ import annotations

from hostler_agent.ports import ActResult, Host
from hostler_agent.session import Assignment


class SoftReboot:
    """A restart of user space on the same kernel; a full reboot ends the work as well, and is said to be one."""

    async def act(self, host: Host, order: Assignment) -> ActResult:
        """Give the command; acceptance proves nothing."""
        return await host.reboot(order)
