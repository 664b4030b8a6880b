"""One turn: the topics in their fixed order, and the report of what waits; carrying out is the engine's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostler_coordinator.planner import campaigns, hosts, retention, starts, tasks
from hostler_coordinator.planner.actions import Why
from hostler_coordinator.planner.gates import Room
from hostler_coordinator.planner.power_tasks import unwritten
from hostler_coordinator.planner.starts import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hostler_contract.campaigns import CampaignRecord
    from hostler_coordinator.planner.actions import Action
    from hostler_coordinator.planner.silence import Brake
    from hostler_coordinator.planner.world import World


@dataclass(slots=True)
class Plan:
    """What to do now, and the report of the rest.

    whys: task id -> what a task in flight waits for. waiting: campaign id -> reasons of the hosts that did not start.
    look_again_at: when time alone may change this answer; None when only events can.
    """

    actions: list[Action] = field(default_factory=list)
    whys: dict[str, Why] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    brakes: dict[str, Brake] = field(default_factory=dict)
    look_again_at: float | None = None

    def again_at(self, at: float | None) -> None:
        """Note a moment at which to look again."""
        if at is not None:
            self.look_again_at = at if self.look_again_at is None else min(self.look_again_at, at)


def plan(world: World, *, look_back: bool = False) -> Plan:
    """Decide everything that can be decided now. Planning again on the applied result yields nothing new.

    look_back: also look for old campaigns, which is done seldom.
    """
    room = Room.of(world)
    result = Plan(brakes=room.brakes)
    # 1. Hosts first: their new boots and deaths change the ledgers, and mass reboots pause campaigns below.
    result.actions.extend(hosts.decide(world, room))
    for campaign in _in_order(world):
        # 2. Tasks in flight, so that what they free can be seen next turn and what they hold is counted now.
        _tasks(world, campaign, room, result)
        # 3. The campaign as a whole, which may pause or end and so start nothing more.
        moved = list(campaigns.decide(world, campaign, result.actions))
        result.actions.extend(moved)
        # 4. Starts last: gates first, slots last.
        if not moved:
            waiting = Waiting()
            result.actions.extend(starts.decide(world, campaign, room, waiting))
            result.waiting[campaign.id] = waiting
        result.again_at(campaign.deadline_at if campaign.deadline_at and campaign.deadline_at > world.now else None)
    # 5. Housekeeping, seldom and in small pieces.
    if look_back:
        result.actions.extend(retention.decide(world))
    _alarms(world, result)
    return result


def _in_order(world: World) -> Iterable[CampaignRecord]:
    return sorted(world.state.open_campaigns.values(), key=lambda campaign: (campaign.created_at, campaign.id))


def _tasks(world: World, campaign: CampaignRecord, room: Room, result: Plan) -> None:
    for task in world.state.moving(campaign.id).values():
        told = unwritten(world, task)
        if told is not None:
            result.actions.append(told)
        if task.state not in tasks.DECIDED:
            continue
        decision = tasks.decide(world, campaign, task, room)
        if isinstance(decision, Why):
            result.whys[task.id] = decision
            result.again_at(decision.next_at if decision.next_at and decision.next_at > world.now else None)
        else:
            result.actions.append(decision)


def _alarms(world: World, result: Plan) -> None:
    """Moments of the starts' reasons, and of silence itself."""
    for waiting in result.waiting.values():
        for why in waiting.reasons.values():
            result.again_at(why.next_at if why.next_at and why.next_at > world.now else None)
    if world.in_grace:
        result.again_at(world.grace_ends_at)
