"""Builds the wheel as a release would, offline, and says what is inside; whether that is right is for the tests."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tidy.tree import ROOT


def build(folder: Path) -> Path:
    """Build into `folder` with the backend that is installed, and return the one wheel that came out."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("hostler-*.whl")
    return wheel


def names(wheel: Path) -> frozenset[str]:
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


def read(wheel: Path, suffix: str) -> str:
    """Return the text of the one member whose name ends so."""
    with zipfile.ZipFile(wheel) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith(suffix))
        return archive.read(member).decode()
