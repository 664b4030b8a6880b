"""Campaigns as a whole: begin, pause by their own limits, carry an abort or a deadline to its end, and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.campaigns import CampaignState
from hostler_contract.work import TERMINAL, TaskState
from hostler_coordinator.lifecycle import Event
from hostler_coordinator.phrases import counted
from hostler_coordinator.planner.actions import Move, MoveCampaign, RecordBoot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostler_contract.campaigns import CampaignRecord
    from hostler_contract.work import TaskRecord
    from hostler_coordinator.planner.actions import Action
    from hostler_coordinator.planner.world import World

_BAD = frozenset({TaskState.DEAD_LETTER, TaskState.FAILED})


def decide(world: World, campaign: CampaignRecord, so_far: Sequence[Action]) -> Iterator[MoveCampaign | Move]:
    """What becomes of one campaign now, `so_far` being the actions of this turn."""
    if campaign.state is CampaignState.PENDING:
        if len(world.state.targets(campaign.id)) == campaign.target_count:
            yield MoveCampaign(campaign.id, CampaignState.RUNNING, "started", "")
    elif campaign.state is CampaignState.ABORTING:
        yield from _abort(world, campaign)
    elif _all_ended(world, campaign):
        yield _end(world, campaign)
    elif campaign.deadline_at is not None and world.now >= campaign.deadline_at:
        yield from _deadline(world, campaign)
    elif campaign.state is CampaignState.RUNNING:
        found = _failure_limit(world, campaign) or _mass_reboot(world, campaign, so_far)
        if found is not None:
            yield found


def _all_ended(world: World, campaign: CampaignRecord) -> bool:
    counts = world.state.counts(campaign.id)
    return sum(counts.get(state, 0) for state in TERMINAL) >= campaign.target_count


def _end(world: World, campaign: CampaignRecord) -> MoveCampaign:
    counts = world.state.counts(campaign.id)
    good = counts.get(TaskState.SUCCEEDED, 0)
    if good == campaign.target_count:
        return MoveCampaign(
            campaign.id,
            CampaignState.SUCCEEDED,
            "all-proved",
            f"all {counted(good, 'host')} proved" if good > 1 else "its host proved",
        )
    rest = ", ".join(
        f"{counts[state]} {state.value.replace('_', ' ')}"
        for state in (TaskState.DEAD_LETTER, TaskState.FAILED, TaskState.SKIPPED, TaskState.ABORTED)
        if counts.get(state, 0)
    )
    return MoveCampaign(campaign.id, CampaignState.INCOMPLETE, "incomplete", f"{counted(good, 'host')} proved; {rest}")


def _idle(world: World, campaign: CampaignRecord) -> list[TaskRecord]:
    """Tasks that have a record, but wait."""
    idle = {TaskState.PENDING, TaskState.BACKING_OFF}
    return [task for task in world.state.moving(campaign.id).values() if task.state in idle]


def _abort(world: World, campaign: CampaignRecord) -> Iterator[MoveCampaign | Move]:
    """Waiting tasks end at once; the others are stopped or carried to a safe end by their own room."""
    for task in _idle(world, campaign):
        yield Move(campaign.id, task.host, Event.ABORT, "aborted", campaign.state_reason)
    if not world.state.moving(campaign.id):
        yield MoveCampaign(campaign.id, CampaignState.ABORTED, "aborted", campaign.state_reason)


def _deadline(world: World, campaign: CampaignRecord) -> Iterator[MoveCampaign | Move]:
    for task in _idle(world, campaign):
        event = Event.FAIL if task.state is TaskState.BACKING_OFF else Event.SKIP
        yield Move(campaign.id, task.host, event, "campaign-deadline", "the campaign's deadline passed")
    if not world.state.moving(campaign.id):
        yield MoveCampaign(
            campaign.id, CampaignState.FAILED, "deadline", "its deadline passed before every host was proved"
        )


def failures(world: World, campaign: CampaignRecord) -> int:
    """Hosts that ended badly so far."""
    counts = world.state.counts(campaign.id)
    return sum(counts.get(state, 0) for state in _BAD)


def _failure_limit(world: World, campaign: CampaignRecord) -> MoveCampaign | None:
    count = failures(world, campaign)
    new = count - campaign.failures_forgiven
    if new <= 0:
        return None
    limits = campaign.limits
    if limits.max_failures is not None and new >= limits.max_failures:
        return _paused(world, campaign, f"failure limit reached ({new} of {limits.max_failures})")
    for domain, limit in limits.max_failures_by_domain.items():
        inside = sum(1 for task in _failed(world, campaign) if task.host in world.state.members(domain))
        if inside - campaign.failures_forgiven >= limit:
            return _paused(world, campaign, f"failure limit of {domain} reached ({inside} of {limit})")
    return None


def _failed(world: World, campaign: CampaignRecord) -> list[TaskRecord]:
    found = [task for task in world.state.tasks(campaign.id).values() if task.state in _BAD]
    return sorted(found, key=lambda task: (task.ended_at or 0.0, task.host))


def _paused(world: World, campaign: CampaignRecord, reason: str) -> MoveCampaign:
    hosts = [world.state.hosts[task.host].name for task in _failed(world, campaign) if task.host in world.state.hosts]
    shown = ", ".join(hosts[:10]) + (f" and {len(hosts) - 10} more" if len(hosts) > 10 else "")
    return MoveCampaign(campaign.id, CampaignState.PAUSED, "failure-limit", f"{reason}: {shown}")


def _mass_reboot(world: World, campaign: CampaignRecord, so_far: Sequence[Action]) -> MoveCampaign | None:
    """Many hosts came back on boots that nobody asked for: a power cut, not sick hosts (field case A24)."""
    since = max(world.now - world.policy.mass_reboot_window_s, campaign.state_since)
    now = [a.host for a in so_far if isinstance(a, RecordBoot) and a.boot_id]
    if not now and world.fresh is not None:
        return None  # nothing new, and the next look at every host is soon
    recent = {host for host in now if host in world.state.hosts and world.state.hosts[host].boot_id is not None}
    recent |= {
        h.id for h in world.state.hosts.values() if h.unexpected_boot_at is not None and h.unexpected_boot_at > since
    }
    if len(recent) <= world.policy.mass_silence_hosts:
        return None
    for domain in sorted({domain for host in recent for domain in world.state.hosts[host].domains}):
        members = world.state.members(domain)
        inside = len(recent & set(members))
        if inside > max(world.policy.mass_silence_hosts, world.policy.mass_silence_fraction * len(members)):
            return MoveCampaign(
                campaign.id,
                CampaignState.PAUSED,
                "mass-unexpected-reboot",
                f"{inside} of {len(members)} hosts of {domain} rebooted by themselves within a minute",
            )
    return None
