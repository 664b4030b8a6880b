"""Which files the repository consists of, parsed once; judging them is the business of `rules`."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PRODUCT_ROOTS = ("agent/hostler_agent", "coordinator/hostler_coordinator", "protos/hostler_contract")


@dataclass(frozen=True, slots=True)
class Source:
    """One text file: `name` is its path relative to the repository."""

    name: str
    text: str

    @property
    def path(self) -> Path:
        return Path(self.name)

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"

    @property
    def is_generated(self) -> bool:
        return "pb" in self.path.parts

    @property
    def is_test(self) -> bool:
        return self.path.parts[0] == "tests"

    @property
    def is_product(self) -> bool:
        return self.name.startswith(PRODUCT_ROOTS)

    def parsed(self) -> ast.Module:
        return _parse(self)


@cache
def _parse(source: Source) -> ast.Module:
    return ast.parse(source.text, filename=source.name)


@cache
def sources() -> tuple[Source, ...]:
    """Every text file that is committed or about to be; binary files are left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = []
    for name in sorted(set(filter(None, listed.stdout.split("\0")))):
        try:
            found.append(Source(name, (ROOT / name).read_text()))
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # a picture, or deleted but not yet committed
    return tuple(found)


def written() -> tuple[Source, ...]:
    """The Python that people write: everything but generated code."""
    return tuple(source for source in sources() if source.is_python and not source.is_generated)
