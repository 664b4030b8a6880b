"""Child processes of a development fleet: started so that none outlives its parent, kept running as systemd would, and
found again by the run's mark when everything else is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

RUN_VARIABLE = "HOSTLER_DEV_RUN"
RESTART_AFTER_S = 2.0
STOP_GRACE_S = 5.0
SETTINGS = "HOSTLER_"
"""Variables that begin so would reach into the children's own settings …"""
PASSED_ON = frozenset({"HOSTLER_TOOLS_DIR", "HOSTLER_ETCD"})
"""… but these say where tools are."""
PACKAGES = ("hostler_coordinator", "hostler_agent", "hostler_contract")
_POLL_S = 0.05
# PR_SET_PDEATHSIG is asked for by a launcher of its own: running Python between fork and exec is not safe in a process
# with threads. SIGKILL, because a stopped process minds nothing else.
_LAUNCHER = (
    "import ctypes, os, sys; "
    "ctypes.CDLL(None, use_errno=True).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


@dataclass
class Kept:
    """One child that is started again `restart_after_s` after it died. A stopped one stays stopped.

    Start it from the main thread: the kernel ends it when the thread that started it ends.
    """

    name: str
    command: Sequence[str]
    log: Path
    env: Mapping[str, str]
    restart_after_s: float = RESTART_AFTER_S
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    _ended_at: float | None = field(default=None, repr=False)

    @property
    def pid(self) -> int | None:
        """Its process id, or None while it does not run."""
        return self.process.pid if self.process is not None and self.process.poll() is None else None

    @property
    def gave_up(self) -> bool:
        """True when it ended by its own decision, not by a signal."""
        status = self.process.poll() if self.process is not None else None
        return status is not None and status >= 0

    def start(self) -> None:
        """Start it; what it says goes to its log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-S", "-c", _LAUNCHER, str(os.getpid()), *self.command],
                env=dict(self.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._ended_at = None

    def look(self, now: float) -> bool:
        """Start it again when that is due; True when it changed. `now` is monotonic, in seconds."""
        if self.pid is not None:
            return False
        if self._ended_at is None:
            self._ended_at = now
            return True
        if now - self._ended_at < self.restart_after_s:
            return False
        self.restarts += 1
        self.start()
        return True

    async def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """End it: politely, and after `grace_s` not."""
        if self.process is None:
            return
        end = time.monotonic() + grace_s
        if self.pid is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGCONT)
        while self.process.poll() is None:
            if time.monotonic() >= end:
                self.process.kill()
                end = float("inf")  # the kernel's word
            await asyncio.sleep(_POLL_S)

    def log_tail(self, lines: int = 5) -> str:
        """What it said last."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
        return ""


def agent_package() -> Path:
    """The folder of the agent's package: the machines' BMC hook lies in it. The package itself is never imported."""
    return _root_of("hostler_agent") / "hostler_agent"


def child_environment(run: str) -> dict[str, str]:
    """The environment of every child: ours, the run's mark, and the way to our packages, installed or not."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(SETTINGS) or name in PASSED_ON
    }
    roots = dict.fromkeys(str(_root_of(package)) for package in PACKAGES)
    return {**inherited, RUN_VARIABLE: run, "PYTHONPATH": os.pathsep.join(roots), "PYTHONUNBUFFERED": "1"}


def _root_of(package: str) -> Path:
    """Where a package of ours lies; it is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the Python package {package} is not installed", name=package)
    return Path(spec.origin).parent.parent


def started_ticks(pid: int) -> int | None:
    """When a process began, in the kernel's ticks: with its id this names one process for ever. None: it is gone."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    except OSError:
        return None
    words = after_name.split()
    return None if words[0] == "Z" else int(words[19])


def is_alive(pid: int, ticks: int) -> bool:
    """True while exactly that process runs."""
    return started_ticks(pid) == ticks


def processes_of(run: str, folder: Path) -> list[int]:
    """Every process of a run: its environment holds the run's mark, or it is an etcd on the run's data."""
    mark = f"{RUN_VARIABLE}={run}".encode()
    etcd_data = f"{folder / 'etcd'}{os.sep}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            marked = mark in (entry / "environ").read_bytes().split(b"\0")
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if marked or (b"--data-dir" in words and any(word.startswith(etcd_data) for word in words)):
                found.append(int(entry.name))
    return [pid for pid in found if started_ticks(pid) is not None]


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def sweep(run: str, folder: Path, timeout_s: float = 10.0) -> list[int]:
    """Kill whatever of a run is left; returns what would not go."""
    end = time.monotonic() + timeout_s
    while left := processes_of(run, folder):
        if time.monotonic() >= end:
            return left
        signal_all(left, signal.SIGKILL)
        time.sleep(_POLL_S)
    return []
