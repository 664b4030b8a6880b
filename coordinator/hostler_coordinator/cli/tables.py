"""Columns of text that stay aligned and readable at any width; what is in them is decided by the screens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.cells import cell_len, set_cell_size

GAP = 2
FLEX_MIN = 26
VALUE_MIN = 16
INDENT = "    "


@dataclass(frozen=True)
class Column:
    """One column. `wide` ones show with -o wide only; `flex` ones take the rest and are wrapped on a terminal.

    When a terminal is too narrow, columns go below their row, as `title: value`, from the highest `rank` down; rank 0
    always stays.
    """

    title: str
    rank: int = 0
    wide: bool = False
    right: bool = False
    flex: bool = False


def clean(text: object) -> str:
    """One line without control characters: what a host's note holds cannot steer the terminal."""
    line = " ".join(str(text).split())
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)


def lay_out(columns: Sequence[Column], rows: Iterable[Sequence[object]], *, wide: bool, width: int | None) -> list[str]:
    """Return the table's lines; `width` None means as wide as it gets. Nothing is left out, however narrow it is.

    Of the columns that only -o wide shows, those without a single value take no room.
    """
    cells = [[clean(row[index]) for index in range(len(columns))] for row in rows]
    shown = [
        index for index, column in enumerate(columns) if not column.wide or (wide and any(row[index] for row in cells))
    ]
    below: list[int] = []
    while width is not None and _least_width(columns, shown, cells) > width:
        rank = max(columns[index].rank for index in shown)
        if rank == 0:
            break
        moved = max(index for index in shown if columns[index].rank == rank)
        shown.remove(moved)
        below.append(moved)
    table = [[row[index] for index in shown] for row in cells]
    under = [_below([(columns[index].title, row[index]) for index in sorted(below)], width) for row in cells]
    return _lines([columns[index] for index in shown], table, under, width)


def _below(pairs: Iterable[tuple[str, str]], width: int | None) -> list[str]:
    """What had no room beside the others, as lines under the row; empty values say nothing."""
    text = "; ".join(f"{title.lower()}: {value}" for title, value in pairs if value not in {"", "-"})
    size = max(VALUE_MIN, width - len(INDENT)) if width is not None else None
    return [INDENT + line for line in fold(text, size)] if text else []


def _width_of(columns: Sequence[Column], index: int, cells: Sequence[Sequence[str]]) -> int:
    return max([cell_len(columns[index].title), *(cell_len(row[index]) for row in cells)])


def _least_width(columns: Sequence[Column], shown: Sequence[int], cells: Sequence[Sequence[str]]) -> int:
    widths = [
        min(_width_of(columns, index, cells), FLEX_MIN) if columns[index].flex else _width_of(columns, index, cells)
        for index in shown
    ]
    return sum(widths) + GAP * (len(shown) - 1)


def _lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], under: Sequence[Sequence[str]], width: int | None
) -> list[str]:
    widths = [_width_of(columns, index, rows) for index in range(len(columns))]
    _shrink(columns, widths, width)
    lines = _row(columns, [column.title for column in columns], widths)
    for row, more in zip(rows, under, strict=True):
        lines += [*_row(columns, row, widths), *more]
    return lines


def _shrink(columns: Sequence[Column], widths: list[int], width: int | None) -> None:
    if width is None:
        return
    over = sum(widths) + GAP * (len(widths) - 1) - width
    for index, column in enumerate(columns):
        if column.flex and over > 0:
            taken = min(over, widths[index] - min(widths[index], FLEX_MIN))
            widths[index] -= taken
            over -= taken


def _row(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> list[str]:
    parts = [
        fold(cell, size) if column.flex else [cell] for column, cell, size in zip(columns, row, widths, strict=True)
    ]
    lines = []
    for number in range(max(len(part) for part in parts)):
        cells = [part[number] if number < len(part) else "" for part in parts]
        padded = [_pad(column, cell, size) for column, cell, size in zip(columns, cells, widths, strict=True)]
        lines.append((" " * GAP).join(padded).rstrip())
    return lines


def _pad(column: Column, cell: str, size: int) -> str:
    if column.right:
        return " " * (size - cell_len(cell)) + cell
    return set_cell_size(cell, max(size, cell_len(cell)))


def fold(text: str, width: int | None) -> list[str]:
    """Wrap one line at words; with None leave it as it is. Always at least one line."""
    if width is None or cell_len(text) <= width:
        return [text]
    return wrap(text, max(width, 1), break_on_hyphens=False) or [""]


def facts(pairs: Iterable[tuple[str, object]], *, width: int | None) -> list[str]:
    """Lay out names and values below each other, leaving out empty values; wrapped under the value."""
    shown = [(name, clean(value)) for name, value in pairs if value not in (None, "", (), [], "-")]
    if not shown:
        return []
    indent = max(len(name) for name, _ in shown) + GAP
    lines: list[str] = []
    for name, value in shown:
        first, *more = fold(value, width - indent if width is not None and width - indent >= VALUE_MIN else None)
        lines.append(f"{name:<{indent}}{first}".rstrip())
        lines += [" " * indent + line for line in more]
    return lines
