"""What stands that a person must be called for, worked out from state and plan; pure, sending is the notifier's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hostler_contract.campaigns import CampaignState
from hostler_contract.work import DeadLetterState

if TYPE_CHECKING:
    from hostler_coordinator.planner.actions import Why
    from hostler_coordinator.planner.turn import Plan
    from hostler_coordinator.planner.world import World


class Alarm(NamedTuple):
    """One cause: labels tell alarms apart, annotations are for people."""

    labels: dict[str, str]
    annotations: dict[str, str]


def alarms(world: World, plan: Plan) -> dict[str, Alarm]:
    """Every alarm that stands now, one per cause."""
    return {**_dead_letters(world), **_paused(world), **_blocked(world, plan), **_brakes(plan), **_unreadable(world)}


def store_alarm(since: str, reason: str) -> Alarm:
    """The store refuses work."""
    return Alarm(
        {"alertname": "HostlerStoreUnavailable", "severity": "critical"},
        {"summary": f"store unavailable since {since}: nothing is started", "description": reason},
    )


def aside_alarm(what: str, subject: str, since: str, reason: str) -> Alarm:
    """A decision that the store cannot take, though it answers; others go on."""
    return Alarm(
        {"alertname": "HostlerDecisionPutAside", "severity": "critical", "subject": subject},
        {
            "summary": f"{what} of {subject} cannot be written since {since}: {reason}",
            "description": "a record has grown too large for the store: raise etcd's --max-request-bytes or shorten it",
        },
    )


def _dead_letters(world: World) -> dict[str, Alarm]:
    found: dict[str, Alarm] = {}
    for letter in world.state.dead_letters.values():
        if letter.state is not DeadLetterState.OPEN:
            continue
        host = world.state.hosts.get(letter.host)
        name = host.name if host is not None else letter.host
        found[f"dead-letter/{letter.id}"] = Alarm(
            {
                "alertname": "HostlerDeadLetter",
                "severity": "warning",
                "host": name,
                "campaign": letter.campaign,
                "cause": letter.cause,
            },
            {"summary": f"{name}: {letter.text}", "description": letter.suggestion},
        )
    return found


def _paused(world: World) -> dict[str, Alarm]:
    return {
        f"paused/{campaign.id}": Alarm(
            {"alertname": "HostlerCampaignPaused", "severity": "warning", "campaign": campaign.id},
            {
                "summary": f"campaign {campaign.id} has paused itself: {campaign.state_reason}",
                "description": f"look, then: hostler campaign resume {campaign.id} (or abort)",
            },
        )
        for campaign in world.state.open_campaigns.values()
        if campaign.state is CampaignState.PAUSED and campaign.paused_by_rule
    }


_BLOCKING = ("budget-full", "never-seen")
"""Reasons to wait that only a person ends."""


def _blocked(world: World, plan: Plan) -> dict[str, Alarm]:
    found: dict[str, Alarm] = {}
    for campaign_id, waiting in plan.waiting.items():
        long = (
            why for code in _BLOCKING if (why := waiting.reasons.get(code)) and _blocked_long(world, campaign_id, why)
        )
        why = next(long, None)
        if why is None:
            continue
        found[f"blocked/{campaign_id}"] = Alarm(
            {"alertname": "HostlerCampaignBlocked", "severity": "warning", "campaign": campaign_id},
            {"summary": f"campaign {campaign_id} starts nothing: {why.text}", "description": why.next_step},
        )
    return found


def _blocked_long(world: World, campaign_id: str, why: Why) -> bool:
    """Nothing of the campaign moves, and what holds the domain has held it for the bound."""
    moving = any(task.next_attempt_at is None for task in world.state.moving(campaign_id).values())
    if moving or why.since is None:
        return False
    since = why.since
    if why.code == "never-seen":  # since its enrolment: it is in the way only since a campaign wants it
        since = max(since, world.state.campaigns[campaign_id].created_at)
    return world.now - since >= world.policy.blocked_alert_s


def _unreadable(world: World) -> dict[str, Alarm]:
    return {
        f"unreadable/{path}": Alarm(
            {"alertname": "HostlerRecordUnreadable", "severity": "critical", "path": path},
            {"summary": f"stored record {path} cannot be read: {why}", "description": "repair or delete it by hand"},
        )
        for path, why in world.state.unreadable.items()
    }


def _brakes(plan: Plan) -> dict[str, Alarm]:
    return {
        f"mass-silence/{brake.domain}": Alarm(
            {"alertname": "HostlerMassSilence", "severity": "critical", "domain": brake.domain},
            {
                "summary": brake.text,
                "description": "rescues and starts are stopped there; release named hosts with: hostler brake release",
            },
        )
        for brake in plan.brakes.values()
    }
