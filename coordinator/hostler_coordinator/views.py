"""Turns records and what is heard now into the views of the contract; why something waits is said by `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
from hostler_contract.campaigns import ENDED, CampaignState
from hostler_contract.domains import CauseKind
from hostler_contract.work import TERMINAL, DeadLetterState, PowerVerb, TaskState
from hostler_coordinator import ledger
from hostler_coordinator.bmc_memory import facts_of, soft_off_broken
from hostler_coordinator.causes import as_one
from hostler_coordinator.explain import campaign_waits, open_letters, task_why
from hostler_coordinator.lifecycle import CHARGED
from hostler_coordinator.limits import EffectiveLimit, format_budget
from hostler_coordinator.planner.actions import Why
from hostler_coordinator.planner.gates import Room, hold_gates
from hostler_coordinator.planner.starts import wave_end, why_not
from hostler_coordinator.standing import host_state, host_verdict
from hostler_coordinator.windows import state as window_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hostler_contract.campaigns import AuditRecord, CampaignRecord
    from hostler_contract.domains import Cause
    from hostler_contract.hosts import Hold, HostRecord
    from hostler_contract.work import DeadLetterRecord, TaskRecord
    from hostler_coordinator.planner.silence import Brake
    from hostler_coordinator.planner.turn import Plan
    from hostler_coordinator.planner.world import World

MOST_SHOWN = 50
MOST_FAILURES = 10
_BAD = frozenset({TaskState.DEAD_LETTER, TaskState.FAILED})
_STEPS = {
    TaskState.PENDING: "waiting",
    TaskState.BACKING_OFF: "waiting for its next attempt",
    TaskState.RESERVED: "waiting for its agent",
    TaskState.PROVING: "post-boot checks",
    TaskState.STOPPING: "stopping",
    TaskState.POWER_CYCLING: "power cycling",
    TaskState.POWER_CYCLED: "booting",
}
_REPORTED = {
    "accepted": "accepted",
    "draining": "draining",
    "drained": "drained",
    "checking": "checking",
    "started": "ready, waiting for the GO",
}


_UNDECIDED = Why(
    "undecided", "a leader over a store that answers: nothing is decided now", next_step="hostler status says why"
)
"""For who does not lead: what it would say of starts rests on what only a leader hears."""


# -- campaigns -------------------------------------------------------------------------------------------------------


def campaign(world: World, plan: Plan, record: CampaignRecord, *, whole: bool = True) -> V.Campaign:
    """A campaign now. Not `whole`: without what costs a look at every target (domains, hosts in flight, failures)."""
    undecided = world.blind and record.state not in ENDED
    why = _UNDECIDED if undecided else campaign_waits(world, plan, record)
    window = window_state(record.limits.windows, world.now) if record.limits.windows else None
    wave, _ = wave_end(world, record)
    return V.Campaign(
        id=record.id,
        key=record.key,
        operation=record.request.operation,
        mode=record.request.mode,
        state=record.state,
        state_reason=record.state_reason,
        created_at=record.created_at,
        created_by=record.caller,
        reason=record.request.reason,
        selector=record.request.selector,
        limits=record.request.limits,
        limits_resolved=record.limits.words,
        target_count=record.target_count,
        counts=counts(world, record),
        eta=None if undecided else eta(world, record),
        waiting_for=why.text if why else "",
        waiting_code=why.code if why else "",
        waiting_since=min(why.since, world.now) if why and why.since is not None else None,
        next_step=why.next_step if why else "",
        next_at=why.next_at if why else None,
        deadline_at=record.deadline_at,
        started_at=record.started_at,
        ended_at=record.ended_at,
        wave=wave + 1,
        wave_count=max(1, len(record.limits.wave_sizes)),
        domains=_fabrics(world, record) if whole else (),
        in_flight=_in_flight(world, plan, record) if whole else (),
        failures=_failures(world, record) if whole else (),
        retry_of=record.request.retry_of,
        window_opens_at=window.opens_at if window else None,
        window_closes_at=window.closes_at if window else None,
        as_of=world.now,
        held_by=why.held_by if why else "",
        dead_letters_open=len(open_letters(world, record)),
    )


def counts(world: World, record: CampaignRecord) -> V.Counts:
    """Targets by state, summing to the campaign's targets; those without a record count as what became of them.

    A campaign whose tasks are kept no longer is counted from its summary.
    """
    by_state = world.state.counts(record.id)
    if record.summary is not None:
        by_state = {TaskState(state): count for state, count in record.summary.items()}
    found = dict.fromkeys(V.Counts.model_fields, 0)
    for state, count in by_state.items():
        found[_counted_as(state)] += count
    found[_counted_as(unrecorded(record))] += record.target_count - sum(by_state.values())
    return V.Counts(**found)


def unrecorded(record: CampaignRecord) -> TaskState:
    """What a target is whose host never moved: pending while the campaign is open, then skipped or aborted with it."""
    if record.state is CampaignState.ABORTED:
        return TaskState.ABORTED
    return TaskState.SKIPPED if record.state in ENDED else TaskState.PENDING


def _counted_as(state: TaskState) -> str:
    if state in CHARGED:
        return "running"
    return "pending" if state is TaskState.BACKING_OFF else state.value


def eta(world: World, record: CampaignRecord) -> float | None:
    """When it will have ended at the pace so far; None while nothing has ended, or nothing is going on."""
    if record.state is not CampaignState.RUNNING:
        return None
    done = [
        (task.started_at, task.ended_at)
        for task in world.state.tasks(record.id).values()
        if task.started_at is not None and task.ended_at is not None
    ]
    first = min((began for began, _ in done), default=world.now)
    if not done or world.now <= first:
        return None
    going = any(task.state in CHARGED for task in world.state.moving(record.id).values())
    if not going:
        return None
    by_state = world.state.counts(record.id)
    left = record.target_count - sum(by_state.get(state, 0) for state in TERMINAL)
    return world.now + left * (world.now - first) / len(done)


def _fabrics(world: World, record: CampaignRecord) -> tuple[V.DomainProgress, ...]:
    total: dict[str, int] = {}
    done: dict[str, int] = {}
    for host_id in world.state.targets(record.id):
        host = world.state.hosts.get(host_id)
        if host is None or not host.fabric:
            continue
        name = f"fabric/{host.fabric}"
        total[name] = total.get(name, 0) + 1
        task = world.state.task(record.id, host_id)
        if task is not None and task.state in TERMINAL:
            done[name] = done.get(name, 0) + 1
    return tuple(
        V.DomainProgress(
            domain=name,
            total=total[name],
            done=done.get(name, 0),
            charged=world.state.ledger(name).charged,
            limit=limit_of(world, name, record.limits.domains).limit,
        )
        for name in sorted(total)[:MOST_SHOWN]
    )


def _in_flight(world: World, plan: Plan, record: CampaignRecord) -> tuple[V.InFlight, ...]:
    flying = [task for task in world.state.moving(record.id).values() if task.state in CHARGED]
    flying.sort(key=lambda task: (task.since, task.host))
    return tuple(
        V.InFlight(
            host=host_name(world, task.host),
            step=step(world, task),
            since=min(task.since, world.now),
            attempt=task.attempt,
            detail=plan.whys[task.id].text if task.id in plan.whys else "",
        )
        for task in flying[:MOST_SHOWN]
    )


def _failures(world: World, record: CampaignRecord) -> tuple[V.RecentFailure, ...]:
    bad = [task for task in world.state.tasks(record.id).values() if task.state in _BAD]
    bad.sort(key=lambda task: (-(task.ended_at or task.since), task.host))
    return tuple(
        V.RecentFailure(
            host=host_name(world, task.host),
            at=min(task.ended_at or task.since, world.now),
            cause=f"{task.code}: {task.reason}" if task.reason else task.code,
        )
        for task in bad[:MOST_FAILURES]
    )


def host_name(world: World, host_id: str) -> str:
    """The host's name; of one that was removed, its id."""
    found = world.state.hosts.get(host_id)
    return found.name if found else host_id


# -- tasks -----------------------------------------------------------------------------------------------------------


def step(world: World, task: TaskRecord) -> str:
    """Where a task stands, in words for a table's cell."""
    if task.state is TaskState.ACTING:
        return "shutting down" if world.heard(task.host) else "down"
    if task.state is TaskState.RESERVED:
        report = world.sighting(task.host).report_on(task.id, task.token)
        return _REPORTED.get(report.kind.value, _STEPS[task.state]) if report else _STEPS[task.state]
    if task.state is TaskState.POWER_CYCLING and task.power is not None and task.power.verb is not PowerVerb.CYCLE:
        return "shutting down (goal off)" if task.power.verb is PowerVerb.OFF else "switching on"
    return _STEPS.get(task.state, task.state.value.replace("_", " "))


def task_state(world: World, record: CampaignRecord, host_id: str) -> TaskState:
    """State of one target, recorded or not."""
    found = world.state.task(record.id, host_id)
    return found.state if found else unrecorded(record)


def task(world: World, record: CampaignRecord, host_id: str, room: Room, closed: Why | None = None) -> V.Task:
    """One target's task, recorded or not. `closed` is what stops every start of the campaign, when it is known."""
    found = world.state.task(record.id, host_id)
    place = world.state.positions(record.id).get(host_id, 0)
    known = {
        "id": f"{record.id}/{host_id}",
        "campaign_id": record.id,
        "host_id": host_id,
        "host": host_name(world, host_id),
        "wave": _wave_of(record, place),
    }
    if found is None:
        state = unrecorded(record)
        why = _waits(world, record, host_id, room, closed) if state is TaskState.PENDING else ""
        return V.Task(**known, state=state, step=_STEPS.get(state, state.value), waiting_for=why)
    return V.Task(
        **known,
        state=found.state,
        since=found.since,
        step=step(world, found),
        attempt=found.attempt,
        token=found.token,
        boot_before=found.boot_before or "",
        boot_after=found.boot_after or "",
        deadline_at=found.deadline_at,
        next_attempt_at=found.next_attempt_at,
        reason=found.reason,
        reason_code=found.code,
        evidence=found.evidence,
        started_at=found.started_at,
        ended_at=found.ended_at,
        waiting_for="" if found.state in TERMINAL else _waits(world, record, host_id, room, closed),
    )


def _waits(world: World, record: CampaignRecord, host_id: str, room: Room, closed: Why | None) -> str:
    host = world.state.hosts.get(host_id)
    if host is None:
        return "nothing: the host was removed from the inventory"
    if world.blind:
        return _UNDECIDED.text
    found = world.state.task(record.id, host_id)
    if found is not None and found.state in CHARGED:
        return task_why(world, record, found, room).text
    why = closed or why_not(world, record, host, room)
    if why is None:
        return "nothing: it starts now"
    held = hold_gates(world, host_id) if why.code != "held" else ()
    return as_one([*held, why]).text


def _wave_of(record: CampaignRecord, place: int) -> int:
    """Number of the wave, from 1, in which the target at this place (from 0) starts."""
    end = 0
    for number, size in enumerate(record.limits.wave_sizes, 1):
        end += size
        if place < end:
            return number
    return max(1, len(record.limits.wave_sizes))


# -- hosts -----------------------------------------------------------------------------------------------------------


def host(world: World, record: HostRecord) -> V.Host:
    """A host now. Condition and facts are left out while it is not heard: they would be old."""
    seen = world.sightings.get(record.id)
    heard = world.heard(record.id)
    charge = world.state.charge(record.id)
    claim = world.state.claim(record.id)
    return V.Host(
        id=record.id,
        name=record.name,
        fabric=record.fabric,
        rack=record.rack,
        feeds=record.feeds,
        site=record.site,
        labels=record.labels,
        model=record.model,
        address=record.address,
        serial=record.serial,
        bmc=record.bmc,
        state=host_state(world, record),
        verdict=host_verdict(world, record),
        boot_id=(seen.boot_id if seen and seen.boot_id else record.boot_id) or "",
        last_heard_at=min(seen.heard_at, world.now) if seen and seen.heard_at > 0 else None,
        enrolled_at=record.enrolled_at,
        drained_by=record.drain.owner if record.drain else "",
        drain_reason=record.drain.reason if record.drain else "",
        note=record.note,
        charged_to=charge.domains if charge else (),
        flags=record.flags,
        condition=seen.condition if seen and heard else None,
        facts=seen.facts if seen and heard else None,
        task_id=claim.task,
        token=claim.token if claim.token.counter else None,
        system_uuid=record.system_uuid,
        bmc_seen=bmc_seen(world, record),
    )


def bmc_seen(world: World, record: HostRecord) -> V.BmcSeen | None:
    """What is stored of the host's BMC; None before it was asked under its present binding."""
    facts = facts_of(world.state, record)
    if facts is None:
        return None
    return V.BmcSeen(
        system=facts.system,
        system_uuid=facts.system_uuid,
        chosen_by=facts.chosen_by,
        manufacturer=facts.manufacturer,
        model=facts.model,
        at=min(facts.at, world.now),
        graceful=soft_off_broken(world.state, facts.of_model),
    )


def hold(world: World, record: Hold) -> V.Hold:
    """A hold, with its host's name."""
    return V.Hold(
        id=record.id,
        host_id=record.host,
        host=host_name(world, record.host),
        kind=record.kind,
        reason=record.reason,
        owner=record.owner,
        at=record.at,
        until=record.until,
    )


# -- domains ---------------------------------------------------------------------------------------------------------


def limit_of(world: World, name: str, campaign_limits: Mapping[str, int]) -> EffectiveLimit:
    """A domain's effective limit; a site that has none of its own shows the ceiling on simultaneous boots."""
    limit, source, rounding = ledger.limit_of(world.state, name, campaign_limits.get(name))
    if source == "ceiling":
        limit = world.policy.site_boot_ceiling
    return EffectiveLimit(limit, source, rounding)


def limit_now(world: World, name: str) -> EffectiveLimit:
    """What holds in a domain now, and by whom: its budget; else the largest limit of the campaigns at work there.

    Without either it is the default of one, which is no budget: it holds for a campaign that gives no limit itself.
    """
    own = limit_of(world, name, {})
    if own.from_ == "budget":
        return own
    members = world.state.members(name)
    given = [
        (one.limits.domains[name], one.id)
        for one in world.state.open_campaigns.values()
        if name in one.limits.domains and not members.isdisjoint(world.state.target_set(one.id))
    ]
    if not given:
        return own
    limit, campaign_id = max(given)
    return EffectiveLimit(limit, f"campaign {campaign_id}", "")


def domain(world: World, brakes: Mapping[str, Brake], name: str) -> V.Domain:
    """A failure domain with its holders, the oldest first."""
    record = world.state.ledger(name)
    limit, source, rounding = limit_now(world, name)
    brake = brakes.get(name)
    return V.Domain(
        name=name,
        kind=name.partition("/")[0],
        enrolled=len(world.state.members(name)),
        charged=record.charged,
        limit=limit,
        limit_from=source,
        budget=format_budget(record.budget) if record.budget else "",
        rounding=rounding,
        holders=tuple(_holders(world, name)),
        brake=brake.text if brake else "",
    )


def _holders(world: World, name: str) -> Iterator[V.ChargeHolder]:
    for charge in ledger.holders(world.state, name)[:MOST_SHOWN]:
        cause = "; ".join(_cause(world, charge.host, found) for found in charge.causes)
        yield V.ChargeHolder(host=host_name(world, charge.host), cause=cause, since=charge.since)


def _cause(world: World, host_id: str, cause: Cause) -> str:
    match cause.kind:
        case CauseKind.TASK:
            campaign_id = cause.ref.partition("/")[0]
            found = world.state.task(campaign_id, host_id)
            return f"campaign {campaign_id}, task {found.state.value.replace('_', ' ') if found else 'unknown'}"
        case CauseKind.DRAIN:
            return f"drained by {cause.ref}"
        case CauseKind.DEAD_LETTER:
            return f"dead letter {cause.ref}" + (f" ({cause.detail})" if cause.detail else "")
        case _:
            return "dead"


# -- dead letters and audit ------------------------------------------------------------------------------------------


def dead_letter(world: World, record: DeadLetterRecord) -> V.DeadLetter:
    """A dead letter, with its host's name."""
    return V.DeadLetter(
        id=record.id,
        campaign_id=record.campaign,
        host_id=record.host,
        host=host_name(world, record.host),
        at=record.at,
        cause=record.cause,
        text=record.text,
        suggestion=_letter_step(record),
        evidence=record.evidence,
        state=record.state,
        resolution=record.resolution,
        retried_by=record.retried_by,
        attempts=record.attempts,
    )


def _letter_step(record: DeadLetterRecord) -> str:
    """What is left to do: nothing about one that a person has closed."""
    if record.state is DeadLetterState.RETRIED:
        return f"hostler campaign show {record.retried_by}"
    return record.suggestion if record.state is DeadLetterState.OPEN else ""


def audit_entry(record: AuditRecord) -> V.AuditEntry:
    """An audit entry."""
    return V.AuditEntry(
        id=record.id,
        at=record.at,
        actor=record.actor,
        action=record.action,
        host=record.host,
        campaign_id=record.campaign,
        reason=record.reason,
        result=record.result,
        detail=record.detail,
        host_id=record.host,
    )


def listed(names: Sequence[str], most: int = 5) -> str:
    """Name a few and count the rest."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
