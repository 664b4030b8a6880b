"""Reads host expressions ("gpu-[001-128]") into names and never expands what is too large; who exists is not here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from hostler_coordinator.names import HOST_NAME, LONGEST_NAME, odd_characters
from hostler_coordinator.refusals import BadField

MOST_HOSTS = 100_000
LONGEST_EXPRESSION = 65_536
MOST_GROUPS = 4
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_PIECES = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_SPLIT = re.compile(r",(?![^\[]*\])")
FIX = 'write names and ranges, such as "gpu-7", "gpu-[001-128]" or "r[1-4]n[01-16]"'


@dataclass(frozen=True, slots=True)
class Range:
    """Whole numbers from `first` to `last`, written with at least `width` digits: padding is part of a name."""

    first: int
    last: int
    width: int

    def __len__(self) -> int:
        """How many numbers."""
        return self.last - self.first + 1

    def texts(self) -> Iterator[str]:
        """Each number as it stands in a name."""
        return (f"{number:0{self.width}d}" for number in range(self.first, self.last + 1))


@dataclass(frozen=True, slots=True)
class Pattern:
    """Literals and groups of ranges in turn; stands for the product of all groups."""

    text: str
    pieces: tuple[str | tuple[Range, ...], ...]

    def count(self) -> int:
        """How many names, worked out without writing one."""
        return prod(sum(map(len, piece)) for piece in self.pieces if not isinstance(piece, str))

    def names(self) -> Iterator[str]:
        """Every name, one at a time."""
        choices = [(piece,) if isinstance(piece, str) else _texts(piece) for piece in self.pieces]
        return ("".join(parts) for parts in product(*choices))


def parse_patterns(text: str, field: str) -> list[Pattern]:
    """Read one expression, which may list several with commas; raises BadField with `field`."""
    if len(text) > LONGEST_EXPRESSION:
        raise BadField(field, text, f"is longer than {LONGEST_EXPRESSION} characters", "give several expressions")
    if not text.strip(" \t\r\n,:;"):
        raise BadField(field, text, "selects nothing", f'{FIX}; to say all, use "all"')
    return [_pattern(part.strip(), text, field) for part in _SPLIT.split(text.strip())]


def _pattern(part: str, text: str, field: str) -> Pattern:
    if not part:
        raise BadField(field, text, "has an empty entry between commas", "take the extra comma out")
    if odd := odd_characters(part, "._-[],"):
        raise BadField(field, text, f"has characters that no host name has ({odd})", FIX)
    pieces: list[str | tuple[Range, ...]] = []
    end = 0
    for found in _PIECES.finditer(part):
        if found.start() != end:
            break
        end = found.end()
        pieces.append(found[2] if found[2] is not None else _ranges(found[1], text, field))
    if end != len(part):
        raise BadField(field, text, "has brackets that do not match", FIX)
    if sum(not isinstance(piece, str) for piece in pieces) > MOST_GROUPS:
        raise BadField(field, text, f"has more than {MOST_GROUPS} groups of ranges", "give several expressions")
    pattern = Pattern(part, tuple(pieces))
    example = "".join(piece if isinstance(piece, str) else next(piece[0].texts()) for piece in pieces)
    if not HOST_NAME.fullmatch(example):
        reason = f"is longer than {LONGEST_NAME} characters" if len(example) > LONGEST_NAME else "is not a host name"
        raise BadField(field, text, reason, FIX)
    return pattern


def _ranges(inside: str, text: str, field: str) -> tuple[Range, ...]:
    return tuple(_range(part.strip(), text, field) for part in inside.split(","))


def _range(part: str, text: str, field: str) -> Range:
    matched = _RANGE.fullmatch(part)
    if not matched:
        raise BadField(field, text, f"has {part!r} in brackets, which is no range of numbers", FIX)
    low, high = matched[1], matched[2] or matched[1]
    padded = any(len(number) > 1 and number.startswith("0") for number in (low, high))
    if padded and len(low) != len(high):
        fix = f"pad both ends alike, such as [{low.zfill(len(high))}-{high.zfill(len(low))}]"
        raise BadField(field, text, f"has mixed padding in [{part}]: 01 and 001 are different names", fix)
    first, last = int(low), int(high)
    if last < first:
        raise BadField(field, text, f"runs backwards in [{part}]", f"write [{high}-{low}]")
    if last - first >= MOST_HOSTS:
        raise BadField(field, text, f"is too large: [{part}] stands for {last - first + 1} hosts", FIX)
    return Range(first, last, len(low) if padded else 1)


def _texts(ranges: tuple[Range, ...]) -> list[str]:
    return [text for one in ranges for text in one.texts()]
