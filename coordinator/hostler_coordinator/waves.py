"""Turns "1,5,20%" into the sizes of a campaign's waves; which host goes in which wave is the planner's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hostler_coordinator.quantities import parse_quantity
from hostler_coordinator.refusals import BadField

MOST_TERMS = 100
MOST_WAVES = 1_000
_GROWTH = re.compile(r"([x+])([0-9]{1,6})")
_FIX = 'write sizes in order, such as "1,5,20%"; the last one repeats, and "x2" or "+5" at the end makes them grow'


def wave_sizes(text: str, target_count: int, field: str = "limits.waves") -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Sizes of all waves, summing to `target_count`, and each rounding in words; empty text means one wave: ().

    Percentages are of the targets, rounded down, at least one. Raises BadField for anything unreadable and for
    more than 1,000 waves.
    """
    if not text.strip():
        return (), ()
    terms = text.split(",")
    if len(terms) > MOST_TERMS:
        raise BadField(field, text, f"has more than {MOST_TERMS} terms", _FIX)
    growth = _GROWTH.fullmatch(terms[-1].strip())
    sizes, words = _leading(terms[:-1] if growth else terms, target_count, field)
    if not sizes:
        raise BadField(field, text, "has no first size to grow from", _FIX)
    if growth and int(growth[2]) < (2 if growth[1] == "x" else 1):
        raise BadField(field, text, f"does not grow with {growth[0]!r}", _FIX)
    return tuple(_filled(sizes, growth, target_count, text, field)), words


def _leading(terms: list[str], target_count: int, field: str) -> tuple[list[int], tuple[str, ...]]:
    sizes: list[int] = []
    words: list[str] = []
    for number, term in enumerate(terms, 1):
        if _GROWTH.fullmatch(term.strip()):
            raise BadField(field, term, "makes waves grow but is not the last term", _FIX)
        size, rounding = parse_quantity(term, field).of(target_count, "targets")
        sizes.append(size)
        if rounding:
            words.append(f"wave {number}: {rounding}")
    return sizes, tuple(words)


def _filled(sizes: list[int], growth: re.Match[str] | None, target_count: int, text: str, field: str) -> Iterator[int]:
    left = target_count
    for number, size in enumerate(_endless(sizes, growth)):
        if left <= 0:
            return
        if number >= MOST_WAVES:
            least = -(-target_count // MOST_WAVES)
            fix = f'make waves larger (about {least} hosts), or use max_down "total=1" to go one at a time'
            raise BadField(field, text, f"makes more than {MOST_WAVES} waves of {target_count} targets", fix)
        yield min(size, left)
        left -= size


def _endless(sizes: list[int], growth: re.Match[str] | None) -> Iterator[int]:
    yield from sizes
    size = sizes[-1]
    while True:
        if growth:
            size = size * int(growth[2]) if growth[1] == "x" else size + int(growth[2])
        yield size
