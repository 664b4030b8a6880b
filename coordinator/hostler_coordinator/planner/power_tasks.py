"""Tasks whose host's power is in the BMC's hands: an intent in force, taken over, or done and waiting for the boot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.work import EvidenceKind, OperationKind, PowerVerb
from hostler_coordinator import ladder
from hostler_coordinator.bmc_memory import new_facts, new_model
from hostler_coordinator.lifecycle import Event
from hostler_coordinator.live import PowerResult
from hostler_coordinator.planner.actions import NotePower, Why
from hostler_coordinator.planner.rungs import Case, Decision, exhausted, failed_attempt, rescue, rescue_if_open, usable

if TYPE_CHECKING:
    from hostler_contract.work import TaskRecord
    from hostler_coordinator.planner.world import World


def unwritten(world: World, task: TaskRecord) -> NotePower | None:
    """What the walk of this task's intent has told and nobody has written down yet."""
    report, host = world.power.get(task.id), world.state.hosts.get(task.host)
    if report is None or host is None or task.power is None or report.token != task.power.token:
        return None
    written = set(task.evidence)
    steps = tuple(step for step in report.steps if step.evidence not in written)
    bmc = report.bmc if new_facts(world.state, host, report.bmc) else None
    model = report.model if new_model(world.state, report.model) else None
    if not steps and bmc is None and model is None:
        return None
    return NotePower(task.campaign, task.host, task.power.why, steps, bmc, model)


def power_cycling(case: Case) -> Decision:
    """An intent is durable: what its worker reports, or what becomes of it when its leader is gone."""
    intent, report = case.task.power, case.world.power.get(case.task.id)
    if intent is None or report is None or report.token != intent.token:
        return _orphaned(case)
    if report.result is PowerResult.WORKING:
        return Why(
            "power",
            f"the power worker is at it: {report.step or 'logging in'}",
            since=intent.at,
            next_step="wait for its boot",
        )
    if report.result is PowerResult.DONE:
        if intent.verb is PowerVerb.OFF:
            return case.move(Event.POWER_SETTLED, "", "", *report.evidence)
        return case.move(
            Event.POWER_DONE,
            "",
            report.text,
            *report.evidence,
            deadline_at=case.now + case.world.boot_allowance_s(case.host),
        )
    if report.result is PowerResult.CANCELLED and case.on_old_boot:
        return failed_attempt(case, "came-back", "its agent answered again before the power was touched")
    return _power_failed(case, report.code or "power-failed", report.text, retry=report.retry)


def _power_failed(case: Case, code: str, text: str, *, retry: bool) -> Decision:
    intent = case.task.power
    if not retry or ladder.rescues_left(case.task, case.world.policy) == 0 or intent is None:
        return exhausted(case, code, text)
    again_at = intent.at + ladder.pause_s(case.world.policy, case.task.rescues, 1.0)
    if case.now < again_at:
        return Why(
            "power-retry",
            f"power action failed: {text}",
            since=intent.at,
            next_step="another power action",
            next_at=again_at,
        )
    return rescue_if_open(case, intent.verb, f"again, as the last one failed: {text}")


def _orphaned(case: Case) -> Decision:
    """An intent of a dead leader: its worker may still hold a BMC session, so wait it out, then adopt the goal."""
    intent = case.task.power
    if intent is None:
        return exhausted(case, "contradiction", "a power cycle without an intent: this must not happen")
    free_at = intent.expires_at + case.world.policy.bmc_session_timeout_s
    if case.now < free_at:
        return Why(
            "power-adopt",
            f"a power action was begun by {intent.leader}, which no longer leads",
            since=intent.at,
            held_by=intent.leader,
            next_step="taken over when its BMC session has ended for certain",
            next_at=free_at,
        )
    if case.on_old_boot:
        return failed_attempt(case, "came-back", "its agent answers on the old boot; the power was not touched")
    if case.task.rescues >= ladder.ADOPTIONS_MAX:
        return exhausted(case, "no-boot", f"{case.task.rescues} power actions were begun, none came to an end")
    return rescue_if_open(case, intent.verb, f"taken over from {intent.leader}")


def power_cycled(case: Case) -> Decision:
    """Off and on were seen; only the boot proves anything."""
    if case.campaign.request.operation is OperationKind.POWER_ON and usable(case):
        return case.move(Event.USABLE, "", "", case.seen_now(EvidenceKind.USABLE, "its agent is heard and usable"))
    if not case.overdue():
        return Why(
            "booting",
            "powered on again; waiting for its boot",
            since=case.task.since,
            next_step="another power action, or a dead letter",
            next_at=case.task.deadline_at,
        )
    if case.on_old_boot:
        return exhausted(
            case, "contradiction", "the BMC showed off and on, yet the host is heard on the boot of before"
        )
    if case.world.heard(case.host.id):
        return exhausted(case, "unproved", "it is powered and heard, but no boot id was known before")
    return rescue(case, "powered on, and no new boot id came before the deadline")
