"""Old campaigns: kept whole for a while, then as one record with a summary; open dead letters stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.campaigns import ENDED
from hostler_coordinator.planner.actions import Forget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostler_contract.campaigns import CampaignRecord
    from hostler_coordinator.planner.world import World

BATCH = 60
"""Records deleted in one transaction, so that a turn's other work is not held up."""


def decide(world: World) -> Iterator[Forget]:
    """One batch of one campaign at most; the next look goes on from there."""
    for campaign in world.state.campaigns.values():
        if campaign.state in ENDED and _old(world, campaign):
            tasks = sorted(world.state.tasks(campaign.id))
            if tasks or world.state.targets(campaign.id) or campaign.summary is None:
                rest = tasks[:BATCH]
                chunks = tuple(range(campaign.chunk_count)) if len(rest) == len(tasks) else ()
                yield Forget(campaign.id, tuple(rest), chunks)
                return


def _old(world: World, campaign: CampaignRecord) -> bool:
    return campaign.ended_at is not None and world.now - campaign.ended_at >= world.policy.retention_s
