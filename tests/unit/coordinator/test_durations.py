"""Durations: what operators type, and what they read."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler_coordinator.durations import check_duration, format_duration, parse_duration
from hostler_coordinator.refusals import BadField


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("6h", 21_600),
        ("2d", 172_800),
        ("1h30m", 5_400),
        ("1.5h", 5_400),
        ("1h 30min", 5_400),
        ("365d", 31_536_000),
    ],
)
def test_reads(text: str, seconds: float) -> None:
    assert parse_duration(text, "deadline") == seconds


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("90", "no unit"),
        ("-5m", "sign"),
        ("", "not a duration"),
        ("0s", "zero"),
        ("366d", "longer than 365 d"),
        ("999999999d", "longer"),
        ("30m1h", "longest unit"),
        ("1h1h", "longest unit"),
        ("5 fortnights", "not a duration"),
        ("nan", "not a duration"),
        ("1e9s", "not a duration"),
    ],
)
def test_refuses(text: str, says: str) -> None:
    with pytest.raises(BadField, match=says) as caught:
        parse_duration(text, "deadline")
    assert caught.value.field == "deadline"


def test_zero_where_it_means_something() -> None:
    assert parse_duration("0s", "soak", allow_zero=True) == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 1e12])
def test_numbers_are_checked_too(value: float) -> None:
    with pytest.raises(BadField):
        check_duration(value, "limits.deadline_s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5400, "1 h 30 min"),
        (90, "1 min 30 s"),
        (0, "0 s"),
        (1.5, "1.5 s"),
        (86_400, "1 d"),
        (3_599.9, "1 h"),
        (-5, "-5 s"),
    ],
)
def test_writes(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(1, 3_599))
def test_short_ones_are_written_as_read(seconds: int) -> None:
    assert parse_duration(format_duration(seconds).replace(" ", ""), "x") == seconds
