"""Silence, judged: who is silent, and where so many fell silent at once that it must be our own fault (law 4)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostler_contract.domains import CauseKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hostler_coordinator.planner.world import World


@dataclass(frozen=True, slots=True)
class Brake:
    """Out-of-band action stops in this domain, and nothing starts there."""

    domain: str
    silent: int
    enrolled: int
    since: float

    @property
    def text(self) -> str:
        """One sentence for people."""
        return (
            f"{self.silent} of {self.enrolled} hosts of {self.domain} fell silent within a minute: "
            "network, power or Hostler itself is at fault until proven otherwise"
        )


def brakes(world: World) -> dict[str, Brake]:
    """Domains in which more than max(3, 20 %) of the uncharged hosts fell silent within 60 s and still are."""
    if world.in_grace or not _enough_silent(world):
        return {}
    by_domain: dict[str, list[float]] = defaultdict(list)
    for host in world.state.hosts.values():
        if host.boot_id is None or host.retired is not None or not world.silent(host.id) or _explained(world, host.id):
            continue
        for domain in host.domains:
            by_domain[domain].append(max(world.sighting(host.id).heard_at, world.leader_since) + world.policy.silence_s)
    found = (_brake(world, domain, moments) for domain, moments in by_domain.items())
    return {brake.domain: brake for brake in found if brake is not None}


def _enough_silent(world: World) -> bool:
    """A cheap look first: with no more silent hosts in all than the bound, no domain can be over it."""
    heard_since = world.now - world.policy.silence_s
    heard = sum(1 for seen in world.sightings.values() if seen.heard_at > heard_since)
    return len(world.state.hosts) - heard > world.policy.mass_silence_hosts


def _explained(world: World, host: str) -> bool:
    """True when the host is charged for a reason of its own: silence is then no news."""
    charge = world.state.charge(host)
    if charge is None:
        return False
    return any(cause.kind is not CauseKind.DEAD or cause.since < world.leader_since for cause in charge.causes)


def _brake(world: World, domain: str, moments: list[float]) -> Brake | None:
    enrolled = len(world.state.members(domain))
    bound = max(world.policy.mass_silence_hosts, world.policy.mass_silence_fraction * enrolled)
    if len(moments) <= bound:
        return None
    crowd, since = _densest(sorted(moments), world.policy.mass_silence_window_s)
    return Brake(domain, crowd, enrolled, since) if crowd > bound else None


def _densest(moments: list[float], window_s: float) -> tuple[int, float]:
    """Most moments within one window, and when that window begins."""
    best, begin, first = 0, 0.0, 0
    for last, moment in enumerate(moments):
        while moment - moments[first] > window_s:
            first += 1
        if last - first + 1 > best:
            best, begin = last - first + 1, moments[first]
    return best, begin


def braked_by(world: World, host: str, found: Mapping[str, Brake]) -> Brake | None:
    """The brake that binds a host, unless a person released it for this host."""
    if not found:
        return None
    release = world.state.release(host)
    if release is not None and release.until > world.now:
        return None
    record = world.state.hosts[host]
    return next((found[domain] for domain in record.domains if domain in found), None)


def heard_neighbour(world: World, host: str) -> str | None:
    """A host that shares a domain with this one and is heard now; None when there is none."""
    near = _near(world, host)
    return next((other for other in _neighbours(world, near) if other != host and world.heard(other)), None)


def _near(world: World, host: str) -> tuple[str, ...]:
    """The domains whose hosts may bear witness: a whole site only where the host is alone in everything smaller."""
    domains = world.state.hosts[host].domains
    small = tuple(domain for domain in domains if not domain.startswith("site/"))
    return small if any(other != host for other in _neighbours(world, small)) else domains


def _neighbours(world: World, domains: Iterable[str]) -> Iterable[str]:
    return (other for domain in domains for other in sorted(world.state.members(domain)))


def alone(world: World, host: str) -> bool:
    """True when no other host shares a domain with this one."""
    return not any(other != host for other in _neighbours(world, world.state.hosts[host].domains))
