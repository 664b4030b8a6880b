"""Drains by a site's own hook: bounded, verified empty, and only our own mark undone."""

from __future__ import annotations

import sys
from pathlib import Path

from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from integration.agent.agent_fixtures import FakeCoordinator, Machines, reboot_job, until

HOOK = Path(__file__).with_name("drain_hook.py")


def with_hook(folder: Path) -> dict[str, object]:
    command = [sys.executable, "-S", str(HOOK), str(folder)]
    return {"drain": {"kind": "exec", "command": command, "poll_interval_s": 0.1, "undo_retry_s": 0.2}}


async def attached(coordinator: FakeCoordinator, machines: Machines, folder: Path) -> None:
    machines.start(["h1"], agent=with_hook(folder))
    await until(lambda: coordinator.host("id-h1").pulled, "the agent asks for work")


async def test_a_host_is_drained_rebooted_and_undrained(
    coordinator: FakeCoordinator, machines: Machines, tmp_path: Path
) -> None:
    (tmp_path / "busy").touch()
    await attached(coordinator, machines, tmp_path)
    job, host = reboot_job(), coordinator.host("id-h1")
    coordinator.give("id-h1", job)
    await until(lambda: host.condition.drained_for == "c-1/h1", "the mark is said")
    await until((tmp_path / "mark").exists, "the mark")
    assert (tmp_path / "mark").read_text() == "hostler:c-1/h1"
    assert not host.of("started")
    (tmp_path / "busy").unlink()
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert pb.OutcomeKind.Name(job.outcome.kind) == "OUTCOME_KIND_DONE"
    assert machines.boots() == 2
    assert not (tmp_path / "mark").exists()
    assert host.steps()[:4] == ["accepted", "draining", "drained", "checking"]
    await until(lambda: not host.condition.drained_for, "no mark is said")


async def test_a_drain_that_takes_too_long_fails_and_our_mark_is_undone(
    coordinator: FakeCoordinator, machines: Machines, tmp_path: Path
) -> None:
    (tmp_path / "busy").touch()
    await attached(coordinator, machines, tmp_path)
    job = reboot_job(drain_timeout_s=0.5)
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert (pb.OutcomeKind.Name(job.outcome.kind), job.outcome.code) == ("OUTCOME_KIND_FAILED", "drain-timeout")
    assert "job 17 runs" in job.outcome.text
    assert (machines.boots(), (tmp_path / "mark").exists()) == (1, False)


async def test_stop_while_draining_undoes_our_mark(
    coordinator: FakeCoordinator, machines: Machines, tmp_path: Path
) -> None:
    (tmp_path / "busy").touch()
    await attached(coordinator, machines, tmp_path)
    job, host = reboot_job(drain_timeout_s=30.0), coordinator.host("id-h1")
    coordinator.give("id-h1", job)
    await until(lambda: "draining" in host.steps(), "the drain")
    coordinator.tell("id-h1", stop=pb.Stop(task_id="c-1/h1", token=job.assignment.token, reason="enough"))
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert pb.OutcomeKind.Name(job.outcome.kind) == "OUTCOME_KIND_STOPPED"
    assert not (tmp_path / "mark").exists()


async def test_fc_a03_a_persons_drain_is_left_as_it_was(
    coordinator: FakeCoordinator, machines: Machines, tmp_path: Path
) -> None:
    (tmp_path / "mark").write_text("person:grace")
    await attached(coordinator, machines, tmp_path)
    job, host = reboot_job(), coordinator.host("id-h1")
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert pb.OutcomeKind.Name(job.outcome.kind) == "OUTCOME_KIND_DONE"
    assert (tmp_path / "mark").read_text() == "person:grace"
    assert "undo" not in (tmp_path / "calls").read_text()
    assert not host.condition.drained_for
