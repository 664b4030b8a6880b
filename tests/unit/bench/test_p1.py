"""The benchmark's own judge: it must fail on what it is there to find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.p1 import check

SIZE = {"n": 2, "k": 2, "d_s": 1.0}


def effects(path: Path, *lines: tuple[str, str]) -> Path:
    rows = [{"effect": "boot", "host": host, "cause": "start"} for host in ("a", "b")]
    rows += [{"effect": effect, "host": host, "cause": "agent"} for effect, host in lines]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_every_host_once_and_never_too_many_passes(tmp_path: Path) -> None:
    good = effects(tmp_path / "e", ("down", "a"), ("boot", "a"), ("down", "b"), ("boot", "b"))
    check(good, SIZE, 1)  # raises where it finds something


@pytest.mark.parametrize(
    "lines",
    [
        [("down", "a"), ("boot", "a"), ("down", "a"), ("boot", "a"), ("down", "b"), ("boot", "b")],
        [("down", "a"), ("boot", "a")],
    ],
    ids=["twice", "not at all"],
)
def test_a_wrong_number_of_boots_fails(tmp_path: Path, lines: list[tuple[str, str]]) -> None:
    with pytest.raises(RuntimeError, match="hosts booted"):
        check(effects(tmp_path / "e", *lines), SIZE, 1)


def test_too_many_down_at_once_fails(tmp_path: Path) -> None:
    size = {"n": 3, "k": 2, "d_s": 1.0}
    crowd = [("down", host) for host in "abc"] + [("boot", host) for host in "abc"]
    with pytest.raises(RuntimeError, match="3 down at once"):
        check(effects(tmp_path / "e", *crowd), size, 1)
