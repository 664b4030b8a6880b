"""Tasks in flight: what was heard since they last moved, turned into their next event; one function per state.

Each returns an action, or a Why that says what the task waits for. Evidence decides, never time alone: a deadline opens
the next rung of the ladder, it proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.campaigns import CampaignState
from hostler_contract.work import BY_AGENT, EvidenceKind, OperationKind, PowerVerb, TaskState
from hostler_coordinator.lifecycle import LET_GO, Event, may
from hostler_coordinator.live import ReportKind
from hostler_coordinator.planner.actions import Move, Why
from hostler_coordinator.planner.gates import (
    blocked_gate,
    campaign_gate,
    go_gate,
    hold_gate,
    is_ordered,
)
from hostler_coordinator.planner.power_tasks import power_cycled, power_cycling
from hostler_coordinator.planner.rungs import (
    Case,
    Decision,
    exhausted,
    failed_attempt,
    let_go_in_vain,
    rescue,
    rescue_if_open,
    usable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostler_contract.campaigns import CampaignRecord
    from hostler_contract.work import TaskRecord
    from hostler_coordinator.live import TaskReport
    from hostler_coordinator.planner.gates import Room
    from hostler_coordinator.planner.world import World


def decide(world: World, campaign: CampaignRecord, task: TaskRecord, room: Room) -> Decision:
    """The next step of a task that has a record and has not ended."""
    host = world.state.hosts.get(task.host)
    if host is None:
        return Move(campaign.id, task.host, Event.REMOVED, "host-removed", "the host was removed from the inventory")
    case = Case(world, campaign, task, host, room)
    return _boot_changed(case) or _userspace_restarted(case) or _BY_STATE[task.state](case)


def _boot_changed(case: Case) -> Move | None:
    """A boot id other than the one recorded before the act: the proof, whenever it comes. Unknown is not changed."""
    task, boot = case.task, case.seen.boot_id
    if not case.seen.connected or not boot or not task.boot_before or boot in {task.boot_before, task.boot_after}:
        return None
    if not may(task.state, Event.BOOT_CHANGED):
        return None
    by_itself = "" if task.state in LET_GO else " (it rebooted by itself)"
    if _is_soft(case) and task.state in LET_GO:
        by_itself = " (the whole host rebooted; only its user space was to restart)"
    return case.move(
        Event.BOOT_CHANGED,
        "",
        "",
        case.seen_now(EvidenceKind.BOOT_CHANGED, f"{task.boot_after or task.boot_before} -> {boot}{by_itself}"),
        case.seen_now(EvidenceKind.AGENT_BACK, f"agent attached to {case.seen.via}"),
        boot_after=boot,
        deadline_at=case.now + case.world.policy.usable_timeout_s + case.campaign.limits.soak_s,
    )


def _is_soft(case: Case) -> bool:
    """Only user space is to restart: that justifies no power cycle, so its ladder has no rung of the BMC."""
    return case.campaign.request.operation is OperationKind.SOFT_REBOOT


def _userspace_restarted(case: Case) -> Move | None:
    """A soft reboot keeps the boot id: its proof is the manager's count, beyond the one recorded before the act."""
    task, seen = case.task, case.seen
    before, count = task.soft_reboots_before, seen.facts.soft_reboot_count
    if before is None or not seen.connected or not seen.boot_id or seen.boot_id != task.boot_before or count <= before:
        return None
    if not _is_soft(case) or not may(task.state, Event.USERSPACE_RESTARTED):
        return None
    detail = f"soft reboots counted: {before} -> {count}; boot id unchanged: {seen.boot_id}"
    return case.move(
        Event.USERSPACE_RESTARTED,
        "",
        "",
        case.seen_now(EvidenceKind.USERSPACE_RESTARTED, detail),
        case.seen_now(EvidenceKind.AGENT_BACK, f"agent attached to {seen.via}"),
        boot_after=seen.boot_id,
        deadline_at=case.now + case.world.policy.usable_timeout_s + case.campaign.limits.soak_s,
    )


# -- reserved --------------------------------------------------------------------------------------------------------


def _reserved(case: Case) -> Decision:
    withdrawn = _withdrawal(case)
    if withdrawn is not None:
        return withdrawn
    if case.campaign.request.operation not in BY_AGENT:
        return _ordered_power(case)
    if case.report is not None and case.report.kind in {ReportKind.REFUSED, ReportKind.FAILED}:
        return _refused_or_failed(case, case.report)
    if case.report is not None and case.report.kind is ReportKind.STARTED:
        return _let_go(case)
    if not case.world.heard(case.host.id):
        return _reserved_silent(case)
    if case.overdue():
        return failed_attempt(case, "not-ready", "its agent did not get ready for the reboot in time")
    word = case.report.kind.value.replace("_", " ") if case.report else "waiting for its agent to ask for work"
    return Why(
        f"agent-{case.report.kind.value if case.report else 'pull'}",
        f"{word}",
        since=case.task.since,
        next_step="GO, when the agent has its intent on disk",
        next_at=case.task.deadline_at,
    )


def _withdrawal(case: Case) -> Move | None:
    """Before the point of no return, a closed gate takes the work back."""
    closed = (
        campaign_gate(case.world, case.campaign)
        or hold_gate(case.world, case.host.id)
        or blocked_gate(case.world, case.campaign, case.host.id)
    )
    if closed is None:
        return None
    ending = case.campaign.state in {CampaignState.ABORTING, CampaignState.FAILED}
    return case.move(
        Event.WITHDRAW,
        closed.code,
        closed.text,
        stop_to=TaskState.ABORTED if ending else TaskState.PENDING,
        deadline_at=case.now + case.world.policy.stop_timeout_s,
    )


def _refused_or_failed(case: Case, report: TaskReport) -> Move:
    text = report.text or report.code
    if report.permanent:
        return exhausted(case, report.code, text)
    if report.kind is ReportKind.FAILED:
        return failed_attempt(case, report.code, text)
    if case.task.refusals + 1 >= case.world.policy.refusals:
        return exhausted(case, report.code, f"refused {case.task.refusals + 1} times: {text}")
    return case.move(
        Event.REFUSED, report.code, text, refused=True, next_attempt_at=case.now + case.world.policy.refusal_pause_s
    )


def _let_go(case: Case) -> Decision:
    """The agent has its intent on disk and asks for the GO; everything is checked once more (law 3)."""
    if not case.seen.boot_id:
        if case.overdue():
            return failed_attempt(
                case, "boot-id-unknown", "its boot id cannot be read, so a reboot could not be proved"
            )
        return Why(
            "boot-id-unknown",
            "its boot id cannot be read, so a reboot could not be proved",
            next_step="goes on when the agent can read it",
        )
    closed = go_gate(case.world, case.campaign, case.host, case.room)
    if closed is not None:
        if case.overdue():
            return case.move(
                Event.WITHDRAW,
                closed.code,
                closed.text,
                stop_to=TaskState.PENDING,
                deadline_at=case.now + case.world.policy.stop_timeout_s,
            )
        return closed
    if is_ordered(case.campaign):
        return rescue_if_open(case, PowerVerb.CYCLE, "an operator ordered a hard reboot; the host is drained")
    policy, soft_reboots = case.world.policy, case.seen.facts.soft_reboot_count
    if _is_soft(case) and soft_reboots < 0:
        return exhausted(case, "soft-reboots-unknown", "it does not say how many soft reboots it counts")
    return case.move(
        Event.GO,
        "",
        "",
        case.seen_now(EvidenceKind.GO_GIVEN, f"by {case.world.leader}"),
        boot_before=case.task.boot_before or case.seen.boot_id,
        soft_reboots_before=soft_reboots if _is_soft(case) else None,
        deadline_at=case.now + case.world.reboot_allowance_s(case.host) + policy.go_lifetime_s,
    )


def _reserved_silent(case: Case) -> Decision:
    if is_ordered(case.campaign):
        silence = "no agent has ever attached" if case.host.boot_id is None else "its agent is silent"
        return rescue_if_open(case, PowerVerb.CYCLE, f"an operator ordered a hard reboot; {silence}")
    if case.host.boot_id is None:
        if case.overdue():
            return exhausted(case, "never-seen", "no agent has ever attached to Hostler from this host")
        return Why(
            "never-seen",
            "no agent has ever attached from this host",
            since=case.task.since,
            next_step="dead letter",
            next_at=case.task.deadline_at,
        )
    since = max(case.seen.heard_at, case.world.leader_since)
    if _is_soft(case):
        if case.overdue():
            return exhausted(case, "agent-silent", "its agent fell silent before it was let go for a soft reboot")
        return Why("silent", "its agent is silent", since=since, next_step="dead letter", next_at=case.task.deadline_at)
    due = since + case.world.policy.rescue_after_s
    if case.now < due:
        return Why("silent", "its agent is silent", since=since, next_step="rescue through the BMC", next_at=due)
    blocked_by = case.world.blocked_by(case.host.id)
    if blocked_by and not case.campaign.request.force:
        # Drained or not is unknown now, and the job may be well (law 5): a person looks before its power goes.
        return exhausted(case, "job-may-run", f"its agent hangs, and {blocked_by} may still run")
    return rescue(case, "the agent hangs: silent before it was let go")


def _ordered_power(case: Case) -> Decision:
    verb = PowerVerb.ON if case.campaign.request.operation is OperationKind.POWER_ON else PowerVerb.OFF
    return rescue_if_open(case, verb, f"an operator ordered power {verb.value}")


# -- acting ----------------------------------------------------------------------------------------------------------


def _acting(case: Case) -> Decision:
    task, report = case.task, case.report
    if report is not None and report.kind in {ReportKind.FAILED, ReportKind.REFUSED} and case.on_old_boot:
        if report.code == "still-up":
            return _still_up(case, report.text)
        return _refused_or_failed(case, report)
    if not case.on_old_boot:
        return _acting_silent(case)
    if report is not None and report.kind is ReportKind.STARTED and case.now >= (task.go_expires_at or 0.0):
        return _renew_go(case)
    # Counted from the newest GO, and never cutting short a shutdown that the host says is under way.
    up_until = (task.go_expires_at or task.since) + case.world.policy.shutdown_timeout_s
    if case.seen.condition.shutting_down:
        up_until = max(up_until, task.deadline_at or 0.0)
    if case.now >= up_until:
        return _still_up(case, "")
    return Why(
        "shutting-down",
        "let go, and still up on the old boot",
        since=task.go_at,
        next_step="the attempt counts as failed",
        next_at=up_until,
    )


def _still_up(case: Case, text: str) -> Move:
    if _is_soft(case):
        return let_go_in_vain(case, "no-soft-reboot", text or "soft reboot accepted, user space did not restart")
    return let_go_in_vain(case, "still-up", text or "reboot command accepted, host still up")


def _renew_go(case: Case) -> Decision:
    closed = go_gate(case.world, case.campaign, case.host, case.room)
    if closed is not None and not case.overdue():
        return closed
    if case.overdue():
        return let_go_in_vain(case, "no-go", closed.text if closed else "it was let go and did not act in time")
    return case.move(Event.GO, "", "", case.seen_now(EvidenceKind.GO_GIVEN, f"again, by {case.world.leader}"))


def _acting_silent(case: Case) -> Decision:
    next_step = "dead letter" if _is_soft(case) else "rescue through the BMC"
    if not case.overdue() or case.world.heard(case.host.id):
        return Why(
            "down",
            "let go, not back yet",
            since=case.task.go_at,
            next_step=next_step,
            next_at=case.task.deadline_at,
        )
    if not case.world.silent(case.host.id):
        return Why(
            "leader-grace",
            "overdue; a new leader waits before it judges silence",
            since=case.task.deadline_at,
            next_step=next_step,
            next_at=case.world.grace_ends_at,
        )
    if _is_soft(case):
        return exhausted(case, "no-soft-reboot", "let go for a soft reboot, it was not heard again before the deadline")
    begun = case.seen.condition.shutting_down or (case.report is not None and case.report.kind is ReportKind.ACTING)
    word = "shutdown started, host did not restart" if begun else "it was let go, and did not restart"
    return rescue(case, f"{word}: no new boot id came before the deadline")


# -- stopping --------------------------------------------------------------------------------------------------------


def _stopping(case: Case) -> Decision:
    after = Event.STOPPED_FOR_ABORT if case.task.stop_to is TaskState.ABORTED else Event.STOPPED_FOR_PAUSE
    ended = {ReportKind.STOPPED, ReportKind.REFUSED, ReportKind.FAILED}
    if case.report is not None and case.report.kind in ended:
        return case.move(after, case.task.code, case.task.reason)
    if case.overdue():
        note = case.seen_now(EvidenceKind.NOTE, "the agent did not confirm the stop; it was never let go")
        return case.move(after, case.task.code, case.task.reason, note)
    return Why(
        "stopping",
        f"work is taken back: {case.task.reason}",
        since=case.task.since,
        next_step="ends when the agent has undone its drain",
        next_at=case.task.deadline_at,
    )


# -- proving ---------------------------------------------------------------------------------------------------------


def _proving(case: Case) -> Decision:
    came_up = "booted" if case.task.boot_after != case.task.boot_before else "restarted its user space"
    condition = case.seen.condition
    if case.seen.boot_id == case.task.boot_after and usable(case):
        return case.move(
            Event.USABLE,
            "",
            "",
            case.seen_now(EvidenceKind.USABLE, condition.usability_reason or "post-boot checks passed"),
        )
    if case.overdue() and not case.world.in_grace:
        if case.world.heard(case.host.id):
            return exhausted(
                case, "unusable", f"{came_up}, not usable: {condition.usability_reason or 'no reason given'}"
            )
        return exhausted(case, "lost-after-boot", f"it {came_up}, then fell silent before it was usable")
    return Why(
        "proving",
        f"{came_up}; {condition.usability_reason or 'post-boot checks run'}",
        since=case.task.since,
        next_step="done when usable; a dead letter at the deadline",
        next_at=case.task.deadline_at,
    )


_BY_STATE: dict[TaskState, Callable[[Case], Decision]] = {
    TaskState.RESERVED: _reserved,
    TaskState.ACTING: _acting,
    TaskState.STOPPING: _stopping,
    TaskState.POWER_CYCLING: power_cycling,
    TaskState.POWER_CYCLED: power_cycled,
    TaskState.PROVING: _proving,
}

DECIDED = frozenset(_BY_STATE)
"""States that this room decides; the others wait for a start."""
