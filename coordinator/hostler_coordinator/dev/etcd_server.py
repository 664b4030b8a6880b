"""A real etcd on this machine: finding the program, and starting, stopping and hurting a cluster of its processes. What
is stored in it is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from hostler_coordinator.dev import debian
from hostler_coordinator.etcd import EtcdClient, EtcdError, MemberStatus, TlsFiles

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 5.0
VERSION_TIMEOUT_S = 10.0
QUOTA_BYTES = 2 * 1024**3
COMPACTION_RETENTION = "1h"
MEMBERS_MAX = 7
_PORT_ATTEMPTS = 3
_POLL_S = 0.05
_LOG_TAIL_BYTES = 4000

Version = tuple[int, int, int]
# The kernel ends etcd when the thread that started it ends. A launcher of its own asks for that, because running Python
# between fork and exec is not safe in a process with threads.
_LAUNCHER = (
    "import ctypes, os, signal, sys; "
    "ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


class EtcdUnusable(RuntimeError):
    """There is no etcd to be had, or the one found must not be used; the message says why and what to do."""


class EtcdNotReady(RuntimeError):
    """A cluster did not come up in time; the message ends with what its log said last."""


@dataclass(frozen=True, slots=True)
class EtcdBinary:
    """The program and what it says its version is."""

    path: Path
    version: Version


def refusal(version: Version) -> str | None:
    """Why this version must not be used, or None."""
    if (3, 5, 0) <= version <= (3, 5, 2):
        return (
            "etcd 3.5.0 to 3.5.2 can lose committed writes on a member that was killed (etcd issue 13766); "
            "use 3.5.16 or later, or Debian 12's 3.4.23"
        )
    if version < (3, 4, 22):
        return "etcd before 3.4.22 can lose data in defragmentation; use 3.5.16 or later, or Debian 12's 3.4.23"
    return None


def production_warning(version: Version) -> str | None:
    """What to know before running this version in production, or None."""
    if version >= (3, 5, 16):
        return None
    return f"etcd {_dotted(version)} is supported for development and tests; production wants 3.5.16 or later"


def _dotted(version: Version) -> str:
    return ".".join(str(part) for part in version)


def find_etcd() -> EtcdBinary:
    """``$HOSTLER_ETCD``, else ``etcd`` on PATH, else Debian's package fetched without root into the tools folder.

    Blocks: for seconds where a package is fetched.

    Raises:
        EtcdUnusable: the named program does not run, or its version is refused.
        FetchFailed: there is none, and none could be fetched.
    """
    named = os.environ.get("HOSTLER_ETCD") or shutil.which("etcd")
    path = Path(named) if named else debian.fetch(["etcd-server"], debian.tools_dir()) / "usr/bin/etcd"
    version = _version_of(path)
    reason = refusal(version)
    if reason is not None:
        raise EtcdUnusable(f"{path} is etcd {_dotted(version)}: {reason} (name another one in $HOSTLER_ETCD)")
    return EtcdBinary(path, version)


def _version_of(path: Path) -> Version:
    hint = "name a working etcd in $HOSTLER_ETCD"
    try:
        done = subprocess.run(
            [str(path), "--version"],
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EtcdUnusable(f"{path} cannot be run: {error}; {hint}") from error
    found = re.search(r"etcd Version: (\d+)\.(\d+)\.(\d+)", done.stdout)
    if found is None:
        raise EtcdUnusable(f"{path} does not say its version as etcd does; {hint}")
    return int(found[1]), int(found[2]), int(found[3])


def _environment() -> dict[str, str]:
    """Nothing of ours but PATH: etcd takes every ETCD_* variable for a flag."""
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    if platform.machine() == "aarch64":
        environment["ETCD_UNSUPPORTED_ARCH"] = "arm64"  # what 3.4 asks for there
    return environment


@dataclass
class _Slot:
    """One member's place: its ports and data stay the same over restarts."""

    name: str
    folder: Path
    client_port: int
    peer_port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None


@dataclass
class EtcdCluster:
    """N members as child processes, each with its data and log below ``folder``; started again there, it finds its
    data.

    ``tls`` serves clients and peers (``cert`` needs both server and client use, and ``host`` among its names), and
    whoever connects needs a certificate of the same CA. With ``die_with_parent`` the kernel ends the members when the
    thread that started them ends, however it ends.
    """

    folder: Path
    members: int = 1
    tls: TlsFiles | None = None
    host: str = "127.0.0.1"
    quota_bytes: int = QUOTA_BYTES
    die_with_parent: bool = True
    binary: EtcdBinary | None = None
    flags: Sequence[str] = ()
    _slots: list[_Slot] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.members <= MEMBERS_MAX:
            raise ValueError(f"members: 1 to {MEMBERS_MAX}, not {self.members}")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """``host:port`` of every member, for an EtcdClient."""
        return tuple(f"{self.host}:{slot.client_port}" for slot in self._slots)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the members that run."""
        return tuple(slot.process.pid for slot in self._slots if slot.process is not None and slot.running)

    def pid(self, index: int) -> int | None:
        """Process id of one member, or None while it does not run."""
        slot = self._slots[index]
        return slot.process.pid if slot.process is not None and slot.running else None

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Start every member and wait until each knows a leader; whatever goes wrong, nothing is left running.

        Raises:
            EtcdNotReady, EtcdUnusable, FetchFailed: with the reason and the next step.
        """
        if self._slots:
            raise ValueError("the cluster has been started already")
        if self.binary is None:
            self.binary = await asyncio.to_thread(find_etcd)
        fresh = not (self.folder / "m0" / "data").exists()
        for attempts_left in reversed(range(_PORT_ATTEMPTS)):
            self._slots = self._lay_out()
            try:
                for index in range(self.members):
                    self._spawn(index)
                await self.wait_ready(timeout_s)
            except BaseException as error:
                tail = self._log_tails()
                await self.stop(grace_s=0.0)
                taken = isinstance(error, EtcdNotReady) and "address already in use" in tail
                if not (taken and fresh and attempts_left):
                    raise
                for index in range(self.members):
                    shutil.rmtree(self.folder / f"m{index}", ignore_errors=True)
            else:
                return

    def _lay_out(self) -> list[_Slot]:
        """Ports as they were before in this folder, else free ones: a member's peers find it only where it was."""
        slots = []
        ports = _free_ports(self.host, 2 * self.members)
        for index in range(self.members):
            folder = self.folder / f"m{index}"
            folder.mkdir(parents=True, exist_ok=True)
            kept = folder / "ports"
            if not kept.exists():
                kept.write_text(f"{ports[2 * index]} {ports[2 * index + 1]}\n", encoding="ascii")
            client_port, peer_port = (int(word) for word in kept.read_text(encoding="ascii").split())
            slots.append(_Slot(f"m{index}", folder, client_port, peer_port))
        return slots

    async def wait_ready(self, timeout_s: float = READY_TIMEOUT_S, *, members: int | None = None) -> None:
        """Wait until ``members`` (default: all that run) answer and know a leader.

        Raises:
            EtcdNotReady: a member ended, or the time is over.
        """
        end = time.monotonic() + timeout_s
        async with EtcdClient(self.endpoints, self.tls) as client:
            while True:
                for slot in self._slots:
                    if slot.process is not None and slot.process.returncode is None and not slot.running:
                        raise EtcdNotReady(f"etcd {slot.name} ended at once: {self._log_tail(slot)}")
                answers = (await client.status(timeout_s=1.0)).values()
                ready = sum(isinstance(answer, MemberStatus) and answer.leader_id != 0 for answer in answers)
                if ready >= (len(self.pids) if members is None else members) > 0:
                    return
                if time.monotonic() > end:
                    reasons = "; ".join(str(answer) for answer in answers if isinstance(answer, EtcdError))
                    raise EtcdNotReady(
                        f"etcd was not ready within {timeout_s:.0f} s ({reasons or 'no leader'}): {self._log_tails()}"
                    )
                await asyncio.sleep(_POLL_S)

    async def stop(self, grace_s: float = STOP_TIMEOUT_S) -> None:
        """End every member: politely, and after ``grace_s`` not. Data stays. A stopped cluster can be started again."""
        running = [slot.process for slot in self._slots if slot.process is not None and slot.running]
        for process in running:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM if grace_s > 0 else signal.SIGKILL)
        await asyncio.gather(*(_reap(process, grace_s) for process in running))
        self._slots = []

    # --- one member ---------------------------------------------------------------------------------------------------

    def signal(self, index: int, number: signal.Signals) -> None:
        """Send a signal to one member; nothing when it does not run."""
        process = self._slots[index].process
        if process is not None:
            process.send_signal(number)  # a Popen never signals a process id that it has reaped

    async def kill(self, index: int) -> None:
        """Kill it (-9) and wait until it is gone."""
        process = self._slots[index].process
        if process is not None:
            process.kill()
            await _reap(process, STOP_TIMEOUT_S)

    def pause(self, index: int) -> None:
        """Freeze a member (SIGSTOP)."""
        self.signal(index, signal.SIGSTOP)

    def resume(self, index: int) -> None:
        """Let a frozen member go on."""
        self.signal(index, signal.SIGCONT)

    async def restart(self, index: int) -> None:
        """End a member, if it runs, and start it on its old data; does not wait until it is ready."""
        slot = self._slots[index]
        if slot.process is not None and slot.running:
            slot.process.send_signal(signal.SIGCONT)
            slot.process.terminate()
            await _reap(slot.process, STOP_TIMEOUT_S)
        self._spawn(index)

    # --- processes ----------------------------------------------------------------------------------------------------

    def _spawn(self, index: int) -> None:
        slot = self._slots[index]
        command = self._command(slot)
        if self.die_with_parent:
            command = [sys.executable, "-S", "-c", _LAUNCHER, str(os.getpid()), *command]
        with (slot.folder / "log").open("ab") as log:
            slot.process = subprocess.Popen(
                command,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _command(self, slot: _Slot) -> list[str]:
        if self.binary is None:
            raise ValueError("start the cluster first")
        scheme = "http" if self.tls is None else "https"
        client_url = f"{scheme}://{self.host}:{slot.client_port}"
        peer_url = f"{scheme}://{self.host}:{slot.peer_port}"
        peers = ",".join(f"{peer.name}={scheme}://{self.host}:{peer.peer_port}" for peer in self._slots)
        flags = {
            "--name": slot.name,
            "--data-dir": slot.folder / "data",
            "--listen-client-urls": client_url,
            "--advertise-client-urls": client_url,
            "--listen-peer-urls": peer_url,
            "--initial-advertise-peer-urls": peer_url,
            "--initial-cluster": peers,
            "--initial-cluster-token": "hostler-dev",
            "--initial-cluster-state": "new",
            "--auto-compaction-mode": "periodic",
            "--auto-compaction-retention": COMPACTION_RETENTION,
            "--quota-backend-bytes": self.quota_bytes,
            "--logger": "zap",
            "--log-level": "warn",
        }
        words = [str(word) for pair in flags.items() for word in pair]
        return [str(self.binary.path), *words, *self._tls_flags(), *self.flags]

    def _tls_flags(self) -> list[str]:
        if self.tls is None:
            return []
        flags = ["--client-cert-auth", "--peer-client-cert-auth"]
        for prefix in ("--", "--peer-"):
            flags += [f"{prefix}cert-file", str(self.tls.cert), f"{prefix}key-file", str(self.tls.key)]
            flags += [f"{prefix}trusted-ca-file", str(self.tls.ca)]
        return flags

    def _log_tails(self) -> str:
        return " | ".join(f"{slot.name}: {self._log_tail(slot)}" for slot in self._slots)

    @staticmethod
    def _log_tail(slot: _Slot) -> str:
        with contextlib.suppress(OSError):
            return (slot.folder / "log").read_bytes()[-_LOG_TAIL_BYTES:].decode("utf-8", "replace").strip()
        return "no log"


async def _reap(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """Wait for the end of a process that was told to end; kill it when the grace is over."""
    end = time.monotonic() + grace_s
    while process.poll() is None:
        if time.monotonic() >= end:
            process.kill()
            end = float("inf")  # the kernel's word
        await asyncio.sleep(_POLL_S)


def _free_ports(host: str, count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((host, 0))
        return [int(one.getsockname()[1]) for one in sockets]
