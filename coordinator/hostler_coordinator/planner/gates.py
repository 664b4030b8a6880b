"""The gates before a start, a GO and a rescue: each returns why not, or None when it is open.

Every "why" that an operator reads about a waiting host comes from here, so that the reason shown is the reason applied.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostler_contract.campaigns import CampaignState
from hostler_contract.domains import CauseKind
from hostler_contract.hosts import Usability
from hostler_contract.work import BY_AGENT, OperationKind, RebootMode, TaskState
from hostler_coordinator import ledger
from hostler_coordinator.phrases import because, counted
from hostler_coordinator.planner.actions import Why
from hostler_coordinator.planner.silence import Brake, alone, braked_by, brakes, heard_neighbour
from hostler_coordinator.windows import state as window_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostler_contract.campaigns import CampaignRecord
    from hostler_contract.domains import Cause, Charge
    from hostler_contract.hosts import Hold, HostRecord
    from hostler_contract.work import TaskRecord
    from hostler_coordinator.planner.world import World
    from hostler_coordinator.state import State


@dataclass(slots=True)
class Room:
    """What is free in this turn, starts already planned in it included. Mutable: it belongs to one turn.

    brakes: domains under mass silence. charged: domain -> charges. working: site -> hosts charged by tasks.
    power: power intents in force.
    """

    world: World
    brakes: dict[str, Brake]
    charged: dict[str, int] = field(default_factory=dict)
    working: dict[str, int] = field(default_factory=dict)
    power: int = 0
    claimed: dict[str, str] = field(default_factory=dict)
    """Host -> campaign, for starts planned in this turn: a second campaign finds the host taken."""
    _limits: dict[tuple[str, str], int] = field(default_factory=dict)
    _whys: dict[tuple[str, int, int], Why] = field(default_factory=dict)

    @classmethod
    def of(cls, world: World) -> Room:
        """Count what the state holds."""
        room = cls(world, brakes(world))
        for host, charge in world.state.charges.items():
            record = world.state.hosts.get(host)
            if record is not None and any(cause.kind is CauseKind.TASK for cause in charge.causes):
                room.working[record.site] = room.working.get(record.site, 0) + 1
        for campaign in world.state.open_campaigns:
            moving = world.state.moving(campaign).values()
            room.power += sum(1 for task in moving if task.state is TaskState.POWER_CYCLING)
        return room

    def limit(self, campaign: CampaignRecord, domain: str) -> int:
        """Effective limit of a domain under a campaign."""
        key = (campaign.id, domain)
        if key not in self._limits:
            self._limits[key] = ledger.limit_of(self.world.state, domain, campaign.limits.domains.get(domain))[0]
        return self._limits[key]

    def count(self, domain: str) -> int:
        """Charges of a domain, planned ones included."""
        if domain not in self.charged:
            self.charged[domain] = self.world.state.ledger(domain).charged
        return self.charged[domain]

    def take(self, campaign: CampaignRecord, host: HostRecord) -> None:
        """Plan a start of this host."""
        self.claimed[host.id] = campaign.id
        self.working[host.site] = self.working.get(host.site, 0) + 1
        if self.world.state.charge(host.id) is None:
            for domain in host.domains:
                self.charged[domain] = self.count(domain) + 1

    def full(self, campaign: CampaignRecord, host: HostRecord, *, holding: bool = False) -> Why | None:
        """The first domain without room. `holding`: the host is charged already and only must not be over the limit."""
        if not holding and self.world.state.charge(host.id) is not None:
            return None
        found = (self.full_domain(campaign, domain, 0 if holding else 1) for domain in host.domains)
        return next((why for why in found if why is not None), None)

    def full_domain(self, campaign: CampaignRecord, domain: str, more: int = 1) -> Why | None:
        """Why `more` further charges do not fit into a domain; None when they do."""
        limit, count = self.limit(campaign, domain), self.count(domain)
        if count + more <= limit:
            return None
        key = (domain, count, limit)
        if key not in self._whys:
            self._whys[key] = self._full(domain, count, limit)
        return self._whys[key]

    def _full(self, domain: str, count: int, limit: int) -> Why:
        held = ledger.holders(self.world.state, domain)
        names = ", ".join(holder(self.world.state, charge) for charge in held[:3])
        more = f" and {len(held) - 3} more" if len(held) > 3 else ""
        return Why(
            "budget-full",
            f"{domain} is full: {count} of {limit} out of service ({names}{more})" if names else f"{domain} is full",
            held_by=names + more,
            since=held[0].since if held else None,
            next_step="starts when one of them is back in service",
        )


def holder(state: State, charge: Charge) -> str:
    """Who fills a place, and why: `gpu-001: campaign c-7f3a`."""
    record = state.hosts.get(charge.host)
    return f"{record.name if record else charge.host}: {' and '.join(said(cause) for cause in charge.causes)}"


def said(cause: Cause) -> str:
    """One cause of a charge in two or three words."""
    match cause.kind:
        case CauseKind.TASK:
            return f"campaign {cause.ref.split('/', 1)[0]}"
        case CauseKind.DEAD_LETTER:
            return f"dead letter {cause.ref}"
        case CauseKind.DRAIN:
            return f"drained by {cause.ref}"
        case CauseKind.DEAD:
            return "dead"


def hold_gate(world: World, host: str) -> Why | None:
    """A hold binds every actor."""
    return next(iter(hold_gates(world, host)), None)


def hold_gates(world: World, host: str) -> tuple[Why, ...]:
    """Every hold in force, each with its owner and the way out of it."""
    return tuple(map(_held, world.holds(host)))


def _held(hold: Hold) -> Why:
    return Why(
        "held",
        f"held by {hold.owner} ({hold.kind.value.replace('_', ' ')}): {hold.reason}",
        held_by=hold.owner,
        since=hold.at,
        next_step=f"hostler hold remove {hold.id}" + (", or it ends by itself" if hold.until else ""),
        next_at=hold.until,
    )


def campaign_gate(world: World, campaign: CampaignRecord) -> Why | None:
    """The campaign runs, and one of its windows is open."""
    if campaign.state is not CampaignState.RUNNING:
        return Why(
            f"campaign-{campaign.state.value}",
            f"campaign {campaign.id} is {because(campaign.state.value, campaign.state_reason or 'no reason given')}",
            held_by=campaign.id,
            since=campaign.state_since,
            next_step=f"hostler campaign resume {campaign.id}" if campaign.state is CampaignState.PAUSED else "",
        )
    if campaign.deadline_at is not None and world.now >= campaign.deadline_at:
        return Why(
            "campaign-deadline", f"the deadline of campaign {campaign.id} has passed", since=campaign.deadline_at
        )
    if campaign.limits.windows:
        now = window_state(campaign.limits.windows, world.now)
        if not now.open:
            words = ", ".join(window.text for window in campaign.limits.windows)
            return Why(
                "window-closed",
                f"the maintenance window is closed ({words})",
                next_step="starts when it opens",
                next_at=now.opens_at,
            )
    return None


def brake_gate(world: World, host: str, room: Room) -> Why | None:
    """Mass silence stops starts and out-of-band action."""
    found = braked_by(world, host, room.brakes)
    if found is None:
        return None
    return Why(
        "mass-silence",
        found.text,
        held_by=found.domain,
        since=found.since,
        next_step="goes on when they are heard again, or a person releases the brake for this host",
    )


def _claimed(world: World, campaign: CampaignRecord, host: HostRecord, room: Room) -> Why | None:
    claim = world.state.claim(host.id)
    owner, since = claim.task.split("/", 1)[0], claim.at
    if not owner and host.id in room.claimed:
        owner, since = room.claimed[host.id], world.now
    if owner in {"", campaign.id}:
        return None
    text = f"campaign {owner} is working on it"
    return Why("claimed", text, held_by=owner, since=since, next_step="starts when that work ends")


def presence_gate(world: World, campaign: CampaignRecord, host: HostRecord) -> Why | None:
    """Silence that may not be judged yet, and a host with nobody on it to ask: only its BMC could be told."""
    if world.heard(host.id):
        return None
    if host.boot_id is None:
        return None if is_ordered(campaign) else _never_seen(host)
    charge = world.state.charge(host.id)
    known_dead = charge is not None and any(c.kind in {CauseKind.DEAD, CauseKind.DEAD_LETTER} for c in charge.causes)
    if known_dead and not world.in_grace and campaign.request.operation is not OperationKind.SOFT_REBOOT:
        return None
    since = max(world.sighting(host.id).heard_at, world.leader_since)
    if world.in_grace:
        return Why(
            "leader-grace",
            "not heard yet by the new leader, which waits before it judges silence",
            since=since,
            next_step="judged after the grace",
            next_at=world.grace_ends_at,
        )
    return Why(
        "silent",
        "its agent is silent",
        since=since,
        next_step="is charged as dead, then may be rescued",
        next_at=since + world.policy.dead_after_s,
    )


def _never_seen(host: HostRecord) -> Why:
    """A soft reboot needs an agent: a slot given to this host would be kept from others for nothing."""
    return Why(
        "never-seen",
        "no agent has ever attached from it",
        since=host.enrolled_at,
        next_step="install and start hostler-agent on it; or submit with --mode hard, which goes to its BMC",
    )


def _condition(world: World, campaign: CampaignRecord, host: HostRecord) -> Why | None:
    seen = world.sighting(host.id)
    condition = seen.condition
    if world.heard(host.id) and condition.usability is Usability.STARTING:
        return Why(
            "starting",
            f"it is still starting: {condition.usability_reason or 'post-boot checks run'}",
            since=seen.attached_at,
            next_step="starts when its checks have passed",
        )
    return blocked_gate(world, campaign, host.id)


def blocked_gate(world: World, campaign: CampaignRecord, host: str) -> Why | None:
    """The host said that something on it forbids work. Silence takes nothing of that back: a job outlives its agent."""
    seen = world.sighting(host)
    blocked_by = world.blocked_by(host)
    if not blocked_by or seen.condition.can_drain or campaign.request.force:
        return None
    last_word = "" if world.heard(host) else ", as its agent said before it fell silent"
    return Why(
        "blocked",
        f"blocked by {blocked_by}{last_word}",
        held_by=blocked_by,
        since=seen.attached_at,
        next_step="starts when that ends; or configure a drain, or use --force with a reason",
    )


def record_gate(world: World, host: HostRecord) -> Why | None:
    """A record that cannot be read stops what relies on it, and nothing else."""
    path = world.state.unreadable_for(host)
    if path is None:
        return None
    text = f"the stored record {path} cannot be read"
    step = "goes on when it is repaired or deleted; hostler-coordinator fsck names it"
    return Why("record-unreadable", text, held_by=path, next_step=step)


def pause_gate(world: World, task: TaskRecord | None) -> Why | None:
    """A task that failed or was refused waits before its next attempt."""
    if task is None or task.next_attempt_at is None or task.next_attempt_at <= world.now:
        return None
    word = "backing-off" if task.state is TaskState.BACKING_OFF else "refused"
    return Why(
        word,
        f"{word.replace('-', ' ')}: {task.reason}",
        since=task.since,
        next_step=f"attempt {task.attempt + 1}",
        next_at=task.next_attempt_at,
    )


def start_gates(world: World, campaign: CampaignRecord, host: HostRecord, room: Room) -> Iterator[Why]:
    """Every closed gate of a start that concerns one host: what stands on the host first, the ledgers last."""
    gates: tuple[Callable[[], Why | None], ...] = (
        lambda: record_gate(world, host),
        lambda: hold_gate(world, host.id),
        lambda: pause_gate(world, world.state.task(campaign.id, host.id)),
        lambda: _claimed(world, campaign, host, room),
        lambda: presence_gate(world, campaign, host),
        lambda: _condition(world, campaign, host),
        lambda: brake_gate(world, host.id, room),
        lambda: _ceiling(world, host, room),
        lambda: room.full(campaign, host),
    )
    return (why for gate in gates if (why := gate()) is not None)


def start_gate(world: World, campaign: CampaignRecord, host: HostRecord, room: Room) -> Why | None:
    """The first of them: gate first, take the slot last."""
    return next(start_gates(world, campaign, host, room), None)


def _ceiling(world: World, host: HostRecord, room: Room) -> Why | None:
    working = room.working.get(host.site, 0)
    if working < world.policy.site_boot_ceiling:
        return None
    return Why(
        "site-ceiling",
        f"site {host.site} has {counted(working, 'host')} in work, its ceiling over all campaigns",
        held_by=f"site/{host.site}",
        next_step="starts when one of them ends",
    )


def go_gate(world: World, campaign: CampaignRecord, host: HostRecord, room: Room) -> Why | None:
    """What the GO checks once more: campaign, window, hold, brake, and that no domain is over its limit."""
    return (
        campaign_gate(world, campaign)
        or hold_gate(world, host.id)
        or brake_gate(world, host.id, room)
        or room.full(campaign, host, holding=True)
    )


def is_ordered(campaign: CampaignRecord) -> bool:
    """True when the operator ordered the BMC to act, so that silence need not be shown."""
    request = campaign.request
    return request.mode is RebootMode.HARD or request.operation not in BY_AGENT


def power_gate(world: World, host: HostRecord, room: Room) -> Why | None:
    """What binds every out-of-band action, ordered or not."""
    held = hold_gate(world, host.id) or brake_gate(world, host.id, room)
    if held is not None:
        return held
    if room.power >= world.policy.rescues_at_once:
        return Why(
            "rescue-cap",
            f"{room.power} power actions are in progress, the most that may be at once",
            next_step="starts when one of them ends",
        )
    return None


def witness_gate(world: World, host: HostRecord) -> Why | None:
    """Law 5's witnesses as far as the control plane sees them; the BMC's own answer is read by the power worker."""
    if world.in_grace:
        return Why(
            "leader-grace",
            "a new leader waits before it judges silence",
            next_step="rescue is considered then",
            next_at=world.grace_ends_at,
        )
    if heard_neighbour(world, host.id) is None and not alone(world, host.id):
        return Why(
            "no-witness",
            "no neighbour in a shared domain is heard, so its silence proves nothing",
            next_step="rescue is considered when a neighbour is heard",
        )
    return None
