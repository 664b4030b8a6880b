"""The table of retry classes, and what is remembered of one BMC."""

from __future__ import annotations

import pytest

from hostler_coordinator.bmc.answers import BmcAnswer, FaultClass, Verb
from hostler_coordinator.bmc.health import BmcHealth, HealthSettings
from hostler_coordinator.bmc.retries import RetrySettings, wait_before_retry

SETTINGS = RetrySettings()


def failed(verb: Verb, fault: FaultClass, **more: float) -> BmcAnswer:
    return BmcAnswer(ok=False, verb=verb, fault=fault, retry_after_s=more.get("retry_after_s"))


def wait(verb: Verb, fault: FaultClass, tries: int = 1, spent_s: float = 0.0, chance: float = 0.5) -> float | None:
    return wait_before_retry(verb, failed(verb, fault), tries, spent_s, chance, SETTINGS)


@pytest.mark.parametrize("verb", [Verb.SOFT, Verb.RESET, Verb.CYCLE, Verb.NMI, Verb.COLD_RESET])
@pytest.mark.parametrize("fault", list(FaultClass))
def test_a_single_shot_is_never_repeated(verb: Verb, fault: FaultClass):
    assert wait(verb, fault) is None


@pytest.mark.parametrize(
    "fault",
    [
        FaultClass.AUTH,
        FaultClass.CIPHER,
        FaultClass.WRONG_STATE,
        FaultClass.NOT_SUPPORTED,
        FaultClass.IDENTITY,
        FaultClass.PROTOCOL,
        FaultClass.CREDENTIALS,
    ],
)
@pytest.mark.parametrize("verb", [Verb.STATUS, Verb.ON, Verb.OFF])
def test_what_repeating_cannot_cure_is_final(verb: Verb, fault: FaultClass):
    assert wait(verb, fault) is None


@pytest.mark.parametrize("verb", [Verb.STATUS, Verb.ON, Verb.OFF])
@pytest.mark.parametrize("fault", [FaultClass.UNREACHABLE, FaultClass.WEDGED, FaultClass.CONFLICT])
def test_silence_is_answered_by_doubling_waits_and_then_by_giving_up(verb: Verb, fault: FaultClass):
    assert [wait(verb, fault, tries) for tries in (1, 2, 3, 4)] == [2.0, 4.0, 8.0, None]


def test_the_waits_are_spread_by_a_quarter_both_ways():
    assert wait(Verb.STATUS, FaultClass.UNREACHABLE, chance=0.0) == 1.5
    assert wait(Verb.STATUS, FaultClass.UNREACHABLE, chance=1.0) == 2.5


def test_no_free_session_is_waited_out_once_for_the_sessions_of_the_bmc_to_expire():
    assert wait(Verb.STATUS, FaultClass.NO_SLOTS) == 65.0
    assert wait(Verb.STATUS, FaultClass.NO_SLOTS, tries=2) is None


def test_fc_b16_not_ready_is_waited_out_to_a_limit_and_honours_retry_after():
    answer = failed(Verb.STATUS, FaultClass.NOT_READY, retry_after_s=30.0)
    assert wait_before_retry(Verb.STATUS, answer, 1, 0.0, 0.5, SETTINGS) == 30.0
    assert wait_before_retry(Verb.STATUS, answer, 6, 149.0, 0.5, SETTINGS) == 30.0
    assert wait_before_retry(Verb.STATUS, answer, 7, 151.0, 0.5, SETTINGS) is None
    assert wait(Verb.STATUS, FaultClass.NOT_READY, tries=9, spent_s=120.0) == 15.0


def test_withheld_orders_and_successes_are_final():
    assert wait_before_retry(Verb.OFF, BmcAnswer(ok=True, verb=Verb.OFF), 1, 0, 0.5, SETTINGS) is None
    withheld = BmcAnswer(ok=False, verb=Verb.OFF, withheld="a hold")
    assert wait_before_retry(Verb.OFF, withheld, 1, 0, 0.5, SETTINGS) is None


def test_the_breaker_opens_after_three_silences_and_probes_ever_less_often():
    health = BmcHealth(HealthSettings())
    silence = failed(Verb.STATUS, FaultClass.UNREACHABLE)
    for now in (0.0, 10.0):
        health.record(silence, now)
    assert not health.silent
    now, gaps = 20.0, []
    for _ in range(6):
        health.record(silence, now)
        assert not health.probe_due(now)
        gaps.append(health.next_probe - now)
        now = health.next_probe
        assert health.probe_due(now)
    assert gaps == [60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
    health.record(BmcAnswer(ok=True, verb=Verb.STATUS), now)
    assert not health.silent
    assert health.probe_due(now)


def test_polls_between_probes_do_not_push_the_next_probe_away():
    health = BmcHealth(HealthSettings())
    for now in (0.0, 1.0, 2.0, 3.0, 4.0):
        health.record(failed(Verb.STATUS, FaultClass.UNREACHABLE), now)
    assert health.next_probe == 62.0


def test_fc_b17_refused_logins_are_tried_twice_an_hour_and_silence_in_between_forgives_nothing():
    health = BmcHealth(HealthSettings())
    refusal = failed(Verb.STATUS, FaultClass.AUTH)
    health.record(refusal, 0.0)
    assert health.locked_out(1.0) is None
    health.record(failed(Verb.STATUS, FaultClass.UNREACHABLE), 2.0)
    health.record(refusal, 10.0)
    assert health.locked_out(11.0) is refusal
    assert health.next_login_at() == 3600.0
    assert health.locked_out(3601.0) is None


def test_the_limiter_spaces_polls_and_orders_and_obeys_retry_after():
    health = BmcHealth(HealthSettings())
    assert health.earliest(Verb.STATUS) == 0.0
    health.record(BmcAnswer(ok=True, verb=Verb.OFF, sent=True), 100.0)
    assert health.earliest(Verb.STATUS) == 101.0
    assert health.earliest(Verb.ON) == 105.0
    health.record(failed(Verb.STATUS, FaultClass.NOT_READY, retry_after_s=30.0), 101.0)
    assert health.earliest(Verb.STATUS) == 131.0
