"""Reads and writes lengths of time as operators type them ("90s", "1h30m"); instants and windows live elsewhere."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from hostler_coordinator.refusals import BadField

LONGEST_S = 365 * 86_400.0
_UNIT_S = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(sec|min|[smhd])")
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+")
_FIX = 'write a number and a unit, such as "90s", "15m", "6h", "2d" or "1h30m"'


def parse_duration(text: str, field: str, *, allow_zero: bool = False, longest_s: float = LONGEST_S) -> float:
    """Read "90s", "6h", "2d", "1h30m" as seconds; units go from long to short, each at most once.

    Raises BadField naming `field` for no unit, a sign, zero (unless allowed) or more than `longest_s`.
    """
    stripped = text.strip()
    if stripped[:1] in {"-", "+", "−"}:  # the last one is pasted from documents
        raise BadField(field, text, "has a sign", _FIX)
    if re.fullmatch(r"[0-9.]+", stripped):
        raise BadField(field, text, "has no unit", _FIX)
    if not _WHOLE.fullmatch(stripped):
        raise BadField(field, text, "is not a duration", _FIX)
    parts = [(float(number), _UNIT_S[unit]) for number, unit in _PART.findall(stripped)]
    if any(later >= earlier for (_, earlier), (_, later) in pairwise(parts)):
        raise BadField(field, text, "does not go from the longest unit to the shortest", _FIX)
    return check_duration(sum(n * unit for n, unit in parts), field, allow_zero=allow_zero, longest_s=longest_s)


def check_duration(seconds: float, field: str, *, allow_zero: bool = False, longest_s: float = LONGEST_S) -> float:
    """Pass on a length in seconds that came as a number; raises BadField for NaN, negative, zero or absurd ones."""
    if not math.isfinite(seconds):
        raise BadField(field, seconds, "is not a number of seconds", _FIX)
    if seconds < 0:
        raise BadField(field, seconds, "is negative", "give a length of time that lies ahead")
    if seconds == 0 and not allow_zero:
        raise BadField(field, seconds, "is zero", "give a length of time, or leave the field out")
    if seconds > longest_s:
        longest = format_duration(longest_s)
        raise BadField(field, format_duration(seconds), f"is longer than {longest}", f"give at most {longest}")
    return seconds


def format_duration(seconds: float) -> str:
    """Write as "1 h 30 min", at most two units, rounded to the nearest of the smaller."""
    sign = "-" if seconds < 0 else ""
    left = abs(seconds)
    if left < 10 and left != round(left):
        return f"{sign}{left:.1f} s"
    step = 1 if left < 3_600 else 60 if left < 86_400 else 3_600
    whole = round(left / step) * step
    shown: list[str] = []
    for name, unit_s in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, whole = divmod(whole, unit_s)
        if count:
            shown.append(f"{count} {name}")
    return sign + (" ".join(shown) or "0 s")
