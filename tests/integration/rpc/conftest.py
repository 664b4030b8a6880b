"""Starts and ends two coordinators' edges for each test of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostler_coordinator.pki import make_ca
from integration.rpc.rig import Fleet, elect, fleet_at


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    """Two coordinators; c1 leads."""
    fleet = fleet_at(tmp_path / "ca", datetime.now(UTC), make_ca)
    for node in fleet.nodes:
        await node.start()
    elect("c1", fleet.nodes)
    yield fleet
    await fleet.close()
