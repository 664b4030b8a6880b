"""Moments and lengths of time as people read them, counted from the server's clock; no clock is read here."""

from __future__ import annotations

from hostler_contract.moments import format_instant, parse_instant
from hostler_coordinator.cli.errors import Problem, usage
from hostler_coordinator.durations import format_duration, parse_duration
from hostler_coordinator.refusals import BadField


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


def seconds_of(text: str, flag: str, *, allow_zero: bool = False) -> float:
    """Read a duration such as `6h`; raises Problem naming the flag."""
    try:
        return parse_duration(text, flag, allow_zero=allow_zero)
    except BadField as error:
        raise refused_value(error, flag) from error


def instant_of(text: str, flag: str, server_now: float | None, *, ahead: bool) -> float:
    """Read a moment with an offset, or a duration counted from the server's clock; raises Problem naming the flag.

    A moment without an offset is refused: it would mean one thing here and another on the coordinator.
    """
    if text[:4].isdigit() and "-" in text:
        try:
            return float(str(parse_instant(text.strip())))
        except ValueError as error:
            raise usage(
                f"{flag} {text!r}: {error}", flag=flag, fix=f"write it as 2026-07-01T22:00Z or +02:00: {flag} ..."
            ) from error
    length_s = seconds_of(text, flag)
    if server_now is None:
        raise Problem("UNAVAILABLE", f"{flag} {text!r} counts from the server's clock, which is not known now")
    return server_now + length_s if ahead else server_now - length_s


def refused_value(error: BadField, flag: str) -> Problem:
    """Turn a refused value into the error that names its flag and the fix."""
    return usage(str(error), flag=flag, fix=error.fix)
