"""Starts: which waiting hosts of a campaign are reserved now, gates first and the ledgers' room last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostler_contract.campaigns import CampaignState
from hostler_contract.work import TERMINAL, TaskState
from hostler_coordinator.lifecycle import Event
from hostler_coordinator.planner.actions import Move, Reserve, Why
from hostler_coordinator.planner.gates import campaign_gate, start_gate, start_gates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hostler_contract.campaigns import CampaignRecord
    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.planner.gates import Room
    from hostler_coordinator.planner.world import World


@dataclass(slots=True)
class Waiting:
    """Why hosts of a campaign were not started in this turn, counted by reason with one example each."""

    reasons: dict[str, Why] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, why: Why, count: int = 1) -> None:
        """Count one more host that waits for this reason."""
        self.reasons.setdefault(why.code, why)
        self.counts[why.code] = self.counts.get(why.code, 0) + count


@dataclass(slots=True)
class Left:
    """What one campaign may still use in this turn: starts under its rate, room under its total, and its open wave."""

    starts: int
    total: int
    wave: int
    wave_end: int


def wave_end(world: World, campaign: CampaignRecord) -> tuple[int, int]:
    """The open wave's number (0-based) and how many targets, in order, may have started."""
    sizes = campaign.limits.wave_sizes
    if not sizes:
        return 0, campaign.target_count
    counts = world.state.counts(campaign.id)
    ended = sum(counts.get(state, 0) for state in TERMINAL)
    end = 0
    for number, size in enumerate(sizes):
        end += size
        if ended < end or number == len(sizes) - 1:
            return number, end
    return len(sizes) - 1, campaign.target_count


def rate_gate(world: World, campaign: CampaignRecord) -> tuple[int, Why | None]:
    """How many may start now under the campaign's rate, and why no more."""
    rate = campaign.limits.starts_per_minute
    if rate is None:
        return campaign.target_count, None
    burst = max(1, int(rate))
    window_s = burst / rate * 60.0
    recent = sorted(
        task.started_at
        for task in world.state.tasks(campaign.id).values()
        if task.started_at is not None and task.started_at > world.now - window_s
    )
    free = burst - len(recent)
    if free > 0:
        return free, None
    return 0, Why(
        "rate",
        f"the rate of {rate:g} starts per minute is used up",
        next_step="the next start",
        next_at=recent[0] + window_s,
    )


def total_room(world: World, campaign: CampaignRecord) -> int:
    """How many more of the campaign's targets may go out of service under its `total` limit."""
    limit = campaign.limits.total
    if limit is None:
        return campaign.target_count
    targets = world.state.target_set(campaign.id)
    return limit - sum(1 for host in world.state.charges if host in targets)


def gate_now(world: World, campaign: CampaignRecord) -> Why | None:
    """What stops every start of the campaign at once."""
    closed = campaign_gate(world, campaign)
    if closed is not None:
        return closed
    free, why = rate_gate(world, campaign)
    return why if free <= 0 else None


def decide(world: World, campaign: CampaignRecord, room: Room, waiting: Waiting) -> Iterator[Reserve | Move]:
    """Reservations of one campaign, in the order of its targets; fills `waiting` with the reasons of the others."""
    closed = gate_now(world, campaign)
    if closed is not None:
        waiting.add(closed, len(world.state.waiting(campaign.id)))
        return
    begin = rate_gate(world, campaign)[0]
    left = Left(begin, total_room(world, campaign), *wave_end(world, campaign))
    for fabric, hosts in world.state.waiting_by_fabric(campaign.id).items():
        yield from _in_fabric(world, campaign, room, waiting, left, fabric, tuple(hosts))
        if left.starts <= 0:
            rest = len(world.state.waiting(campaign.id)) - begin - sum(waiting.counts.values())
            if rest > 0:
                waiting.add(Why("rate", "the campaign's rate is used up"), rest)
            return


def _in_fabric(
    world: World,
    campaign: CampaignRecord,
    room: Room,
    waiting: Waiting,
    left: Left,
    fabric: str,
    hosts: tuple[str, ...],
) -> Iterator[Reserve | Move]:
    """Starts in one fabric. Once it is full the rest is counted in one look, unless some cost nothing more."""
    free_ones = any(host in world.state.charges for host in hosts)
    positions = world.state.positions(campaign.id)
    for place, host_id in enumerate(hosts):
        blocked = room.full_domain(campaign, f"fabric/{fabric}") if fabric and not free_ones else None
        if blocked is not None:
            waiting.add(blocked, len(hosts) - place)
            return
        if left.starts <= 0:
            return
        host = world.state.hosts.get(host_id)
        if host is None or host.retired is not None:
            yield _out_of_reach(campaign, host_id, host)
            continue
        why = _why_not(world, campaign, host, room, positions, left)
        if why is not None:
            waiting.add(why)
            continue
        left.starts -= 1
        left.total -= 0 if world.state.charge(host_id) else 1
        room.take(campaign, host)
        yield reservation(world, campaign, host, left.wave)


def _out_of_reach(campaign: CampaignRecord, host_id: str, host: HostRecord | None) -> Move:
    """A target that left while it waited ends its task: the campaign must not wait for it for ever."""
    if host is None or host.retired is None:
        return Move(campaign.id, host_id, Event.REMOVED, "host-removed", "the host was removed from the inventory")
    return Move(campaign.id, host_id, Event.SKIP, "retired", f"the host was retired under {host.retired.ticket}")


def _why_not(
    world: World,
    campaign: CampaignRecord,
    host: HostRecord,
    room: Room,
    positions: Mapping[str, int],
    left: Left,
) -> Why | None:
    if host.retired is not None:
        return Why("retired", f"retired under {host.retired.ticket}", held_by=host.retired.by, since=host.retired.at)
    return (
        _not_its_wave(positions, host, left.wave_end)
        or start_gate(world, campaign, host, room)
        or _total_full(world, campaign, host, left.total)
    )


def _not_its_wave(positions: Mapping[str, int], host: HostRecord, end: int) -> Why | None:
    if positions.get(host.id, 0) < end:
        return None
    return Why("wave", "its wave is not open yet", next_step="starts when every host of the waves before has ended")


def _total_full(world: World, campaign: CampaignRecord, host: HostRecord, free: int) -> Why | None:
    if free > 0 or world.state.charge(host.id) is not None:
        return None
    return Why(
        "total-full",
        f"{campaign.limits.total} of the campaign's targets are out of service, its total limit",
        next_step="starts when one of them is back",
    )


def why_not(world: World, campaign: CampaignRecord, host: HostRecord, room: Room) -> Why | None:
    """Why one host of a campaign does not start now; None when it would."""
    closed = gate_now(world, campaign)
    if closed is not None:
        return closed
    left = Left(1, total_room(world, campaign), *wave_end(world, campaign))
    return _why_not(world, campaign, host, room, world.state.positions(campaign.id), left)


def whys_not(world: World, campaign: CampaignRecord, host: HostRecord, room: Room) -> list[Why]:
    """Every reason why one host of a campaign does not start now, what is nearest to the host first."""
    sizes = wave_end(world, campaign)
    own = start_gates(world, campaign, host, room)
    of_campaign = (
        _not_its_wave(world.state.positions(campaign.id), host, sizes[1]),
        _total_full(world, campaign, host, total_room(world, campaign)),
        campaign_gate(world, campaign),
        rate_gate(world, campaign)[1],
    )
    return [*own, *(why for why in of_campaign if why is not None)]


def first_look(world: World, campaign: CampaignRecord, room: Room) -> tuple[int, Waiting]:
    """What the planner would say of a campaign that it has not looked at since it began: starts, and who waits."""
    waiting = Waiting()
    begun = campaign.model_copy(update={"state": CampaignState.RUNNING})
    return sum(1 for action in decide(world, begun, room, waiting) if isinstance(action, Reserve)), waiting


def reservation(world: World, campaign: CampaignRecord, host: HostRecord, wave: int) -> Reserve:
    """Reserve this host now."""
    seen = world.sighting(host.id)
    task = world.state.task(campaign.id, host.id)
    heard = world.heard(host.id) and seen.boot_id
    boot_before = seen.boot_id if heard else host.boot_id
    if task is not None and task.state is TaskState.BACKING_OFF and task.boot_before:
        # A boot since the failed attempt is the reboot that was wanted, late or by itself: it is proved, not repeated.
        boot_before = task.boot_before
    return Reserve(
        campaign=campaign.id,
        host=host.id,
        wave=wave,
        boot_before=boot_before,
        deadline_at=world.now + world.policy.pull_timeout_s + campaign.limits.drain_timeout_s,
        attempt=(task.attempt if task else 0) + 1,
    )
