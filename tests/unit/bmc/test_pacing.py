"""Slots for power-ons per rack and feed, and the cap on destructive orders over the fleet."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from bmc_fakes import JumpingClock, target
from hostler_coordinator.bmc.pacing import Pacing, PacingSettings, PacingState


def test_one_power_on_per_gap_in_a_rack_and_other_racks_do_not_wait():
    state = PacingState(PacingSettings(power_on_gap_s=2.0))
    assert [state.reserve_power_on(100.0, "r1", None) for _ in range(3)] == [100.0, 102.0, 104.0]
    assert state.reserve_power_on(100.0, "r2", None) == 100.0
    assert state.reserve_power_on(100.0, None, None) == 100.0


def test_a_feed_across_racks_paces_them_together():
    state = PacingState(PacingSettings(power_on_gap_s=2.0))
    assert state.reserve_power_on(0.0, "r1", "f1") == 0.0
    assert state.reserve_power_on(0.0, "r2", "f1") == 2.0
    assert state.reserve_power_on(0.0, "r1", "f2") == 2.0  # rack r1 is free at 2 s, feed f2 at once


def test_a_rack_and_a_feed_of_the_same_name_are_two_things():
    state = PacingState(PacingSettings())
    assert state.reserve_power_on(0.0, "a", None) == 0.0
    assert state.reserve_power_on(0.0, None, "a") == 0.0


@given(st.lists(st.floats(0, 30), min_size=1, max_size=80), st.integers(1, 7))
def test_no_minute_holds_more_destructive_orders_than_the_cap(steps: list[float], cap: int):
    state, now, given_at = PacingState(PacingSettings(destructive_per_minute=cap)), 0.0, []
    for step in steps:
        now += step
        at = state.reserve_destructive(now)
        assert at >= now
        given_at.append(at)
    for first, last in zip(given_at, given_at[cap:], strict=False):
        assert last - first >= 60.0 - 1e-9


async def test_waiting_takes_exactly_the_time_until_the_slot():
    clock = JumpingClock()
    pacing = Pacing(PacingSettings(power_on_gap_s=2.0, destructive_per_minute=1), timing=clock.timing())
    assert await pacing.power_on(target()) == 0.0
    assert await pacing.power_on(dataclasses.replace(target(), host_id="host-2")) == 2.0
    assert await pacing.destructive() == 0.0
    assert await pacing.destructive() == 60.0
