"""Keeps docs/field-cases.md true: every case it promises has a test of that name, and every test it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/field-cases.md"
PROMISED = {
    *(f"a{number:02d}" for number in (*range(1, 14), *range(22, 29), 30)),
    *(f"b{number:02d}" for number in (*range(1, 9), *range(14, 21))),
    *(f"d{number:02d}" for number in range(1, 13)),
}
DEFINED = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)


def defined() -> set[str]:
    """Names of all tests of the tree."""
    return {name for path in (ROOT / "tests").rglob("test_*.py") for name in DEFINED.findall(path.read_text("utf-8"))}


def rows() -> dict[str, list[str]]:
    """Tests named by the page, by case."""
    found = re.findall(r"^\| ([A-D]\d\d) \|[^|]*\|([^|]*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {case.lower(): re.findall(r"`(test_\w+)`", cell) for case, cell in found}


def test_the_page_lists_every_case_that_is_promised() -> None:
    assert set(rows()) == PROMISED


def test_every_case_has_a_test_of_its_name() -> None:
    known = defined()
    without = [case for case in rows() if not any(name.startswith(f"test_fc_{case}_") for name in known)]
    assert without == []


def test_every_test_that_the_page_names_exists() -> None:
    known = defined()
    gone = {case: sorted(set(names) - known) for case, names in rows().items() if set(names) - known}
    assert gone == {}
    assert all(rows().values())
