"""How long each model takes to boot, learned from boots that were proved; pure bookkeeping, lost with the leader."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from hostler_contract.work import EvidenceKind, TaskState

if TYPE_CHECKING:
    from hostler_coordinator.planner.world import World
    from hostler_coordinator.policy import Policy

SAMPLES_MOST = 200
"""Boots remembered per model; the oldest go."""
_DOUBLE = 2.0


class Boots:
    """Seconds from GO to the new boot id, by host model."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._samples: dict[str, list[float]] = defaultdict(list)
        self._seen: set[tuple[str, str]] = set()

    def learn(self, world: World) -> None:
        """Take in tasks that are being proved now; each boot counts once."""
        for campaign in world.state.open_campaigns:
            for task in world.state.moving(campaign).values():
                if task.state is not TaskState.PROVING or task.go_at is None or task.rescues:
                    continue
                key = (task.id, task.boot_after or "")
                host = world.state.hosts.get(task.host)
                if key in self._seen or host is None:
                    continue
                self._seen.add(key)
                back = [e.at for e in task.evidence if e.kind is EvidenceKind.BOOT_CHANGED]
                samples = self._samples[host.model]
                samples.append(max(0.0, (back[-1] if back else world.now) - task.go_at))
                del samples[:-SAMPLES_MOST]

    def allowances(self, policy: Policy) -> dict[str, float]:
        """Boot allowance in seconds by model, for models with enough boots: twice the longest seen, within bounds."""
        return {
            model: min(policy.boot_allowance_s, max(policy.boot_allowance_least_s, _DOUBLE * max(samples)))
            for model, samples in self._samples.items()
            if len(samples) >= policy.boots_to_learn
        }

    def typical_s(self, model: str) -> float | None:
        """Median boot of a model in seconds; None while nothing is known."""
        samples = sorted(self._samples.get(model, ()))
        return samples[len(samples) // 2] if samples else None
