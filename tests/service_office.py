"""A leader's office for tests of the services: store, clock, hosts, the product's own planner; no test lives here."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from hostler_contract.campaigns import CampaignRequest, Limits, Selector
from hostler_contract.hosts import BmcRef, Condition, HostRecord, Usability
from hostler_contract.views import BmcProbe, BmcSeen, BmcVerb
from hostler_contract.work import Token
from hostler_coordinator.draft import Draft
from hostler_coordinator.enact import enact
from hostler_coordinator.live import PowerReport, RefusedOrder, ReportKind, Sighting, TaskReport
from hostler_coordinator.planner.turn import Plan, plan
from hostler_coordinator.planner.world import World
from hostler_coordinator.policy import Policy
from hostler_coordinator.ports import Committed
from hostler_coordinator.service.callers import Caller
from hostler_coordinator.service.desk import Desk, StatusParts
from memory_store import MemoryStore

if TYPE_CHECKING:
    from hostler_contract.domains import Budget
    from hostler_contract.work import TaskRecord
    from hostler_coordinator.state import State

NOON = 1_800_000_000.0
ALICE = Caller("alice", "operator")
BOB = Caller("bob", "operator")
MOST_TURNS = 50


class Office:
    """Everything a service needs, over a MemoryStore. Time stands still unless a test moves `now_s`."""

    def __init__(self, *, policy: Policy | None = None) -> None:
        self.store = MemoryStore()
        self.now_s = NOON
        self.leader_since = NOON - 1_000.0
        self.policy = policy or Policy()
        self.sightings: dict[str, Sighting] = {}
        self.power: dict[str, PowerReport] = {}
        self.refused: dict[tuple[str, Token], RefusedOrder] = {}
        self.newest_plan = Plan()
        self.woken = 0
        self.waits: list[float] = []
        self.probes: list[tuple[str, BmcVerb]] = []
        self.bmc_seen: BmcSeen | None = None
        self.parts = StatusParts(coordinator="coord-1", leader="coord-1", leader_since=self.leader_since)
        self._ids = count(1)

    @property
    def state(self) -> State:
        return self.store.state

    def world(self) -> World:
        return World(
            state=self.store.state,
            sightings=self.sightings,
            power=self.power,
            now=self.now_s,
            leader="coord-1",
            leader_since=self.leader_since,
            policy=self.policy,
            jitter=lambda _: 0.5,
            refused=self.refused,
        )

    def desk(self) -> Desk:
        return Desk(
            store=self.store,
            world=self.world,
            plan=lambda: self.newest_plan,
            now=lambda: self.now_s,
            wake=self._wake,
            policy=self.policy,
            new_id=lambda: f"{next(self._ids):08d}".translate(str.maketrans("0189", "abcd")),
            probe=self._probe,
            status_parts=lambda: self.parts,
            changed=self._wait,
            sleep=self._wait,
        )

    def _wake(self) -> None:
        self.woken += 1

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_s += seconds

    async def _probe(self, host: HostRecord, verb: BmcVerb) -> BmcProbe:
        self.probes.append((host.name, verb))
        return BmcProbe(power="on", at=self.now_s, bmc_seen=self.bmc_seen)

    # -- the fleet ---------------------------------------------------------------------------------------------------

    def enrol(
        self, name: str, fabric: str = "ib-a", *, rack: str = "", heard: bool = True, **more: object
    ) -> HostRecord:
        """Enrol a host and, unless told otherwise, hear it on its first boot."""
        fields: dict[str, object] = {
            "id": f"h-{name}",
            "name": name,
            "fabric": fabric,
            "rack": rack,
            "serial": f"SN-{name}",
            "bmc": BmcRef(address=f"bmc-{name}", credentials="env:BMC"),
            "enrolled_at": NOON - 86_400.0,
            "boot_id": f"boot-{name}-1" if heard else None,
        }
        host = HostRecord.model_validate(fields | more)
        self.store.seed(host)
        if heard:
            self.hear(name, f"boot-{name}-1")
        return host

    def fleet(self, size: int, fabric: str = "ib-a", prefix: str = "gpu-") -> list[HostRecord]:
        return [self.enrol(f"{prefix}{number:03d}", fabric) for number in range(1, size + 1)]

    def host(self, name: str) -> HostRecord:
        found = self.store.state.host(name)
        assert found is not None, name
        return found

    def hear(
        self, name: str, boot_id: str = "", usability: Usability = Usability.USABLE, **condition: object
    ) -> Sighting:
        """The host is heard now."""
        host = self.host(name)
        seen = self.sightings.setdefault(host.id, Sighting(host=host.id, via="coord-1", attached_at=self.now_s))
        seen.connected = True
        seen.heard_at = self.now_s
        seen.boot_id = boot_id or seen.boot_id
        seen.condition = Condition.model_validate({"usability": usability, **condition})
        return seen

    def hear_all(self) -> None:
        for seen in self.sightings.values():
            if seen.connected:
                seen.heard_at = self.now_s

    def silence(self, name: str, for_s: float) -> None:
        """The host was last heard so long ago."""
        seen = self.sightings[self.host(name).id]
        seen.connected = False
        seen.heard_at = self.now_s - for_s

    def budget(self, domain: str, budget: Budget) -> None:
        self.store.seed(self.store.state.ledger(domain).model_copy(update={"budget": budget}))

    # -- the engine's turn -------------------------------------------------------------------------------------------

    async def turn(self) -> Plan:
        """Plan and carry out, as the engine does, until nothing more follows."""
        for _ in range(MOST_TURNS):
            self.newest_plan = plan(self.world())
            if not self.newest_plan.actions:
                return self.newest_plan
            for action in self.newest_plan.actions:
                draft = Draft(self.store.state)
                enact(draft, self.world(), action)
                assert isinstance(await self.store.commit(draft.change()), Committed)
        msg = f"the planner still acts after {MOST_TURNS} turns"
        raise AssertionError(msg)

    def task(self, campaign: str, name: str) -> TaskRecord:
        host = self.store.state.host(name)
        found = self.store.state.task(campaign, host.id if host else name)
        assert found is not None, name
        return found

    def says(self, campaign: str, name: str, kind: ReportKind, **more: object) -> None:
        """The agent reports on its task under the task's token."""
        task = self.task(campaign, name)
        token = task.token or Token()
        report = TaskReport(task_id=task.id, token=token, kind=kind, at=self.now_s, **more)  # type: ignore[arg-type]
        self.sightings[task.host].report = report

    async def let_go(self, campaign: str, name: str) -> None:
        """The agent has its intent on disk and gets its GO."""
        self.says(campaign, name, ReportKind.STARTED)
        await self.turn()

    async def reboot(self, campaign: str, name: str) -> None:
        """GO, a new boot, usable."""
        await self.let_go(campaign, name)
        self.hear(name, f"boot-{name}-{self.now_s}-2")
        await self.turn()

    def actions_audited(self) -> list[tuple[str, str, str]]:
        """Actor, action, result of every audit entry."""
        return [(entry.actor, entry.action, entry.result) for entry in self.store.audit_entries]


def request(*hosts: str, labels: tuple[str, ...] = (), everything: bool = False, **more: object) -> CampaignRequest:
    """A reboot request; keyword arguments that are limits go into the limits."""
    limits = {name: more.pop(name) for name in list(more) if name in Limits.model_fields}
    fields = {
        "selector": Selector(hosts=hosts, labels=labels, all=everything),
        "limits": Limits.model_validate(limits),
        "reason": "new kernel",
        **more,
    }
    return CampaignRequest.model_validate(fields)
