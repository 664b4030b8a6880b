"""The power walks against an in-memory BMC that lies, lags, falls silent and asks its caller before every order."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools

import pytest

from bmc_fakes import InMemoryBmc, JumpingClock, cycle, kinds, no_after, silence, status, target, yes
from hostler_coordinator.bmc.answers import (
    BmcAnswer,
    Condition,
    Confirmation,
    FaultClass,
    Machine,
    PowerState,
    Verb,
)
from hostler_coordinator.bmc.cycle import power_cycle, power_off, power_on, soft_off
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.walk import CycleSettings, Evidence, EvidenceKind, Outcome

ON, OFF = PowerState.ON, PowerState.OFF


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def bmc(clock: JumpingClock) -> InMemoryBmc:
    return InMemoryBmc(clock)


async def test_a_cycle_goes_off_seen_off_dwell_on_seen_on(bmc: InMemoryBmc):
    result = await cycle(bmc)
    assert (result.outcome, result.state, result.left_off) == (Outcome.CYCLED, ON, False)
    assert bmc.orders() == [Verb.OFF, Verb.ON]
    assert bmc.boots == 1
    off_at, on_at = bmc.sent[0][0], bmc.sent[1][0]
    assert on_at - off_at >= 10.0 + 1.0  # dwell after two sightings
    assert kinds(result) == [
        EvidenceKind.SERIAL_VERIFIED,
        EvidenceKind.SEL_SAVED,
        EvidenceKind.STATE_SEEN,
        EvidenceKind.ACCEPTED,
        EvidenceKind.OFF_SEEN,
        EvidenceKind.ACCEPTED,
        EvidenceKind.ON_SEEN,
    ]


async def test_every_fact_is_dated_and_told_while_the_walk_goes_on(bmc: InMemoryBmc):
    told: list[tuple[Evidence, int]] = []

    async def progress(fact: Evidence) -> None:
        told.append((fact, len(bmc.sent)))

    timing = bmc.clock.timing()
    result = await power_cycle(bmc, target(), CycleSettings(), yes, Pacing(timing=timing), progress, timing=timing)
    assert [fact for fact, _ in told] == list(result.evidence)
    dates = [fact.at for fact in result.evidence]
    assert dates == sorted(dates)
    assert {fact.kind: sent for fact, sent in told}[EvidenceKind.OFF_SEEN] == 1


async def test_another_machine_behind_the_address_is_not_touched(bmc: InMemoryBmc):
    bmc.serials = ("SN2",)
    result = await cycle(bmc)
    assert (result.outcome, result.fault) == (Outcome.FAILED, FaultClass.IDENTITY)
    assert bmc.sent == []
    assert "SN2" in result.text
    assert "expects SN1" in result.text


async def test_an_unreadable_serial_stops_the_walk_unless_it_is_permitted(bmc: InMemoryBmc):
    bmc.serials = ()
    assert (await cycle(bmc)).fault is FaultClass.IDENTITY
    assert bmc.sent == []
    result = await cycle(bmc, serial_unreadable_ok=True)
    assert result.outcome is Outcome.CYCLED
    assert EvidenceKind.SERIAL_NOT_VERIFIED in kinds(result)


async def test_without_a_serial_in_the_inventory_the_walk_says_so(bmc: InMemoryBmc):
    result = await cycle(bmc, where=target(serial=None))
    assert result.outcome is Outcome.CYCLED
    assert result.evidence[0].text.startswith("serial not verified")


async def test_a_log_that_cannot_be_saved_stops_nothing(bmc: InMemoryBmc):
    bmc.faults[Verb.SEL] = FaultClass.WEDGED
    result = await cycle(bmc)
    assert result.outcome is Outcome.CYCLED
    assert EvidenceKind.SEL_NOT_SAVED in kinds(result)


@pytest.mark.parametrize("raw", ["unknown", "error", ""])
async def test_fc_b01_an_unknown_state_brings_no_order_at_all(bmc: InMemoryBmc, raw: str):
    bmc.told = lambda answer: dataclasses.replace(answer, state=PowerState.UNKNOWN, raw_state=raw)
    result = await cycle(bmc)
    assert result.outcome is Outcome.FAILED
    assert "unknown" in result.text
    assert bmc.sent == []


async def test_fc_b01_a_silent_bmc_brings_no_order_at_all(bmc: InMemoryBmc):
    bmc.faults[Verb.STATUS] = FaultClass.UNREACHABLE
    result = await cycle(bmc)
    assert (result.outcome, result.fault) == (Outcome.FAILED, FaultClass.UNREACHABLE)
    assert bmc.sent == []


async def test_fc_b01_a_definite_state_must_be_read_twice_running(bmc: InMemoryBmc):
    bmc.statuses = [status(OFF), status(ON), status(PowerState.UNKNOWN, "error"), status(ON)]
    result = await cycle(bmc)
    assert result.outcome is Outcome.CYCLED  # never taken for off although "off" was read once
    assert bmc.orders() == [Verb.OFF, Verb.ON]


async def test_fc_b02_a_host_that_is_off_is_only_switched_on_and_the_result_says_so(bmc: InMemoryBmc):
    bmc.power = OFF
    result = await cycle(bmc)
    assert result.outcome is Outcome.POWERED_ON
    assert "was off already" in result.text
    assert bmc.orders() == [Verb.ON]


async def test_fc_b02_a_host_that_is_off_stays_off_where_switching_on_is_not_permitted(bmc: InMemoryBmc):
    bmc.power = OFF
    result = await cycle(bmc, on_if_off=False)
    assert (result.outcome, result.state, result.left_off) == (Outcome.FAILED, OFF, False)
    assert "does not permit" in result.text
    assert bmc.sent == []


async def test_fc_b02_wrong_state_leads_to_reading_again_not_to_a_failure(bmc: InMemoryBmc):
    """0xd5 to the off, because the host went off by itself in between."""
    bmc.faults[Verb.OFF] = FaultClass.WRONG_STATE
    result = await cycle(bmc)
    assert result.outcome is Outcome.CYCLED
    assert bmc.orders() == [Verb.OFF, Verb.ON]


async def test_fc_b03_a_state_that_lags_three_minutes_brings_one_off_only(bmc: InMemoryBmc):
    bmc.off_takes_s = 180.0
    result = await cycle(bmc)
    assert result.outcome is Outcome.CYCLED
    assert bmc.orders() == [Verb.OFF, Verb.ON]
    assert bmc.boots == 1


async def test_fc_b03_on_for_ever_is_not_trusted_and_never_followed_by_on(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.OFF)
    result = await cycle(bmc)
    assert (result.outcome, result.fault, result.state) == (Outcome.FAILED, FaultClass.UNTRUSTED, ON)
    assert "BMC state not trusted" in result.text
    assert bmc.orders() == [Verb.OFF]


async def test_an_off_whose_reply_is_lost_is_sent_again_every_20_s(bmc: InMemoryBmc):
    bmc.faults[Verb.OFF] = FaultClass.UNREACHABLE
    bmc.off_takes_s = 45.0
    bmc.obeys.discard(Verb.OFF)
    result = await cycle(bmc, off_limit_s=60.0)
    offs = [at for at, verb in bmc.sent if verb is Verb.OFF]
    assert len(offs) == 3
    assert all(20.0 <= later - earlier < 23.0 for earlier, later in itertools.pairwise(offs))
    assert (result.outcome, result.fault) == (Outcome.FAILED, FaultClass.UNREACHABLE)
    assert Verb.ON not in bmc.orders()


async def test_an_on_that_is_accepted_and_lost_is_sent_again(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.ON)
    result = await cycle(bmc, on_limit_s=60.0)
    assert bmc.orders() == [Verb.OFF, Verb.ON, Verb.ON, Verb.ON]
    assert (result.outcome, result.fault, result.left_off) == (Outcome.FAILED, FaultClass.UNTRUSTED, True)
    assert "left off: we switched it off" in result.text


async def test_unanswered_polls_count_neither_way(bmc: InMemoryBmc):
    bmc.statuses = [status(ON), status(ON), silence(), status(OFF), silence(), silence(), status(OFF)]
    result = await cycle(bmc)
    assert result.outcome is Outcome.CYCLED
    assert bmc.orders() == [Verb.OFF, Verb.ON]


async def test_one_sighting_of_off_is_not_two(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.OFF)
    bmc.statuses = [status(ON), status(ON), status(OFF), status(ON)]
    result = await cycle(bmc)
    assert result.fault is FaultClass.UNTRUSTED
    assert Verb.ON not in bmc.orders()


async def test_fc_b07_while_powering_off_nothing_is_sent_and_the_state_is_waited_for(bmc: InMemoryBmc):
    bmc.power = OFF
    bmc.statuses = [status(PowerState.UNKNOWN, "PoweringOff")] * 5
    result = await cycle(bmc)
    assert result.outcome is Outcome.POWERED_ON
    assert bmc.orders() == [Verb.ON]
    assert bmc.sent[0][0] > 5.0


async def test_fc_b07_a_state_in_between_that_stays_is_reported_with_its_word(bmc: InMemoryBmc):
    bmc.told = lambda answer: dataclasses.replace(answer, state=PowerState.UNKNOWN, raw_state="Paused")
    result = await cycle(bmc)
    assert "Paused" in result.text
    assert bmc.sent == []


async def test_a_no_before_the_off_cancels_and_touches_nothing(bmc: InMemoryBmc):
    result = await cycle(bmc, confirm=no_after(0))
    assert (result.outcome, result.left_off) == (Outcome.CANCELLED, False)
    assert "came back by itself" in result.text
    assert bmc.sent == []


async def test_a_no_after_our_off_does_not_leave_the_host_off(bmc: InMemoryBmc):
    result = await cycle(bmc, confirm=no_after(1, "a hold was placed"))
    assert result.outcome is Outcome.CYCLED
    assert bmc.orders() == [Verb.OFF, Verb.ON]
    (noted,) = [fact for fact in result.evidence if fact.kind is EvidenceKind.RESTORING]
    assert "a hold was placed" in noted.text


async def test_a_check_or_a_store_that_fails_after_our_off_does_not_leave_the_host_off(bmc: InMemoryBmc):
    async def confirm() -> Confirmation:
        if bmc.sent:
            raise ConnectionError("store unavailable")
        return Confirmation(ok=True)

    async def progress(_: Evidence) -> None:
        if bmc.sent:
            raise ConnectionError("store unavailable")

    timing = bmc.clock.timing()
    result = await power_cycle(bmc, target(), CycleSettings(), confirm, Pacing(timing=timing), progress, timing=timing)
    assert result.outcome is Outcome.CYCLED
    assert bmc.boots == 1
    assert EvidenceKind.RESTORING in kinds(result)


async def test_a_walk_that_is_cancelled_after_its_off_ends_there(bmc: InMemoryBmc):
    """The coordinator stops: the walk must stop as well, and is started again from the stored intent."""

    async def progress(fact: Evidence) -> None:
        if fact.kind is EvidenceKind.ACCEPTED:
            walk.cancel()

    timing = bmc.clock.timing()
    walk = asyncio.ensure_future(
        power_cycle(bmc, target(), CycleSettings(), yes, Pacing(timing=timing), progress, timing=timing)
    )
    with pytest.raises(asyncio.CancelledError):
        await walk
    assert bmc.orders() == [Verb.OFF]
    assert (await cycle(bmc)).outcome is Outcome.POWERED_ON


async def test_a_store_that_fails_before_anything_was_sent_stops_the_walk(bmc: InMemoryBmc):
    async def progress(_: Evidence) -> None:
        raise ConnectionError("store unavailable")

    timing = bmc.clock.timing()
    with pytest.raises(ConnectionError):
        await power_cycle(bmc, target(), CycleSettings(), yes, Pacing(timing=timing), progress, timing=timing)
    assert bmc.sent == []


async def test_a_no_after_a_soft_off_that_still_works_brings_the_host_back(bmc: InMemoryBmc):
    bmc.soft_takes_s = 33.0
    result = await cycle(bmc, confirm=no_after(1), soft_s=30.0)
    assert result.outcome is Outcome.CYCLED
    assert bmc.orders() == [Verb.SOFT, Verb.ON]


async def test_a_no_after_a_soft_off_that_was_ignored_cancels_and_warns(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.SOFT)
    result = await cycle(bmc, confirm=no_after(1), soft_s=30.0)
    assert (result.outcome, result.state) == (Outcome.CANCELLED, ON)
    assert "may still take effect" in result.text


async def test_a_no_to_a_host_that_was_off_before_us_is_obeyed(bmc: InMemoryBmc):
    bmc.power = OFF
    result = await cycle(bmc, confirm=no_after(0))
    assert result.outcome is Outcome.CANCELLED
    assert bmc.sent == []


async def test_fc_b06_what_is_told_first_is_pinned_for_the_rest_of_the_walk_and_told_to_the_caller(bmc: InMemoryBmc):
    system = Machine("/redfish/v1/Systems/System_0", "U-1", "the UUID", "Dell", "R750")
    bmc.told = lambda answer: dataclasses.replace(answer, machine=system)
    result = await cycle(bmc)
    assert result.outcome is Outcome.CYCLED
    assert bmc.ordered_of == [system, system]
    seen = [fact for fact in result.evidence if fact.kind is EvidenceKind.MACHINE_SEEN]
    assert [(fact.machine, fact.text) for fact in seen] == [
        (system, "system /redfish/v1/Systems/System_0 by the UUID, model Dell R750")
    ]


async def test_fc_b06_a_bmc_that_is_confused_after_our_own_off_is_waited_for(bmc: InMemoryBmc):
    confused = BmcAnswer(ok=False, verb=Verb.STATUS, fault=FaultClass.IDENTITY, text="another system")
    bmc.told = lambda answer: confused if bmc.sent and bmc.clock.passed_s < 30.0 else answer
    result = await cycle(bmc)
    assert result.outcome is Outcome.CYCLED
    assert bmc.orders() == [Verb.OFF, Verb.ON]


async def test_fc_b15_a_walk_started_again_after_our_off_sends_one_on_only(bmc: InMemoryBmc):
    class WorkerKilledError(BaseException):
        pass

    async def progress(fact: Evidence) -> None:
        if fact.kind is EvidenceKind.OFF_SEEN:
            raise WorkerKilledError

    timing = bmc.clock.timing()
    with pytest.raises(WorkerKilledError):
        await power_cycle(bmc, target(), CycleSettings(), yes, Pacing(timing=timing), progress, timing=timing)
    assert bmc.power is OFF
    result = await cycle(bmc)
    assert result.outcome is Outcome.POWERED_ON
    assert bmc.orders() == [Verb.OFF, Verb.ON]
    assert bmc.boots == 1


async def test_fc_b15_a_shutdown_that_claims_completion_proves_nothing(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.SOFT)  # accepted, "Completed", and the power stays on
    result = await cycle(bmc, soft_s=30.0)
    assert result.outcome is Outcome.CYCLED
    assert bmc.orders() == [Verb.SOFT, Verb.OFF, Verb.ON]


async def test_fc_b19_a_control_fault_gets_no_power_orders_and_calls_for_a_person(bmc: InMemoryBmc):
    bmc.conditions = frozenset({Condition.CONTROL_FAULT})
    result = await cycle(bmc)
    assert (result.outcome, result.fault) == (Outcome.FAILED, FaultClass.HARDWARE)
    assert "person" in result.text
    assert bmc.sent == []


async def test_fc_b19_a_power_fault_is_reported_and_does_not_stop_the_walk(bmc: InMemoryBmc):
    bmc.conditions = frozenset({Condition.POWER_FAULT, Condition.OVERLOAD})
    result = await cycle(bmc)
    assert result.outcome is Outcome.CYCLED
    assert any("overload, power fault" in fact.text for fact in result.evidence)


async def test_fc_b20_chassis_on_with_a_quiesced_host_is_said_so(bmc: InMemoryBmc):
    bmc.told = lambda answer: dataclasses.replace(answer, host_state="Quiesced" if answer.state is ON else "")
    result = await cycle(bmc)
    assert result.outcome is Outcome.CYCLED
    assert "powered, host not running (Quiesced)" in result.text
    assert EvidenceKind.HOST_NOT_RUNNING in kinds(result)


async def test_a_refused_password_ends_the_walk_at_once(bmc: InMemoryBmc):
    bmc.faults[Verb.SERIAL] = FaultClass.AUTH
    result = await cycle(bmc)
    assert (result.outcome, result.fault) == (Outcome.FAILED, FaultClass.AUTH)
    assert bmc.clock.passed_s < 1.0


async def test_power_on_leaves_a_running_host_alone(bmc: InMemoryBmc):
    timing = bmc.clock.timing()
    result = await power_on(bmc, target(), CycleSettings(), yes, Pacing(timing=timing), timing=timing)
    assert result.outcome is Outcome.POWERED_ON
    assert bmc.sent == []


async def test_power_off_and_soft_off_end_with_the_host_off(bmc: InMemoryBmc):
    timing = bmc.clock.timing()
    settings = CycleSettings(soft_s=60.0)
    result = await soft_off(bmc, target(), settings, yes, Pacing(timing=timing), timing=timing)
    assert (result.outcome, result.state, result.left_off) == (Outcome.POWERED_OFF, OFF, False)
    bmc.power, bmc.sent = ON, []
    result = await power_off(bmc, target(), CycleSettings(), yes, Pacing(timing=timing), timing=timing)
    assert result.outcome is Outcome.POWERED_OFF
    assert bmc.orders() == [Verb.OFF]


async def test_soft_off_never_forces(bmc: InMemoryBmc):
    bmc.obeys.discard(Verb.SOFT)
    timing = bmc.clock.timing()
    settings = CycleSettings(soft_s=60.0)
    result = await soft_off(bmc, target(), settings, yes, Pacing(timing=timing), timing=timing)
    assert result.outcome is Outcome.FAILED
    assert bmc.orders() == [Verb.SOFT]


async def test_two_hosts_of_a_rack_are_switched_on_two_seconds_apart(clock: JumpingClock):
    first, second = InMemoryBmc(clock, power=OFF), InMemoryBmc(clock, power=OFF)
    timing, pacing = clock.timing(), Pacing(timing=clock.timing())
    pacing_before = clock.passed_s
    for bmc in (first, second):
        clock.passed_s = pacing_before  # both walks reach their power-on at the same moment
        await power_on(bmc, target(), CycleSettings(), yes, pacing, timing=timing)
    assert second.sent[0][0] - first.sent[0][0] == pytest.approx(2.0)
