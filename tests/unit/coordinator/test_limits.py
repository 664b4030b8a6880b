"""Limits: every form, every rounding, every refusal with its field."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler_contract.campaigns import Limits
from hostler_contract.domains import Budget
from hostler_contract.hosts import HostRecord
from hostler_coordinator.limits import (
    budget_count,
    effective_limit,
    format_budget,
    parse_budget,
    parse_rate,
    resolve_limits,
)
from hostler_coordinator.refusals import BadField
from hostler_coordinator.waves import wave_sizes

ENROLLED = {"fabric/ib-a": 61, "fabric/ib-b": 40, "rack/r0": 16, "feed/f1": 101, "site/site": 101}


def targets(count: int = 50) -> list[HostRecord]:
    return [
        HostRecord(id=f"h{n}", name=f"n{n}", fabric="ib-a" if n % 2 else "ib-b", feeds=("f1",), enrolled_at=0)
        for n in range(count)
    ]


def test_percentages_are_of_the_enrolled_hosts_rounded_down_and_said() -> None:
    resolved = resolve_limits(Limits(max_down=("fabric=5%",)), targets(), ENROLLED)
    assert resolved.domains == {"fabric/ib-a": 3, "fabric/ib-b": 2}
    assert "fabric/ib-a: 5% of 61 enrolled hosts = 3.05, rounded down to 3" in resolved.words
    assert "fabric/ib-b: 5% of 40 enrolled hosts = 2" in resolved.words


def test_a_percentage_below_one_host_is_one() -> None:
    resolved = resolve_limits(Limits(max_down=("fabric/ib-b=1%", "total=1%")), targets(), ENROLLED)
    assert (resolved.domains, resolved.total) == ({"fabric/ib-b": 1}, 1)
    assert "fabric/ib-b: 1% of 40 enrolled hosts = 0.4, raised to 1 (at least one)" in resolved.words


def test_total_is_of_the_targets() -> None:
    resolved = resolve_limits(Limits(max_down=("total=5%",)), targets(99), ENROLLED)
    assert resolved.total == 4
    assert resolved.domains == {}
    assert resolved.words == ("total: 5% of 99 targets = 4.95, rounded down to 4",)


@pytest.mark.parametrize("order", [("fabric=10%", "fabric/ib-a=2"), ("fabric/ib-a=2", "fabric=10%")])
def test_a_domain_limited_twice_has_the_smaller_limit(order: tuple[str, ...]) -> None:
    resolved = resolve_limits(Limits(max_down=order), targets(), ENROLLED)
    assert resolved.domains == {"fabric/ib-a": 2, "fabric/ib-b": 4}
    assert any("limited twice" in word and "2 holds" in word for word in resolved.words)


def test_a_limit_that_leaves_targets_out_says_so() -> None:
    mixed = [*targets(3), HostRecord(id="x", name="x", rack="r0", enrolled_at=0)]
    resolved = resolve_limits(Limits(max_down=("rack=1", "fabric/ib-a=1")), mixed[2:], ENROLLED)
    assert "rack=1 does not limit 1 of the targets: they belong to no rack" in resolved.words
    assert "fabric/ib-a=1 limits none of the targets: none belongs to fabric/ib-a" in resolved.words


def test_equal_limits_of_many_domains_are_said_once() -> None:
    hosts = [HostRecord(id=f"h{n}", name=f"n{n}", rack=f"r{n:04}", enrolled_at=0) for n in range(3000)]
    resolved = resolve_limits(Limits(max_down=("rack=1",)), hosts, {f"rack/r{n:04}": 1 for n in range(3000)})
    assert len(resolved.domains) == 3000
    assert resolved.words == ("rack/r0000, rack/r0001, rack/r0002 and 2997 more: 1",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fabric=0", "zero"),
        ("fabric=0%", "not above 0%"),
        ("fabric=101%", "more than 100%"),
        ("fabric=-1", "negative"),
        ("fabric=-5%", "negative"),
        ("fabric=nan", "neither"),
        ("fabric=NaN%", "neither"),
        ("fabric=1e3", "neither"),
        ("fabric=1.5", "neither"),
        ("fabric=٣", "neither"),
        ("fabric=", "neither"),
        ("fabric=99999999", "more than 1000000"),
        ("fabric/=2", "names no fabric"),
        ("fabric/ib-z=2", "which no enrolled host belongs to"),
        ("leaf=2", "no kind of domain"),
        ("total/x=2", "no kind of domain"),
        ("3", "does not say what it limits"),
        ("", "does not say what it limits"),
        ("rack=1", "none of the targets belongs to a rack"),
        ("total=1", "a second time"),
    ],
)
def test_bad_limits_name_the_field_and_the_fix(text: str, says: str) -> None:
    with pytest.raises(BadField, match=says) as caught:
        resolve_limits(Limits(max_down=("total=5", text)), targets(), ENROLLED)
    assert caught.value.field == "limits.max_down[1]"
    assert caught.value.fix


def test_a_huge_value_is_shown_short() -> None:
    with pytest.raises(BadField) as caught:
        resolve_limits(Limits(max_down=("x" * 10_000_000,)), targets(), ENROLLED)
    assert len(str(caught.value)) < 400


def test_failure_limits_count_targets_and_domains() -> None:
    resolved = resolve_limits(Limits(max_failures=("2%", "fabric=1")), targets(100), ENROLLED)
    assert resolved.max_failures == 2
    assert resolved.max_failures_by_domain == {"fabric/ib-a": 1, "fabric/ib-b": 1}
    assert "failures, total: 2% of 100 targets = 2" in resolved.words
    with pytest.raises(BadField, match=r"limits\.max_failures\[1\].*second time"):
        resolve_limits(Limits(max_failures=("3", "total=2")), targets(), ENROLLED)


@pytest.mark.parametrize(
    ("text", "count", "sizes"),
    [
        ("", 7, ()),
        ("1,5,20%", 61, (1, 5, 12, 12, 12, 12, 7)),
        ("1,x2", 20, (1, 2, 4, 8, 5)),
        ("1,+5", 20, (1, 6, 11, 2)),
        ("10", 25, (10, 10, 5)),
        ("1%", 3, (1, 1, 1)),
        ("100", 3, (3,)),
        (" 1 , 2 ", 5, (1, 2, 2)),
        ("2,3,x3", 30, (2, 3, 9, 16)),
        ("5", 0, ()),
    ],
)
def test_waves(text: str, count: int, sizes: tuple[int, ...]) -> None:
    assert wave_sizes(text, count)[0] == sizes


@given(
    terms=st.lists(st.one_of(st.integers(1, 500).map(str), st.integers(1, 100).map("{}%".format)), min_size=1),
    growth=st.sampled_from(["", ",x2", ",+3"]),
    count=st.integers(1, 5_000),
)
def test_waves_always_sum_to_the_targets(terms: list[str], growth: str, count: int) -> None:
    try:
        sizes, _ = wave_sizes(",".join(terms) + growth, count)
    except BadField as refused:
        assert "waves" in refused.reason or "terms" in refused.reason  # noqa: PT017 - either outcome is right
        return
    assert sum(sizes) == count
    assert all(size >= 1 for size in sizes)
    assert len(sizes) <= 1_000


@pytest.mark.parametrize("text", ["0", "x2", "1,x1", "1,+0", "1,x2,5", "a", "1,,2", "-1", "1.5", "101%", "1,x", ","])
def test_bad_waves(text: str) -> None:
    with pytest.raises(BadField) as caught:
        wave_sizes(text, 100)
    assert caught.value.field == "limits.waves"


def test_too_many_waves_are_refused_with_the_way_out() -> None:
    with pytest.raises(BadField, match=r"more than 1000 waves.*total=1"):
        wave_sizes("1", 4_000)


@pytest.mark.parametrize(
    ("text", "per_minute"), [("10/min", 10), ("1/30s", 2), ("100/h", 100 / 60), ("2/s", 120), (" 6 / 2 min ", 3)]
)
def test_rates(text: str, per_minute: float) -> None:
    assert math.isclose(parse_rate(text), per_minute)


@pytest.mark.parametrize(
    "text", ["0/min", "10", "-1/min", "1/0s", "10/fortnight", "9999/s", "nan/min", "1/999d", "/min"]
)
def test_bad_rates(text: str) -> None:
    with pytest.raises(BadField) as caught:
        parse_rate(text)
    assert caught.value.field == "limits.rate"


@pytest.mark.parametrize(
    "limits",
    [
        Limits(attempts=-1),
        Limits(attempts=11),
        Limits(deadline_s=-1),
        Limits(deadline_s=math.nan),
        Limits(deadline_s=math.inf),
        Limits(deadline_s=366 * 86_400),
        Limits(soak_s=86_401),
        Limits(drain_timeout_s=8 * 86_400),
        Limits(windows=("Sun 02:00-04:00",)),
    ],
)
def test_numbers_out_of_range(limits: Limits) -> None:
    with pytest.raises(BadField, match=r"^limits\."):
        resolve_limits(limits, targets(), ENROLLED)


def test_what_is_not_given_has_the_default() -> None:
    resolved = resolve_limits(Limits(), targets(), ENROLLED)
    assert (resolved.attempts, resolved.drain_timeout_s, resolved.starts_per_minute) == (2, 900.0, None)
    assert (resolved.max_failures, resolved.total, resolved.words) == (None, None, ())


@pytest.mark.parametrize(
    ("budget", "campaign", "expected"),
    [
        (None, None, (1, "default", "")),
        (None, 7, (7, "campaign", "")),
        (Budget(count=3), None, (3, "budget", "")),
        (Budget(count=3), 7, (3, "budget", "")),
        (Budget(count=7), 3, (3, "campaign", "")),
        (Budget(percent=5), None, (3, "budget", "5% of 61 enrolled hosts = 3.05, rounded down to 3")),
        (Budget(percent=0.5), 9, (1, "budget", "0.5% of 61 enrolled hosts = 0.305, raised to 1 (at least one)")),
    ],
)
def test_effective_limit_is_the_least(budget: Budget | None, campaign: int | None, expected: object) -> None:
    assert tuple(effective_limit("fabric/ib-a", 61, budget, campaign)) == expected


def test_percentages_are_exact_decimals() -> None:
    # 0.7 % of 1000 is 6.999… in binary floating point.
    assert budget_count("fabric/x", 1000, Budget(percent=0.7)) == (7, "0.7% of 1000 enrolled hosts = 7")


@pytest.mark.parametrize("text", ["3", "5%", "0.5%", "12.25%", "default"])
def test_budgets_are_written_as_read(text: str) -> None:
    assert format_budget(parse_budget(text)) == text


@pytest.mark.parametrize("text", ["0", "", "120%", "-1", "lots"])
def test_bad_budgets(text: str) -> None:
    with pytest.raises(BadField, match=r"^budget: "):
        parse_budget(text)
