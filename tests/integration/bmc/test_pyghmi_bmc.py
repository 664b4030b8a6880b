"""A BMC on pyghmi's server class gives the answers that ipmi_sim never gives: 0xd5, 0xc0, refused suites and names."""

from __future__ import annotations

import dataclasses

import pytest

from bmc_fixtures import StartMachine, write_secret
from hostler_coordinator.bmc.answers import Condition, Confirmation, FaultClass, PowerState, Verb
from hostler_coordinator.bmc.audit import SuiteZero, audit_suite_zero
from hostler_coordinator.bmc.cycle import power_cycle
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.pool import BmcPool
from hostler_coordinator.bmc.walk import CycleSettings, Outcome

pytestmark = pytest.mark.integration

LONG_SECRET = "twenty-characters-ok"
QUICK_WALK = CycleSettings(dwell_s=0.1, poll_s=0.1, off_limit_s=3.0, on_limit_s=5.0)


async def yes() -> Confirmation:
    return Confirmation(ok=True)


async def test_fc_b02_0xd5_keeps_its_number_and_is_not_repeated(bmc_pool: BmcPool, start_faulty_bmc: StartMachine):
    machine = start_faulty_bmc("strict-state", power="off")
    answer = await bmc_pool.call(machine.target, Verb.RESET, yes)
    assert (answer.fault, answer.code, answer.tries) == (FaultClass.WRONG_STATE, 0xD5, 1)
    assert machine.orders == ["reset"]


async def test_fc_b02_a_cycle_of_a_host_that_is_off_only_switches_it_on(
    bmc_pool: BmcPool, start_faulty_bmc: StartMachine
):
    machine = start_faulty_bmc("strict-state", power="off")
    result = await power_cycle(bmc_pool, machine.target, QUICK_WALK, yes, Pacing())
    assert result.outcome is Outcome.POWERED_ON, result
    assert machine.orders == ["on"]


async def test_a_busy_bmc_is_asked_again_later(bmc_pool: BmcPool, start_faulty_bmc: StartMachine):
    machine = start_faulty_bmc("busy")
    answer = await bmc_pool.call(machine.target, Verb.OFF, yes)
    assert (answer.fault, answer.code, answer.tries) == (FaultClass.BUSY, 0xC0, 4)
    assert machine.orders == ["off"] * 4


async def test_fc_b17_a_secret_cut_to_16_characters_is_a_credentials_fault_with_a_hint(
    bmc_pool: BmcPool, start_faulty_bmc: StartMachine
):
    machine = start_faulty_bmc("cuts-passwords", password=LONG_SECRET)
    answer = await bmc_pool.call(machine.target, Verb.STATUS)
    assert (answer.fault, answer.state) == (FaultClass.AUTH, PowerState.UNKNOWN)
    assert "keep only 16" in answer.text
    assert LONG_SECRET not in repr(answer)
    await bmc_pool.call(machine.target, Verb.STATUS)
    assert (await bmc_pool.call(machine.target, Verb.STATUS)).tries == 0


@pytest.mark.parametrize(
    ("fault", "expected"), [("rakp2-illegal", FaultClass.AUTH), ("cipher-refused", FaultClass.CIPHER)]
)
async def test_fc_b17_a_refused_name_or_cipher_is_not_a_dead_bmc(
    bmc_pool: BmcPool, start_faulty_bmc: StartMachine, fault: str, expected: FaultClass
):
    machine = start_faulty_bmc(fault)
    answers = [await bmc_pool.call(machine.target, Verb.STATUS) for _ in range(3)]
    assert [answer.fault for answer in answers] == [expected] * 3
    assert [answer.tries for answer in answers] == [1, 1, 0]
    assert bmc_pool.silent_bmcs() == 0
    assert machine.orders == []


async def test_a_secret_that_ipmi_cannot_carry_is_refused_before_anything_is_sent(
    bmc_pool: BmcPool, start_faulty_bmc: StartMachine, tmp_path_factory: pytest.TempPathFactory
):
    machine = start_faulty_bmc()
    secret = write_secret(tmp_path_factory.mktemp("long") / "secret", "x" * 21)
    answer = await bmc_pool.call(dataclasses.replace(machine.target, credentials_ref=secret), Verb.STATUS)
    assert answer.fault is FaultClass.CREDENTIALS
    assert "20 bytes" in answer.text


async def test_a_login_that_hangs_for_ever_ends_at_the_deadline_and_the_pool_goes_on(
    bmc_pool: BmcPool, start_faulty_bmc: StartMachine
):
    machine = start_faulty_bmc("mute-after-open")
    answer = await bmc_pool.call(machine.target, Verb.STATUS, deadline_s=3.0, tries=1)
    assert answer.fault is FaultClass.WEDGED
    healthy = start_faulty_bmc()
    assert (await bmc_pool.call(healthy.target, Verb.STATUS)).state is PowerState.ON


@pytest.mark.parametrize(
    ("byte", "state", "conditions"),
    [
        ("01", PowerState.ON, set()),
        ("03", PowerState.ON, {Condition.OVERLOAD}),
        ("09", PowerState.ON, {Condition.POWER_FAULT}),
        ("11", PowerState.ON, {Condition.CONTROL_FAULT}),
        ("08", PowerState.OFF, {Condition.POWER_FAULT}),
    ],
)
async def test_fc_b19_fault_bits_arrive_beside_the_power_state(
    bmc_pool: BmcPool, start_faulty_bmc: StartMachine, byte: str, state: PowerState, conditions: set[Condition]
):
    machine = start_faulty_bmc()
    machine.fault("status-byte", byte)
    answer = await bmc_pool.call(machine.target, Verb.STATUS)
    assert (answer.state, answer.conditions) == (state, frozenset(conditions))


async def test_fc_b19_a_control_fault_stops_the_walk_before_any_order(
    bmc_pool: BmcPool, start_faulty_bmc: StartMachine
):
    machine = start_faulty_bmc()
    machine.fault("status-byte", "11")
    result = await power_cycle(bmc_pool, machine.target, QUICK_WALK, yes, Pacing())
    assert result.fault is FaultClass.HARDWARE
    assert machine.orders == []


async def test_fc_b03_a_bmc_that_accepts_and_stays_on_is_not_trusted(bmc_pool: BmcPool, start_faulty_bmc: StartMachine):
    machine = start_faulty_bmc("ignore-off")
    result = await power_cycle(bmc_pool, machine.target, QUICK_WALK, yes, Pacing())
    assert result.fault is FaultClass.UNTRUSTED
    assert machine.orders == ["off"]


async def test_the_audit_clears_a_bmc_that_refuses_suite_zero(start_faulty_bmc: StartMachine, ipmitool: str):
    finding = await audit_suite_zero(start_faulty_bmc().target, tool=ipmitool)
    assert finding.result is SuiteZero.REFUSED
