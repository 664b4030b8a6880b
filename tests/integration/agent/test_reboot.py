"""One reboot, end to end: real agents over mTLS on simulated machines, and what the ground truth says of it."""

from __future__ import annotations

from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from integration.agent.agent_fixtures import FakeCoordinator, Machines, reboot_job, until


async def test_a_reboot_is_done_when_another_boot_is_usable(coordinator: FakeCoordinator, machines: Machines) -> None:
    machines.start(["h1"])
    host = coordinator.host("id-h1")
    await until(lambda: host.pulled, "the agent asks for work")
    before = host.hellos[-1].boot_id
    job = reboot_job()
    coordinator.give("id-h1", job)
    outcome = await until(lambda: job.outcome, "an outcome")
    assert pb.OutcomeKind.Name(outcome.kind) == "OUTCOME_KIND_DONE"
    assert outcome.boot_id == host.hellos[-1].boot_id != before
    assert [one["cause"] for one in machines.effects(effect="boot")] == ["start", "agent"]
    await until(lambda: host.pulled, "the agent asks for more")
    assert machines.journal()["order"] is None
    assert machines.journal()["newest_token"] == {"epoch": 1, "counter": 1}


async def test_a_shorter_interval_counts_at_once(coordinator: FakeCoordinator, machines: Machines) -> None:
    coordinator.interval_s = 3.0
    machines.start(["h1"])
    host = coordinator.host("id-h1")
    await until(lambda: host.pulled, "the agent asks for work")
    coordinator.interval_s = 0.1
    await until(lambda: len(host.of("heartbeat")) > 20, "a beat every 0.1 s", 10.0)
