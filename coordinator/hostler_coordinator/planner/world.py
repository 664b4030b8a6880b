"""Everything one turn of the planner may look at, as one value; nothing here is fetched and nothing decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostler_coordinator import ledger
from hostler_coordinator.live import Sighting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hostler_contract.hosts import Hold, HostRecord
    from hostler_contract.work import Token
    from hostler_coordinator.live import PowerReport, RefusedOrder
    from hostler_coordinator.policy import Policy
    from hostler_coordinator.state import State


@dataclass(frozen=True, slots=True)
class World:
    """One view at one moment.

    now: epoch seconds of the leader's clock. leader_since: when this leader began. sightings: by host id. power:
    reports of this leader's power workers by task id. allowances: learned boot allowance in seconds by host model.
    jitter: a number in [0, 1) for a text, the same for the same text.
    """

    state: State
    sightings: Mapping[str, Sighting]
    power: Mapping[str, PowerReport]
    now: float
    leader: str
    leader_since: float
    policy: Policy
    jitter: Callable[[str], float]
    allowances: Mapping[str, float] = field(default_factory=dict)
    fresh: frozenset[str] | None = None
    """Hosts of which something new was heard since the last turn; None: look at every host."""
    refused: Mapping[tuple[str, Token], RefusedOrder] = field(default_factory=dict)
    """Overtaken orders that were refused where they would have acted, by host and token."""
    blind: bool = False
    """True for who does not lead: nothing is heard here, so that silence says nothing. Nothing is planned on it."""

    @property
    def in_grace(self) -> bool:
        """True while a new leader judges no silence (law 4)."""
        return self.now < self.grace_ends_at

    @property
    def grace_ends_at(self) -> float:
        """When this leader begins to judge silence."""
        return self.leader_since + self.policy.leader_grace_s

    def sighting(self, host: str) -> Sighting:
        """The host as heard; one that was never heard by this leader counts from the leader's first moment."""
        return self.sightings.get(host) or Sighting(host=host, heard_at=self.leader_since)

    def silent_for(self, host: str) -> float:
        """Seconds since the host was heard."""
        return max(0.0, self.now - max(self.sighting(host).heard_at, self.leader_since))

    def heard(self, host: str) -> bool:
        """True when the host is attached and was heard within the silence bound."""
        seen = self.sightings.get(host)
        return seen is not None and seen.connected and self.now - seen.heard_at < self.policy.silence_s

    def silent(self, host: str) -> bool:
        """True when silence may be judged and the host has been silent past the bound. Not the opposite of `heard`."""
        return not self.in_grace and self.silent_for(host) >= self.policy.silence_s

    def blocked_by(self, host: str) -> str:
        """What the host last said forbids work on it, to this leader or to one before it; empty when nothing does."""
        seen = self.sightings.get(host)
        if seen is not None and (seen.connected or seen.condition.blocked_by):
            return seen.condition.blocked_by
        charge = self.state.charge(host)
        return next((cause.blocked_by for cause in charge.causes if cause.blocked_by), "") if charge else ""

    def holds(self, host: str) -> tuple[Hold, ...]:
        """Holds on the host that are in force now."""
        return tuple(hold for hold in self.state.holds(host) if hold.until is None or hold.until > self.now)

    def boot_allowance_s(self, host: HostRecord) -> float:
        """How long this host's model may take to boot."""
        return self.allowances.get(host.model, self.policy.boot_allowance_s)

    def reboot_allowance_s(self, host: HostRecord) -> float:
        """From being let go to its new boot: what was learned of quick boots never cuts a slow shutdown short."""
        shutdown_s = min(self.policy.shutdown_timeout_s, self.policy.boot_allowance_s)
        return max(self.boot_allowance_s(host), shutdown_s)

    def domain_limit(self, domain: str, campaign_limits: Mapping[str, int]) -> int:
        """Effective limit of a domain under a campaign."""
        return ledger.limit_of(self.state, domain, campaign_limits.get(domain))[0]
