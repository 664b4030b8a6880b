"""Windows: reading them, and the clock changes (FC-A30, FC-D08), against a minute-by-minute reference."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler_contract.campaigns import Window
from hostler_coordinator.refusals import BadField
from hostler_coordinator.windows import ALWAYS, openings, parse_window, parse_windows, state

BERLIN = parse_windows(("Sun 02:00-04:00 Europe/Berlin",))


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def open_minutes(windows: tuple[Window, ...], start: str, minutes: int) -> list[int]:
    return [minute for minute in range(minutes) if state(windows, at(start) + 60 * minute).open]


def test_fc_a30_spring_opens_one_hour_once() -> None:
    assert open_minutes(BERLIN, "2026-03-29T00:00", 1440) == list(range(60, 120))
    before = state(BERLIN, at("2026-03-28T12:00"))
    assert (before.open, before.opens_at, before.closes_at) == (False, at("2026-03-29T01:00"), at("2026-03-29T02:00"))
    assert str(before).startswith("closed, opens 2026-03-29T01:00:00")


def test_fc_a30_autumn_opens_three_hours_once() -> None:
    assert open_minutes(BERLIN, "2026-10-25T00:00", 1440) == list(range(180))
    repeated = state(BERLIN, at("2026-10-25T01:00"))
    assert (repeated.open, repeated.opens_at, repeated.closes_at) == (
        True,
        at("2026-10-25T00:00"),
        at("2026-10-25T03:00"),
    )


def test_edges_belong_to_the_start_and_not_to_the_end() -> None:
    assert not state(BERLIN, at("2026-06-07T00:00") - 0.001).open
    assert state(BERLIN, at("2026-06-07T00:00")).open
    assert state(BERLIN, at("2026-06-07T02:00") - 0.001).open
    assert not state(BERLIN, at("2026-06-07T02:00")).open


def test_a_window_wholly_in_skipped_time_opens_the_next_week() -> None:
    skipped = parse_windows(("Sun 02:15-02:45 Europe/Berlin",))
    assert state(skipped, at("2026-03-29T00:30")).opens_at == at("2026-04-05T00:15")


def test_start_in_skipped_time_moves_to_the_end_of_the_gap() -> None:
    (window,) = parse_windows(("Sun 02:30-05:00 Europe/Berlin",))
    assert state((window,), at("2026-03-29T00:00")).opens_at == at("2026-03-29T01:00")


def test_a_day_that_a_country_skipped() -> None:
    apia = parse_windows(("Fri 10:00-12:00 Pacific/Apia", "Sat 10:00-12:00 Pacific/Apia"))
    found = openings(apia, at("2011-12-29T00:00"), 1)
    assert [(span.opens_at, span.closes_at) for span in found] == [(at("2011-12-30T20:00"), at("2011-12-30T22:00"))]


def test_midnight_and_the_end_of_the_week_are_crossed() -> None:
    night = parse_windows(("Sun 22:00-06:00 UTC",))
    assert state(night, at("2026-06-08T05:59")).open
    assert not state(night, at("2026-06-08T06:00")).open
    assert state(night, at("2026-06-08T03:00")).opens_at == at("2026-06-07T22:00")


def test_windows_that_touch_or_overlap_are_one() -> None:
    weekend = parse_windows(("Sat,Sun 00:00-24:00 America/Chicago", "Sun 20:00-03:00 America/Chicago"))
    inside = state(weekend, at("2026-06-07T12:00"))
    assert (inside.opens_at, inside.closes_at) == (at("2026-06-06T05:00"), at("2026-06-08T08:00"))


def test_no_window_and_a_full_week_are_always_open() -> None:
    assert state((), 0.0) == ALWAYS
    assert state(parse_windows(("daily 00:00-24:00 Europe/Berlin",)), at("2026-10-25T01:00")) == ALWAYS


def test_day_lists_wrap_around_the_week() -> None:
    assert parse_window("Fri-Mon 01:00-02:00 UTC").weekdays == (0, 4, 5, 6)
    assert parse_window("sunday,Wed 01:00-02:00 UTC").weekdays == (2, 6)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Sun 02:00-04:00", "no time zone"),
        ("2026-07-01 22:00", "not a maintenance window"),
        ("", "not a maintenance window"),
        ("Sun 02:00-04:00 Europe/Berln", "did you mean .*Europe/Berlin"),
        ("Sun 02:00-04:00 +02:00", "no such time zone"),
        ("Sun 02:00-04:00 localtime", "no such time zone"),
        ("Sun 02:00-04:00 ../../etc/passwd", "no such time zone"),
        ("Sun 02:00-04:00 Europe", "no such time zone"),
        ("Sun 25:00-26:00 UTC", "no such time of day"),
        ("Sun 01:60-02:00 UTC", "no such time of day"),
        ("Sun 02:00-02:00 UTC", "ends when it starts"),
        ("Sun 24:00-02:00 UTC", "starts at 24:00"),
        ("Foo 02:00-04:00 UTC", "no such day"),
        ("Sun,Sun 02:00-04:00 UTC", "names a day twice"),
        ("Sun 2-4 UTC", "not a maintenance window"),
    ],
)
def test_fc_d08_bad_windows(text: str, says: str) -> None:
    with pytest.raises(BadField, match=says) as caught:
        parse_windows(("daily 01:00-02:00 UTC", text))
    assert caught.value.field == "limits.windows[1]"


def test_a_window_given_twice() -> None:
    with pytest.raises(BadField, match="given twice"):
        parse_windows(("Sun 02:00-04:00 UTC", "sunday  02:00 - 04:00 UTC"))


def reference_open(window: Window, minute: datetime) -> bool:
    """Scan real minutes: open from the first that shows the start or later, until past the last that shows the end.

    Deliberately naive, and blind to how the product finds clock changes.
    """
    zone = ZoneInfo(window.zone)
    for back in range(3):
        on = minute.astimezone(zone).date() - timedelta(days=back - 1)
        if on.weekday() not in window.weekdays:
            continue
        midnight = datetime(on.year, on.month, on.day)  # noqa: DTZ001 - a wall clock has no zone
        start, end = (midnight + timedelta(minutes=m) for m in (window.start_minute, window.end_minute))
        wall = minute.astimezone(zone).replace(tzinfo=None)
        began = wall >= start or any(
            (minute - timedelta(minutes=m)).astimezone(zone).replace(tzinfo=None) >= start for m in range(1, 181)
        )
        ahead = wall < end or any(
            (minute + timedelta(minutes=m)).astimezone(zone).replace(tzinfo=None) < end for m in range(1, 181)
        )
        if began and ahead:
            return True
    return False


ZONES = ["Europe/Berlin", "America/Chicago", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "UTC"]
CHANGES = [
    "2024-03-31",
    "2026-03-29",
    "2026-10-25",
    "2026-03-08",
    "2026-11-01",
    "2025-04-06",
    "2027-10-03",
    "2026-06-14",
]


@settings(max_examples=40, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    day=st.sampled_from(CHANGES),
    start=st.integers(0, 95),
    length=st.integers(1, 95),
    offset=st.integers(0, 5),
)
def test_agrees_with_a_minute_by_minute_reference(zone: str, day: str, start: int, length: int, offset: int) -> None:
    window = Window(text="", weekdays=(5, 6), start_minute=start * 15, end_minute=start * 15 + length * 15, zone=zone)
    midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
    for minute in range(-360 + offset, 1800, 7):
        moment = midnight + timedelta(minutes=minute)
        assert state((window,), moment.timestamp()).open == reference_open(window, moment), moment


def test_an_end_at_which_the_clock_is_set_back_closes_the_first_time() -> None:
    window = parse_window("Sun 00:00-01:00 America/Chicago")
    found = state((window,), datetime(2026, 11, 1, 5, 30, tzinfo=UTC).timestamp())
    assert found.closes_at == datetime(2026, 11, 1, 6, 0, tzinfo=UTC).timestamp()
