"""Carries out durable power intents: one walk of the BMC each, its token checked again before every order.

Which intents there are is the planner's doing; what a BMC understands is the bmc package's.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

import structlog

from hostler_contract.work import Evidence, EvidenceKind, PowerVerb, TaskState
from hostler_coordinator.bmc import cycle
from hostler_coordinator.bmc.answers import BmcTarget, Confirmation, FaultClass, Protocol, Verb
from hostler_coordinator.bmc.walk import EvidenceKind as Seen
from hostler_coordinator.bmc.walk import Outcome
from hostler_coordinator.live import PowerReport, PowerResult
from hostler_coordinator.ports import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hostler_contract.hosts import HostRecord
    from hostler_contract.work import PowerIntent, TaskRecord
    from hostler_coordinator.bmc.pacing import Pacing
    from hostler_coordinator.bmc.walk import CycleResult, CycleSettings, PowerCaller
    from hostler_coordinator.bmc.walk import Evidence as WalkEvidence
    from hostler_coordinator.live import Sighting
    from hostler_coordinator.ports import Clock, Store

log = structlog.get_logger(__name__)

_CODES = {
    FaultClass.AUTH: "bmc-auth",
    FaultClass.CREDENTIALS: "bmc-auth",
    FaultClass.CIPHER: "bmc-cipher",
    FaultClass.IDENTITY: "serial-mismatch",
    FaultClass.UNTRUSTED: "bmc-lies",
    FaultClass.HARDWARE: "bmc-hardware",
    FaultClass.NO_SLOTS: "bmc-no-slots",
    FaultClass.UNREACHABLE: "bmc-unreachable",
    FaultClass.WEDGED: "bmc-unreachable",
}
_NO_RETRY = frozenset(
    {FaultClass.AUTH, FaultClass.CREDENTIALS, FaultClass.CIPHER, FaultClass.IDENTITY, FaultClass.HARDWARE}
)
_SHOWN = {Seen.OFF_SEEN: EvidenceKind.POWER_OFF_SEEN, Seen.ON_SEEN: EvidenceKind.POWER_ON_SEEN}
_WALKS = {PowerVerb.CYCLE: cycle.power_cycle, PowerVerb.ON: cycle.power_on, PowerVerb.OFF: cycle.power_off}
REPORTS_MOST = 10_000


def bmc_target(host: HostRecord) -> BmcTarget:
    """The host's BMC as the bmc package wants it. Raises ValueError when the inventory knows none."""
    bmc = host.bmc
    if bmc is None or not bmc.address:
        msg = f"no BMC is known for {host.name}"
        raise ValueError(msg)
    return BmcTarget(
        host_id=host.id,
        protocol=Protocol(bmc.protocol),
        address=bmc.address,
        port=bmc.port,
        credentials_ref=bmc.credentials,
        serial=bmc.serial or None,
        rack=host.rack or None,
        feed=host.feeds[0] if host.feeds else None,
    )


class PowerWorker:
    """Implements ports.PowerDesk for one leader's term."""

    def __init__(  # one job each
        self,
        *,
        caller: PowerCaller,
        pacing: Pacing,
        settings: CycleSettings,
        store: Store,
        clock: Clock,
        sightings: Mapping[str, Sighting],
        woken: Callable[[], None],
    ) -> None:
        """woken: called with every report, so that the engine looks again."""
        self._caller = caller
        self._pacing = pacing
        self._settings = settings
        self._store = store
        self._clock = clock
        self._sightings = sightings
        self._woken = woken
        self._reports: dict[str, PowerReport] = {}
        self._walks: dict[str, asyncio.Task[None]] = {}
        self._switched_off: set[str] = set()

    def reports(self) -> dict[str, PowerReport]:
        """Newest report by task id."""
        return self._reports

    def begin(self, task_id: str, host: str, intent: PowerIntent) -> None:
        """Start the walk of an intent; a second call for the same token does nothing."""
        known = self._reports.get(task_id)
        if known is not None and known.token == intent.token:
            return
        self._say(PowerReport(task_id, intent.token, PowerResult.WORKING, self._clock.now()))
        self._switched_off.discard(task_id)
        walk = asyncio.get_running_loop().create_task(self._walk(task_id, host, intent), name=f"power-{task_id}")
        self._walks[task_id] = walk
        walk.add_done_callback(lambda _: self._walks.pop(task_id, None) if self._walks.get(task_id) is walk else None)

    async def close(self) -> None:
        """The term is over: end every walk that has changed nothing.

        One that has sent its off goes on to its `on`, as long as this process lives: `on` can be repeated safely, and
        no successor acts before this intent and its BMC session have expired for certain. Should we die as well, the
        next leader takes the goal over.
        """
        idle = [walk for task_id, walk in self._walks.items() if task_id not in self._switched_off]
        for walk in idle:
            walk.cancel()
        await asyncio.gather(*idle, return_exceptions=True)

    def _say(self, report: PowerReport) -> None:
        self._reports[report.task_id] = report
        while len(self._reports) > REPORTS_MOST:
            self._reports.pop(next(iter(self._reports)))
        self._woken()

    async def _show(self, base: PowerReport, evidence: WalkEvidence) -> None:
        if evidence.verb is Verb.OFF or evidence.kind is Seen.OFF_SEEN:
            self._switched_off.add(base.task_id)
        step = evidence.text or evidence.kind.value.replace("_", " ")
        self._say(dataclasses.replace(base, step=step, at=evidence.at))

    async def _walk(self, task_id: str, host_id: str, intent: PowerIntent) -> None:
        base = PowerReport(task_id, intent.token, PowerResult.WORKING, self._clock.now())
        host = self._store.state.hosts.get(host_id)
        try:
            if host is None:
                msg = "the host left the inventory"
                raise ValueError(msg)  # noqa: TRY301  (one place turns it into a report)
            target = bmc_target(host)
        except ValueError as error:
            failed = PowerResult.FAILED
            self._say(dataclasses.replace(base, result=failed, code="no-bmc", text=str(error), retry=False))
            return
        bound = log.bind(task=task_id, host=host_id, token=str(intent.token), verb=intent.verb.value)
        bound.info("power walk begins", why=intent.why)
        try:
            result = await _WALKS[intent.verb](
                self._caller,
                target,
                self._settings,
                lambda: self._confirm(task_id, host_id, intent),
                self._pacing,
                lambda evidence: self._show(base, evidence),
            )
        except Exception as error:  # noqa: BLE001  a walk that breaks must become a report, or its task would wait for ever
            bound.exception("power walk broke")
            text = f"the power worker broke: {error}"
            self._say(dataclasses.replace(base, result=PowerResult.FAILED, code="power-broke", text=text))
            return
        bound.info("power walk ended", outcome=result.outcome.value, text=result.text)
        self._say(self._report(base, result))

    async def _confirm(self, task_id: str, host_id: str, intent: PowerIntent) -> Confirmation:
        """The last look before an order: record, hold, expiry, the agent, and the store's own word on the token."""
        now = self._clock.now()
        campaign, _, host = task_id.partition("/")
        task = self._store.state.task(campaign, host)
        why_not = self._why_not(task, host_id, intent, now)
        if why_not:
            return Confirmation(ok=False, why_not=why_not)
        try:
            if not await self._store.still_newest(host_id, intent.token):
                return Confirmation(ok=False, why_not="a newer token has overtaken this intent")
        except StoreUnavailableError as error:
            return Confirmation(ok=False, why_not=f"the store cannot be asked: {error.reason}")
        return Confirmation(ok=True)

    def _why_not(self, task: TaskRecord | None, host_id: str, intent: PowerIntent, now: float) -> str:
        if task is None or task.state is not TaskState.POWER_CYCLING or task.token != intent.token:
            return "the task has moved on"
        if now >= intent.expires_at:
            return "the intent has expired"
        if any(hold.until is None or hold.until > now for hold in self._store.state.holds(host_id)):
            return "the host is held"
        seen = self._sightings.get(host_id)
        if seen is not None and intent.verb is PowerVerb.CYCLE and seen.connected and seen.heard_at > intent.at:
            return self._answers(task, seen.boot_id)
        return ""

    def _answers(self, task: TaskRecord, boot_id: str) -> str:
        """An agent that answers again stops a rescue; an ordered hard reboot asks for no silence."""
        campaign = self._store.state.campaigns.get(task.campaign)
        if campaign is not None and campaign.request.mode.value == "hard" and boot_id == task.boot_before:
            return ""
        return "its agent answers again"

    def _report(self, base: PowerReport, result: CycleResult) -> PowerReport:
        seen = {evidence.kind for evidence in result.evidence}
        results = {Outcome.CANCELLED: PowerResult.CANCELLED, Outcome.FAILED: PowerResult.FAILED}
        return dataclasses.replace(
            base,
            result=results.get(result.outcome, PowerResult.DONE),
            at=self._clock.now(),
            code=_CODES.get(result.fault, "power-failed") if result.fault is not None else "",
            text=result.text,
            off_seen=Seen.OFF_SEEN in seen,
            on_seen=Seen.ON_SEEN in seen,
            evidence=tuple(kept for evidence in result.evidence if (kept := _kept(evidence)) is not None),
            retry=result.fault not in _NO_RETRY,
        )


def _kept(evidence: WalkEvidence) -> Evidence | None:
    kind = _SHOWN.get(evidence.kind, EvidenceKind.NOTE)
    return Evidence(kind=kind, at=evidence.at, detail=evidence.text or evidence.kind.value.replace("_", " "))
