"""The parent of all simulated BMCs: one process per host that speaks real IPMI; what a BMC's machine does is not here.

Single-threaded and without gRPC, so that it may ask the kernel between fork and exec to end each BMC with this process.
Reads `bmcs.json` once and each machine's `faults` as they change; writes `bmc-pids.json`. OpenIPMI's `ipmi_sim` where
it can be had, else a server of our own on pyghmi's class.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostler_coordinator.dev import debian, ipmi_sim
from hostler_coordinator.dev.premises import Premises, premises, read_json, write_json, write_text
from hostler_coordinator.dev.processes import RESTART_AFTER_S, agent_package

TURN_S = 0.25
STARTS_PER_TURN = 20
WRONG_PASSWORD = "not-the-password"  # noqa: S105 - what a BMC is given that shall refuse ours
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)

Server = Callable[["Bmc", str], tuple[Sequence[str], Mapping[str, str]]]
"""Writes what one BMC needs, for a password; returns the command and its environment."""


@dataclass
class Bmc:
    """One BMC and the process that plays it."""

    host: str
    address: str
    port: int
    username: str
    password: str
    serial: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    wrong: bool = False
    """True while it runs with another password."""
    faults: frozenset[str] = frozenset()
    ended_at: float | None = None
    _faults_seen: int = field(default=-1, repr=False)

    @property
    def pid(self) -> int | None:
        """Its process id, or None while it does not run."""
        return self.process.pid if self.process is not None and self.process.poll() is None else None

    def read_faults(self) -> None:
        """Look at the machine's file again when it changed."""
        path = self.folder / "faults"
        with contextlib.suppress(OSError):
            changed = path.stat().st_mtime_ns
            if changed != self._faults_seen:
                self.faults = frozenset(path.read_text(encoding="utf-8").split())
                self._faults_seen = changed

    def end(self) -> None:
        """Kill it and wait until it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process, self.ended_at = None, None


class Park:
    """All BMCs of one folder."""

    def __init__(self, place: Premises, server: Server) -> None:
        """Nothing is started yet."""
        self._place = place
        self._server = server
        self._me = os.getpid()
        self._told: dict[str, int] | None = None
        self.bmcs = [Bmc(**one, folder=place.host(str(one["host"]))) for one in read_json(place.bmcs) or []]

    def run(self, ending: Callable[[], bool]) -> None:
        """Keep every BMC as its machine's faults want it, until `ending` says so; then end them all."""
        try:
            while not ending():
                self.turn(time.monotonic())
                time.sleep(TURN_S)
        finally:
            for bmc in self.bmcs:
                bmc.end()
            self._tell()

    def turn(self, now: float) -> None:
        """Start, end and restart what needs it, at most `STARTS_PER_TURN` at once."""
        starts = 0
        for bmc in self.bmcs:
            bmc.read_faults()
            wanted, wrong = "bmc-dead" not in bmc.faults, "bmc-wrong-password" in bmc.faults
            if bmc.pid is not None and (not wanted or wrong != bmc.wrong):
                bmc.end()
            elif wanted and bmc.pid is None and starts < STARTS_PER_TURN and self._is_due(bmc, now):
                self._start(bmc, wrong=wrong)
                starts += 1
        self._tell()

    @staticmethod
    def _is_due(bmc: Bmc, now: float) -> bool:
        """At once the first time and when we ended it, later when it died by itself."""
        if bmc.process is None:
            return True
        if bmc.ended_at is None:
            bmc.ended_at = now
        return now - bmc.ended_at >= RESTART_AFTER_S

    def _start(self, bmc: Bmc, *, wrong: bool) -> None:
        command, env = self._server(bmc, WRONG_PASSWORD if wrong else bmc.password)
        with (bmc.folder / "bmc.log").open("ab") as log:
            bmc.process = subprocess.Popen(
                command,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=self._die_with_park,  # noqa: PLW1509 - this process has one thread
            )
        bmc.wrong, bmc.ended_at = wrong, None

    def _die_with_park(self) -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != self._me:
            os._exit(1)

    def _tell(self) -> None:
        pids = {bmc.host: pid for bmc in self.bmcs if (pid := bmc.pid) is not None}
        if pids != self._told:
            write_json(self._place.bmc_pids, pids)
            self._told = pids


def openipmi_server(tools: ipmi_sim.SimulatorTools, hook: Path) -> Server:
    """BMCs on OpenIPMI's simulator."""

    def prepare(bmc: Bmc, password: str) -> tuple[Sequence[str], Mapping[str, str]]:
        folder = bmc.folder / "bmc"
        folder.mkdir(parents=True, exist_ok=True)
        control = f"/bin/sh {shlex.quote(str(hook))} {shlex.quote(str(bmc.folder))}"
        written = ipmi_sim.write_config(
            folder, bmc.host, bmc.address, bmc.port, bmc.username, password, bmc.serial, control, tools=tools
        )
        return written.argv, {**written.env}

    return prepare


def pyghmi_server(hook: Path) -> Server:
    """BMCs on pyghmi's server class, where OpenIPMI cannot be had; fifty times as heavy."""

    def prepare(bmc: Bmc, password: str) -> tuple[Sequence[str], Mapping[str, str]]:
        secret = bmc.folder / "bmc-secret"
        write_text(secret, f"{bmc.username}\n{password}\n", 0o600)
        control = f"/bin/sh {shlex.quote(str(hook))} {shlex.quote(str(bmc.folder))}"
        words = (bmc.address, str(bmc.port), f"file:{secret}", bmc.serial, control)
        return (sys.executable, "-m", "hostler_coordinator.dev.pyghmi_bmc", *words), os.environ

    return prepare


def find_server() -> Server:
    """OpenIPMI's where it is installed or can be fetched without root, else pyghmi's."""
    hook = agent_package() / "simulated" / "chassis_hook.sh"
    try:
        return openipmi_server(ipmi_sim.find(), hook)
    except debian.FetchFailed as failure:
        sys.stderr.write(f"BMCs run on pyghmi's server, as OpenIPMI's cannot be had: {failure}\n")
        return pyghmi_server(hook)


def new_password(chance: random.SystemRandom) -> str:
    """A password that every IPMI client can send."""
    return f"{chance.getrandbits(60):015x}"


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM; returns the exit status."""
    parser = argparse.ArgumentParser(prog="hostler_coordinator.dev.bmc_park", description="Simulated BMCs.")
    parser.add_argument("--dir", type=Path, required=True, help="folder with bmcs.json")
    place = premises(parser.parse_args(arguments).dir)
    ended: list[Any] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.append(True))
    Park(place, find_server()).run(lambda: bool(ended))
    return 0


if __name__ == "__main__":
    sys.exit(main())
