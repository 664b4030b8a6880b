"""Orders to a fleet that runs: faults, crashes, who leads, and its end; what runs it is in `fleet`."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from hostler_coordinator.dev.premises import FolderRefused, Premises, read_json, write_json
from hostler_coordinator.dev.processes import child_environment, is_alive, signal_all, started_ticks, sweep
from hostler_coordinator.dev.shape import BMC_FAULTS, CLEAR, FAULTS, Shape

FAULT_WITHIN_S = 5.0
DOWN_WITHIN_S = 30.0
UP_WITHIN_S = 240.0
_POLL_S = 0.05


class NotRunning(RuntimeError):
    """There is no fleet in this folder, or it does not do what it was told; the text says which."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Who runs the fleet of a folder."""

    run: str
    pid: int
    started: int

    @property
    def is_alive(self) -> bool:
        """True while its supervisor runs."""
        return is_alive(self.pid, self.started)


def mark_of(place: Premises) -> Mark | None:
    """Read the folder's mark; None where no fleet was ever started."""
    found = read_json(place.mark)
    if not isinstance(found, dict):
        return None
    return Mark(str(found["run"]), int(found["pid"]), int(found["started"]))


def facts_of(place: Premises) -> dict[str, Any]:
    """The fleet's ready.json. Raises NotRunning."""
    mark, facts = mark_of(place), read_json(place.ready)
    if mark is None or not mark.is_alive or not isinstance(facts, dict):
        raise NotRunning(
            f"no fleet is up in {place.folder}; start one with: hostler dev up --dir {place.folder} --hosts 12"
        )
    return facts


class Machines:
    """The control socket of the simulated machines."""

    def __init__(self, place: Premises) -> None:
        """Nothing is opened yet."""
        self._place = place

    def set_fault(self, host: str, kind: str) -> None:
        """Switch a fault on, or all off with `clear`, and wait until machine and BMC are so. Raises NotRunning."""
        if kind not in {*FAULTS, CLEAR}:
            raise ValueError(f"there is no fault {kind!r}; there are {', '.join(FAULTS)} and {CLEAR}")
        self.send(f"{host} fault {kind}")
        path = self._place.host(host) / "faults"

        def is_so() -> bool:
            words = path.read_text(encoding="utf-8").split()
            return not words if kind == CLEAR else kind in words

        _await(is_so, f"{host} did not take the fault {kind}")
        if kind in {*BMC_FAULTS, CLEAR}:
            _await(lambda: self._bmc_is(host, kind), f"the BMC of {host} did not follow")

    def faults_of(self, host: str) -> tuple[str, ...]:
        """The faults of a host that are switched on."""
        try:
            return tuple((self._place.host(host) / "faults").read_text(encoding="utf-8").split())
        except FileNotFoundError:  # none was ever set
            return ()

    def crash(self, host: str) -> None:
        """Let a host reboot by itself."""
        self.send(f"{host} crash")

    def send(self, line: str) -> None:
        """Send one line. Raises NotRunning."""
        path = self._place.folder / "machines.sock"
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as machines:
                # A socket's path may have 108 bytes only; through the descriptor it is always short.
                machines.connect(f"/proc/self/fd/{folder}/{path.name}")
                machines.send(line.encode() + b"\n")
        except OSError as error:
            raise NotRunning(f"the machines of {self._place.folder} do not listen: {error.strerror}") from error
        finally:
            os.close(folder)

    def _bmc_is(self, host: str, kind: str) -> bool:
        runs = host in (read_json(self._place.bmc_pids) or {})
        return runs != (kind == "bmc-dead")


def _await(condition: Callable[[], bool], what: str, timeout_s: float = FAULT_WITHIN_S) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= end:
            raise NotRunning(f"{what} within {timeout_s:g} s")
        time.sleep(_POLL_S)


def prepare(place: Premises) -> None:
    """Make the folder fit for a new fleet; what is left of an ended one goes. Raises FolderRefused."""
    mark = mark_of(place)
    if mark is not None and mark.is_alive:
        raise FolderRefused(f"a fleet is up in {place.folder}; end it first: hostler dev down --dir {place.folder}")
    if mark is not None:
        sweep(mark.run, place.folder)
    place.clear()


def start_detached(place: Premises, shape: Shape, say: Callable[[str], None], *, bound: bool = False) -> dict[str, Any]:
    """Start a supervisor of its own session, wait until the fleet is up and return its facts.

    With `bound` the fleet ends when this process ends, however that happens.

    Raises NotRunning, FolderRefused.
    """
    prepare(place)
    write_json(place.folder / "shape.json", asdict(shape))
    pid = _spawn_supervisor(place, bound=bound)
    try:
        return _watch(place, pid, say)
    except BaseException:
        if not _has_ended(pid):
            signal_all([pid], signal.SIGTERM)
            _await(lambda: _has_ended(pid), "the supervisor did not end", DOWN_WITHIN_S)
        raise


def _spawn_supervisor(place: Premises, *, bound: bool) -> int:
    """Not a Popen: unless it is bound, this one outlives whoever started it."""
    more = ["--bound-to", str(os.getpid())] if bound else []
    log = os.open(place.folder / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "hostler_coordinator.dev", "--dir", str(place.folder), *more],
            child_environment(""),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, nothing, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(log)
        os.close(nothing)


def _has_ended(pid: int) -> bool:
    """True when our child has ended; it is reaped then."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # not ours, or reaped before
        return started_ticks(pid) is None


def _watch(place: Premises, supervisor: int, say: Callable[[str], None]) -> dict[str, Any]:
    end = time.monotonic() + UP_WITHIN_S
    shown = ""
    while time.monotonic() < end:
        if _has_ended(supervisor):
            reason = place.failed.read_text(encoding="utf-8") if place.failed.exists() else "see supervisor.log"
            raise NotRunning(f"the fleet did not come up: {reason.strip()}")
        progress = place.progress.read_text(encoding="utf-8").strip() if place.progress.exists() else ""
        if progress and progress != shown:
            say(progress)
            shown = progress
        facts = read_json(place.ready)
        if isinstance(facts, dict):
            return facts
        time.sleep(_POLL_S)
    raise NotRunning(f"the fleet did not come up within {UP_WITHIN_S:g} s: {shown}")


def end_fleet(place: Premises) -> bool:
    """End the fleet of a folder and whatever is left of it; False when there was nothing. Raises NotRunning."""
    mark = mark_of(place)
    if mark is None:
        return False
    there = mark.is_alive
    if there:
        signal_all([mark.pid], signal.SIGTERM)
        signal_all([mark.pid], signal.SIGCONT)
        end = time.monotonic() + DOWN_WITHIN_S
        while mark.is_alive and time.monotonic() < end:
            time.sleep(_POLL_S)
        if mark.is_alive:
            signal_all([mark.pid], signal.SIGKILL)
        _has_ended(mark.pid)
    left = sweep(mark.run, place.folder)
    if left:
        raise NotRunning(f"these processes of the fleet would not end: {', '.join(map(str, left))}")
    for name in ("ready.json", "machines.fifo", "machines.sock", "agents.json", "bmc-pids.json"):
        (place.folder / name).unlink(missing_ok=True)
    return there
