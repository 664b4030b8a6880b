"""What agents should be told now, from the records and what they last said; pure, sending is the engine's.

Level-triggered: the same world gives the same messages, each with a mark; the engine sends a mark once per session.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hostler_contract.codec import to_message
from hostler_contract.hosts import JournalPhase
from hostler_contract.pb.hostler.v1 import agent_pb2, work_pb2
from hostler_contract.work import BY_AGENT, OperationKind, RebootMode, TaskState
from hostler_coordinator.live import ReportKind
from hostler_coordinator.state import WAITING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostler_contract.campaigns import CampaignRecord
    from hostler_contract.work import TaskRecord, Token
    from hostler_coordinator.live import Sighting, TaskReport
    from hostler_coordinator.planner.world import World

ENDING = frozenset({ReportKind.REFUSED, ReportKind.FAILED, ReportKind.STOPPED, ReportKind.DONE})
"""Reports that an agent repeats until it hears that they are durable."""

_UNFINISHED = frozenset({JournalPhase.ACCEPTED, JournalPhase.INTENT})
"""Phases before the point of no return: work that has ended can still be stopped there."""

_OPERATIONS = {
    OperationKind.REBOOT: work_pb2.OPERATION_KIND_REBOOT,
    OperationKind.POWER_ON: work_pb2.OPERATION_KIND_POWER_ON,
    OperationKind.POWER_OFF: work_pb2.OPERATION_KIND_POWER_OFF,
    OperationKind.SOFT_REBOOT: work_pb2.OPERATION_KIND_SOFT_REBOOT,
}
_MODES = {RebootMode.SOFT: work_pb2.REBOOT_MODE_SOFT, RebootMode.HARD: work_pb2.REBOOT_MODE_HARD}


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message for one host; `mark` is equal for the same thing said again, `takes_credit` ends the agent's pull."""

    host: str
    mark: tuple[object, ...]
    write: Callable[[], agent_pb2.SessionResponse]
    """Makes the message; called only when it has not been said yet."""
    takes_credit: bool = False


def parcels(world: World) -> Iterator[Parcel]:
    """Everything that attached agents should have been told; of work that is over, what concerns `world.fresh`."""
    for campaign in world.state.open_campaigns.values():
        for task in world.state.moving(campaign.id).values():
            seen = world.sightings.get(task.host)
            if seen is not None and seen.connected:
                yield from _for_task(world, campaign, task, seen)
    for host in world.sightings if world.fresh is None else world.fresh:
        seen = world.sightings.get(host)
        if seen is None or not seen.connected:
            continue
        if seen.report is not None and seen.report.kind in ENDING:
            yield from _recorded(world, seen, seen.report)
        elif seen.journal.phase in _UNFINISHED:
            yield from _orphan(world, seen)


def _for_task(world: World, campaign: CampaignRecord, task: TaskRecord, seen: Sighting) -> Iterator[Parcel]:
    report = seen.report_on(task.id, task.token)
    if task.state is TaskState.RESERVED and campaign.request.operation in BY_AGENT:
        if report is None and (seen.wants_work or seen.journal.task_id == task.id):
            mark = ("assignment", task.token, seen.attached_at, seen.wants_work)
            yield Parcel(seen.host, mark, partial(_assignment, world, campaign, task), takes_credit=True)
    elif task.state is TaskState.ACTING:
        expires_in_s = (task.go_expires_at or 0.0) - world.now
        if report is not None and report.kind is ReportKind.STARTED and expires_in_s > 0:
            yield Parcel(seen.host, ("go", task.token, report.number), partial(_go, task, expires_in_s))
    elif task.state is TaskState.STOPPING:
        number = report.number if report is not None else 0
        yield Parcel(seen.host, ("stop", task.token, number), partial(_stop, task.id, task.token, task.reason))


def _go(task: TaskRecord, expires_in_s: float) -> agent_pb2.SessionResponse:
    go = agent_pb2.Go(task_id=task.id, expires_in_s=expires_in_s, boot_id=task.boot_before or "")
    _copy_token(go, task.token)
    return agent_pb2.SessionResponse(go=go)


def _stop(task_id: str, token: Token | None, reason: str) -> agent_pb2.SessionResponse:
    stop = agent_pb2.Stop(task_id=task_id, reason=reason)
    _copy_token(stop, token)
    return agent_pb2.SessionResponse(stop=stop)


def _copy_token(message: agent_pb2.Go | agent_pb2.Stop | agent_pb2.Assignment, token: Token | None) -> None:
    if token is not None:
        message.token.CopyFrom(to_message(token, work_pb2.Token))


def _assignment(world: World, campaign: CampaignRecord, task: TaskRecord) -> agent_pb2.SessionResponse:
    request = campaign.request
    assignment = agent_pb2.Assignment(
        task_id=task.id,
        operation=_OPERATIONS[request.operation],
        mode=_MODES[request.mode],
        campaign_id=campaign.id,
        actor=campaign.caller,
        reason=request.reason,
        boot_before=task.boot_before or "",
        drain_timeout_s=campaign.limits.drain_timeout_s,
        soak_s=campaign.limits.soak_s,
        force=request.force,
        shutdown_timeout_s=world.policy.shutdown_timeout_s,
    )
    _copy_token(assignment, task.token)
    return agent_pb2.SessionResponse(assignment=assignment)


def _recorded(world: World, seen: Sighting, report: TaskReport) -> Iterator[Parcel]:
    """An ending report whose task has moved on is durable, or no longer wanted: the agent may forget it."""
    campaign, _, host = report.task_id.partition("/")
    task = world.state.task(campaign, host)
    if task is not None and task.token == report.token and _awaits(task, report):
        return
    mark = ("recorded", report.task_id, report.token, report.number)
    yield Parcel(seen.host, mark, partial(_outcome_recorded, report))


def _outcome_recorded(report: TaskReport) -> agent_pb2.SessionResponse:
    recorded = agent_pb2.OutcomeRecorded(task_id=report.task_id, token=to_message(report.token, work_pb2.Token))
    return agent_pb2.SessionResponse(outcome_recorded=recorded)


def _orphan(world: World, seen: Sighting) -> Iterator[Parcel]:
    """An agent that says hello with work that has ended here, or that never was: it is told to stop and clean up."""
    said = seen.journal
    campaign, _, host = said.task_id.partition("/")
    task = world.state.task(campaign, host)
    if task is not None and task.token == said.token and task.ended_at is None and task.state not in WAITING:
        return
    mark = ("stop", said.task_id, said.token, seen.attached_at)
    yield Parcel(seen.host, mark, partial(_stop, said.task_id, said.token, "this work has ended"))


def _awaits(task: TaskRecord, report: TaskReport) -> bool:
    if report.kind is ReportKind.DONE:
        return task.ended_at is None
    return task.state in {TaskState.RESERVED, TaskState.ACTING, TaskState.STOPPING}
