"""Reads an inventory file (YAML or CSV) into rows of text with their lines; `inventory_rows` judges them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from hostler_coordinator.refusals import BadField

LARGEST_BYTES = 8 * 1024 * 1024
MOST_ROWS = 100_000
MOST_COLUMNS = 200
SECTIONS = ("bmc", "labels")
"""Fields that hold fields of their own, written `bmc.address`."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is ten times as fast, where it was built in
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FORMS = 'give a list of hosts under "hosts:" (YAML), or a header line with "name" and one host per line (CSV)'


@dataclass(frozen=True, slots=True)
class Cell:
    """What a file says of one field: one text, or several where the file has a list; () where it says "none"."""

    line: int
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One host as the file has it. Keys are flat: `rack`, `bmc.address`, `labels.tier`."""

    line: int
    cells: dict[str, Cell]


def read_rows(content: bytes, form: str) -> tuple[list[Row], list[BadField]]:
    """Read the file; `form` is "yaml", "csv" or "" to tell by looking. Returns rows, and a problem per bad line.

    Raises BadField when the file as a whole cannot be used: too large, not UTF-8, no hosts in it, no such form.
    """
    text = _decoded(content)
    if form not in {"", "yaml", "csv"}:
        raise BadField("format", form, "is no form of inventory", 'use "yaml" or "csv"')
    problems: list[BadField] = []
    rows: list[Row] = []
    for row in _csv_rows(text, problems) if (form or _guess(text)) == "csv" else _yaml_rows(text, problems):
        if len(rows) >= MOST_ROWS:
            raise BadField("content", f"line {row.line}", f"is host number {MOST_ROWS + 1}", "split the file")
        rows.append(row)
    if not rows and not problems:
        raise BadField("content", "", "lists no hosts", _FORMS)
    return rows, problems


def _decoded(content: bytes) -> str:
    if len(content) > LARGEST_BYTES:
        reason = f"bytes are more than {LARGEST_BYTES} ({LARGEST_BYTES // 2**20} MiB)"
        raise BadField("content", len(content), reason, "split the file, for instance by fabric")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadField("content", f"line {line}", "is not UTF-8", "save the file as UTF-8") from None
    if odd := _CONTROL.search(text):
        line = text.count("\n", 0, odd.start()) + 1
        raise BadField("content", f"line {line}", f"has the control character {odd.group()!r}", "take it out")
    return text


def _guess(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    return "csv" if "," in first and not re.search(r"[:{\[]\s", first + " ") else "yaml"


def _csv_rows(text: str, problems: list[BadField]) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    try:
        for values in reader:
            line = reader.line_num
            if not any(value.strip() for value in values) or values[0].lstrip().startswith("#"):
                continue
            if header is None:
                header = _header(values, line)
            elif len(values) != len(header):
                reason = f"has {len(values)} columns where the header has {len(header)}"
                problems.append(BadField(f"line {line}", values[0], reason, "quote texts that hold commas"))
            else:
                cells = {key: _csv_cell(line, value) for key, value in zip(header, values, strict=True)}
                yield Row(line, cells)
    except csv.Error as error:
        problems.append(
            BadField(f"line {reader.line_num}", "", f"is not CSV ({error})", "mend the quotes on this line")
        )


def _header(values: list[str], line: int) -> list[str]:
    if len(values) > MOST_COLUMNS:
        raise BadField(f"line {line}", len(values), f"columns are more than {MOST_COLUMNS}", _FORMS)
    header = [re.sub(r"^bmc_", "bmc.", re.sub(r"^labels?[:._]", "labels.", value.strip())) for value in values]
    if "name" not in header:
        raise BadField(f"line {line}", values[0], 'is no header: it has no column "name"', _FORMS)
    for place, key in enumerate(header):
        if key in header[:place]:
            raise BadField(f"line {line}: {key}", values[place], "is a column twice", "keep one of them")
    return header


def _csv_cell(line: int, value: str) -> Cell:
    return Cell(line, (value.strip(),) if value.strip() else ())


def _yaml_rows(text: str, problems: list[BadField]) -> Iterator[Row]:
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise BadField("content", f"line {line}", f"is not YAML ({error.problem or error.context})", _FORMS) from None
    except (yaml.YAMLError, RecursionError):
        raise BadField("content", "", "cannot be read as YAML", _FORMS) from None
    if root is None:
        return
    listed = _value_of(root, "hosts") if isinstance(root, yaml.MappingNode) else root
    if not isinstance(listed, yaml.SequenceNode):
        raise BadField("content", f"line {_line(root)}", 'has no list "hosts"', _FORMS)
    seen: set[int] = set()
    for node in listed.value:
        try:
            yield _yaml_row(node, seen)
        except BadField as problem:
            problems.append(problem)


def _value_of(node: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in node.value if name.value == key), None)


def _yaml_row(node: yaml.Node, seen: set[int]) -> Row:
    if not isinstance(node, yaml.MappingNode):
        raise BadField(f"line {_line(node)}", _brief(node), "is not a host", _FORMS)
    cells: dict[str, Cell] = {}
    for key, value in _pairs(node, "", seen):
        if key in SECTIONS and isinstance(value, yaml.MappingNode):
            inner = _pairs(value, f"{key}.", seen)
            if not inner:
                cells[key] = Cell(_line(value), ())
            cells.update((name, _yaml_cell(part, name, seen)) for name, part in inner)
        else:
            cells[key] = _yaml_cell(value, key, seen)
    return Row(_line(node), cells)


def _pairs(node: yaml.MappingNode, prefix: str, seen: set[int]) -> list[tuple[str, yaml.Node]]:
    _once(node, prefix or "host", seen)
    pairs: dict[str, yaml.Node] = {}
    for name, value in node.value:
        if not isinstance(name, yaml.ScalarNode):
            raise BadField(f"line {_line(name)}", _brief(name), "cannot be the name of a field", _FORMS)
        key = f"{prefix}{name.value}"
        if key in pairs:
            raise BadField(f"line {_line(name)}: {key}", name.value, "is given twice", "keep one of them")
        if len(pairs) >= MOST_COLUMNS:
            raise BadField(f"line {_line(name)}", key, f"is more than {MOST_COLUMNS} fields for one host", _FORMS)
        pairs[key] = value
    return list(pairs.items())


def _yaml_cell(node: yaml.Node, key: str, seen: set[int]) -> Cell:
    """Scalars stay the text that was written: `rack: 07` is "07" and `name: no` is "no"."""
    _once(node, key, seen)
    parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
    texts: list[str] = []
    for part in parts[:MOST_COLUMNS]:
        if not isinstance(part, yaml.ScalarNode):
            raise BadField(f"line {_line(part)}: {key}", _brief(part), "is not a text", "write a plain value")
        if part is not node:
            _once(part, key, seen)
        if part.value.strip() and part.tag != "tag:yaml.org,2002:null":
            texts.append(part.value.strip())
    return Cell(_line(node), tuple(texts))


def _once(node: yaml.Node, key: str, seen: set[int]) -> None:
    """Refuse aliases: a few lines of them can stand for gigabytes, and an inventory needs none."""
    if id(node) in seen:
        raise BadField(f"line {_line(node)}: {key}", "&", "is used again through an alias", "write it out")
    seen.add(id(node))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _brief(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
