"""Gives the reboot command and tells people who asked; that it was accepted is no evidence that anything happens."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from hostler_agent.children import Ended, run_child
from hostler_agent.decide import ActState
from hostler_agent.host.inhibitors import judge_refusal
from hostler_agent.ports import ActResult
from hostler_agent.session import Assignment
from hostler_contract.work import OperationKind

MESSAGE_MAX = 400
# The shutdown that we ordered ends the command we ordered it with (FC-A12).
_ENDED_BY_SHUTDOWN = {-signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGHUP, 128 + signal.SIGHUP}


def wall_message(order: Assignment) -> str:
    """What people on the host read before it goes down (FC-D10)."""
    kind = "soft reboot" if order.operation is OperationKind.SOFT_REBOOT else "reboot"
    parts = (
        f"hostler: {kind} for campaign {order.campaign_id or order.task_id}",
        f"asked by {order.actor or 'unknown'}",
    )
    text = ", ".join(parts) + (f": {order.reason}" if order.reason else "")
    return "".join(letter if letter.isprintable() else " " for letter in text)[:MESSAGE_MAX]


def full_command(command: Sequence[str], order: Assignment) -> list[str]:
    """`systemctl reboot` with the message, and with inhibitors heeded unless the order says force.

    As root and without a terminal systemctl does not look at inhibitors by itself, hence the explicit option.
    """
    whole = list(command)
    if whole and whole[0].rsplit("/", 1)[-1] == "systemctl":
        whole += [f"--message={wall_message(order)}", f"--check-inhibitors={'no' if order.force else 'yes'}"]
    return whole


async def give_command(command: Sequence[str], order: Assignment, deadline_s: float) -> ActResult:
    """Run it in a killable child and judge its words."""
    return judge_end(await run_child(full_command(command, order), deadline_s=deadline_s))


def judge_end(ended: Ended) -> ActResult:
    """0, or an end by the shutdown itself: accepted. No end in time: accepted as well, for it may have been heard."""
    if ended.status == 0 or ended.status in _ENDED_BY_SHUTDOWN:
        return ActResult(ActState.ACCEPTED, ended.words if ended.output or ended.errors else "")
    if ended.status is None and ended.started:
        return ActResult(ActState.ACCEPTED, ended.problem)
    return judge_refusal(ended.words)
