"""The development fleet's stand-in for ipmi_sim does the same to the machine behind it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmc_fixtures import HOOK, Machine, await_bmc, free_udp_port, write_secret
from hostler_coordinator.bmc.answers import BmcTarget, Confirmation, FaultClass, PowerState, Protocol, Verb
from hostler_coordinator.bmc.audit import SuiteZero, audit_suite_zero
from hostler_coordinator.bmc.cycle import power_cycle
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.pool import BmcPool
from hostler_coordinator.bmc.walk import CycleSettings, Outcome
from hostler_coordinator.dev import pyghmi_bmc

pytestmark = pytest.mark.integration


async def yes() -> Confirmation:
    return Confirmation(ok=True)


@pytest.fixture
def dev_machine(tmp_path: Path) -> Iterator[Machine]:
    hook = tmp_path / "hook"
    hook.write_text(HOOK)
    hook.chmod(0o700)
    secret, port = write_secret(tmp_path / "secret"), free_udp_port()
    (tmp_path / "power").write_text("1")
    target = BmcTarget("h1", Protocol.IPMI, "127.0.0.1", port, secret, serial="SN42")
    command = pyghmi_bmc.argv("127.0.0.1", port, secret, "SN42", f"{hook} {tmp_path}")
    process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await_bmc(port, process)
        yield Machine(tmp_path, target, process)
    finally:
        process.kill()
        process.wait(10)


async def test_it_names_its_serial_cycles_its_machine_and_refuses_suite_zero(
    bmc_pool: BmcPool, dev_machine: Machine, ipmitool: str
):
    target = dev_machine.target
    result = await power_cycle(bmc_pool, target, CycleSettings(dwell_s=0.1, poll_s=0.1), yes, Pacing())
    assert result.outcome is Outcome.CYCLED, result
    assert (dev_machine.power, dev_machine.boots, dev_machine.orders) == ("on", 1, ["power 0", "power 1"])
    assert (await audit_suite_zero(target, tool=ipmitool)).result is SuiteZero.REFUSED


async def test_a_control_command_that_fails_is_busy_and_never_off(bmc_pool: BmcPool, dev_machine: Machine):
    (dev_machine.folder / "hook").unlink()
    assert (await bmc_pool.call(dev_machine.target, Verb.OFF, yes, tries=1)).fault is FaultClass.BUSY
    answer = await bmc_pool.call(dev_machine.target, Verb.STATUS, tries=1)
    assert (answer.ok, answer.state) == (False, PowerState.UNKNOWN)
