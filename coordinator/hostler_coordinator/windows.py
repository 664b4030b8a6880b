"""Maintenance windows: reading them, and when they open and close in UTC; who may start in one is the planner's.

Pure but for one thing: zoneinfo reads the time zone's file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from hostler_contract.campaigns import Window
from hostler_contract.moments import format_instant
from hostler_coordinator.refusals import BadField

MOST_WINDOWS = 32
DAY_S = 86_400
DAYS_BEHIND = 9
"""More than a week: the start of any union of weekly windows that does not fill the week lies within it."""
DAYS_AHEAD = 23
"""More than three weeks: the next opening lies within it even if one occurrence falls into a clock change."""

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FORM = re.compile(r"(\S+)\s+([0-9]{2}):([0-9]{2})\s*-\s*([0-9]{2}):([0-9]{2})(?:\s+(\S+))?")
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory", "posix", "right"})
_FIX = 'write days, times and a time zone, such as "Sun 02:00-04:00 Europe/Berlin" or "Mon-Fri 22:00-06:00 UTC"'


@dataclass(frozen=True, slots=True)
class Span:
    """One opening: from `opens_at` up to but not including `closes_at`, epoch seconds."""

    opens_at: float
    closes_at: float


@dataclass(frozen=True, slots=True)
class WindowState:
    """The current opening when `open`, else the next one; epoch seconds.

    None where there is no such edge: no windows at all, or windows that fill the week.
    """

    open: bool
    opens_at: float | None
    closes_at: float | None

    def __str__(self) -> str:
        """Write with UTC bounds, as status shows them."""
        until = "" if self.closes_at is None else f" until {format_instant(self.closes_at)}"
        if self.open:
            return f"open{until}" if until else "always open"
        return "never open" if self.opens_at is None else f"closed, opens {format_instant(self.opens_at)}{until}"


ALWAYS = WindowState(open=True, opens_at=None, closes_at=None)


def parse_windows(texts: Sequence[str], field: str = "limits.windows") -> tuple[Window, ...]:
    """Read several windows, any of which may be open; raises BadField for a bad or repeated one."""
    if len(texts) > MOST_WINDOWS:
        raise BadField(
            field, len(texts), f"windows are more than {MOST_WINDOWS}", "join windows that follow each other"
        )
    windows = tuple(parse_window(text, f"{field}[{index}]") for index, text in enumerate(texts))
    meant = [window.model_copy(update={"text": ""}) for window in windows]
    for index, window in enumerate(meant):
        if window in meant[:index]:
            raise BadField(f"{field}[{index}]", texts[index], "is given twice", "leave one of them out")
    return windows


def parse_window(text: str, field: str = "window") -> Window:
    """Read "Sun 02:00-04:00 Europe/Berlin", "Mon-Fri 22:00-06:00 UTC" or "daily 01:00-03:00 UTC".

    A window whose end is not after its start crosses midnight. Raises BadField; a zone is required, because a
    time without one means something else to each reader.
    """
    matched = _FORM.fullmatch(text.strip())
    if not matched:
        raise BadField(field, text, "is not a maintenance window", _FIX)
    days, *clock, zone = matched.groups()
    if zone is None:
        raise BadField(field, text, "has no time zone", f'{_FIX}; for UTC add "UTC"')
    start = _minute(clock[0], clock[1], text, field)
    end = _minute(clock[2], clock[3], text, field)
    if start in {1440, end}:
        reason = "starts at 24:00" if start == 1440 else "ends when it starts"
        raise BadField(field, text, reason, 'use 00:00 for the start of a day, and "00:00-24:00" for a whole day')
    return Window(
        text=text.strip(),
        weekdays=_weekdays(days, text, field),
        start_minute=start,
        end_minute=end if end > start else end + 1440,
        zone=_zone(zone, text, field),
    )


def state(windows: Sequence[Window], now: float) -> WindowState:
    """Say whether any window is open at `now`, with the bounds of this or the next opening; no windows: always open."""
    if not windows:
        return ALWAYS
    for span in _merged(tuple(windows), int(now // DAY_S)):
        if now < span.closes_at:
            opens = None if span.opens_at < now - (DAYS_BEHIND - 2) * DAY_S else span.opens_at
            closes = None if span.closes_at > now + (DAYS_AHEAD - 2) * DAY_S else span.closes_at
            return WindowState(open=span.opens_at <= now, opens_at=opens, closes_at=closes)
    return WindowState(open=False, opens_at=None, closes_at=None)


def openings(windows: Sequence[Window], now: float, count: int) -> tuple[Span, ...]:
    """At most `count` current and coming openings within three weeks, overlapping windows merged."""
    return tuple(span for span in _merged(tuple(windows), int(now // DAY_S)) if now < span.closes_at)[:count]


@lru_cache(maxsize=256)
def _merged(windows: tuple[Window, ...], day: int) -> tuple[Span, ...]:
    """Every opening around one UTC day, in order, those that overlap or touch made one."""
    spans = sorted(_spans(windows, day), key=lambda span: (span.opens_at, span.closes_at))
    merged: list[Span] = []
    for span in spans:
        if merged and span.opens_at <= merged[-1].closes_at:
            merged[-1] = Span(merged[-1].opens_at, max(merged[-1].closes_at, span.closes_at))
        else:
            merged.append(span)
    return tuple(merged)


def _spans(windows: Iterable[Window], day: int) -> Iterator[Span]:
    today = datetime.fromtimestamp(day * DAY_S, UTC).date()
    for window in windows:
        zone = ZoneInfo(window.zone)
        for offset in range(-DAYS_BEHIND, DAYS_AHEAD + 1):
            on = today + timedelta(days=offset)
            if on.weekday() not in window.weekdays:
                continue
            opens = _first(on, window.start_minute, zone)
            closes = _after_last(on, window.end_minute, zone)
            if opens < closes:  # a window that lies wholly in skipped time does not open
                yield Span(opens, closes)


def _after_last(on: date, minute: int, zone: ZoneInfo) -> float:
    """When the last minute that shows less than this has passed: an end at which the clock is set back is the first."""
    wall = datetime(on.year, on.month, on.day) + timedelta(minutes=minute)  # noqa: DTZ001 - a wall clock has no zone
    before = (wall - timedelta(minutes=1)).replace(tzinfo=zone, fold=1).astimezone(UTC)
    if before.astimezone(zone).replace(tzinfo=None) != wall - timedelta(minutes=1):
        return _gap_end(wall - timedelta(minutes=1), zone)
    return before.timestamp() + 60.0


def _first(on: date, minute: int, zone: ZoneInfo) -> float:
    """When the wall clock of `zone` first shows this minute; the gap's end if it never does."""
    wall = datetime(on.year, on.month, on.day) + timedelta(minutes=minute)  # noqa: DTZ001 - a wall clock has no zone
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment.timestamp()
    return _gap_end(wall, zone)


def _gap_end(wall: datetime, zone: ZoneInfo) -> float:
    """The instant at which the clock jumped over `wall`, found by halving between the two readings of it."""
    later = int(wall.replace(tzinfo=zone, fold=0).timestamp())
    earlier = int(wall.replace(tzinfo=zone, fold=1).timestamp())
    after = datetime.fromtimestamp(later, zone).utcoffset()
    while later - earlier > 1:
        middle = (earlier + later) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == after:
            later = middle
        else:
            earlier = middle
    return float(later)


def _minute(hour: str, minute: str, text: str, field: str) -> int:
    at = int(hour) * 60 + int(minute)
    if int(minute) > 59 or at > 1440:
        raise BadField(field, text, f"has no such time of day as {hour}:{minute}", "use 00:00 to 24:00")
    return at


def _weekdays(days: str, text: str, field: str) -> tuple[int, ...]:
    if days.lower() == "daily":
        return tuple(range(7))
    found: list[int] = []
    for part in days.split(","):
        first, dash, last = part.partition("-")
        start = _weekday(first, text, field)
        length = (_weekday(last, text, field) - start) % 7 if dash else 0
        found += [(start + step) % 7 for step in range(length + 1)]
    if len(set(found)) < len(found):
        raise BadField(field, text, "names a day twice", _FIX)
    return tuple(sorted(found))


def _weekday(name: str, text: str, field: str) -> int:
    for names in (_DAYS, _FULL_DAYS):
        if name.lower() in names:
            return names.index(name.lower())
    raise BadField(field, text, f"has no such day as {name!r}", 'use Mon, Tue, Wed, Thu, Fri, Sat, Sun, or "daily"')


def _zone(name: str, text: str, field: str) -> str:
    try:
        known = name not in _NO_ZONES and bool(ZoneInfo(name).key)
    except (KeyError, OSError, ValueError):
        known = False
    if known:
        return name
    near = difflib.get_close_matches(name, available_timezones() - _NO_ZONES, n=3, cutoff=0.6)
    fix = 'name an IANA zone, such as "Europe/Berlin" or "UTC"'
    if near:
        fix = f"did you mean {' or '.join(near)}?"
    raise BadField(field, text, f"has no such time zone as {name!r}", fix)
