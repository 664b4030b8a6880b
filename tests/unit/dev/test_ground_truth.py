"""The judge of the simulated machines' record: it passes what is right, and fails every file with a planted fault."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from hostler_coordinator.dev.ground_truth import BadEffects, Effect, disagreements, judge, read_effects

FABRICS = {"a1": "ib-a", "a2": "ib-a", "a3": "ib-a", "b1": "ib-b"}
BUDGET = {"ib-a": 2, "ib-b": 1}


def record(*lines: tuple[float, str, str, str]) -> list[Effect]:
    """(t, host, effect, cause) as the machines write it, read back."""
    text = "".join(
        json.dumps({"effect": effect, "host": host, "cause": cause, "t": t, "boot_id": "", "task": "", "token": ""})
        + "\n"
        for t, host, effect, cause in lines
    )
    return read_effects(text)


def started() -> list[tuple[float, str, str, str]]:
    return [(0.1 * number, host, "boot", "start") for number, host in enumerate(FABRICS)]


def reboot(host: str, at: float, took: float = 2.0, cause: str = "agent") -> list[tuple[float, str, str, str]]:
    return [(at, host, "down", cause), (at + took, host, "boot", cause)]


def sorted_record(lines: Iterable[tuple[float, str, str, str]]) -> list[Effect]:
    return record(*sorted(lines))


def test_a_rolling_reboot_within_budget_is_right():
    truth = judge(
        sorted_record([*started(), *reboot("a1", 10), *reboot("a2", 11), *reboot("a3", 12.5), *reboot("b1", 10)]),
        FABRICS,
        since=5,
    )
    assert truth.rebooted_twice == ()
    assert truth.max_down == {"ib-a": 2, "ib-b": 1}
    assert disagreements(truth, BUDGET, succeeded=FABRICS, never_back=()) == []


def test_a_second_ordered_boot_is_found_whoever_ordered_it():
    for cause in ("agent", "bmc"):
        truth = judge(sorted_record([*started(), *reboot("a1", 10), *reboot("a1", 20, cause=cause)]), FABRICS, since=5)
        assert truth.rebooted_twice == ("a1",)
        assert disagreements(truth, BUDGET, succeeded=["a1"], never_back=()) == ["a1 was rebooted 2 times for one task"]


def test_fc_a07_a_soft_reboot_is_no_boot_and_nothing_is_down_by_it():
    truth = judge(
        sorted_record([*started(), (10.0, "a1", "soft_reboot", "agent"), *reboot("a1", 20)]), FABRICS, since=5
    )
    assert (truth.rebooted_twice, truth.max_down) == ((), {"ib-a": 1, "ib-b": 0})


def test_a_crash_is_nobodys_second_reboot():
    truth = judge(sorted_record([*started(), *reboot("a1", 10), *reboot("a1", 20, cause="crash")]), FABRICS, since=5)
    assert truth.rebooted_twice == ()


def test_a_boot_before_the_campaign_does_not_count_for_it():
    truth = judge(sorted_record([*started(), *reboot("a1", 2), *reboot("a1", 10)]), FABRICS, since=5)
    assert truth.rebooted_twice == ()
    assert truth.ordered_boots == {"a1": 1}


def test_one_host_too_many_at_one_moment_is_found():
    overlapping = [*reboot("a1", 10, 5), *reboot("a2", 11, 5), *reboot("a3", 12, 5)]
    truth = judge(sorted_record([*started(), *overlapping]), FABRICS, since=5)
    assert truth.max_down["ib-a"] == 3
    assert truth.over_budget(BUDGET) == ("ib-a",)
    assert "ib-a had 3 hosts down at once, its budget is 2" in disagreements(truth, BUDGET, succeeded=(), never_back=())


def test_a_fabric_without_a_budget_may_have_nobody_down():
    truth = judge(sorted_record([*started(), *reboot("b1", 10)]), FABRICS, since=5)
    assert truth.over_budget({"ib-a": 2}) == ("ib-b",)


def test_a_host_that_went_down_before_the_campaign_still_takes_its_place():
    truth = judge(sorted_record([*started(), (1.0, "a1", "down", "bmc"), *reboot("a2", 10)]), FABRICS, since=5)
    assert truth.max_down["ib-a"] == 2
    quiet = judge(sorted_record([*started(), (1.0, "a1", "down", "bmc")]), FABRICS, since=5)
    assert quiet.max_down["ib-a"] == 1


def test_a_crash_counts_as_down_at_all_and_not_as_down_by_order():
    truth = judge(
        sorted_record([*started(), *reboot("a1", 10, 5), *reboot("a2", 11, 5), *reboot("a3", 12, 1, "crash")]),
        FABRICS,
        since=5,
    )
    assert (truth.max_down["ib-a"], truth.max_down_at_all["ib-a"]) == (2, 3)


def test_a_hung_host_is_not_down_until_its_power_is_cut():
    lines = [
        (10.0, "a1", "hang", "crash"),
        (20.0, "a1", "power_off", "bmc"),
        (20.0, "a1", "down", "bmc"),
        (22.0, "a1", "power_on", "bmc"),
        (24.0, "a1", "boot", "bmc"),
    ]
    truth = judge(sorted_record([*started(), *lines, *reboot("a2", 11), *reboot("a3", 12)]), FABRICS, since=5)
    assert truth.max_down["ib-a"] == 2
    assert truth.hung == ("a1",)
    assert truth.rescued == ("a1",)
    assert truth.bmc_actions == 2


def test_a_host_that_counts_as_rebooted_and_never_booted_is_found():
    truth = judge(sorted_record([*started(), *reboot("a1", 10)]), FABRICS, since=5)
    assert disagreements(truth, BUDGET, succeeded=["a1", "a2"], never_back=()) == [
        "a2 counts as rebooted, and did not boot"
    ]


def test_a_host_that_counts_as_rebooted_and_went_down_again_is_found():
    truth = judge(sorted_record([*started(), *reboot("a1", 10), (15.0, "a1", "down", "bmc")]), FABRICS, since=5)
    assert disagreements(truth, BUDGET, succeeded=["a1"], never_back=()) == ["a1 counts as rebooted, and is down"]


def test_a_host_that_counts_as_never_back_and_booted_is_found():
    truth = judge(sorted_record([*started(), *reboot("a1", 10)]), FABRICS, since=5)
    assert disagreements(truth, BUDGET, succeeded=(), never_back=["a1"]) == ["a1 counts as never come back, and booted"]


def test_a_host_that_never_came_back_stays_down_to_the_end():
    truth = judge(sorted_record([*started(), (10.0, "a1", "down", "agent"), *reboot("a2", 11)]), FABRICS, since=5)
    assert truth.down_at_end == ("a1",)
    assert truth.max_down["ib-a"] == 2


def test_only_the_asked_stretch_of_time_counts():
    lines = [*started(), *reboot("a1", 10), *reboot("a1", 30)]
    assert judge(sorted_record(lines), FABRICS, since=5, until=20).rebooted_twice == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not json\n", "line 1"),
        ('{"effect": "boot", "host": "a1", "cause": "start"}\n', "line 1"),
        ('{"effect": "melted", "host": "a1", "cause": "start", "t": 1}\n', "melted"),
        ('{"effect": "boot", "host": "a1", "cause": "coordinator", "t": 1}\n', "coordinator"),
        ('{"effect": "boot", "host": "", "cause": "start", "t": 1}\n', "line 1"),
        ('{"effect": "boot", "host": "a1", "cause": "start", "t": "soon"}\n', "line 1"),
        (
            (
                '{"effect": "boot", "host": "a1", "cause": "start", "t": 2}\n'
                '{"effect": "down", "host": "a1", "cause": "agent", "t": 1}\n'
            ),
            "line 2: its time goes back",
        ),
    ],
)
def test_a_file_that_machines_would_not_write_is_refused(text: str, says: str):
    with pytest.raises(BadEffects, match=says):
        read_effects(text)


def test_an_unknown_host_is_refused():
    with pytest.raises(BadEffects, match="a9"):
        judge(record((1.0, "a9", "boot", "start")), FABRICS)
