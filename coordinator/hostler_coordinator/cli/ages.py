"""Moments and lengths of time as people read them, counted from the server's clock; no clock is read here."""

from __future__ import annotations

from hostler_contract.moments import format_instant, parse_instant
from hostler_coordinator.cli.errors import Problem, usage
from hostler_coordinator.durations import format_duration, parse_duration
from hostler_coordinator.refusals import BadField

WHEN = "write a moment with its offset (2026-07-01T22:00Z) or a length of time (90m, 4h, 2d)"


def age_of(since: float | None, as_of: float | None) -> str:
    """How long ago `since` was at the server's `as_of`; never negative. The moment itself when as_of is not known."""
    if since is None:
        return "-"
    if as_of is None:
        return moment_of(since)
    return format_duration(round(max(0.0, as_of - since)))


def moment_of(at: float | None) -> str:
    """`2026-12-01 00:07:53Z`, always UTC."""
    return format_instant(at)[:19].replace("T", " ") + "Z" if at is not None else "-"


def until_of(at: float | None, as_of: float) -> str:
    """A moment ahead and how far off it is: `22:00:00Z (in 3 h)`; `due` once it has passed."""
    if at is None:
        return "-"
    return f"{moment_of(at)} (in {format_duration(round(at - as_of))})" if at > as_of else f"{moment_of(at)} (due)"


def seconds_of(text: str, flag: str, *, allow_zero: bool = False, what: str = "") -> float:
    """Read a duration such as `6h`; raises Problem naming the flag. `what` is the fix, where more than that is read."""
    try:
        return parse_duration(text, flag, allow_zero=allow_zero)
    except BadField as error:
        raise usage(f"{flag}: {text!r} {error.reason}", flag=flag, fix=what or error.fix) from error


def check_when(text: str, flag: str) -> None:
    """Raise Problem unless `instant_of` can read this, whatever the time is."""
    if text:
        instant_of(text, flag, 0.0, ahead=True)


def instant_of(text: str, flag: str, server_now: float | None, *, ahead: bool) -> float:
    """Read a moment with an offset, or a duration counted from the server's clock; raises Problem naming the flag.

    A moment without an offset is refused: it would mean one thing here and another on the coordinator.
    """
    if text[:4].isdigit() and "-" in text:
        try:
            return float(str(parse_instant(text.strip())))
        except ValueError as error:
            raise usage(f"{flag}: {text!r}: {error}", flag=flag, fix=WHEN) from error
    length_s = seconds_of(text, flag, what=WHEN)
    if server_now is None:
        raise Problem("UNAVAILABLE", f"{flag} {text!r} counts from the server's clock, which is not known now")
    return server_now + length_s if ahead else server_now - length_s
