"""Turns one decided action into writes on a draft; pure: what was decided is only put into records."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hostler_contract.campaigns import AuditRecord, CampaignRecord, CampaignState
from hostler_contract.domains import Cause, CauseKind
from hostler_contract.hosts import HostRecord
from hostler_contract.moments import format_instant
from hostler_contract.work import (
    TERMINAL,
    DeadLetterRecord,
    DeadLetterState,
    Evidence,
    EvidenceKind,
    PowerIntent,
    TaskRecord,
    TaskState,
    Token,
)
from hostler_coordinator import ledger
from hostler_coordinator.lifecycle import CHARGED, Event, step
from hostler_coordinator.planner.actions import (
    ChargeDead,
    Forget,
    Move,
    MoveCampaign,
    NotePower,
    NoteRefusal,
    RaiseToken,
    RecordBoot,
    Rescue,
    Reserve,
    UnchargeDead,
)
from hostler_coordinator.planner.hosts import credible

if TYPE_CHECKING:
    from hostler_coordinator.draft import Draft
    from hostler_coordinator.live import RefusedOrder
    from hostler_coordinator.planner.actions import Action
    from hostler_coordinator.planner.world import World

EVIDENCE_MOST = 60
"""Pieces of evidence kept per task; the oldest after the first ten go."""
_EVIDENCE_FIRST = 10


class UnenactableError(Exception):
    """The records that an action is about are no longer as the planner saw them; plan again."""


def enact(draft: Draft, world: World, action: Action) -> None:
    """Write what an action means. Raises UnenactableError when its subject is gone."""
    match action:
        case Reserve():
            _reserve(draft, world, action)
        case Move():
            _move(draft, world, action)
        case Rescue():
            _rescue(draft, world, action)
        case NotePower():
            _note_power(draft, world, action)
        case NoteRefusal():
            _note_refusal(draft, world, action.order)
        case ChargeDead():
            ledger.add_cause(draft, _host(draft, action.host), action.cause)
            _audit(draft, world, "host.dead", host=action.host, reason="silent", detail=action.cause.detail)
        case UnchargeDead():
            ledger.drop_causes(draft, action.host, lambda cause: cause.kind is CauseKind.DEAD)
        case RecordBoot():
            _record_boot(draft, world, action)
        case RaiseToken():
            claim = draft.claim(action.host)
            token = Token(epoch=action.epoch, counter=action.counter)
            draft.put(claim.model_copy(update={"token": max(token, claim.token)}))
        case MoveCampaign():
            _move_campaign(draft, world, action)
        case Forget():
            _forget(draft, world, action)


# -- tasks -----------------------------------------------------------------------------------------------------------


def _reserve(draft: Draft, world: World, action: Reserve) -> None:
    campaign = _campaign(draft, action.campaign)
    host = _host(draft, action.host)
    path = f"tasks/{action.campaign}/{action.host}"
    task = draft.record(path, TaskRecord) or TaskRecord(
        campaign=action.campaign, host=action.host, state=TaskState.PENDING, since=world.now
    )
    holder = draft.claim(action.host).task
    if holder not in {"", task.id}:
        msg = f"host {action.host} is claimed by {holder}"
        raise UnenactableError(msg)
    token = next_token(draft, world, action.host)
    draft.put(draft.claim(action.host).model_copy(update={"token": token, "task": task.id, "at": world.now}))
    _take_over_letters(draft, action.host)
    ledger.add_cause(draft, host, Cause(kind=CauseKind.TASK, ref=task.id, since=world.now, detail=campaign.id))
    asked = Evidence(kind=EvidenceKind.ASKED, at=world.now, detail=f"attempt {action.attempt}, token {token}")
    draft.put(
        task.model_copy(
            update={
                "state": step(task.state, Event.RESERVE),
                "since": world.now,
                "wave": action.wave,
                "attempt": action.attempt,
                "token": token,
                "boot_before": action.boot_before,
                "deadline_at": action.deadline_at,
                "next_attempt_at": None,
                "go_at": None,
                "go_expires_at": None,
                "stop_to": None,
                "started_at": task.started_at or world.now,
                "evidence": _kept((*task.evidence, asked)),
            }
        )
    )


def next_token(draft: Draft, world: World, host: str) -> Token:
    """The next token of a host: above the newest issued, the store's epoch, and any that it said hello with."""
    newest = max(draft.claim(host).token, Token(epoch=world.state.epoch))
    seen = world.sightings.get(host)
    if seen is not None and credible(seen.newest_token, newest):
        newest = max(newest, seen.newest_token)
    return Token(epoch=newest.epoch, counter=newest.counter + 1)


def _take_over_letters(draft: Draft, host: str) -> None:
    """A retried dead letter's charge gives way to the task that retries it."""
    retried = {
        letter.id
        for letter in draft.state.dead_letters.values()
        if letter.host == host and letter.state is not DeadLetterState.OPEN
    }
    if retried:
        ledger.drop_causes(draft, host, lambda cause: cause.kind is CauseKind.DEAD_LETTER and cause.ref in retried)


def _move(draft: Draft, world: World, action: Move) -> None:
    path = f"tasks/{action.campaign}/{action.host}"
    task = draft.record(path, TaskRecord)
    if task is None:
        task = TaskRecord(campaign=action.campaign, host=action.host, state=TaskState.PENDING, since=world.now)
    state = step(task.state, action.event)
    if action.event is Event.GO:
        _recheck_at_go(draft, action)
    update: dict[str, object] = {
        "state": state,
        "since": world.now if state is not task.state else task.since,
        "evidence": _with(task.evidence, action.evidence),
        "code": action.code or task.code,
        "reason": action.reason or task.reason,
        "next_attempt_at": action.next_attempt_at,
        "refusals": task.refusals + (1 if action.refused else 0),
        **_fields_of(action),
    }
    if action.event is Event.REFUSED:
        update["attempt"] = max(0, task.attempt - 1)
    if action.event is Event.GO:
        update["go_at"] = task.go_at or world.now
        update["go_expires_at"] = world.now + world.policy.go_lifetime_s
    if state in TERMINAL:
        update["ended_at"] = world.now
        update["deadline_at"] = None
    task = task.model_copy(update=update)
    draft.put(task)
    if state not in CHARGED:
        _release(draft, world, action, task)
    if action.event is Event.BOOT_CHANGED and action.boot_after:
        _store_boot(draft, action.host, action.boot_after)
    if state is TaskState.DEAD_LETTER:
        _dead_letter(draft, world, action, task)
    _audit_move(draft, world, action, task)


def _fields_of(action: Move) -> dict[str, object]:
    wanted = {
        "boot_before": action.boot_before,
        "boot_after": action.boot_after,
        "soft_reboots_before": action.soft_reboots_before,
        "deadline_at": action.deadline_at,
        "stop_to": action.stop_to,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _recheck_at_go(draft: Draft, action: Move) -> None:
    """The GO's transaction compares the campaign, every ledger of the host, and that no hold has appeared."""
    _campaign(draft, action.campaign)
    host = _host(draft, action.host)
    for domain in host.domains:
        draft.ledger(domain)
    _recheck_holds(draft, action.host)


def _recheck_holds(draft: Draft, host: str) -> None:
    """No hold has appeared since the gate looked; those that had expired are as they were."""
    held = draft.state.holds(host)
    for hold in held:
        draft.rely_on(f"holds/{hold.host}/{hold.id}")
    if not held:
        draft.rely_on_empty(f"holds/{host}/")


def _release(draft: Draft, world: World, action: Move, task: TaskRecord) -> None:
    """The task no longer holds the host: its claim ends and its charge with it, or a dead letter's charge follows."""
    claim = draft.claim(task.host)
    if claim.task == task.id:
        draft.put(claim.model_copy(update={"task": "", "at": world.now}))
    host = draft.record(f"hosts/{task.host}", HostRecord)
    if task.state is TaskState.DEAD_LETTER and action.keep_charged and host is not None:
        cause = Cause(kind=CauseKind.DEAD_LETTER, ref=letter_id(task), since=world.now, detail=task.code)
        ledger.add_cause(draft, host, cause)
    if task.state is TaskState.SUCCEEDED:
        _take_over_letters(draft, task.host)
    ledger.drop_task(draft, task.host, task.id)


def letter_id(task: TaskRecord) -> str:
    """Id of the dead letter of a task."""
    return f"{task.campaign}.{task.host}"


def _dead_letter(draft: Draft, world: World, action: Move, task: TaskRecord) -> None:
    draft.put(
        DeadLetterRecord(
            id=letter_id(task),
            campaign=task.campaign,
            host=task.host,
            at=world.now,
            cause=task.code,
            text=task.reason,
            suggestion=action.suggestion,
            attempts=task.attempt,
            evidence=task.evidence,
        )
    )


def _rescue(draft: Draft, world: World, action: Rescue) -> None:
    _campaign(draft, action.campaign)
    _recheck_holds(draft, action.host)
    draft.rely_on(f"bmcfacts/{action.host}")
    path = f"tasks/{action.campaign}/{action.host}"
    task = draft.record(path, TaskRecord)
    if task is None:
        msg = f"task {path} is gone"
        raise UnenactableError(msg)
    token = next_token(draft, world, action.host)
    draft.put(draft.claim(action.host).model_copy(update={"token": token, "task": task.id, "at": world.now}))
    intent = PowerIntent(
        verb=action.verb,
        token=token,
        at=world.now,
        expires_at=world.now + world.policy.intent_lifetime_s,
        leader=world.leader,
        why=action.why,
    )
    asked = Evidence(
        kind=EvidenceKind.ASKED, at=world.now, detail=f"BMC {action.verb.value}, token {token}: {action.why}"
    )
    draft.put(
        task.model_copy(
            update={
                "state": step(task.state, Event.ESCALATE),
                "since": world.now,
                "token": token,
                "power": intent,
                "rescues": task.rescues + 1,
                "attempt": task.attempt + 1,
                "deadline_at": None,
                "reason": action.why,
                "code": "",
                "evidence": _kept((*task.evidence, asked)),
            }
        )
    )
    verb = f"host.power-{action.verb.value}"
    _audit(
        draft,
        world,
        verb,
        host=action.host,
        campaign=action.campaign,
        reason=action.why,
        result="asked",
        detail=f"token {token}",
    )


def _note_power(draft: Draft, world: World, action: NotePower) -> None:
    task = draft.record(f"tasks/{action.campaign}/{action.host}", TaskRecord)
    if task is None or task.power is None:
        msg = f"task {action.campaign}/{action.host} is gone"
        raise UnenactableError(msg)
    note = partial(_audit, draft, world, host=action.host, campaign=action.campaign, reason=action.why)
    if action.steps:
        told = tuple(one.evidence for one in action.steps)
        draft.put(task.model_copy(update={"evidence": _with(task.evidence, told)}))
    for one in action.steps:
        detail = f"{one.evidence.detail}; at {format_instant(one.evidence.at)}, token {task.power.token}"
        note("host.power-step", detail=detail, result=one.result, number=one.number)
    if action.bmc is not None:
        _host(draft, action.host)
        draft.put(action.bmc)
        detail = " ".join(part for part in (action.bmc.system, action.bmc.system_uuid, action.bmc.of_model) if part)
        note("host.bmc-facts", detail=f"stored: {detail}")
    if action.model is not None:
        draft.put(action.model)
        detail = f"no soft off to {action.model.name} any more: {action.model.graceful_not_honoured}"
        note("host.bmc-model", detail=detail)


def _note_refusal(draft: Draft, world: World, order: RefusedOrder) -> None:
    """Written once per host and token: the claim keeps the newest."""
    draft.put(draft.claim(order.host).model_copy(update={"refused": order.token}))
    named = order.task_id.partition("/")[0]
    campaign = named if named in world.state.campaigns else ""
    detail = f"{order.order} of task {order.task_id}, token {order.token}, by {order.by}; at {format_instant(order.at)}"
    _audit(
        draft,
        world,
        "host.order",
        host=order.host,
        campaign=campaign,
        reason=order.why,
        result="refused",
        detail=detail,
    )


# -- hosts and campaigns ---------------------------------------------------------------------------------------------


def _record_boot(draft: Draft, world: World, action: RecordBoot) -> None:
    host = _host(draft, action.host)
    update: dict[str, object] = {}
    if action.boot_id and action.boot_id != host.boot_id:
        update["boot_id"] = action.boot_id
        if host.boot_id is not None:
            update["unexpected_boot_at"] = world.now
    if action.flags is not None:
        update["flags"] = action.flags
    draft.put(host.model_copy(update=update))


def _store_boot(draft: Draft, host_id: str, boot_id: str) -> None:
    host = _host(draft, host_id)
    draft.put(host.model_copy(update={"boot_id": boot_id}))


def _move_campaign(draft: Draft, world: World, action: MoveCampaign) -> None:
    campaign = _campaign(draft, action.campaign)
    update: dict[str, object] = {"state": action.state, "state_since": world.now, "state_reason": action.reason}
    update["paused_by_rule"] = action.state is CampaignState.PAUSED
    if action.state is CampaignState.RUNNING:
        update["started_at"] = campaign.started_at or world.now
    elif action.state is not CampaignState.PAUSED:
        update["ended_at"] = world.now
    draft.put(campaign.model_copy(update=update))
    if action.state is not CampaignState.RUNNING:
        _audit(draft, world, f"campaign.{action.state.value}", campaign=action.campaign, reason=action.reason)


def _forget(draft: Draft, world: World, action: Forget) -> None:
    campaign = _campaign(draft, action.campaign)
    if campaign.summary is None:
        counts = {state.value: count for state, count in world.state.counts(campaign.id).items() if count}
        draft.put(campaign.model_copy(update={"summary": counts}))
    for host in action.tasks:
        draft.delete(f"tasks/{campaign.id}/{host}")
    for chunk in action.chunks:
        draft.delete(f"targets/{campaign.id}/{chunk:05d}")


# -- shared by the above ---------------------------------------------------------------------------------------------


def _host(draft: Draft, host_id: str) -> HostRecord:
    host = draft.record(f"hosts/{host_id}", HostRecord)
    if host is None:
        msg = f"host {host_id} is gone"
        raise UnenactableError(msg)
    return host


def _campaign(draft: Draft, campaign_id: str) -> CampaignRecord:
    campaign = draft.record(f"campaigns/{campaign_id}", CampaignRecord)
    if campaign is None:
        msg = f"campaign {campaign_id} is gone"
        raise UnenactableError(msg)
    return campaign


def _with(known: tuple[Evidence, ...], told: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Append what is not there yet: steps of a walk are told as they happen, and once more at its end."""
    return _kept((*known, *(one for one in told if one not in known)))


def _kept(evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    if len(evidence) <= EVIDENCE_MOST:
        return evidence
    return (*evidence[:_EVIDENCE_FIRST], *evidence[_EVIDENCE_FIRST - EVIDENCE_MOST :])


_AUDITED = {
    Event.GO: ("host.reboot", "asked"),
    Event.REFUSED: ("task.attempt", "refused"),
    Event.ATTEMPT_FAILED: ("task.attempt", "failed"),
    Event.EXHAUSTED: ("task.dead-letter", "done"),
    Event.POWER_DONE: ("host.power-cycled", "done"),
    Event.REMOVED: ("task.host-removed", "done"),
}


def _audit_move(draft: Draft, world: World, action: Move, task: TaskRecord) -> None:
    found = _AUDITED.get(action.event)
    if found is not None:
        verb, result = found
        campaign = draft.state.campaigns.get(task.campaign)
        if action.event is Event.GO and campaign is not None:
            verb = f"host.{campaign.request.operation.value.replace('_', '-')}"
        why = task.reason or (campaign.request.reason if campaign else "")
        _audit(
            draft,
            world,
            verb,
            host=task.host,
            campaign=task.campaign,
            reason=why,
            result=result,
            detail=f"token {task.token}",
        )


def audit_id(at: float, subject: str) -> str:
    """Key of an audit entry: ordered by time, unique by subject."""
    return f"{round(at * 1_000_000):020d}-{subject}"


def _audit(
    draft: Draft,
    world: World,
    action: str,
    *,
    host: str = "",
    campaign: str = "",
    reason: str = "",
    result: str = "done",
    detail: str = "",
    number: int = 0,
) -> None:
    """`number` tells apart entries of one action on one subject at one moment."""
    known = world.state.campaigns.get(campaign)
    actor = f"rule of campaign {campaign} ({known.caller})" if known else "rule"
    subject = f"{action}-{host or campaign}" + (f"-{number:03d}" if number else "")
    draft.put(
        AuditRecord(
            id=audit_id(world.now, subject),
            at=world.now,
            actor=actor,
            action=action,
            host=host,
            campaign=campaign,
            reason=reason,
            result=result,
            detail=detail,
        ),
        blind=True,
    )
