"""What hosts and labels may be called, in which order, and which known name is near; who has one is not here."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

BUILT_IN_KEYS = ("fabric", "rack", "feed", "site", "model", "name", "id")
LONGEST_NAME = 128
NEAR_CANDIDATES = 2_000

HOST_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
DOMAIN_NAME = HOST_NAME
LABEL_KEY = re.compile(r"[A-Za-z](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._:/+@-]{0,126}[A-Za-z0-9+])?")

_DIGITS = re.compile(r"([0-9]+)")


def natural_key(name: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """Sort key by which gpu-9 comes before gpu-10; names that differ in padding only are ordered by spelling."""
    parts = _DIGITS.split(name)
    # Text and digits alternate, so equal places compare alike; the length stands for the size of a number.
    return tuple(_part(part, digits=bool(place % 2)) for place, part in enumerate(parts)), name


def odd_characters(text: str, allowed: str) -> str:
    """The characters of `text` that are neither ASCII letters, digits nor in `allowed`, escaped, at most five."""
    odd = dict.fromkeys(char for char in text if not (char.isascii() and char.isalnum()) and char not in allowed)
    return " ".join(ascii(char) for char in list(odd)[:5])


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Up to `count` known names that look like `name`, best first; bounded for a fleet of 100,000 names."""
    by_shape: dict[str, list[str]] = {}
    for candidate in known:
        by_shape.setdefault(_DIGITS.sub("0", candidate), []).append(candidate)
    shapes = difflib.get_close_matches(_DIGITS.sub("0", name[:LONGEST_NAME]), list(by_shape), n=3, cutoff=0.6)
    candidates = [candidate for shape in shapes for candidate in by_shape[shape]]
    digits = "".join(_DIGITS.findall(name)).lstrip("0")
    same = [candidate for candidate in candidates if "".join(_DIGITS.findall(candidate)).lstrip("0") == digits]
    rest = difflib.get_close_matches(name[:LONGEST_NAME], candidates[:NEAR_CANDIDATES], n=count, cutoff=0.6)
    return list(dict.fromkeys([*sorted(same, key=natural_key), *rest]))[:count]


def _part(text: str, *, digits: bool) -> tuple[int, str]:
    if not digits:
        return 0, text
    number = text.lstrip("0")
    return len(number), number
