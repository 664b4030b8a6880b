"""The command lines of `hostler dev` where no fleet is up, and what its status shows of one that is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler_coordinator.cli import main
from hostler_coordinator.dev.shape import CLEAR, FAULTS
from hostler_coordinator.dev.status_screen import MEANINGS, fleet_screen

READY: dict[str, Any] = {
    "profile": "/f/profile.yaml",
    "pids": {"etcd": [7], "coordinators": [8], "agents": {"gpu-001": 9}, "bmcs": {"gpu-001": 10, "gpu-002": 11}},
    "supervisor": 6,
    "effects": "/f/effects.jsonl",
    "coordinators": {"c1": {"address": "127.1.0.11:7443", "pid": 8}},
    "etcd": {"endpoints": ["127.1.0.2:4001"]},
    "hosts": {
        f"gpu-00{number}": {"fabric": "ib-a", "rack": "r01", "feed": "feed-a", "bmc": f"127.1.1.{number}"}
        for number in (1, 2)
    },
}


def test_every_fault_has_its_words() -> None:
    assert set(MEANINGS) == {*FAULTS, CLEAR}


@pytest.mark.parametrize("width", [None, 60, 80])
def test_a_fleet_is_shown_with_its_processes_and_faults(width: int | None) -> None:
    lines = list(fleet_screen(READY, "c1", {"gpu-001": (), "gpu-002": ("no-boot", "bmc-slow")}, width))
    text = "\n".join(lines)
    for shown in ("c1 127.1.0.11:7443 (process 8)", "2 hosts, 1 with a fault", "no-boot, bmc-slow", "/f/effects.jsonl"):
        assert shown in text
    assert max(map(len, lines)) <= (width or 1000)


def test_ending_a_fleet_that_never_was_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "down", "--dir", str(tmp_path)]) == 0
    assert f"no fleet was ever started in {tmp_path}" in capsys.readouterr().err
    assert main(["dev", "status", "--dir", str(tmp_path)]) == 4
    assert main(["dev", "status", "--dir", str(tmp_path), "-o", "yaml"]) == 2
    assert main(["dev", "fault", "--dir", str(tmp_path), "gpu-001", "explode"]) == 2
