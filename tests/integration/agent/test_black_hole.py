"""Packets that are dropped without a word, between a real agent and its coordinator, and the time after."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from integration.agent.agent_fixtures import Certificates, FakeCoordinator, Machines, reboot_job, until
from tcp_black_hole import BlackHole, Way

CAP_S = 1.0
ATTACH_TIMEOUT_S = 0.4
SESSION = {
    "attach_timeout_s": ATTACH_TIMEOUT_S,
    "reply_timeout_s": 1.2,
    "backoff_first_s": 0.02,
    "backoff_cap_s": CAP_S,
    "keepalive_interval_s": 60.0,
}
"""The defaults over 25, but for the cap, which is shorter still, and for gRPC's own pings: these shall not help."""
DEADLINES = 9
"""So many attempts in a row run into their deadline in 335 s by default (see the test in virtual time)."""


@pytest.mark.parametrize("ways", [(Way.UP,), (Way.UP, Way.DOWN)], ids="-".join)
async def test_fc_a22_after_packets_were_dropped_without_a_word_the_same_agent_works_again_within_one_cap(
    coordinator: FakeCoordinator, certificates: Certificates, tmp_path: Path, ways: tuple[Way, ...]
) -> None:
    coordinator.interval_s = 0.2
    async with BlackHole(coordinator.port) as hole:
        machines = Machines(tmp_path, certificates, [f"127.0.0.1:{hole.port}"])
        try:
            machines.start(["h1"], agent={"session": SESSION})
            host = coordinator.host("id-h1")
            await until(lambda: host.pulled, "the agent asks for work")
            pid, dialled = machines.pid(), hole.dialled
            hole.swallow(*ways)
            await until(lambda: hole.dialled >= dialled + DEADLINES, "attempt after attempt, each on a new channel", 40)
            host.pulled = False
            hole.heal()
            healed_at = time.monotonic()
            await until(lambda: host.pulled, "the agent asks for work again")
            assert time.monotonic() - healed_at < 2 * CAP_S, "one cap, and as much again for a slow machine"
            job = reboot_job()
            coordinator.give("id-h1", job)
            assert machines.pid() == pid
            await until(lambda: job.outcome, "the work is done")
            assert machines.boots() == 2
        finally:
            machines.stop()
