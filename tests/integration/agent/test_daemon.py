"""The real daemon as a process, on a captured tree instead of `/`, with a command that only changes its boot id."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import yaml

from hostler_agent.journal import decode
from hostler_contract.hosts import JournalPhase
from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from integration.agent.agent_fixtures import ROOT, Certificates, FakeCoordinator, reboot_job, until

BEFORE, AFTER = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"
SCRIPT = """#!/bin/sh
echo {after} > {root}/proc/sys/kernel/random/boot_id
kill -TERM $PPID
"""


def prepare(folder: Path, certificates: Certificates, endpoint: str) -> Path:
    boot_id = folder / "root/proc/sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text(BEFORE + "\n")
    script = folder / "reboot-this-host"
    script.write_text(SCRIPT.format(after=AFTER, root=folder / "root"))
    script.chmod(0o755)
    settings = {
        "host_id": "id-h1",
        "hostname": "h1",
        "endpoints": [endpoint],
        "tls": certificates.tls("agent"),
        "journal": str(folder / "journal.json"),
        "sysroot": str(folder / "root"),
        "checks": {"boot_target": "", "commands": [["true"]], "busy_interval_s": 0.2},
        "blockers": {"logged_in_people": False},
        "reboot": {"command": [str(script)]},
    }
    (folder / "agent.yaml").write_text(yaml.safe_dump(settings))
    return folder / "agent.yaml"


async def daemon(config: Path, command: str = "run") -> asyncio.subprocess.Process:
    path = os.pathsep.join(str(ROOT / part) for part in ("agent", "protos"))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hostler_agent",
        command,
        "--config",
        str(config),
        env={**os.environ, "PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def test_the_daemon_reboots_its_host_once_and_proves_it(
    coordinator: FakeCoordinator, certificates: Certificates, tmp_path: Path
) -> None:
    config = prepare(tmp_path, certificates, f"127.0.0.1:{coordinator.port}")
    first, host = await daemon(config), coordinator.host("id-h1")
    await until(lambda: host.pulled, "the agent asks for work")
    assert host.hellos[-1].boot_id == BEFORE
    assert host.hellos[-1].facts.hostname == "h1"
    job = reboot_job()
    coordinator.give("id-h1", job)
    assert await asyncio.wait_for(first.wait(), 20) == 0
    assert decode((tmp_path / "journal.json").read_bytes())[1].phase is JournalPhase.ACTING
    second = await daemon(config)
    try:
        await until(lambda: job.outcome, "an outcome")
        assert job.outcome is not None
        assert (pb.OutcomeKind.Name(job.outcome.kind), job.outcome.boot_id) == ("OUTCOME_KIND_DONE", AFTER)
    finally:
        second.terminate()
        assert await asyncio.wait_for(second.wait(), 20) == 0
    asked = await daemon(config, "status")
    said, _ = await asked.communicate()
    assert json.loads(said)["boot_id"] == AFTER
    assert asked.returncode == 0


async def test_a_wrong_configuration_ends_with_a_status_that_is_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("colour: blue\n")
    asked = await daemon(tmp_path / "agent.yaml")
    assert await asyncio.wait_for(asked.wait(), 20) == 78


async def test_fc_d07_a_check_that_says_six_mib_neither_keeps_the_agent_away_nor_is_reported_whole(
    coordinator: FakeCoordinator, certificates: Certificates, tmp_path: Path
) -> None:
    config = prepare(tmp_path, certificates, f"127.0.0.1:{coordinator.port}")
    settings = yaml.safe_load(config.read_text())
    settings["checks"]["commands"] = [["sh", "-c", "head -c 6291456 /dev/zero | tr '\\0' x; exit 1"]]
    config.write_text(yaml.safe_dump(settings))
    agent, host = await daemon(config), coordinator.host("id-h1")
    try:
        await until(lambda: host.condition.usability_reason, "the failed check")
        assert host.condition.usability_reason.endswith(" … (cut: 6291456 bytes in all)")
        assert max(one.ByteSize() for one in host.heard) < 8_192
        assert host.streams == 1
    finally:
        agent.terminate()
        assert await asyncio.wait_for(agent.wait(), 20) == 0
