"""The soft step of a walk: its one repeat, its deadline, and models that carry it out as a hard one."""

from __future__ import annotations

import dataclasses

import pytest

from bmc_fakes import InMemoryBmc, JumpingClock, cycle, kinds
from hostler_coordinator.bmc.answers import BmcAnswer, FaultClass, Machine, PowerState, Verb
from hostler_coordinator.bmc.walk import EvidenceKind, Outcome

ON = PowerState.ON
R750 = Machine(manufacturer="Dell", model="R750")


@pytest.fixture
def bmc() -> InMemoryBmc:
    return InMemoryBmc(JumpingClock())


async def test_fc_b14_a_soft_off_lost_before_the_os_ran_is_repeated_once_then_forced_at_the_deadline(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.SOFT)

    def told(answer: BmcAnswer) -> BmcAnswer:
        progress = "MemoryInitializationStarted" if bmc.clock.passed_s < 60 else "OSRunning"
        return dataclasses.replace(answer, boot_progress=progress)

    bmc.told = told
    result = await cycle(bmc, soft_s=180.0)
    assert result.outcome is Outcome.CYCLED
    assert bmc.orders() == [Verb.SOFT, Verb.SOFT, Verb.OFF, Verb.ON]
    softs_off = [at for at, _ in bmc.sent]
    assert softs_off[1] >= 60.0  # the repeat waited for the operating system
    assert softs_off[2] - softs_off[0] >= 180.0  # force never before the deadline
    assert EvidenceKind.SOFT_IGNORED in kinds(result)


async def test_fc_b14_a_soft_off_that_takes_38_minutes_needs_no_force(bmc: InMemoryBmc):
    bmc.soft_takes_s = 38 * 60.0
    result = await cycle(bmc, soft_s=45 * 60.0)
    assert result.outcome is Outcome.CYCLED
    assert bmc.orders() == [Verb.SOFT, Verb.ON]


async def test_fc_b14_where_boot_progress_is_not_told_the_soft_off_is_not_repeated_and_that_is_said(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.SOFT)
    result = await cycle(bmc, soft_s=60.0)
    assert bmc.orders() == [Verb.SOFT, Verb.OFF, Verb.ON]
    assert bmc.sent[1][0] - bmc.sent[0][0] >= 60.0
    said = [fact.text for fact in result.evidence if fact.kind is EvidenceKind.SOFT_NOT_REPEATED]
    assert said == ["how far the boot is cannot be told: the soft off is not repeated"]


async def test_fc_b14_the_soft_off_of_a_running_system_is_sent_once(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.SOFT)
    bmc.told = lambda answer: dataclasses.replace(answer, boot_progress="OSRunning")
    result = await cycle(bmc, soft_s=60.0)
    assert bmc.orders() == [Verb.SOFT, Verb.OFF, Verb.ON]
    assert EvidenceKind.SOFT_NOT_REPEATED not in kinds(result)


async def test_fc_b14_a_soft_off_that_could_not_be_sent_is_no_reason_to_force(bmc: InMemoryBmc):
    refused = BmcAnswer(ok=False, verb=Verb.SOFT, fault=FaultClass.UNREACHABLE, text="no answer")
    bmc.refuses[Verb.SOFT] = refused
    result = await cycle(bmc, soft_s=60.0)
    assert (result.outcome, result.fault, bmc.sent) == (Outcome.FAILED, FaultClass.UNREACHABLE, [])
    bmc.refuses[Verb.SOFT] = dataclasses.replace(refused, fault=FaultClass.NOT_SUPPORTED)
    result = await cycle(bmc, soft_s=60.0)
    assert EvidenceKind.SOFT_SKIPPED in kinds(result)
    assert bmc.orders() == [Verb.OFF, Verb.ON]


async def test_fc_b14_a_refused_log_in_during_the_wait_neither_spins_nor_forces_before_the_deadline(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.SOFT)
    refused = BmcAnswer(ok=False, verb=Verb.STATUS, fault=FaultClass.AUTH, text="no")
    bmc.told = lambda answer: refused if Verb.SOFT in bmc.orders() and bmc.clock.passed_s < 50.0 else answer
    await cycle(bmc, soft_s=60.0)
    assert bmc.orders() == [Verb.SOFT, Verb.OFF, Verb.ON]
    assert bmc.sent[1][0] - bmc.sent[0][0] >= 60.0


async def test_fc_b18_without_force_a_host_that_ignores_the_soft_off_stays_on(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.SOFT)
    result = await cycle(bmc, soft_s=90.0, force=False)
    assert (result.outcome, result.state) == (Outcome.FAILED, ON)
    assert result.fault is FaultClass.NO_FORCE
    assert "force is not permitted" in result.text
    assert bmc.orders() == [Verb.SOFT]


async def test_fc_b18_a_shutdown_faster_than_possible_is_noted_as_not_honoured(bmc: InMemoryBmc):
    bmc.soft_takes_s = 0.0
    result = await cycle(bmc, soft_s=90.0, min_soft_s=10.0)
    assert EvidenceKind.GRACEFUL_NOT_HONOURED in kinds(result)
    assert bmc.orders() == [Verb.SOFT, Verb.ON]


@pytest.mark.parametrize("force", [True, False])
async def test_fc_b18_a_model_known_not_to_honour_graceful_gets_no_soft_off(bmc: InMemoryBmc, force: bool):
    bmc.machine = R750
    asked: list[str] = []

    def broken(model: str) -> str:
        asked.append(model)
        return "noted on gpu-003"

    result = await cycle(bmc, soft_s=90.0, force=force, soft_off_broken=broken)
    assert asked == ["Dell R750"]
    if force:
        assert bmc.orders() == [Verb.OFF, Verb.ON]
        assert "no soft off, Dell R750 does not honour it (noted on gpu-003)" in [f.text for f in result.evidence]
    else:
        assert (result.outcome, result.fault, bmc.sent) == (Outcome.FAILED, FaultClass.NOT_GRACEFUL, [])
        assert "noted on gpu-003" in result.text
        assert "force is not permitted" in result.text


async def test_fc_b18_a_model_that_cannot_be_read_is_known_for_nothing(bmc: InMemoryBmc):
    result = await cycle(bmc, soft_s=90.0, soft_off_broken=lambda model: f"everything, {model} too")
    assert bmc.orders() == [Verb.SOFT, Verb.ON]
    assert result.outcome is Outcome.CYCLED
