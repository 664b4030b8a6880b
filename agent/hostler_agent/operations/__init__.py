"""The operations an agent can carry out, by kind; an unknown kind is refused by `decide`, and power is the BMC's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hostler_agent.operations.reboot import Reboot
from hostler_agent.operations.soft_reboot import SoftReboot
from hostler_agent.ports import ActResult, Host
from hostler_agent.session import Assignment
from hostler_contract.work import OperationKind


class Operation(Protocol):
    """One kind of work. Typed parameters come with the order; never a shell string."""

    async def act(self, host: Host, order: Assignment) -> ActResult:
        """Carry it out; the intent is durable and GO was given."""


OPERATIONS: Mapping[OperationKind, Operation] = {
    OperationKind.REBOOT: Reboot(),
    OperationKind.SOFT_REBOOT: SoftReboot(),
}
