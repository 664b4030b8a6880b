"""The operation `reboot`: act through the host; its evidence is another boot id, which `decide` waits for."""

from __future__ import annotations

from hostler_agent.ports import ActResult, Host
from hostler_agent.session import Assignment


class Reboot:
    """A full reboot of kernel and userspace; a soft reboot of userspace does not count (FC-A07)."""

    async def act(self, host: Host, order: Assignment) -> ActResult:
        """Give the command; acceptance proves nothing."""
        return await host.reboot(order)
