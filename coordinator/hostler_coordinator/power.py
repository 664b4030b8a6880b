"""Carries out durable power intents: one walk of the BMC each, its token checked again before every order.

Which intents there are is the planner's doing; what a BMC understands is the bmc package's.
"""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial
from typing import TYPE_CHECKING

import structlog

from hostler_contract.hosts import BmcFacts, BmcModel
from hostler_contract.moments import format_instant, parse_instant
from hostler_contract.work import Evidence, EvidenceKind, PowerVerb, TaskState
from hostler_coordinator.bmc import cycle
from hostler_coordinator.bmc.answers import BmcTarget, Confirmation, FaultClass, Machine, Protocol, Verb
from hostler_coordinator.bmc.walk import EvidenceKind as Seen
from hostler_coordinator.bmc.walk import Outcome
from hostler_coordinator.bmc_memory import binding, facts_of, soft_off_broken
from hostler_coordinator.live import PowerReport, PowerResult, PowerStep, RefusedOrder
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
    FaultClass.NO_FORCE: "force-not-permitted",
    FaultClass.NOT_GRACEFUL: "graceful-not-honoured",
    FaultClass.NO_SLOTS: "bmc-no-slots",
    FaultClass.UNREACHABLE: "bmc-unreachable",
    FaultClass.WEDGED: "bmc-unreachable",
}
_NO_RETRY = frozenset(
    {
        FaultClass.AUTH,
        FaultClass.CREDENTIALS,
        FaultClass.CIPHER,
        FaultClass.IDENTITY,
        FaultClass.HARDWARE,
        FaultClass.NO_FORCE,
        FaultClass.NOT_GRACEFUL,
    }
)
_SHOWN = {Seen.OFF_SEEN: EvidenceKind.POWER_OFF_SEEN, Seen.ON_SEEN: EvidenceKind.POWER_ON_SEEN}
_FACTS = {field.name for field in dataclasses.fields(Machine)}
_WALKS = {PowerVerb.CYCLE: cycle.power_cycle, PowerVerb.ON: cycle.power_on, PowerVerb.OFF: cycle.power_off}
REPORTS_MOST = 10_000
TEXT_CHARACTERS_MAX = 2_000
STEPS_MOST = 40
"""Steps of one walk that are told; far fewer than the evidence kept of a task."""


def bmc_target(host: HostRecord, facts: BmcFacts | None) -> BmcTarget:
    """The host's BMC as the bmc package wants it, with what is known of it. Raises ValueError when there is none."""
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
        system_uuid=host.system_uuid or None,
        rack=host.rack or None,
        feed=host.feeds[0] if host.feeds else None,
        known=Machine(**facts.model_dump(include=_FACTS)) if facts is not None else Machine(),
    )


def bmc_facts(host: HostRecord, told: Machine, at: float) -> BmcFacts:
    """What was told of the machine behind a host's BMC, as it is stored."""
    return BmcFacts(host=host.id, binding=binding(host), at=at, **dataclasses.asdict(told))


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
        refused: Callable[[RefusedOrder], None],
    ) -> None:
        """woken: called with every report, so that the engine looks again. refused: told of overtaken orders."""
        self._caller = caller
        self._pacing = pacing
        self._settings = settings
        self._store = store
        self._clock = clock
        self._sightings = sightings
        self._woken = woken
        self._refused = refused
        self._reports: dict[str, PowerReport] = {}
        self._walks: dict[str, asyncio.Task[None]] = {}
        self._switched_off: set[str] = set()
        self._off_seen: set[str] = set()

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
        self._off_seen.discard(task_id)
        walk = asyncio.get_running_loop().create_task(self._walk(task_id, host, intent), name=f"power-{task_id}")
        self._walks[task_id] = walk
        walk.add_done_callback(lambda _: self._walks.pop(task_id, None) if self._walks.get(task_id) is walk else None)

    async def close(self) -> None:
        """The term is over: end every walk that has changed nothing.

        One that has sent its off, soft or hard, goes on to its `on`, as long as this process lives: `on` can be
        repeated safely, and no successor acts before this intent and its BMC session have expired for certain. Should
        we die as well, the next leader takes the goal over.
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

    def _show(self, host: HostRecord, task_id: str, evidence: WalkEvidence) -> None:
        ordered = evidence.kind in {Seen.ACCEPTED, Seen.NOT_ACCEPTED} and evidence.verb in {Verb.OFF, Verb.SOFT}
        if ordered or evidence.kind is Seen.OFF_SEEN:
            self._switched_off.add(task_id)
        if evidence.kind is Seen.OFF_SEEN:
            self._off_seen.add(task_id)
        self._say(_grown(self._reports[task_id], host, evidence))

    async def _walk(self, task_id: str, host_id: str, intent: PowerIntent) -> None:
        host = self._store.state.hosts.get(host_id)
        try:
            if host is None:
                msg = "the host left the inventory"
                raise ValueError(msg)  # noqa: TRY301  (one place turns it into a report)
            target = bmc_target(host, facts_of(self._store.state, host))
        except ValueError as error:
            self._fail(task_id, "no-bmc", str(error), retry=False)
            return
        bound = log.bind(task=task_id, host=host_id, token=str(intent.token), verb=intent.verb.value)
        bound.info("power walk begins", why=intent.why)

        async def progress(evidence: WalkEvidence) -> None:
            self._show(host, task_id, evidence)

        try:
            result = await _WALKS[intent.verb](
                self._caller,
                target,
                dataclasses.replace(self._settings, soft_off_broken=partial(soft_off_broken, self._store.state)),
                lambda: self._confirm(task_id, host_id, intent),
                self._pacing,
                progress,
            )
        except Exception as error:  # noqa: BLE001  a walk that breaks must become a report, or its task would wait for ever
            bound.exception("power walk broke")
            self._fail(task_id, "power-broke", f"the power worker broke: {error}")
            return
        report = self._report(self._reports[task_id], result)
        bound.info("power walk ended", outcome=result.outcome.value, text=report.text)
        self._say(report)

    def _fail(self, task_id: str, code: str, text: str, *, retry: bool = True) -> None:
        known = self._reports[task_id]
        self._say(dataclasses.replace(known, result=PowerResult.FAILED, code=code, text=text, retry=retry))

    async def _confirm(self, task_id: str, host_id: str, intent: PowerIntent) -> Confirmation:
        """The last look before an order: record, hold, expiry, the agent, and the store's own word on the token."""
        now = self._clock.now()
        campaign, _, host = task_id.partition("/")
        task = self._store.state.task(campaign, host)
        why_not = self._why_not(task, host_id, intent, now)
        overtaken = self._store.state.claim(host_id).token > intent.token
        if why_not and not overtaken:
            return Confirmation(ok=False, why_not=why_not)
        try:
            if not overtaken and await self._store.still_newest(host_id, intent.token):
                return Confirmation(ok=True)
        except StoreUnavailableError as error:
            return Confirmation(ok=False, why_not=f"the store cannot be asked: {error.reason}")
        why_not = "a newer token has overtaken this intent"
        if task_id not in self._off_seen:  # what makes up for our own off is sent whatever this says
            order, by = f"BMC {intent.verb.value}", f"the power worker of {intent.leader}"
            self._refused(RefusedOrder(host_id, task_id, intent.token, order, by, why_not, now))
        return Confirmation(ok=False, why_not=why_not)

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

    def _report(self, known: PowerReport, result: CycleResult) -> PowerReport:
        seen = {evidence.kind for evidence in result.evidence}
        results = {Outcome.CANCELLED: PowerResult.CANCELLED, Outcome.FAILED: PowerResult.FAILED}
        return dataclasses.replace(
            known,
            result=results.get(result.outcome, PowerResult.DONE),
            at=self._clock.now(),
            code=_CODES.get(result.fault, "power-failed") if result.fault is not None else "",
            text=_storable(result.text),
            off_seen=Seen.OFF_SEEN in seen,
            on_seen=Seen.ON_SEEN in seen,
            evidence=tuple(step.evidence for step in known.steps),
            retry=result.fault not in _NO_RETRY,
        )


def _storable(text: str) -> str:
    """Firmware's words may hold what is no Unicode text, and any amount of it; a record must stay writable."""
    return text[:TEXT_CHARACTERS_MAX].encode(errors="replace").decode()


def _grown(report: PowerReport, host: HostRecord, fact: WalkEvidence) -> PowerReport:
    """The report with one more fact of its walk."""
    text = _storable(fact.text) or fact.kind.value.replace("_", " ")
    kind = _SHOWN.get(fact.kind, EvidenceKind.NOTE)
    result = "failed" if fact.kind is Seen.NOT_ACCEPTED else "done"
    at = parse_instant(format_instant(fact.at))  # as it is stored, so that what is written down is known again
    step = PowerStep(len(report.steps) + 1, Evidence.model_validate({"kind": kind, "at": at, "detail": text}), result)
    grown = dataclasses.replace(report, step=text, at=fact.at, steps=(*report.steps, step)[:STEPS_MOST])
    if fact.kind is Seen.MACHINE_SEEN:
        return dataclasses.replace(grown, bmc=bmc_facts(host, fact.machine, fact.at))
    if fact.kind is Seen.GRACEFUL_NOT_HONOURED and fact.machine.of_model:
        found = f"{host.name}: {text}"
        model = BmcModel(name=fact.machine.of_model, graceful_not_honoured=found, host=host.id, at=fact.at)
        return dataclasses.replace(grown, model=model)
    return grown
