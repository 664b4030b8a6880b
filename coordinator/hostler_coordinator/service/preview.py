"""What a campaign would do, before it runs: waves, peaks, time, and what would not start; pure, it changes nothing."""

from __future__ import annotations

import math
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
from hostler_contract.campaigns import CampaignRecord, CampaignState
from hostler_contract.moments import format_instant
from hostler_contract.work import BY_AGENT, RebootMode, TaskState
from hostler_coordinator.durations import format_duration
from hostler_coordinator.limits import narrow_first
from hostler_coordinator.phrases import counted
from hostler_coordinator.planner.gates import Room
from hostler_coordinator.planner.starts import why_not
from hostler_coordinator.service.submission import plan_token
from hostler_coordinator.views import limit_of, listed
from hostler_coordinator.windows import openings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.planner.world import World
    from hostler_coordinator.service.submission import Resolved

MOST_WAVE_HOSTS = 20
MOST_WAVES = 200
MOST_BLOCKED = 100
MOST_DOMAINS = 200
MOST_TIMED = 500
"""Finished reboots that the expected time is learned from, the newest campaigns first."""
ASSUMED_SHARE = 6
"""Without a timed reboot, one is taken for a sixth of the boot allowance: 5 of 30 minutes."""
_NOT_OF_ONE_HOST = {"windows": (), "wave_sizes": (), "starts_per_minute": None, "total": None}
"""Limits that stop all hosts alike; a plan shows them on their own."""
_KINDS = {"fabric": 0, "site": 1, "feed": 2, "rack": 3}


def preview(world: World, resolved: Resolved) -> V.Plan:
    """The plan of a resolved request; nothing is written, drained or asked."""
    waves = _waves(resolved)
    names = sorted({name for host in resolved.hosts for name in host.domains}, key=_rank)
    inside = [Counter(name for host in hosts for name in host.domains) for hosts in waves]
    domains = [_domain(world, resolved, inside, name) for name in names]
    duration_s, how = _expected(world, resolved, waves, domains)
    blocked = list(_blocked(world, resolved))
    if blocked:
        many = f"more than {MOST_BLOCKED}" if len(blocked) > MOST_BLOCKED else len(blocked)
        how += f"; {many} blocked now, and that wait comes on top"
    notes = list(_notes(world, resolved, blocked))
    if len(domains) > MOST_DOMAINS:
        notes.append(f"{len(domains) - MOST_DOMAINS} more domains are not shown")
    return V.Plan(
        plan_token=plan_token(resolved.request, resolved.ids),
        target_count=len(resolved.hosts),
        waves=tuple(
            V.PlannedWave(
                number=number,
                host_count=len(hosts),
                hosts=tuple(host.name for host in hosts[:MOST_WAVE_HOSTS]),
            )
            for number, hosts in enumerate(waves[:MOST_WAVES], 1)
        ),
        domains=tuple(domains[:MOST_DOMAINS]),
        blocked=tuple(blocked[:MOST_BLOCKED]),
        expected_duration_s=duration_s,
        expected_from=how,
        notes=tuple(notes),
        needs_count=len(resolved.hosts) > world.policy.confirm_above_hosts,
    )


def _rank(name: str) -> tuple[int, str]:
    return _KINDS.get(name.partition("/")[0], len(_KINDS)), name


def _waves(resolved: Resolved) -> list[Sequence[HostRecord]]:
    """Targets by wave, in order; one wave where none were asked for."""
    sizes = resolved.limits.wave_sizes or (len(resolved.hosts),)
    found: list[Sequence[HostRecord]] = []
    begin = 0
    for size in sizes:
        found.append(resolved.hosts[begin : begin + size])
        begin += size
    return found


def _domain(world: World, resolved: Resolved, inside: Sequence[Counter[str]], name: str) -> V.PlannedDomain:
    """What the plan does to one domain; `inside` counts each wave's hosts by domain."""
    limit, source, rounding = limit_of(world, name, resolved.limits.domains)
    bounds = [limit, max(wave[name] for wave in inside)]
    if resolved.limits.total is not None:
        bounds.append(resolved.limits.total)
    if source == "campaign":
        rounding = next((word for word in resolved.limits.words if word.startswith(f"{name}: ")), "")
    return V.PlannedDomain(
        domain=name,
        enrolled=len(world.state.members(name)),
        targets=sum(wave[name] for wave in inside),
        charged_now=world.state.ledger(name).charged,
        limit=limit,
        limit_from=source,
        rounding=rounding,
        peak_down=min(bounds),
        free=max(0, limit - world.state.ledger(name).charged),
    )


# -- time ------------------------------------------------------------------------------------------------------------


def _expected(
    world: World, resolved: Resolved, waves: Sequence[Sequence[HostRecord]], domains: Sequence[V.PlannedDomain]
) -> tuple[float, str]:
    """Rounds of the tightest domain in each wave, times the time of one host; or the rate, where that is slower."""
    each_s, source = host_time(world, resolved)
    limits = {domain.domain: domain.limit for domain in domains}
    rounds = sum(_rounds(hosts, limits, resolved.limits.total) for hosts in waves)
    duration_s = rounds * each_s
    how = f"{counted(rounds, 'round')} of {format_duration(each_s)} ({source})"
    how += f"; the tightest limit is {tightest(world, resolved, domains)}"
    rate = resolved.limits.starts_per_minute
    if rate is not None and len(resolved.hosts) / rate * 60.0 > duration_s:
        duration_s = (len(resolved.hosts) - 1) / rate * 60.0 + each_s
        how = f"{len(resolved.hosts)} starts at {rate:g} per minute, then {format_duration(each_s)} ({source})"
    if resolved.limits.windows:
        how += "; waiting for a window comes on top"
    return duration_s, how


def _rounds(hosts: Sequence[HostRecord], limits: dict[str, int], total: int | None) -> int:
    """How often the domain that takes longest must be filled for these hosts."""
    inside = Counter(name for host in hosts for name in host.domains)
    needed = [math.ceil(count / max(1, limits[name])) for name, count in inside.items()]
    if total is not None:
        needed.append(math.ceil(len(hosts) / total))
    return max(needed, default=0)


def tightest(world: World, resolved: Resolved, domains: Sequence[V.PlannedDomain]) -> str:
    """The limit that binds this campaign: the fewest free places for its own targets, the narrower kind among equals.

    Targets that are out of service already need no place.
    """
    charged = [host for host in resolved.hosts if world.state.charge(host.id) is not None]
    inside = Counter(name for host in charged for name in host.domains)
    found = [
        (domain.free / want, *narrow_first(domain.domain), domain.free, domain.limit, want)
        for domain in domains
        if (want := domain.targets - inside[domain.domain])
    ]
    total, want = resolved.limits.total, len(resolved.hosts) - len(charged)
    if total is not None and want:
        free = max(0, total - len(charged))
        found.append((free / want, *narrow_first("total"), free, total, want))
    if not found:
        return "none: every target is out of service already"
    _, _, name, free, limit, want = min(found)
    return f"{name}: {free} of {limit} free for {counted(want, 'host')}"


def host_time(world: World, resolved: Resolved) -> tuple[float, str]:
    """Seconds from start to end of one host, soak included, and where the figure comes from."""
    timed = _timed(world, resolved)
    soak_s = resolved.limits.soak_s
    if len(timed) >= world.policy.boots_to_learn:
        return median(timed) + soak_s, f"median of the last {len(timed)} that were proved"
    assumed = max(world.boot_allowance_s(host) for host in resolved.hosts) / ASSUMED_SHARE
    return assumed + soak_s, "assumed: too few have been timed yet"


def _timed(world: World, resolved: Resolved) -> list[float]:
    models = {host.model for host in resolved.hosts}
    found: list[float] = []
    newest = sorted(world.state.campaigns.values(), key=lambda campaign: -campaign.created_at)
    for campaign in newest[:50]:
        if campaign.request.operation is not resolved.request.operation:
            continue
        for task in world.state.tasks(campaign.id).values():
            host = world.state.hosts.get(task.host)
            if host is None or host.model not in models or task.state is not TaskState.SUCCEEDED:
                continue
            if task.started_at is not None and task.ended_at is not None:
                found.append(max(0.0, task.ended_at - task.started_at - campaign.limits.soak_s))
        if len(found) >= MOST_TIMED:
            break
    return found[:MOST_TIMED]


# -- what would not start, and what to look at -----------------------------------------------------------------------


def _blocked(world: World, resolved: Resolved) -> Iterator[V.PlannedBlocked]:
    """Targets that would not start now, by the planner's own gates; windows are a note, they block all alike."""
    probe = CampaignRecord(
        id="c-plan",
        key="",
        caller="",
        digest="",
        request=resolved.request,
        limits=resolved.limits.model_copy(update=_NOT_OF_ONE_HOST),
        state=CampaignState.RUNNING,
        state_since=world.now,
        created_at=world.now,
        target_count=len(resolved.hosts),
        chunk_count=0,
    )
    room = Room.of(world)
    shown = 0
    for host in resolved.hosts:
        why = why_not(world, probe, host, room)
        if why is not None:
            yield V.PlannedBlocked(host=host.name, code=why.code, why=why.text)
            shown += 1
            if shown > MOST_BLOCKED:
                return


def _notes(world: World, resolved: Resolved, blocked: Sequence[V.PlannedBlocked]) -> Iterator[str]:
    yield from resolved.limits.words
    if len(blocked) > MOST_BLOCKED:
        yield f"more than {MOST_BLOCKED} hosts would not start now; the first {MOST_BLOCKED} are listed"
    if resolved.limits.windows:
        spans = openings(resolved.limits.windows, world.now, 3)
        yield "windows in UTC: " + "; ".join(
            f"{format_instant(span.opens_at)} to {format_instant(span.closes_at)}" for span in spans
        )
    hosts = resolved.hosts
    if resolved.retired:
        yield f"{counted(len(resolved.retired), 'retired host')} left out: {_named(resolved.retired)}"
    unseen = [host for host in hosts if host.boot_id is None and not world.heard(host.id)]
    if unseen:
        yield f"never seen, {counted(len(unseen), 'host')}: {_named(unseen)}"
    no_bmc = [host for host in hosts if host.bmc is None or not host.bmc.address]
    if no_bmc:
        ordered = resolved.request.mode is RebootMode.HARD or resolved.request.operation not in BY_AGENT
        need = "which this needs" if ordered else "so that no rescue is possible"
        yield f"without a BMC, {need}, {counted(len(no_bmc), 'host')}: {_named(no_bmc)}"
    charged = [host for host in hosts if world.state.charge(host.id) is not None]
    if charged:
        yield f"out of service already, {counted(len(charged), 'host')}: {_named(charged)}"
    for host in [host for host in hosts if host.flags][:MOST_WAVE_HOSTS]:
        yield f"{host.name}: identity in doubt: {'; '.join(host.flags)}"


def _named(hosts: Sequence[HostRecord]) -> str:
    return listed([host.name for host in hosts])
