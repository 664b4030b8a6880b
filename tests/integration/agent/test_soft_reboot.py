"""A restart of user space alone, by a real agent on a simulated machine: what is reported, and what ends it."""

from __future__ import annotations

import pytest

from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from hostler_contract.pb.hostler.v1 import work_pb2
from integration.agent.agent_fixtures import FakeCoordinator, Job, Machines, reboot_job, until


def soft_job(shutdown_timeout_s: float = 30.0) -> Job:
    return reboot_job(operation=work_pb2.OPERATION_KIND_SOFT_REBOOT, shutdown_timeout_s=shutdown_timeout_s)


async def test_fc_a07_a_soft_reboot_is_done_on_the_same_boot(coordinator: FakeCoordinator, machines: Machines) -> None:
    machines.start(["h1"])
    host = coordinator.host("id-h1")
    await until(lambda: host.pulled, "the agent asks for work")
    job = soft_job()
    coordinator.give("id-h1", job)
    outcome = await until(lambda: job.outcome, "an outcome")
    assert (outcome.kind, outcome.code) == (pb.OUTCOME_KIND_DONE, "userspace-restarted")
    assert outcome.text == "soft reboots counted: 0 -> 1; boot id unchanged"
    assert [hello.facts.soft_reboot_count for hello in host.hellos] == [0, 1]
    assert len({hello.boot_id for hello in host.hellos}) == 1
    assert [(one["effect"], one["token"]) for one in machines.effects()] == [("boot", ""), ("soft_reboot", "1.1")]


async def test_fc_a07_a_machine_that_accepts_and_does_nothing_fails_the_attempt(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    machines.start(["h1"], faults=["reboot-ignored"])
    host = coordinator.host("id-h1")
    await until(lambda: host.pulled, "the agent asks for work")
    job = soft_job(shutdown_timeout_s=1.0)
    coordinator.give("id-h1", job)
    outcome = await until(lambda: job.outcome, "an outcome")
    assert (outcome.kind, outcome.code) == (pb.OUTCOME_KIND_FAILED, "still-up")
    assert outcome.text == "soft reboot command accepted, user space did not restart"


@pytest.mark.parametrize("order", ["crash", "power reset"])
async def test_fc_a07_a_whole_reboot_ends_a_soft_one(
    coordinator: FakeCoordinator, machines: Machines, order: str
) -> None:
    machines.start(["h1"], faults=["reboot-ignored"])
    host = coordinator.host("id-h1")
    await until(lambda: host.pulled, "the agent asks for work")
    job = soft_job()
    coordinator.give("id-h1", job)
    await until(lambda: "acting" in host.steps(), "the act")
    machines.order(f"h1 {order}")
    outcome = await until(lambda: job.outcome, "an outcome")
    assert (outcome.kind, outcome.code) == (pb.OUTCOME_KIND_DONE, "rebooted")
