"""Counts and percentages as typed, and the one way they are rounded; what they limit lives in `limits`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from hostler_coordinator.refusals import BadField

LARGEST_COUNT = 1_000_000
_COUNT = re.compile(r"[0-9]{1,9}")
_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s?%")
_FIX = 'give a whole number of at least 1, or a percentage above 0% and up to 100%, such as "3" or "5%"'


@dataclass(frozen=True, slots=True)
class Quantity:
    """A count or a percentage; exactly one of the two is set."""

    count: int | None = None
    percent: Decimal | None = None

    def __str__(self) -> str:
        """Write as typed: `3` or `5%`."""
        return str(self.count) if self.percent is None else f"{plain(self.percent)}%"

    def of(self, whole: int, noun: str) -> tuple[int, str]:
        """Count out of `whole`: percentages rounded down, at least one. Returns the count and how it came about.

        The words are empty for a plain count: nothing was rounded.
        """
        if self.percent is None:
            return self.count or 0, ""
        exact = self.percent * whole / 100
        count = int(exact)
        said = f"{self} of {whole} {noun} = {plain(exact)}"
        if count < 1:
            return 1, f"{said}, raised to 1 (at least one)"
        return count, said if exact == count else f"{said}, rounded down to {count}"


def parse_quantity(text: str, field: str) -> Quantity:
    """Read "3" or "5%"; raises BadField for zero, signs, more than 100%, fractions of a host, and anything else."""
    stripped = text.strip()
    if stripped[:1] in {"-", "−"}:  # the second is pasted from documents
        raise BadField(field, text, "is negative", _FIX)
    if matched := _PERCENT.fullmatch(stripped):
        return Quantity(percent=_checked_percent(Decimal(matched[1]), text, field))
    if not _COUNT.fullmatch(stripped):
        raise BadField(field, text, "is neither a whole number nor a percentage", _FIX)
    count = int(stripped)
    if count == 0:
        raise BadField(field, text, "is zero: nothing could ever start", _FIX)
    if count > LARGEST_COUNT:
        raise BadField(field, text, f"is more than {LARGEST_COUNT}", _FIX)
    return Quantity(count=count)


def percentage(value: float, field: str) -> Quantity:
    """Take a percentage that is stored as a number; the decimal that was typed comes back exactly."""
    decimal = Decimal(repr(value))
    if not decimal.is_finite():
        raise BadField(field, value, "is not a number", _FIX)
    return Quantity(percent=_checked_percent(decimal, value, field))


def plain(number: Decimal) -> str:
    """Write without exponent or trailing zeros, at most four decimals (cut, never rounded up)."""
    cut = number.quantize(Decimal("0.0001"), rounding="ROUND_DOWN")
    text = f"{cut:f}".rstrip("0").rstrip(".")
    return text if text != "0" or number == 0 else "less than 0.0001"


def _checked_percent(percent: Decimal, value: object, field: str) -> Decimal:
    if percent <= 0:
        raise BadField(field, value, "is not above 0%: nothing could ever start", _FIX)
    if percent > 100:
        raise BadField(field, value, "is more than 100%", _FIX)
    return percent
