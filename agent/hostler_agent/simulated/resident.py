"""The real agent inside a simulated machine: only the port `Host` and the post-boot checks are made up."""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from hostler_agent.assembly import World, assemble, coordinators_of, drain_of, journal_of
from hostler_agent.client import from_response, to_request
from hostler_agent.clock import BootClock
from hostler_agent.config import Settings, settings_from
from hostler_agent.decide import ActState, Blocker, BlockerKind, Entry, Situation, hello_of
from hostler_agent.host.inhibitors import judge_refusal
from hostler_agent.logs import Logger, configure_logs
from hostler_agent.notify import SystemdNotifier
from hostler_agent.ports import ActResult, Reading, Verdict
from hostler_agent.session import Assignment
from hostler_agent.simulated.machine import Fault, MachineSpec
from hostler_contract.hosts import HostFacts, Usability
from hostler_contract.pb.hostler.v1 import agent_pb2
from hostler_contract.work import OperationKind

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)

# What real tools say (field cases A13 and A27).
INHIBITED_WORDS = 'Operation inhibited by "svc" (PID 1844 "installer", user root), reason is "update in progress".'
FAILED_WORDS = "Failed to set wall message, ignoring: Connection timed out Call to Reboot failed: Connection timed out"


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel for SIGKILL when the parent dies; a parent that is gone already ends this process now."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


class SimulatedHost:
    """The port `Host`: one boot of one simulated machine."""

    def __init__(self, spec: MachineSpec, boot_id: str, folder: Path, requests: int) -> None:
        self._spec = spec
        self._boot_id = boot_id
        self._faults_path = folder / "faults"
        self._soft_reboots_path = folder / "soft_reboots"
        self._requests = requests

    def has(self, fault: Fault) -> bool:
        """Whether a fault is switched on now."""
        try:
            return fault in self._faults_path.read_text(encoding="utf-8").split()
        except OSError:
            return False

    def _soft_reboots(self) -> int:
        """What the machine counts on this boot; -1 is unknown."""
        try:
            return int(self._soft_reboots_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return -1

    async def read(self) -> Reading:
        """The boot id this process was started with, and the machine's count."""
        return Reading(boot_id=self._boot_id, soft_reboots=self._soft_reboots())

    async def facts(self) -> HostFacts:
        """Made up, but different for every host where real ones are."""
        return HostFacts(
            hostname=self._spec.host,
            address=self._spec.address,
            kernel="simulated",
            architecture="x86_64",
            cpu_count=2,
            memory_bytes=1 << 34,
            chassis_serial=self._spec.serial or f"SIM-{self._spec.host}",
            model="simulated machine",
            soft_reboot_count=self._soft_reboots(),
        )

    async def blockers(self) -> tuple[Blocker, ...]:
        """A job, when the fault `busy` is on."""
        return (Blocker(BlockerKind.GPU_PROCESS, "GPU in use by train (pid 4242)"),) if self.has(Fault.BUSY) else ()

    async def reboot(self, order: Assignment) -> ActResult:
        """Ask the machine; it ends this process."""
        if self.has(Fault.INHIBITED) and not order.force:
            return judge_refusal(INHIBITED_WORDS)
        if self.has(Fault.REBOOT_FAILS):
            return judge_refusal(FAILED_WORDS)
        verb = "soft-reboot" if order.operation is OperationKind.SOFT_REBOOT else "reboot"
        line = f"{self._spec.host} {verb} {self._boot_id} {order.task_id} {order.token}\n"
        os.write(self._requests, line.encode())
        return ActResult(ActState.ACCEPTED)


class SimulatedChecks:
    """The port `Checks`: usable, unless the fault `unusable` is on."""

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host

    async def run(self) -> Verdict:
        """At once."""
        if self._host.has(Fault.UNUSABLE):
            return Verdict(Usability.UNUSABLE, "simulated: a check fails")
        return Verdict(Usability.USABLE)


def agent_settings(spec: MachineSpec, folder: Path) -> Settings:
    """Settings of one host; raises ConfigError. The busy interval also paces how soon a cleared fault is noticed."""
    values = {
        "host_id": spec.host_id,
        "hostname": spec.host,
        "journal": str(folder / "journal.json"),
        "checks": {"boot_target": "", "busy_interval_s": 0.5, "idle_interval_s": 5.0},
        **spec.agent,
    }
    return settings_from(values, spec.host)


def preload() -> None:
    """Do once, in the parent, what every agent does when it starts, gRPC excepted: what it loads is then shared."""
    asyncio.new_event_loop().close()
    to_request(hello_of(Situation(entry=Entry()), 0.0, "none", HostFacts()))
    from_response(agent_pb2.SessionResponse(welcome=agent_pb2.Welcome(coordinator="none", endpoints=["none"])))
    Entry.model_validate_json(Entry().model_dump_json())


def live(spec: MachineSpec, settings: Settings, boot_id: Callable[[], str], folder: Path, requests: int) -> None:
    """Be the agent of one host until killed. Runs in the forked child, the first to touch gRPC.

    boot_id: waits until the machine has booted; all that does not depend on the boot is done before.
    """
    log_file = os.open(folder / "agent.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.dup2(log_file, sys.stdout.fileno())
    os.dup2(log_file, sys.stderr.fileno())
    log = configure_logs(settings.log_level, host=spec.host)
    asyncio.run(_live(spec, settings, log, lambda: SimulatedHost(spec, boot_id(), folder, requests)))


async def _live(spec: MachineSpec, settings: Settings, log: Logger, booted: Callable[[], SimulatedHost]) -> None:
    chance = random.Random()  # noqa: S311 - jitter, no secret
    coordinators = coordinators_of(settings, chance)
    async with coordinators.loaded():
        host = booted()
        world = World(
            host=host,
            checks=SimulatedChecks(host),
            journal=journal_of(settings),
            drain=drain_of(settings, spec.host),
            coordinators=coordinators,
            clock=BootClock(),
            supervisor=SystemdNotifier(""),
            chance=chance,
        )
        agent, _ = await assemble(world, settings, log)
        await agent.run()
