"""The simulated machines themselves: power, faults, the BMC's hook, restarts, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from integration.agent.agent_fixtures import ROOT, FakeCoordinator, Machines, until

HOOK = ROOT / "agent/hostler_agent/simulated/chassis_hook.sh"


def hook(machines: Machines, *arguments: str) -> str:
    done = subprocess.run(
        ["sh", str(HOOK), str(machines.folder / "hosts/h1"), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_the_bmc_switches_off_and_on(coordinator: FakeCoordinator, machines: Machines) -> None:
    machines.start(["h1"])
    pid = await until(machines.pid, "an agent")
    assert hook(machines, "get", "power") == "power:1"
    hook(machines, "set", "power", "0")
    assert hook(machines, "get", "power") == "power:0"
    await until(lambda: not alive(pid), "the agent ends with its machine")
    hook(machines, "set", "power", "1")
    await until(lambda: machines.boots() == 2, "another boot")
    hook(machines, "set", "reset", "1")
    await until(lambda: machines.boots() == 3, "a third boot")
    seen = [(one["effect"], one["cause"]) for one in machines.effects()]
    assert seen == [
        ("boot", "start"),
        ("power_off", "bmc"),
        ("down", "bmc"),
        ("power_on", "bmc"),
        ("boot", "bmc"),
        ("power_reset", "bmc"),
        ("down", "bmc"),
        ("boot", "bmc"),
    ]
    assert len({one["boot_id"] for one in machines.effects(effect="boot")}) == 3


async def test_soft_off_is_heard_unless_ignored(coordinator: FakeCoordinator, machines: Machines) -> None:
    machines.start(["h1"])
    await until(machines.pid, "an agent")
    machines.order("h1 fault soft-ignored")
    hook(machines, "set", "shutdown", "1")
    machines.order("h1 fault clear")
    hook(machines, "set", "shutdown", "1")
    await until(lambda: hook(machines, "get", "power") == "power:0", "power off")
    assert len(machines.effects(effect="soft_off")) == 1


async def test_a_lying_bmc_accepts_and_does_nothing(coordinator: FakeCoordinator, machines: Machines) -> None:
    machines.start(["h1"])
    await until(machines.pid, "an agent")
    machines.order("h1 fault bmc-lies")
    await until(lambda: "bmc-lies" in (machines.folder / "hosts/h1/faults").read_text(), "the fault")
    hook(machines, "set", "power", "0")
    assert hook(machines, "get", "power") == "power:1"
    assert [one["effect"] for one in machines.effects()] == ["boot"]


async def test_a_slow_bmc_takes_its_time(coordinator: FakeCoordinator, machines: Machines) -> None:
    machines.start(["h1"])
    await until(machines.pid, "an agent")
    machines.order("h1 fault bmc-slow")
    await until(lambda: "bmc-slow" in (machines.folder / "hosts/h1/faults").read_text(), "the fault")
    began = time.monotonic()
    hook(machines, "set", "power", "0")
    assert time.monotonic() - began >= 3.0
    assert hook(machines, "get", "power") == "power:0"


async def test_a_hang_stops_the_agent_and_a_power_cycle_ends_it(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    machines.start(["h1"])
    host = coordinator.host("id-h1")
    await until(lambda: host.pulled, "the agent asks for work")
    machines.order("h1 fault hang")
    await until(lambda: machines.effects(effect="hang"), "the hang")
    stat = Path(f"/proc/{machines.pid()}/stat")
    await until(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T", "the agent is stopped")
    hook(machines, "set", "shutdown", "1")
    assert hook(machines, "get", "power") == "power:1"
    hook(machines, "set", "power", "0")
    hook(machines, "set", "power", "1")
    await until(lambda: host.streams == 2 and host.pulled, "the host is back")


async def test_no_boot_never_comes_back_until_cleared_and_cycled(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    machines.start(["h1"])
    await until(machines.pid, "an agent")
    machines.order("h1 fault no-boot")
    machines.order("h1 crash")
    await until(lambda: machines.effects(effect="down"), "down")
    hook(machines, "set", "power", "0")
    hook(machines, "set", "power", "1")
    await until(lambda: machines.effects(effect="power_on"), "power on")
    await until(lambda: machines.pid() == 0, "no agent")
    assert machines.boots() == 1
    machines.order("h1 fault clear")
    hook(machines, "set", "reset", "1")
    await until(lambda: machines.boots() == 2, "a boot")


async def test_a_killed_agent_comes_back_on_the_same_boot_and_a_stopped_one_does_not(
    coordinator: FakeCoordinator, machines: Machines
) -> None:
    machines.start(["h1"])
    pid, host = await until(machines.pid, "an agent"), coordinator.host("id-h1")
    await until(lambda: host.streams == 1, "attached")
    os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    await until(lambda: host.streams == 2, "attached again")
    assert time.monotonic() - began >= 0.9
    assert host.hellos[0].boot_id == host.hellos[1].boot_id
    assert machines.boots() == 1


async def test_nothing_is_left_when_the_machines_end_or_die(coordinator: FakeCoordinator, machines: Machines) -> None:
    machines.start(["h1", "h2", "h3"])
    pids = await until(lambda: all(p := [machines.pid(h) for h in ("h1", "h2", "h3")]) and p, "three agents")
    machines.stop()
    assert [pid for pid in pids if alive(pid)] == []
    assert not (machines.folder / "machines.fifo").exists()
    machines.start(["h1", "h2"])
    pids = await until(lambda: all(p := [machines.pid(h) for h in ("h1", "h2")]) and p, "two agents")
    assert machines.process is not None
    os.kill(machines.process.pid, signal.SIGKILL)
    machines.process.wait()
    await until(lambda: not any(alive(pid) for pid in pids), "the agents die with their machines")
