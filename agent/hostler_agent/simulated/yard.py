"""Where simulated machines stand: forks their agents, keeps their files, takes orders. One thread, no gRPC."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path

from hostler_agent.simulated.control import Line, LineBuffer, parse_line
from hostler_agent.simulated.machine import CLEAR, Fault, Machine, MachineSpec, Order, Power

Child = Callable[[MachineSpec, Callable[[], str], Path, int], None]
"""Runs the agent of one host in the forked process: spec, a function that waits for the boot id and returns it, the
host's folder, descriptor for requests."""

WAKE_MAX_S = 5.0
PREPARE_AHEAD_S = 1.0
"""How long before the end of its boot a machine's next agent is forked."""
AGENTS_GAP_PER_MACHINE_S = 0.0005
"""The list of many pids is not written at every change: two hundred that boot together change it two hundred times."""


class Yard:
    """All machines of one folder. `run` returns on SIGTERM or SIGINT, with every agent ended."""

    def __init__(self, folder: Path, specs: Sequence[MachineSpec], child: Child) -> None:
        self._folder = folder
        self._child = child
        self._machines = {spec.host: Machine(spec, self) for spec in specs}
        self._hosts_by_pid: dict[int, str] = {}
        self._waiting: dict[str, tuple[int, int]] = {}
        """Host -> pid of the process that will be its next agent, and the pipe that its boot id goes into."""
        self._agents_changed = True
        self._agents_written_at = 0.0
        self._written: dict[Path, str] = {}
        """What the files of the hosts hold; replacing a file waits for the disk, so it is done for a change only."""
        self._ending = False
        self._selector = selectors.DefaultSelector()
        self._effects = os.open(folder / "effects.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._requests, self._request_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self._request_end, True)
        self._wake, self._wake_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._fifo = _open_fifo(folder / "machines.fifo")
        self._socket = _open_socket(folder / "machines.sock")

    def run(self) -> None:
        """Switch everything on, then serve until told to stop."""
        self._listen()
        now = time.monotonic()
        for machine in self._machines.values():
            machine.switch_on_first(now)
        try:
            while not self._ending:
                self._turn()
        finally:
            self._end()

    def _listen(self) -> None:
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for descriptor in (self._requests, self._fifo, self._socket.fileno()):
            self._selector.register(descriptor, selectors.EVENT_READ, LineBuffer())
        self._selector.register(self._wake, selectors.EVENT_READ, None)

    def _stop(self, *_: object) -> None:
        self._ending = True

    def _turn(self) -> None:
        if self._agents_due_s() == 0.0:
            self._write_agents()
        for key, _ in self._selector.select(self._pause_s()):
            data = _read_ready(key.fd)
            if isinstance(key.data, LineBuffer):
                # A datagram is a line by itself; its sender may leave the newline out.
                whole = data + b"\n" if key.fd == self._socket.fileno() else data
                for text in key.data.feed(whole):
                    self._obey(text)
        self._reap()
        now = time.monotonic()
        for machine in self._machines.values():
            machine.tick(now)
        self._prepare_one()

    def _pause_s(self) -> float:
        """How long nothing is due."""
        due = (machine.due_at for machine in self._machines.values() if machine.due_at is not None)
        due_at = min((*due, *(at - PREPARE_AHEAD_S for at, _ in self._unprepared())), default=math.inf)
        return min(WAKE_MAX_S, self._agents_due_s(), max(0.0, due_at - time.monotonic()))

    def _agents_due_s(self) -> float:
        """How long until the list of pids is written anew."""
        if not self._agents_changed:
            return math.inf
        gap_s = AGENTS_GAP_PER_MACHINE_S * len(self._machines)
        return max(0.0, self._agents_written_at + gap_s - time.monotonic())

    def _unprepared(self) -> list[tuple[float, Machine]]:
        """Machines that boot, each with the end of its boot, whose next agent has not been forked yet."""
        return [
            (machine.due_at, machine)
            for host, machine in self._machines.items()
            if machine.power is Power.BOOTING and machine.due_at is not None and host not in self._waiting
        ]

    def _prepare_one(self) -> None:
        """Fork while the machine still boots: many that come up at once must not wait for one another's forks."""
        due_at, machine = min(self._unprepared(), key=itemgetter(0), default=(math.inf, None))
        if machine is not None and due_at - time.monotonic() <= PREPARE_AHEAD_S:
            reading, writing = os.pipe2(os.O_CLOEXEC)
            pid = self._fork(machine, lambda: _read_boot_id(reading), writing)
            os.close(reading)
            self._waiting[machine.spec.host] = (pid, writing)

    def _obey(self, text: str) -> None:
        line = parse_line(text)
        machine = self._machines.get(line.host) if line else None
        if line is not None and machine is not None:
            self._order(machine, line, time.monotonic())

    def _order(self, machine: Machine, line: Line, now: float) -> None:
        match line.verb, line.arguments:
            case "power", (verb,):
                machine.command(verb, now)
            case "fault", (kind,) if kind == CLEAR:
                machine.clear_faults()
            case "fault", (kind,):
                machine.set_fault(Fault(kind))
            case "crash", ():
                machine.crash(now)
            case "reboot", (boot_id, task, token):
                machine.reboot(boot_id, Order("agent", task, token), now)
            case "soft-reboot", (boot_id, task, token):
                machine.soft_reboot(boot_id, Order("agent", task, token), now)
            case _:
                return

    def _reap(self) -> None:
        while self._hosts_by_pid:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            machine = self._machines[self._hosts_by_pid.pop(pid)]
            if self._waiting.get(machine.spec.host, (0, 0))[0] == pid:
                os.close(self._waiting.pop(machine.spec.host)[1])
            if machine.pid == pid:
                machine.agent_ended(time.monotonic())
                self._agents_changed = True

    # --- what machines ask of the yard --------------------------------------------------------------------------------

    def start_agent(self, machine: Machine) -> int:
        """Wake the process that waits for this boot, or fork one."""
        self._agents_changed = True
        waiting = self._waiting.pop(machine.spec.host, None)
        if waiting is None:
            boot_id = machine.boot_id
            return self._fork(machine, lambda: boot_id)
        pid, writing = waiting
        with contextlib.suppress(BrokenPipeError):  # killed from outside: another is started, as for any dead agent
            os.write(writing, machine.boot_id.encode())
        os.close(writing)
        return pid

    def _fork(self, machine: Machine, boot_id: Callable[[], str], unwanted: int = -1) -> int:
        """The child never returns from here; `unwanted` is a descriptor that only the parent needs."""
        folder = self._host_folder(machine)
        pid = os.fork()
        if pid == 0:
            self._become_agent(machine, folder, boot_id, unwanted)
        self._hosts_by_pid[pid] = machine.spec.host
        return pid

    def _become_agent(self, machine: Machine, folder: Path, boot_id: Callable[[], str], unwanted: int) -> None:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            self._selector.close()
            self._socket.close()
            for descriptor in (self._effects, self._requests, self._wake, self._wake_end, self._fifo):
                os.close(descriptor)
            for descriptor in (unwanted, *(writing for _, writing in self._waiting.values())):
                if descriptor >= 0:
                    os.close(descriptor)
            self._child(machine.spec, boot_id, folder, self._request_end)
            status = 0
        finally:
            os._exit(status)

    def kill_agent(self, pid: int) -> None:
        """At once; it is reaped in the next turn."""
        _signal(pid, signal.SIGKILL)
        self._agents_changed = True

    def stop_agent(self, pid: int) -> None:
        """Freeze it."""
        _signal(pid, signal.SIGSTOP)

    def resume_agent(self, pid: int) -> None:
        """Thaw it."""
        _signal(pid, signal.SIGCONT)

    def record(self, machine: Machine, effect: str, order: Order) -> None:
        """One line, written at once, so that a reader sees whole lines only."""
        line = {
            "effect": effect,
            "host": machine.spec.host,
            "boot_id": machine.boot_id,
            "cause": order.cause,
            "t": round(time.monotonic(), 6),
            "task": order.task,
            "token": order.token,
        }
        os.write(self._effects, json.dumps(line).encode() + b"\n")

    def changed(self, machine: Machine) -> None:
        """Renew `power` and `faults`, which the BMC's hook reads, and the agent's `soft_reboots`."""
        folder = self._host_folder(machine)
        self._keep(folder / "power", "1\n" if machine.is_on else "0\n")
        self._keep(folder / "soft_reboots", f"{machine.soft_reboots}\n")
        self._keep(folder / "faults", "".join(f"{fault}\n" for fault in sorted(machine.faults)))

    def _keep(self, path: Path, text: str) -> None:
        if self._written.get(path) != text:
            _replace(path, text)
            self._written[path] = text

    def _host_folder(self, machine: Machine) -> Path:
        folder = host_folder(self._folder, machine.spec.host)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _write_agents(self) -> None:
        pids = {host: machine.pid for host, machine in self._machines.items() if machine.pid is not None}
        _replace(self._folder / "agents.json", json.dumps(pids) + "\n")
        self._agents_changed = False
        self._agents_written_at = time.monotonic()

    def _end(self) -> None:
        """Nothing stays behind: agents, control files, the list of pids."""
        for machine in self._machines.values():
            machine.power = Power.OFF
        for pid in self._hosts_by_pid:
            _signal(pid, signal.SIGKILL)
        while self._hosts_by_pid:
            pid, _ = os.waitpid(-1, 0)
            self._hosts_by_pid.pop(pid, None)
        for name in ("machines.fifo", "machines.sock", "agents.json"):
            (self._folder / name).unlink(missing_ok=True)


def host_folder(folder: Path, host: str) -> Path:
    """Where one host keeps its journal, its log, its power state and its faults."""
    return folder / "hosts" / host


def _open_fifo(path: Path) -> int:
    """Held open for reading and writing, so that writers never wait for a reader and the end is never seen."""
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def _open_socket(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    # Paths of sockets are short (108 bytes): bind by a relative name, whatever the folder is called.
    home = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.chdir(path.parent)
        opened.bind(path.name)
    finally:
        os.fchdir(home)
        os.close(home)
    return opened


def _read_boot_id(descriptor: int) -> str:
    """Wait for the boot id; a pipe that closes without one means that this boot will not be."""
    boot_id = os.read(descriptor, 64).decode()
    os.close(descriptor)
    if not boot_id:
        os._exit(0)
    return boot_id


def _read_ready(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except BlockingIOError:
        return b""


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
