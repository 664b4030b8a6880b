"""A fleet in memory around the real engine, planner and board: scripted agents and BMCs, virtual time, no network.

Effects (who went down when, who booted) are kept apart from what the coordinator believes, as ground truth.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostler_contract.campaigns import (
    CampaignRecord,
    CampaignRequest,
    CampaignState,
    Limits,
    ResolvedLimits,
    Targets,
)
from hostler_contract.domains import Budget
from hostler_contract.hosts import BmcRef, HostRecord
from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from hostler_contract.pb.hostler.v1 import work_pb2
from hostler_contract.work import PowerVerb, TaskRecord
from hostler_coordinator.board import Board
from hostler_coordinator.engine import Engine
from hostler_coordinator.live import PowerReport, PowerResult
from hostler_coordinator.policy import Policy
from memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hostler_contract.work import PowerIntent

START = 1_764_547_200.0
VIA = "c1"


class VirtualClock:
    """Time that moves only when told."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> float:
        """Epoch seconds."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Move on at once."""
        self.time += seconds


class Deaf:
    """An observer that keeps nothing."""

    def turn(self, seconds: float, actions: Mapping[str, int]) -> None:
        """Ignore."""

    def lost_race(self) -> None:
        """Ignore."""


@dataclass(slots=True)
class Machine:
    """One host's iron and agent: what it does is set by its flags."""

    host: str
    boot: int = 1
    up: bool = True
    hung: bool = False
    """The agent says nothing; the machine stays on."""
    hang_on_offer: bool = False
    never_boots: bool = False
    bmc_code: str = ""
    """Not empty: every power walk fails with this code."""
    fail_with: str = ""
    """Not empty: the reboot command fails with these words."""
    refuse_with: str = ""
    """Not empty: offered work is refused with these words, `refuse_code` and `refuse_permanent`."""
    refuse_code: str = "blocked"
    refuse_permanent: bool = False
    shutdown_s: float = 0.0
    """From the accepted command to the end of the old boot; its agent is heard all the while."""
    slow_to_start: bool = False
    """It accepts offered work and never gets ready for it."""
    ignores_command: bool = False
    """The command is accepted, and the machine stays up."""
    boot_s: float | None = None
    """Own time from down to up; None: the fleet's."""
    powered: bool = True
    """As its BMC would say; only BMC orders change it."""
    blocked_by: str = ""
    can_drain: bool = False
    usability: int = pb.USABILITY_USABLE
    mark: str = ""
    """Task id of the drain mark that its agent has set and not undone."""
    shutting_down: bool = False
    soft_reboots: int = 0
    """What its service manager counts on the present boot."""
    operation: int = 0
    """Of the newest assignment."""
    reboots_whole: bool = False
    """Its command for a soft reboot reboots the kernel as well."""
    hostname: str = ""
    """Empty: its host id."""
    address: str = ""
    token: tuple[int, int] = (0, 0)
    task: str = ""
    phase: str = ""
    boot_before: str = ""
    session: int = 0
    boots: list[tuple[float, str]] = field(default_factory=list)
    """Every boot after the first: when, and caused by what."""
    turn: int = 0
    """Grows with every end of a boot, so that a boot planned before does not happen after."""

    @property
    def boot_id(self) -> str:
        """Identity of the present boot."""
        return f"{self.host}-boot-{self.boot}"


class Fleet:
    """Hosts, their agents, one engine over a store in memory."""

    def __init__(self, hosts: int = 10, fabrics: int = 1, policy: Policy | None = None, boot_s: float = 10.0) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore()
        self.policy = policy or Policy(leader_grace_s=0.0)
        self.boot_s = boot_s
        self.machines = {f"gpu-{n:03d}": Machine(f"gpu-{n:03d}") for n in range(1, hosts + 1)}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.down: set[str] = set()
        self.most_down: dict[str, int] = {}
        self.power_calls: list[tuple[float, str, PowerVerb]] = []
        self.bmc_orders: list[tuple[float, str, str]] = []
        """What reached a BMC: when, which host, `off` or `on`."""
        self.no_retry: set[str] = set()
        """Codes of BMC failures that the power worker calls final."""
        self.power_text = ""
        """How the power worker sums up a walk that ended well."""
        self._power: dict[str, PowerReport] = {}
        for number, machine in enumerate(self.machines.values()):
            fabric = f"ib-{'abcdefgh'[number % fabrics]}"
            record = HostRecord(
                id=machine.host,
                name=machine.host,
                fabric=fabric,
                bmc=BmcRef(address="127.0.0.1", credentials="env:X"),
                enrolled_at=START,
                boot_id=machine.boot_id,
            )
            self.store.seed(record)
        self.lead("c1")
        for machine in self.machines.values():
            self.attach(machine)

    # -- control plane -----------------------------------------------------------------------------------------------

    def lead(self, name: str) -> None:
        """A new leader with an empty memory takes over; agents attach to it."""
        self.board = Board()
        self._power = {}
        self.engine = Engine(
            name=name,
            store=self.store,
            clock=self.clock,
            sightings=self.board.sightings,
            refused=self.board.refused,
            courier=self,
            power=self,
            policy=self.policy,
            jitter=lambda text: (sum(map(ord, text)) % 97) / 97,
            alive=lambda: self.store.leading,
            observer=Deaf(),
        )

    def fail_over(self, name: str) -> None:
        """The leader is gone; another one begins, and every agent that lives attaches to it."""
        self.lead(name)
        for machine in self.machines.values():
            if machine.up and not machine.hung:
                self.attach(machine)

    def campaign(
        self, limits: ResolvedLimits, hosts: list[str] | None = None, name: str = "c-1", **request: object
    ) -> None:
        """Store a campaign as the service would."""
        targets = tuple(hosts or self.machines)
        record = CampaignRecord(
            id=name,
            key=name,
            caller="alice",
            digest="d",
            request=CampaignRequest(limits=Limits(), reason="test", **request),
            limits=limits,
            state_since=self.clock.now(),
            created_at=self.clock.now(),
            target_count=len(targets),
            chunk_count=1,
        )
        self.store.seed(Targets(campaign=name, chunk=0, hosts=targets), record)

    def budget(self, domain: str, count: int) -> None:
        """Set a domain's own budget."""
        ledger = self.store.state.ledger(domain)
        self.store.seed(ledger.model_copy(update={"budget": Budget(count=count)}))

    def edit(self, name: str = "c-1", **fields: object) -> None:
        """Change a campaign's record as an operator's request would."""
        record = self.store.state.campaigns[name]
        self.store.seed(record.model_copy(update={"state_since": self.clock.now(), **fields}))

    def task(self, host: str, campaign: str = "c-1") -> TaskRecord | None:
        """A task's record."""
        return self.store.state.task(campaign, host)

    def state_of(self, name: str = "c-1") -> CampaignState:
        """A campaign's state."""
        return self.store.state.campaigns[name].state

    async def run(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        """Let time pass in steps of at most a second, with a heartbeat of every living agent and turns in each."""
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            for _ in range(50):
                if not await self.engine.turn():
                    break
            self._count_down()
            if until is not None and until():
                return
            step = min(1.0, end - self.clock.now())
            if self._events:
                step = min(step, max(0.0, self._events[0][0] - self.clock.now()))
            self.clock.time += max(step, 0.01)
            while self._events and self._events[0][0] <= self.clock.now():
                heapq.heappop(self._events)[2]()
            for machine in self.machines.values():
                if machine.up and not machine.hung:
                    self.board.heard(machine.host, VIA, machine.session, 0.0, self.clock.now())

    def _count_down(self) -> None:
        down: dict[str, int] = {}
        for host in self.down:
            record = self.store.state.hosts.get(host)
            for domain in record.domains if record else ():
                down[domain] = down.get(domain, 0) + 1
        for domain, count in down.items():
            self.most_down[domain] = max(count, self.most_down.get(domain, 0))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Let something happen later."""
        heapq.heappush(self._events, (self.clock.now() + seconds, next(self._order), act))

    # -- iron and agents ---------------------------------------------------------------------------------------------

    def attach(self, machine: Machine) -> None:
        """The agent opens a session and says what it knows."""
        machine.session += 1
        hello = pb.Hello(host_id=machine.host, boot_id=machine.boot_id)
        hello.newest_token.epoch, hello.newest_token.counter = machine.token
        hello.condition.CopyFrom(self._condition(machine))
        hello.facts.hostname = machine.hostname or machine.host
        hello.facts.address = machine.address
        hello.facts.soft_reboot_count = machine.soft_reboots
        self.board.attached(machine.host, VIA, machine.session, hello, 0.0, self.clock.now())
        if machine.phase == "done":
            self._say(machine, outcome=self._outcome(machine, pb.OUTCOME_KIND_DONE))
        elif machine.phase in {"intent", "acting"}:
            self._started(machine)
        else:
            self._say(machine, pull=pb.Pull())

    @staticmethod
    def _condition(machine: Machine) -> pb.Condition:
        return pb.Condition(
            usability=machine.usability,  # type: ignore[arg-type]
            blocked_by=machine.blocked_by,
            can_drain=machine.can_drain,
            drained_for=machine.mark,
            shutting_down=machine.shutting_down,
        )

    def beat(self, machine: Machine) -> None:
        """A heartbeat with the machine's condition, as agents send it when it changes."""
        self._say(machine, heartbeat=pb.Heartbeat(condition=self._condition(machine)))

    def say_of_old_boot(self, machine: Machine, kind: int) -> None:
        """An outcome of the present task, from whatever boot the machine is on."""
        self._say(machine, outcome=self._outcome(machine, kind))

    def _say(self, machine: Machine, **message: object) -> None:
        if not machine.hung and machine.up:
            request = pb.SessionRequest(**message)  # type: ignore[arg-type]
            self.board.message(machine.host, VIA, machine.session, request, 0.0, self.clock.now())

    def _outcome(
        self, machine: Machine, kind: int, code: str = "", text: str = "", *, permanent: bool = False
    ) -> pb.Outcome:
        outcome = pb.Outcome(
            task_id=machine.task,
            kind=kind,  # type: ignore[arg-type]
            code=code,
            text=text,
            permanent=permanent,
        )
        outcome.token.epoch, outcome.token.counter = machine.token
        return outcome

    def _started(self, machine: Machine) -> None:
        started = pb.Started(task_id=machine.task, boot_id=machine.boot_id)
        started.token.epoch, started.token.counter = machine.token
        self._say(machine, started=started)

    def send(self, host: str, response: object) -> bool:
        """ports.Courier: what an agent is told reaches it at once, if it listens."""
        machine = self.machines[host]
        if not isinstance(response, pb.SessionResponse) or not machine.up:
            return False
        match response.WhichOneof("message"):
            case "assignment":
                self._assigned(machine, response.assignment)
            case "go":
                self._go(machine, response.go)
            case "stop" if not machine.hung:
                machine.phase = ""
                self._say(machine, outcome=self._outcome(machine, pb.OUTCOME_KIND_STOPPED))
            case "outcome_recorded" if not machine.hung:
                machine.phase = ""
                self._say(machine, pull=pb.Pull())
        return True

    def _assigned(self, machine: Machine, assignment: pb.Assignment) -> None:
        if machine.hang_on_offer:
            machine.hung = True
        if machine.hung:
            return
        token = (assignment.token.epoch, assignment.token.counter)
        if token < machine.token:
            return
        machine.token, machine.task, machine.boot_before = token, assignment.task_id, machine.boot_id
        machine.operation = assignment.operation
        if machine.refuse_with:
            kind = pb.OUTCOME_KIND_FAILED if machine.refuse_permanent else pb.OUTCOME_KIND_REFUSED
            refused = self._outcome(
                machine, kind, machine.refuse_code, machine.refuse_with, permanent=machine.refuse_permanent
            )
            self._say(machine, outcome=refused)
            return
        if machine.slow_to_start:
            return
        machine.phase = "intent"
        self._started(machine)

    def _go(self, machine: Machine, go: pb.Go) -> None:
        if machine.hung or (go.token.epoch, go.token.counter) != machine.token or go.boot_id != machine.boot_id:
            return
        if machine.fail_with:
            machine.phase = ""
            failed = self._outcome(machine, pb.OUTCOME_KIND_FAILED, "reboot-command-failed", machine.fail_with)
            self._say(machine, outcome=failed)
            return
        machine.phase, machine.shutting_down = "acting", True
        cause = f"agent {machine.token}"
        if machine.ignores_command:
            self.beat(machine)
        elif machine.operation == work_pb2.OPERATION_KIND_SOFT_REBOOT and not machine.reboots_whole:
            self._restart_userspace(machine)
        elif machine.shutdown_s:
            self.beat(machine)
            turn = machine.turn
            self.after(machine.shutdown_s, lambda: self._reboot(machine, cause) if machine.turn == turn else None)
        else:
            self._reboot(machine, cause)

    def _reboot(self, machine: Machine, cause: str) -> None:
        self.go_down(machine, cause)
        self._boot_later(machine)

    def _restart_userspace(self, machine: Machine) -> None:
        """The agent goes and comes back on the same boot; no boot happens."""
        machine.up, machine.shutting_down = False, False
        machine.turn += 1
        self.down.add(machine.host)
        self.board.detached(machine.host, VIA, machine.session, "gone", self.clock.now())
        if not machine.never_boots:
            turn = machine.turn
            self.after(self.boot_s, lambda: self._userspace_is_back(machine) if machine.turn == turn else None)

    def _userspace_is_back(self, machine: Machine) -> None:
        machine.soft_reboots += 1
        machine.up, machine.phase = True, "done"
        self.down.discard(machine.host)
        self.attach(machine)

    def _boot_later(self, machine: Machine) -> None:
        if machine.never_boots:
            return
        turn = machine.turn
        wait_s = self.boot_s if machine.boot_s is None else machine.boot_s
        self.after(wait_s, lambda: self.come_up(machine) if machine.turn == turn and machine.powered else None)

    def go_down(self, machine: Machine, cause: str) -> None:
        """The machine stops."""
        machine.up, machine.shutting_down = False, False
        machine.turn += 1
        self.down.add(machine.host)
        machine.boots.append((self.clock.now(), cause))
        self.board.detached(machine.host, VIA, machine.session, "gone", self.clock.now())

    def come_up(self, machine: Machine) -> None:
        """The machine boots, and its agent attaches."""
        machine.boot += 1
        machine.soft_reboots = 0
        machine.up, machine.hung = True, False
        self.down.discard(machine.host)
        if machine.phase == "acting":
            machine.phase = "done"
        self.attach(machine)

    # -- ports.PowerDesk ---------------------------------------------------------------------------------------------

    def begin(self, task_id: str, host: str, intent: PowerIntent) -> None:
        """A BMC that does as told within two seconds, or fails as its machine's flag says."""
        known = self._power.get(task_id)
        if known is not None and known.token == intent.token:
            return
        machine = self.machines[host]
        self.power_calls.append((self.clock.now(), host, intent.verb))
        report = PowerReport(task_id, intent.token, PowerResult.WORKING, self.clock.now())
        self._power[task_id] = report
        term = self.engine

        def while_it_leads(step: Callable[[], None]) -> Callable[[], None]:
            return lambda: step() if self.engine is term else None  # a walk dies with its leader

        if not machine.bmc_code and intent.verb is not PowerVerb.ON:
            self.after(1.0, while_it_leads(lambda: self._bmc_off(machine, intent)))
        self.after(2.0, while_it_leads(lambda: self._power_done(machine, task_id, intent)))

    def _bmc_off(self, machine: Machine, intent: PowerIntent) -> None:
        if not machine.powered:
            return
        self.bmc_orders.append((self.clock.now(), machine.host, "off"))
        if machine.up:
            self.go_down(machine, f"bmc {intent.token}")
        machine.powered = False
        machine.turn += 1

    def _power_done(self, machine: Machine, task_id: str, intent: PowerIntent) -> None:
        now = self.clock.now()
        if machine.bmc_code:
            self._power[task_id] = PowerReport(
                task_id,
                intent.token,
                PowerResult.FAILED,
                now,
                code=machine.bmc_code,
                text="BMC says no",
                retry=machine.bmc_code not in self.no_retry,
            )
            return
        if intent.verb is not PowerVerb.OFF and not machine.powered:
            self.bmc_orders.append((now, machine.host, "on"))
            machine.powered = True
            self._boot_later(machine)
        self._power[task_id] = PowerReport(
            task_id, intent.token, PowerResult.DONE, now, text=self.power_text, off_seen=True, on_seen=True
        )

    def reports(self) -> dict[str, PowerReport]:
        """Newest report by task id."""
        return self._power
