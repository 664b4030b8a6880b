"""What has restarted since the act, if anything: the kernel, or user space alone; what follows is in `next_step`."""

from __future__ import annotations

from hostler_agent.decide.situation import Situation
from hostler_contract.hosts import JournalPhase
from hostler_contract.work import OperationKind


def rebooted(situation: Situation) -> bool:
    """True on another boot than before the act. An unreadable boot id is unknown, never "changed" (law 1)."""
    return bool(situation.boot_id) and situation.boot_id != situation.entry.boot_before


def userspace_restarted(situation: Situation) -> bool:
    """True only when both sides of a comparison are known (FC-A07)."""
    entry = situation.entry
    if situation.soft_reboots >= 0 and entry.soft_reboots >= 0:
        return situation.soft_reboots > entry.soft_reboots
    before, after = entry.userspace_start, situation.userspace_start
    return bool(before and after and before != after)


def is_soft(situation: Situation) -> bool:
    """True while the work is a soft reboot."""
    order = situation.entry.order
    return order is not None and order.operation is OperationKind.SOFT_REBOOT


def proved(situation: Situation) -> bool:
    """True when what was ordered has happened: a reboot by another boot id, a soft one by the count as well."""
    if rebooted(situation):
        return True
    acted = situation.entry.phase is JournalPhase.ACTING
    return is_soft(situation) and acted and bool(situation.boot_id) and userspace_restarted(situation)
