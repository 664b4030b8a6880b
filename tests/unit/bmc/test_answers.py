"""What counts as on and off, which conditions a chassis reports, and whose serial number fits."""

from __future__ import annotations

import pytest

from hostler_coordinator.bmc.answers import Condition, PowerState, Verb, chassis_reading, power_state, same_serial


@pytest.mark.parametrize("raw", ["PoweringOn", "PoweringOff", "Paused", "Starting", "Sleep", "Error"])
def test_fc_b07_states_between_on_and_off_are_neither(raw: str):
    assert power_state(raw) is PowerState.UNKNOWN


@pytest.mark.parametrize(("raw", "state"), [("on", PowerState.ON), ("ON", PowerState.ON), ("Off ", PowerState.OFF)])
def test_fc_b07_spellings_of_on_and_off_are_normalised(raw: str, state: PowerState):
    assert power_state(raw) is state


@pytest.mark.parametrize("raw", [None, "", "unknown", "error", 0, 1, True, [], "on off"])
def test_fc_b01_anything_else_is_unknown_and_never_off(raw: object):
    assert power_state(raw) is PowerState.UNKNOWN


@pytest.mark.parametrize(
    ("byte", "state", "conditions"),
    [
        (0x01, PowerState.ON, set()),
        (0x03, PowerState.ON, {Condition.OVERLOAD}),
        (0x09, PowerState.ON, {Condition.POWER_FAULT}),
        (0x11, PowerState.ON, {Condition.CONTROL_FAULT}),
        (0x08, PowerState.OFF, {Condition.POWER_FAULT}),
        (0x61, PowerState.ON, set()),  # the restore policy in bits 5 and 6 is no condition
    ],
)
def test_fc_b19_power_bit_and_fault_bits_are_told_apart(byte: int, state: PowerState, conditions: set[Condition]):
    assert chassis_reading(byte) == (state, frozenset(conditions))


def test_serials_compare_without_case_and_blanks_but_never_by_part():
    assert same_serial("sn0001", ("X", " SN0001 "))
    assert not same_serial("SN0001", ("SN00011", "N0001"))
    assert not same_serial("SN0001", ())


def test_only_on_and_off_among_the_destructive_verbs_may_be_sent_twice():
    repeatable = {verb for verb in Verb if verb.destructive and not verb.single_shot}
    assert repeatable == {Verb.ON, Verb.OFF}
