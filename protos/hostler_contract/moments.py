"""Instants: epoch seconds (UTC) in memory, RFC 3339 with `Z` in JSON; no clock is read here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer


def format_instant(at: float) -> str:
    """Write epoch seconds as `2026-11-30T23:51:20.123456Z`."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_instant(value: object) -> object:
    """Read what `format_instant` wrote; numbers pass through. A time without an offset is refused."""
    if not isinstance(value, str):
        return value
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        msg = f"time {value!r} has no offset; write it with Z or +hh:mm"
        raise ValueError(msg)
    return moment.timestamp()


Instant = Annotated[
    float,
    BeforeValidator(parse_instant),
    PlainSerializer(format_instant, return_type=str, when_used="json"),
]
"""Epoch seconds, UTC."""
