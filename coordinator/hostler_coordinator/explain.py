"""Says of every host and campaign what it waits for, who holds it, since when and what is next; decides nothing.

The reasons come from the planner's own gates, so that the reason shown is the reason applied (law 9).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
from hostler_contract.campaigns import ENDED, CampaignState
from hostler_contract.moments import format_instant
from hostler_contract.work import DeadLetterState, PowerVerb, TaskRecord, TaskState
from hostler_coordinator.causes import as_one, in_order, persons_and_death, unheard
from hostler_coordinator.lifecycle import CHARGED, LET_GO
from hostler_coordinator.live import PowerResult
from hostler_coordinator.planner import starts, tasks
from hostler_coordinator.planner.actions import Move, Rescue, Why
from hostler_coordinator.planner.gates import Room, campaign_gate
from hostler_coordinator.standing import host_state, host_verdict, is_dead, task_of
from hostler_coordinator.state import WAITING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hostler_contract.campaigns import CampaignRecord
    from hostler_contract.hosts import HostRecord
    from hostler_contract.work import DeadLetterRecord
    from hostler_coordinator.planner.turn import Plan
    from hostler_coordinator.planner.world import World

MOST_LOOKED_AT = 500
"""Tasks in flight that are looked at for the one sentence of a campaign."""
_DECIDED = frozenset({"held", "drained"})
"""What a person decided of a host, which stands beside its work."""
_IN_ORDER = frozenset({"shutting-down", "down", "booting", "proving", "power", "stopping"})
"""What a task in flight waits for while all goes well; agent-* too."""


# -- hosts -----------------------------------------------------------------------------------------------------------


def host_why(world: World, host: HostRecord, room: Room | None = None) -> V.HostWhy:
    """What a host waits for, whether it is in a campaign or not, every cause that stands included.

    `room` spares counting it again for many hosts.
    """
    room = room or Room.of(world)
    task = task_of(world.state, host.id)
    campaign = world.state.campaigns.get(task.campaign) if task else None
    if task is not None and campaign is not None and task.state in tasks.DECIDED:
        why = task_why(world, campaign, task, room)
        own = replace(why, held_by=why.held_by or f"campaign {campaign.id} of {campaign.caller}")
        return _answer(world, host, [own, *_beside_work(world, host, why)], task=task)
    wanted = _wanting(world, host, room)
    if wanted is not None and host.retired is None:
        campaign, causes = wanted
        known = world.state.task(campaign.id, host.id) or TaskRecord(
            campaign=campaign.id, host=host.id, state=TaskState.PENDING, since=campaign.created_at
        )
        return _answer(world, host, causes, task=known)
    return _answer(world, host, _at_rest(world, host, room), task=None)


def _beside_work(world: World, host: HostRecord, why: Why) -> list[Why]:
    """What people decided of a host in flight, where its task does not say it already."""
    return [one for one in persons_and_death(world, host) if one.code in _DECIDED and one.text not in why.text]


def _answer(world: World, host: HostRecord, causes: list[Why], *, task: TaskRecord | None) -> V.HostWhy:
    charge = world.state.charge(host.id)
    seen = world.sightings.get(host.id)
    every = in_order(world, host, causes)
    why = as_one(every)
    return V.HostWhy(
        host=host.name,
        host_id=host.id,
        state=host_state(world, host),
        verdict=host_verdict(world, host),
        boot_id=(seen.boot_id if seen and seen.boot_id else host.boot_id) or "",
        waiting_for=why.text,
        code=why.code,
        held_by=why.held_by,
        since=_not_ahead(world, why.since if why.since is not None else (task.since if task else None)),
        next_step=why.next_step,
        next_at=why.next_at,
        charged_to=charge.domains if charge else (),
        campaign_id=task.campaign if task else "",
        task_state=task.state if task else None,
        as_of=world.now,
        causes=tuple(
            V.HostCause(
                code=one.code,
                text=one.text,
                held_by=one.held_by,
                since=_not_ahead(world, one.since),
                next_step=one.next_step,
                next_at=one.next_at,
            )
            for one in every
        ),
    )


def _not_ahead(world: World, at: float | None) -> float | None:
    """No age is ever negative, whatever a former leader's clock said (field case D09)."""
    return None if at is None else min(at, world.now)


def task_why(world: World, campaign: CampaignRecord, task: TaskRecord, room: Room) -> Why:
    """What a task in flight waits for; where the planner would act at once, what it is about to do."""
    decision = tasks.decide(world, campaign, task, room)
    if isinstance(decision, Why):
        return _with_goal(world, task, decision)
    if isinstance(decision, Rescue):
        return Why(
            "rescuing",
            f"goes to its BMC: {decision.why}",
            since=task.since,
            next_step="a power action",
            next_at=world.now,
        )
    return _about_to(world, task, decision)


def _about_to(world: World, task: TaskRecord, move: Move) -> Why:
    word = move.event.value.replace("_", " ")
    text = f"{word}: {move.reason}" if move.reason else word
    return Why(
        move.code or f"about-{move.event.value.replace('_', '-')}", text, "", task.since, "written now", world.now
    )


def _with_goal(world: World, task: TaskRecord, why: Why) -> Why:
    """A host that is being switched off shows its goal all the while (field case D12)."""
    report = world.power.get(task.id)
    off = task.power is not None and task.power.verb is PowerVerb.OFF and task.state is TaskState.POWER_CYCLING
    if off and report is not None and report.result is PowerResult.WORKING:
        return Why("power", f"shutting down (goal off): {report.step or 'logging in'}", why.held_by, why.since, "off")
    return why


def _wanting(world: World, host: HostRecord, room: Room) -> tuple[CampaignRecord, list[Why]] | None:
    """The open campaign that wants the host, one that could start it first, and every cause why it does not."""
    found: list[tuple[bool, float, str, CampaignRecord]] = []
    for campaign in world.state.open_campaigns.values():
        if host.id not in world.state.target_set(campaign.id):
            continue
        task = world.state.task(campaign.id, host.id)
        if task is not None and task.state not in WAITING:
            continue
        found.append((campaign.state is not CampaignState.RUNNING, campaign.created_at, campaign.id, campaign))
    if not found:
        return None
    *_, campaign = min(found, key=lambda item: item[:3])
    closed = starts.whys_not(world, campaign, host, room)
    if not closed:
        return campaign, [_starts_now(world, campaign)]
    return campaign, [*persons_and_death(world, host), *closed]


def _starts_now(world: World, campaign: CampaignRecord) -> Why:
    text = f"nothing: campaign {campaign.id} starts it now"
    return Why("ready", text, held_by="", next_step="reserved in the leader's next turn", next_at=world.now)


def _at_rest(world: World, host: HostRecord, room: Room) -> list[Why]:
    """A host that no campaign wants."""
    known = persons_and_death(world, host)
    if host.retired is not None or is_dead(world, host) or (known and world.blind):
        return known
    silent = unheard(world, host, room)
    return [*known, *([silent] if silent else [])] or [_idle(world, host)]


def _idle(world: World, host: HostRecord) -> Why:
    seen = world.sighting(host.id)
    return Why("idle", "nothing: no work is waiting for it", "", seen.attached_at or None, "")


# -- campaigns -------------------------------------------------------------------------------------------------------


def campaign_waits(world: World, plan: Plan, campaign: CampaignRecord) -> Why | None:
    """The one sentence about a campaign, with its code; None when it has ended and left nothing to anybody.

    `plan` is the newest turn's. Hosts that wait for a person are named, whatever else is going on (field case D05).
    """
    letters = open_letters(world, campaign)
    if campaign.state in ENDED:
        return _left_behind(world, letters) if letters else None
    why = _goes_on(world, plan, campaign)
    return _beside_letters(world, why, letters) if letters else why


def open_letters(world: World, campaign: CampaignRecord) -> list[DeadLetterRecord]:
    """Those of a campaign that nobody has dealt with, the oldest first."""
    counts = {state.value: count for state, count in world.state.counts(campaign.id).items()}
    if not (campaign.summary or counts).get(TaskState.DEAD_LETTER.value):
        return []
    every = world.state.dead_letters.values()
    found = [one for one in every if one.campaign == campaign.id and one.state is DeadLetterState.OPEN]
    return sorted(found, key=lambda letter: (letter.at, letter.id))


def _left_behind(world: World, letters: list[DeadLetterRecord]) -> Why:
    """A campaign that has ended and left hosts to a person."""
    first = letters[0]
    causes = {letter.cause for letter in letters}
    code = first.cause if len(causes) == 1 else "dead-letter"
    return Why(code, f"a person: {_told(world, letters)}", f"dead letter {first.id}", first.at, first.suggestion)


def _beside_letters(world: World, why: Why, letters: list[DeadLetterRecord]) -> Why:
    following = f"{why.next_step}; {letters[0].suggestion}" if why.next_step else letters[0].suggestion
    return replace(why, text=f"{why.text}; for a person: {_told(world, letters)}", next_step=following)


def _told(world: World, letters: list[DeadLetterRecord]) -> str:
    """The oldest with its cause and the tries it took, and how many more there are."""
    first = letters[0]
    host, task = world.state.hosts.get(first.host), world.state.task(first.campaign, first.host)
    actions = task.rescues if task is not None else 0
    tries = f"{actions} power action" if actions else f"{first.attempts} attempt"
    tries += "" if tries.startswith("1 ") else "s"
    more = f" (and {len(letters) - 1} more)" if len(letters) > 1 else ""
    return f"{host.name if host else first.host} ({first.cause}, after {tries}): {first.text}{more}"


def _goes_on(world: World, plan: Plan, campaign: CampaignRecord) -> Why:
    in_flight = [task for task in world.state.moving(campaign.id).values() if task.state in CHARGED]
    if campaign.state is CampaignState.PENDING:
        return _first_look(world, campaign)
    if campaign.state is CampaignState.ABORTING:
        return _aborting(world, plan, campaign, in_flight)
    closed = campaign_gate(world, campaign)
    if closed is not None:
        return _closed(closed, campaign, in_flight)
    waiting = plan.waiting.get(campaign.id)
    if waiting is not None and waiting.counts and not _of_before(waiting):
        return _waiting(waiting, in_flight)
    if in_flight:
        return _flying(world, plan, in_flight)
    if world.state.waiting(campaign.id):
        return _first_look(world, campaign)
    return Why(
        "ending", "nothing: every host has ended", "", campaign.state_since, "ends in the leader's next turn", world.now
    )


def _first_look(world: World, campaign: CampaignRecord) -> Why:
    """What the planner is about to find, by its own words: it has not looked yet since the campaign was begun."""
    count, waiting = starts.first_look(world, campaign, Room.of(world))
    if not count:
        if waiting.counts:
            why = _waiting(waiting, [])
            return why if why.since is not None else replace(why, since=campaign.state_since)
        text, step = "the planner, which has not looked at it yet", "looked at in the leader's next turn"
        return Why("pending", text, "", campaign.state_since, step, world.now)
    left = sum(waiting.counts.values())
    text = f"nothing: {_hosts(count)} {'starts' if count == 1 else 'start'} now"
    text += f"; then {_waiting(waiting, []).text}" if left else ""
    return Why("ready", text, "", campaign.state_since, "reserved in the leader's next turn", world.now)


def _of_before(waiting: starts.Waiting) -> bool:
    """True when the newest plan found the gate closed that is open now: the next turn is about to see it."""
    return any(code == "window-closed" or code.startswith("campaign-") for code in waiting.counts)


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def _aborting(world: World, plan: Plan, campaign: CampaignRecord, in_flight: list[TaskRecord]) -> Why:
    if not in_flight:
        return Why(
            "aborting",
            "nothing: every host has ended",
            "",
            campaign.state_since,
            "ends in the leader's next turn",
            world.now,
        )
    first = _flying(world, plan, in_flight)
    text = f"aborted; {_hosts(len(in_flight))} still carried to a safe end: {first.text}"
    return Why("aborting", text, first.held_by, campaign.state_since, first.next_step, first.next_at)


def _closed(why: Why, campaign: CampaignRecord, in_flight: list[TaskRecord]) -> Why:
    going = sum(1 for task in in_flight if task.state in LET_GO)
    more = f"; {_hosts(going)} in flight carried to a safe end" if going else ""
    opens = f", opens {format_instant(why.next_at)}" if why.code == "window-closed" and why.next_at else ""
    holder = why.held_by or campaign.id
    if why.code == "window-closed":
        holder = "window " + ", ".join(window.text for window in campaign.limits.windows)
        more += "; not to wait, abort it and submit without --window"
    since = why.since or campaign.state_since
    return Why(why.code, f"{why.text}{opens}{more}", holder, since, why.next_step, why.next_at)


def _waiting(waiting: starts.Waiting, in_flight: list[TaskRecord]) -> Why:
    """The reason that most hosts wait for, and how many wait for others."""
    codes = sorted(waiting.counts, key=lambda code: (-waiting.counts[code], code))
    first = waiting.reasons[codes[0]]
    count = waiting.counts[codes[0]]
    text = f"{_hosts(count)} {'waits' if count == 1 else 'wait'}: {first.text}"
    others = ", ".join(f"{waiting.counts[code]} {code}" for code in codes[1:4])
    text += f" (others: {others})" if others else ""
    text += f"; {len(in_flight)} in flight" if in_flight else ""
    following = first.next_step
    if first.code == "held" and len(codes) == 1 and not in_flight:
        text = f"only held hosts are left: {text}"
        following += "; hostler hold list shows them all" if count > 1 else ""
    if first.code == "budget-full":
        following += f"; limit and holders: hostler domain show {first.text.partition(' is full')[0]}"
    return Why(first.code, text, first.held_by, first.since, following, first.next_at)


def _flying(world: World, plan: Plan, in_flight: Iterable[TaskRecord]) -> Why:
    """The most telling of the hosts in flight: a stuck one before one that goes as it should, the oldest first."""
    ordered = sorted(in_flight, key=lambda task: (task.since, task.host))[:MOST_LOOKED_AT]
    told = [(task, plan.whys[task.id]) for task in ordered if task.id in plan.whys]
    stuck = [pair for pair in told if pair[1].code not in _IN_ORDER and not pair[1].code.startswith("agent-")]
    if not told:
        return Why("in-flight", f"{_hosts(len(ordered))} in flight", "", ordered[0].since, "their next evidence")
    task, why = (stuck or told)[0]
    record = world.state.hosts.get(task.host)
    rest = f" ({len(ordered) - 1} more in flight)" if len(ordered) > 1 else ""
    text = f"{record.name if record else task.host}: {why.text}{rest}"
    return Why(
        why.code, text, why.held_by, why.since if why.since is not None else task.since, why.next_step, why.next_at
    )
