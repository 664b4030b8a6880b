"""Runs the command line against the stand-in coordinator, in this process or as one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hostler_coordinator.cli import main
from unit.cli import stand_in

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """The one document on standard output; fails when there is more or less than one."""
        return json.loads(self.out)


Cli = Callable[..., Done]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("HOSTLER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def fleet() -> stand_in.Fleet:
    hosts = [stand_in.make_host(number) for number in range(1, 9)]
    return stand_in.Fleet(hosts={host.name: host for host in hosts})


@pytest.fixture
def coordinator(fleet: stand_in.Fleet) -> Iterator[stand_in.StandIn]:
    started = stand_in.start(fleet)
    yield started
    started.stop()


@pytest.fixture
def bare_cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line without any connection flags."""

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        status = main(list(arguments))
        written = capsys.readouterr()
        return Done(status, written.out, written.err)

    return run


@pytest.fixture
def cli(bare_cli: Cli, coordinator: stand_in.StandIn) -> Cli:
    def run(*arguments: str) -> Done:
        return bare_cli("--endpoint", coordinator.endpoint, "--insecure-loopback", *arguments)

    return run


def child(coordinator: stand_in.StandIn, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """The command line as a process of its own."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("agent", "coordinator", "protos")),
        "HOSTLER_ENDPOINTS": coordinator.endpoint,
        "HOSTLER_INSECURE_LOOPBACK": "1",
    }
    environment |= options.pop("environment", {})
    command = [sys.executable, "-m", "hostler_coordinator.cli", *arguments]
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, **(streams | options))
