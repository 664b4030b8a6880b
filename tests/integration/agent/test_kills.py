"""Agents that are killed, frozen or cut off at every stage: the work completes, and no host boots twice."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from hostler_contract.pb.hostler.v1 import work_pb2
from integration.agent.agent_fixtures import (
    Certificates,
    FakeCoordinator,
    Job,
    Machines,
    go_for,
    issue,
    reboot_job,
    until,
)


async def attached(coordinator: FakeCoordinator, machines: Machines, **over: object) -> None:
    machines.start(["h1"], **over)
    await until(lambda: coordinator.host("id-h1").pulled, "the agent asks for work")


def kind_of(job: Job) -> str:
    return pb.OutcomeKind.Name(job.outcome.kind).removeprefix("OUTCOME_KIND_").lower() if job.outcome else ""


async def kill_and_await_return(coordinator: FakeCoordinator, machines: Machines) -> None:
    host, pid = coordinator.host("id-h1"), machines.pid()
    streams = host.streams
    os.kill(pid, signal.SIGKILL)
    await until(lambda: host.streams > streams and machines.pid() not in {0, pid}, "the agent is back")


async def test_fc_a05_killed_before_the_intent_it_gets_the_same_work_again(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    machines_agent = {"drain": {"kind": "exec", "command": ["sh", "-c", "sleep 30"], "call_timeout_s": 60}}
    await attached(coordinator, machines, agent=machines_agent)
    job = reboot_job()
    coordinator.give("id-h1", job)
    host = coordinator.host("id-h1")
    await until(lambda: "draining" in host.steps(), "the drain")
    assert machines.journal()["phase"] == "accepted"
    await kill_and_await_return(coordinator, machines)
    assert host.hellos[-1].journal.task_id == "c-1/h1"
    assert host.hellos[-1].journal.token == job.assignment.token
    assert host.hellos[-1].boot_id == host.hellos[0].boot_id
    assert machines.boots() == 1


async def test_fc_a05_killed_while_waiting_for_go_it_completes_with_one_boot(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    job = reboot_job(give_go=False)
    coordinator.give("id-h1", job)
    host = coordinator.host("id-h1")
    await until(lambda: host.of("started"), "the intent")
    assert machines.journal()["phase"] == "intent"
    await kill_and_await_return(coordinator, machines)
    await until(lambda: len(host.of("started")) > 1, "started again")
    assert machines.boots() == 1
    job.give_go = True
    await until(lambda: job.outcome, "an outcome")
    assert (kind_of(job), machines.boots()) == ("done", 2)


async def test_killed_after_go_on_the_old_boot_it_waits_for_a_fresh_go(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    machines.order("h1 fault reboot-ignored")
    host, job = coordinator.host("id-h1"), reboot_job()
    coordinator.give("id-h1", job)
    await until(lambda: machines.journal().get("phase") == "acting", "the command")
    job.give_go = False
    machines.order("h1 fault clear")
    await kill_and_await_return(coordinator, machines)
    started = len(host.of("started"))
    await until(lambda: len(host.of("started")) > started, "started again")
    assert (job.outcome, machines.boots()) == (None, 1)
    job.give_go = True
    await until(lambda: job.outcome, "an outcome")
    assert (kind_of(job), machines.boots()) == ("done", 2)


async def test_the_outcome_is_repeated_until_it_is_recorded_also_after_a_kill(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    job = reboot_job(recorded=False)
    coordinator.give("id-h1", job)
    host = coordinator.host("id-h1")
    await until(lambda: len(host.of("outcome")) >= 2, "a repeated outcome")
    await kill_and_await_return(coordinator, machines)
    job.recorded = True
    await until(lambda: host.pulled or machines.journal()["order"] is None, "the journal forgets")
    assert (kind_of(job), machines.boots()) == ("done", 2)
    assert not host.of("pull")[1:] or machines.journal()["order"] is None


async def test_a_go_that_lay_in_a_frozen_agent_is_not_used(coordinator: FakeCoordinator, machines: Machines) -> None:
    await attached(coordinator, machines)
    job, host = reboot_job(give_go=False), coordinator.host("id-h1")
    coordinator.give("id-h1", job)
    started = (await until(lambda: host.of("started"), "the intent"))[-1]
    pid = machines.pid()
    os.kill(pid, signal.SIGSTOP)
    coordinator.tell("id-h1", go=go_for(started, expires_in_s=1.0))
    await asyncio.sleep(1.5)
    seen = len(host.of("started"))
    os.kill(pid, signal.SIGCONT)
    await until(lambda: len(host.of("started")) > seen, "started again")
    assert (machines.boots(), machines.journal()["phase"]) == (1, "intent")


async def test_stop_before_go_leaves_the_host_alone(coordinator: FakeCoordinator, machines: Machines) -> None:
    await attached(coordinator, machines)
    job, host = reboot_job(give_go=False), coordinator.host("id-h1")
    coordinator.give("id-h1", job)
    await until(lambda: host.of("started"), "the intent")
    coordinator.tell("id-h1", stop=pb.Stop(task_id="c-1/h1", token=job.assignment.token, reason="aborted by ada"))
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert (kind_of(job), job.outcome.text, machines.boots()) == ("stopped", "aborted by ada", 1)
    await until(lambda: host.pulled, "the agent asks for other work")


async def test_without_a_go_the_work_is_given_back_and_the_agent_asks_for_other(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines, agent={"reboot": {"intent_ttl_s": 1.0, "started_repeat_s": 0.2}})
    job, host = reboot_job(give_go=False), coordinator.host("id-h1")
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert (kind_of(job), job.outcome.code, machines.boots()) == ("refused", "no-go", 1)
    await until(lambda: host.pulled, "the agent asks for other work", 30.0)


async def test_an_older_token_is_refused_and_a_newer_one_is_carried_out(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    host, job = coordinator.host("id-h1"), reboot_job(counter=5)
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome and host.pulled, "the first task")
    old = reboot_job(counter=4, task_id="c-0/h1")
    coordinator.give("id-h1", old)
    await until(lambda: old.outcome, "a refusal")
    assert old.outcome is not None
    assert (kind_of(old), old.outcome.code, machines.boots()) == ("refused", "stale-token", 2)
    assert host.hellos[-1].newest_token == work_pb2.Token(epoch=1, counter=5)


async def test_fc_a22_a_coordinator_that_falls_silent_is_left_and_found_again(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    host, pid = coordinator.host("id-h1"), machines.pid()
    coordinator.answer_heartbeats = False
    await until(lambda: host.streams >= 2, "another stream")
    coordinator.answer_heartbeats = True
    await until(lambda: host.pulled, "the agent asks again")
    assert machines.pid() == pid


async def test_fc_a22_a_coordinator_that_was_away_is_found_again_without_a_restart(
    coordinator: FakeCoordinator, machines: Machines, certificates: Certificates
) -> None:
    await attached(coordinator, machines)
    host, pid, port = coordinator.host("id-h1"), machines.pid(), coordinator.port
    await coordinator.stop()
    await asyncio.sleep(1.0)
    await coordinator.start(certificates, port=port)
    await until(lambda: host.streams == 2 and host.pulled, "the agent is back")
    assert machines.pid() == pid


async def test_reattach_leads_to_the_other_coordinator_named_in_the_welcome(
    coordinator: FakeCoordinator, machines: Machines, certificates: Certificates
) -> None:
    other = FakeCoordinator("fake-2")
    try:
        endpoint = await other.start(certificates)
        coordinator.endpoints = [f"127.0.0.1:{coordinator.port}", endpoint]
        await attached(coordinator, machines)
        coordinator.refuse = grpc.StatusCode.UNAVAILABLE
        coordinator.tell("id-h1", reattach=pb.Reattach(span_s=0.1, reason="leaving"))
        await until(lambda: other.host("id-h1").pulled, "the other coordinator is asked for work")
        job = reboot_job()
        other.give("id-h1", job)
        await until(lambda: job.outcome, "an outcome, through an endpoint remembered across the boot")
        assert (kind_of(job), machines.boots()) == ("done", 2)
    finally:
        await other.stop()


async def test_fc_a08_a_boot_faster_than_a_heartbeat_is_recognised(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    coordinator.interval_s = 30.0
    await attached(coordinator, machines, boot_seconds=0.05)
    job = reboot_job()
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert (kind_of(job), machines.boots()) == ("done", 2)


async def test_fc_a08_a_boot_of_its_own_before_go_ends_the_work_without_another(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    job, host = reboot_job(give_go=False), coordinator.host("id-h1")
    coordinator.give("id-h1", job)
    await until(lambda: host.of("started"), "the intent")
    machines.order("h1 crash")
    await until(lambda: job.outcome, "an outcome")
    assert (kind_of(job), job.gos) == ("done", 0)
    assert [one["cause"] for one in machines.effects(effect="boot")] == ["start", "crash"]


async def test_fc_a09_a_new_boot_attaches_at_once_and_work_goes_to_the_new_stream(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    host = coordinator.host("id-h1")
    machines.order("h1 crash")
    await until(lambda: host.streams == 2 and host.pulled, "the new stream")
    assert host.hellos[0].boot_id != host.hellos[1].boot_id
    # An order of before the boot is refused there: its hello has proved the boot already.
    job = reboot_job(boot_before=host.hellos[0].boot_id)
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert (kind_of(job), machines.boots()) == ("refused", 2)


async def test_fc_a13_a_command_that_fails_is_a_failed_attempt_with_its_words(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    machines.order("h1 fault reboot-fails")
    await until((machines.folder / "hosts/h1/faults").read_text, "the fault")
    job = reboot_job()
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert (kind_of(job), job.outcome.code, job.outcome.permanent) == ("failed", "reboot-command-failed", False)
    assert "Call to Reboot failed: Connection timed out" in job.outcome.text
    machines.order("h1 fault clear")
    await until(lambda: not (machines.folder / "hosts/h1/faults").read_text(), "no fault")
    again = reboot_job(counter=2)
    coordinator.give("id-h1", again)
    await until(lambda: again.outcome, "an outcome")
    assert (kind_of(again), machines.boots()) == ("done", 2)


async def test_fc_a26_an_accepted_command_without_effect_fails_at_its_deadline(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    machines.order("h1 fault reboot-ignored")
    job, host = reboot_job(shutdown_timeout_s=1.0), coordinator.host("id-h1")
    coordinator.give("id-h1", job)
    await until(lambda: host.condition.shutting_down, "shutting down is said")
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert (kind_of(job), job.outcome.code) == ("failed", "still-up")
    assert job.outcome.text == "reboot command accepted, host still up"


async def test_fc_a27_an_inhibited_reboot_is_refused_with_who_and_why(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    machines.order("h1 fault inhibited")
    await until((machines.folder / "hosts/h1/faults").read_text, "the fault")
    job = reboot_job()
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert (kind_of(job), job.outcome.code) == ("refused", "inhibited")
    assert job.outcome.text == "inhibited by installer (pid 1844): update in progress"
    forced = reboot_job(counter=2, force=True)
    coordinator.give("id-h1", forced)
    await until(lambda: forced.outcome, "an outcome")
    assert (kind_of(forced), machines.boots()) == ("done", 2)


async def test_fc_a28_the_host_keeps_its_id_under_another_name(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines, address="10.1.0.11")
    machines.stop()
    machines.start(["h1"], address="10.1.0.99", host_id="id-h1")
    host = coordinator.host("id-h1")
    await until(lambda: host.streams == 2 and host.pulled, "the host is back")
    assert [one.facts.address for one in host.hellos] == ["10.1.0.11", "10.1.0.99"]
    assert list(coordinator.hosts) == ["id-h1"]


async def test_fc_a28_a_certificate_for_another_address_is_named_as_such(
    coordinator: FakeCoordinator, machines: Machines, certificates: Certificates, tmp_path: Path
) -> None:
    wrong = FakeCoordinator("wrong")
    try:
        endpoint = await wrong.start(certificates, who="elsewhere")
        machines.start(["h1"], endpoints=[endpoint])
        log = tmp_path / "hosts/h1/agent.log"
        await until(lambda: log.exists() and "certificate-mismatch" in log.read_text(), "the condition by its name")
    finally:
        await wrong.stop()


async def test_a_busy_host_is_refused_by_name_and_force_overrides(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines, faults=["busy"])
    job, host = reboot_job(), coordinator.host("id-h1")
    await until(lambda: host.condition.blocked_by == "GPU in use by train (pid 4242)", "blocked is said")
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert (kind_of(job), job.outcome.code) == ("refused", "blocked")
    forced = reboot_job(counter=2, force=True)
    coordinator.give("id-h1", forced)
    await until(lambda: forced.outcome, "an outcome")
    assert (kind_of(forced), machines.boots()) == ("done", 2)


async def test_not_usable_after_the_boot_is_not_done_before_it_is(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    await attached(coordinator, machines)
    job, host = reboot_job(soak_s=0.6), coordinator.host("id-h1")
    machines.order("h1 fault unusable")
    coordinator.give("id-h1", job)
    await until(lambda: machines.boots() == 2 and host.streams == 2, "the new boot")
    await until(lambda: pb.Usability.Name(host.condition.usability) == "USABILITY_UNUSABLE", "unusable is said")
    assert job.outcome is None
    machines.order("h1 fault clear")
    await until(lambda: job.outcome, "an outcome")
    assert (kind_of(job), machines.boots()) == ("done", 2)


async def test_an_operation_that_is_not_known_is_refused(coordinator: FakeCoordinator, machines: Machines) -> None:
    await attached(coordinator, machines)
    job = reboot_job(operation=work_pb2.OPERATION_KIND_POWER_OFF)
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert (job.outcome.code, job.outcome.permanent, machines.boots()) == ("unknown-operation", True, 1)


@pytest.mark.parametrize("content", [b"", b'{"newest_token": {"epoch": 1, "cou'])
async def test_fc_a25_a_damaged_journal_is_kept_aside_and_reported(
    coordinator: FakeCoordinator, machines: Machines, content: bytes
) -> None:
    folder = machines.folder / "hosts" / "h1"
    folder.mkdir(parents=True)
    (folder / "journal.json").write_bytes(content)
    await attached(coordinator, machines)
    host = coordinator.host("id-h1")
    assert "journal.json.damaged-1" in host.hellos[-1].journal.damage
    assert (folder / "journal.json.damaged-1").read_bytes() == content
    assert machines.boots() == 1
    job = reboot_job()
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert (kind_of(job), machines.boots()) == ("done", 2)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tiny"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tiny", str(folder)], check=False)
    if done.returncode != 0:
        pytest.skip("no right to mount; unit/agent/test_journal.py covers the rule with a file size limit")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_fc_a25_a_full_disk_refuses_the_work_until_there_is_space(
    coordinator: FakeCoordinator, machines: Machines, tiny: Path
) -> None:
    await attached(coordinator, machines, agent={"journal": str(tiny / "journal.json")})
    pid, ballast = machines.pid(), tiny / "ballast"
    fill(ballast)
    job, host = reboot_job(), coordinator.host("id-h1")
    coordinator.give("id-h1", job)
    await until(lambda: job.outcome, "an outcome")
    assert job.outcome is not None
    assert (kind_of(job), job.outcome.code) == ("refused", "journal-no-space")
    assert job.outcome.text == "cannot persist intent: no space"
    assert (machines.boots(), machines.pid()) == (1, pid)
    ballast.unlink()
    await until(lambda: host.pulled, "the agent asks again")
    again = reboot_job(counter=2)
    coordinator.give("id-h1", again)
    await until(lambda: again.outcome, "an outcome")
    assert (kind_of(again), machines.boots()) == ("done", 2)


def fill(ballast: Path) -> None:
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(descriptor, b"x" * 1024):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    finally:
        os.close(descriptor)


def test_certificates_are_made_by_one_authority(tmp_path: Path) -> None:
    authority = issue(tmp_path, "ca", None, "127.0.0.1")
    certificate, _ = issue(tmp_path, "x", authority, "127.0.0.1")
    assert certificate.issuer == authority[0].subject
