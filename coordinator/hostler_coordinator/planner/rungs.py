"""The rungs that a task in flight may take: another attempt, the BMC, a dead letter; `tasks` says when each is due."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hostler_contract.hosts import Usability
from hostler_contract.work import Evidence, EvidenceKind, PowerVerb
from hostler_coordinator import ladder
from hostler_coordinator.lifecycle import Event
from hostler_coordinator.planner.actions import Move, Rescue, Why
from hostler_coordinator.planner.gates import power_gate, witness_gate

if TYPE_CHECKING:
    from hostler_contract.campaigns import CampaignRecord
    from hostler_contract.hosts import HostRecord
    from hostler_contract.work import TaskRecord
    from hostler_coordinator.live import Sighting, TaskReport
    from hostler_coordinator.planner.gates import Room
    from hostler_coordinator.planner.world import World

Decision = Move | Rescue | Why


class Case:
    """One task with all that its decision may look at."""

    def __init__(self, world: World, campaign: CampaignRecord, task: TaskRecord, host: HostRecord, room: Room) -> None:
        """Gather; nothing is decided here."""
        self.world = world
        self.campaign = campaign
        self.task = task
        self.host = host
        self.room = room
        self.seen: Sighting = world.sighting(host.id)
        self.report: TaskReport | None = self.seen.report_on(task.id, task.token)

    @property
    def now(self) -> float:
        """The leader's clock."""
        return self.world.now

    @property
    def on_old_boot(self) -> bool:
        """True when the host is heard now, and on the boot recorded before the act."""
        return self.world.heard(self.host.id) and bool(self.seen.boot_id) and self.seen.boot_id == self.task.boot_before

    def overdue(self) -> bool:
        """True when the task's deadline has passed."""
        return self.task.deadline_at is not None and self.now >= self.task.deadline_at

    def move(self, event: Event, code: str = "", reason: str = "", *evidence: Evidence, **more: object) -> Move:
        """A move of this task."""
        return Move(self.campaign.id, self.host.id, event, code, reason, tuple(evidence), **more)  # type: ignore[arg-type]

    def seen_now(self, kind: EvidenceKind, detail: str) -> Evidence:
        """Evidence dated now."""
        return Evidence(kind=kind, at=self.now, detail=detail)


def usable(case: Case) -> bool:
    """Heard now, with all post-boot checks passed and no drain mark of ours left."""
    condition = case.seen.condition
    own_drain = condition.drained_for == case.task.id
    return case.world.heard(case.host.id) and condition.usability is Usability.USABLE and not own_drain


def failed_attempt(case: Case, code: str, reason: str) -> Move:
    """This attempt failed while the host stayed up: pause and try again, or call a person."""
    evidence = case.seen_now(EvidenceKind.ATTEMPT_FAILED, f"attempt {case.task.attempt}: {reason}")
    if ladder.attempts_left(case.task, case.campaign.limits) == 0:
        return exhausted(case, code, f"{reason} (attempt {case.task.attempt}, the last)", evidence)
    pause = ladder.pause_s(
        case.world.policy, case.task.attempt, case.world.jitter(f"{case.task.id}#{case.task.attempt}")
    )
    return case.move(Event.ATTEMPT_FAILED, code, reason, evidence, next_attempt_at=case.now + pause)


def let_go_in_vain(case: Case, code: str, reason: str) -> Move:
    """It was let go and is still up. It may yet go down, however late: it stays charged, and a person looks."""
    evidence = case.seen_now(EvidenceKind.ATTEMPT_FAILED, f"attempt {case.task.attempt}: {reason}")
    return replace(exhausted(case, code, reason, evidence), keep_charged=True)


def exhausted(case: Case, code: str, reason: str, *evidence: Evidence) -> Move:
    """The ladder ends: a dead letter. The host stays charged unless it is heard and usable."""
    letter = f"{case.campaign.id}.{case.host.id}"
    return case.move(
        Event.EXHAUSTED,
        code,
        reason,
        *evidence,
        suggestion=ladder.suggestion(code, letter, case.host.name),
        keep_charged=not usable(case),
    )


def rescue(case: Case, why: str) -> Decision:
    """The BMC's rung, for a host that is silent past its deadline: two witnesses, no brake, no hold, budget free."""
    if ladder.rescues_left(case.task, case.world.policy) == 0:
        return exhausted(case, "no-boot", f"{case.task.rescues} power actions did not bring it back: {why}")
    closed = witness_gate(case.world, case.host)
    if closed is not None:
        return closed
    return rescue_if_open(case, PowerVerb.CYCLE, why)


def rescue_if_open(case: Case, verb: PowerVerb, why: str) -> Decision:
    """A power intent, if a BMC is known and no hold, brake or cap is in its way."""
    if case.host.bmc is None or not case.host.bmc.address:
        return exhausted(case, "no-bmc", f"{why}; no BMC is known for this host")
    closed = power_gate(case.world, case.host, case.room)
    if closed is not None:
        return closed
    case.room.power += 1
    return Rescue(case.campaign.id, case.host.id, verb, why)
