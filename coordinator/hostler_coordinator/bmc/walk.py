"""The steps that all power walks share: checks, orders, polling for an edge, evidence; whole walks live in `cycle`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from hostler_coordinator.bmc.answers import (
    BmcAnswer,
    BmcTarget,
    Condition,
    Confirmation,
    FaultClass,
    Machine,
    PowerState,
    Verb,
    same_serial,
)
from hostler_coordinator.bmc.clock import REAL_TIME, Timing
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.worker_process import Confirm


class PowerCaller(Protocol):
    """What a walk needs of the pool (see `BmcPool.call`)."""

    async def call(
        self,
        target: BmcTarget,
        verb: Verb,
        confirm: Confirm | None = None,
        deadline_s: float | None = None,
        *,
        tries: int | None = None,
        insist: bool = False,
    ) -> BmcAnswer:
        """Carry out one verb."""
        ...


class Outcome(Enum):
    """How a walk ended."""

    CYCLED = "cycled"
    POWERED_ON = "powered_on"
    POWERED_OFF = "powered_off"
    CANCELLED = "cancelled"
    FAILED = "failed"


class EvidenceKind(Enum):
    """What a walk saw or did; ACCEPTED is not OFF_SEEN (law 1)."""

    SERIAL_VERIFIED = "serial_verified"
    SERIAL_NOT_VERIFIED = "serial_not_verified"
    MACHINE_SEEN = "machine_seen"
    SEL_SAVED = "sel_saved"
    SEL_NOT_SAVED = "sel_not_saved"
    STATE_SEEN = "state_seen"
    CONDITION_SEEN = "condition_seen"
    ACCEPTED = "accepted"
    NOT_ACCEPTED = "not_accepted"
    OFF_SEEN = "off_seen"
    ON_SEEN = "on_seen"
    SOFT_SKIPPED = "soft_skipped"
    SOFT_NOT_REPEATED = "soft_not_repeated"
    SOFT_IGNORED = "soft_ignored"
    GRACEFUL_NOT_HONOURED = "graceful_not_honoured"
    HOST_NOT_RUNNING = "host_not_running"
    RESTORING = "restoring"
    PACED = "paced"


@dataclass(frozen=True)
class Evidence:
    """One dated fact: `at` is epoch seconds UTC; `details` holds the saved SEL entries, `machine` what is behind it."""

    kind: EvidenceKind
    at: float
    text: str
    verb: Verb | None = None
    details: tuple[str, ...] = ()
    machine: Machine = field(default_factory=Machine)


def _nothing_known(_model: str) -> str:
    return ""


@dataclass(frozen=True)
class CycleSettings:
    """Limits of a walk, in seconds.

    `soft_s` 0 skips the soft step; `min_soft_s` is how long an orderly shutdown takes at least: a host that is off
    sooner was not shut down gracefully (FC-B18). `soft_off_broken` says of a model, as manufacturer and model in one,
    why no soft off is sent to it, "" when nothing speaks against it. `off_limit_s` is long because BMCs have been seen
    to show the old state for 180 s (FC-B03): giving up sooner leaves a host off that nobody switches on again. Without
    `force` a host that ignores the soft step stays on. `serial_unreadable_ok` lets a walk go on when the inventory
    knows a serial number and the BMC tells none; a *different* number always stops it. Without `on_if_off` a host that
    is found off stays off (FC-B02); a walk that is started again after our own off must have it.
    """

    soft_s: float = 0.0
    min_soft_s: float = 5.0
    soft_off_broken: Callable[[str], str] = _nothing_known
    force: bool = True
    state_limit_s: float = 45.0
    off_limit_s: float = 240.0
    dwell_s: float = 10.0
    on_limit_s: float = 120.0
    resend_s: float = 20.0
    poll_s: float = 1.0
    sel_deadline_s: float = 15.0
    save_sel: bool = True
    serial_unreadable_ok: bool = False
    on_if_off: bool = True


@dataclass(frozen=True)
class CycleResult:
    """How a walk ended; `text` says what a person can do. `left_off`: we switched it off and it is not on."""

    outcome: Outcome
    state: PowerState
    text: str
    fault: FaultClass | None = None
    evidence: tuple[Evidence, ...] = ()
    left_off: bool = False


Progress = Callable[[Evidence], Awaitable[None]]

NEEDED_SIGHTINGS = 2
PROGRESS_WAIT_S = 5.0


async def _always() -> Confirmation:
    return Confirmation(ok=True)


class WalkEnded(Exception):
    """Carries the end of a walk out of a step."""

    def __init__(self, outcome: Outcome, text: str, fault: FaultClass | None = None) -> None:
        super().__init__(text)
        self.outcome = outcome
        self.text = text
        self.fault = fault


@dataclass(frozen=True)
class Wanted:
    """A power state to be reached: the verb that brings it, and whether it is repeated although it was accepted."""

    state: PowerState
    verb: Verb | None
    limit_s: float
    resend_accepted: bool


class Walk:
    """The steps. It holds what was seen and sent so far; one object per walk."""

    def __init__(
        self,
        caller: PowerCaller,
        target: BmcTarget,
        settings: CycleSettings,
        confirm: Confirm,
        pacing: Pacing,
        *,
        progress: Progress | None,
        timing: Timing = REAL_TIME,
    ) -> None:
        self.caller = caller
        self.target = target
        self.settings = settings
        self.confirm = confirm
        self.pacing = pacing
        self.timing = timing
        self.evidence: list[Evidence] = []
        self.state = PowerState.UNKNOWN
        self.last = BmcAnswer(ok=False, verb=Verb.STATUS)
        self.touched = False  # an order of ours that takes power away may have reached the BMC
        self.accepted: dict[Verb, int] = {}
        self._progress = progress

    async def note(
        self, kind: EvidenceKind, text: str, verb: Verb | None = None, details: tuple[str, ...] = ()
    ) -> None:
        """Date a fact and tell the caller."""
        fact = Evidence(kind, self.timing.now(), text, verb, details, self.target.known)
        self.evidence.append(fact)
        if self._progress is None:
            return
        if not self.touched:
            await self._progress(fact)
            return
        # We may have switched the host off: a store that fails or freezes now must not keep it off.
        # (`timeout`, not `wait_for`: the latter may swallow a cancellation of the walk.)
        with contextlib.suppress(Exception):
            async with asyncio.timeout(PROGRESS_WAIT_S):
                await self._progress(fact)

    async def learn(self, answer: BmcAnswer) -> None:
        """Keep what is told of the machine, so that a change is noticed from now on, in this very walk too (FC-B06)."""
        known, told = self.target.known, answer.machine
        learned = replace(
            known,
            **{
                name: getattr(told, name)
                for name in ("system", "system_uuid", "chosen_by", "manufacturer", "model")
                if getattr(told, name)
            },
        )
        if not answer.ok or learned == known:
            return
        self.target = replace(self.target, known=learned)
        system = f"system {learned.system} by {learned.chosen_by}" if learned.system else ""
        model = f"model {learned.of_model}" if learned.of_model else ""
        await self.note(EvidenceKind.MACHINE_SEEN, ", ".join(part for part in (system, model) if part))

    async def verify_serial(self) -> None:
        """Stop before anything is touched when another machine answers at this address."""
        expected = self.target.serial
        if expected is None:
            await self.note(EvidenceKind.SERIAL_NOT_VERIFIED, "serial not verified: the inventory knows none")
            return
        answer = await self.caller.call(self.target, Verb.SERIAL)
        await self.learn(answer)
        if answer.ok and same_serial(expected, answer.serials):
            await self.note(EvidenceKind.SERIAL_VERIFIED, f"serial {expected} verified")
            return
        if answer.ok and answer.serials:
            told = ", ".join(answer.serials)
            raise WalkEnded(
                Outcome.FAILED,
                f"the machine behind {self.target.address} says it is {told}, the inventory expects {expected};"
                " nothing was touched: correct the BMC address or rebind the host",
                FaultClass.IDENTITY,
            )
        unreadable = answer.ok or answer.fault in {FaultClass.NOT_SUPPORTED, FaultClass.PROTOCOL}
        if unreadable and self.settings.serial_unreadable_ok:
            await self.note(EvidenceKind.SERIAL_NOT_VERIFIED, f"serial not verified: {answer.text}")
            return
        fault = FaultClass.IDENTITY if unreadable else answer.fault
        raise WalkEnded(
            Outcome.FAILED, f"serial {expected} could not be verified, nothing was touched: {answer.text}", fault
        )

    async def save_sel(self) -> None:
        """Save the event log before power is cut; a log that cannot be read is noted and stops nothing."""
        if not self.settings.save_sel:
            return
        answer = await self.caller.call(self.target, Verb.SEL, None, self.settings.sel_deadline_s, tries=1)
        if answer.ok:
            await self.note(EvidenceKind.SEL_SAVED, f"event log saved, {answer.text}", details=answer.events)
        else:
            await self.note(EvidenceKind.SEL_NOT_SAVED, f"event log not saved: {answer.text}")

    async def settled_state(self) -> PowerState:
        """Read until the same definite state was seen twice running; anything else is waited out to the limit."""
        started, previous, answer = self.timing.monotonic(), PowerState.UNKNOWN, self.last
        while True:
            answer = await self.caller.call(self.target, Verb.STATUS)
            if not answer.ok and answer.fault is not FaultClass.BUSY:
                raise WalkEnded(
                    Outcome.FAILED, f"power state cannot be read, nothing was sent: {answer.text}", answer.fault
                )
            await self.learn(answer)
            self.last, state = answer, answer.state
            if state is not PowerState.UNKNOWN and state is previous:
                break
            previous = state
            if self.timing.monotonic() - started > self.settings.state_limit_s:
                seen = answer.raw_state or answer.text
                raise WalkEnded(
                    Outcome.FAILED,
                    f"power state stayed unknown for {self.settings.state_limit_s:g} s (last: {seen}), nothing sent",
                    answer.fault,
                )
            await self.timing.sleep(self.settings.poll_s)
        self.state = answer.state
        await self.note(EvidenceKind.STATE_SEEN, answer.text)
        await self._check_conditions(answer)
        return answer.state

    async def _check_conditions(self, answer: BmcAnswer) -> None:
        if not answer.conditions:
            return
        named = ", ".join(sorted(condition.value.replace("_", " ") for condition in answer.conditions))
        await self.note(EvidenceKind.CONDITION_SEEN, f"the BMC reports {named}")
        if Condition.CONTROL_FAULT in answer.conditions:
            raise WalkEnded(
                Outcome.FAILED,
                "the BMC reports a power control fault; no power order is sent until a person has seen the chassis",
                FaultClass.HARDWARE,
            )

    async def order(self, verb: Verb, confirm: Confirm) -> BmcAnswer:
        """Send one order and note what the BMC said to it; acceptance proves nothing."""
        answer = await self.caller.call(self.target, verb, confirm, insist=self.touched)
        if answer.sent and verb in {Verb.OFF, Verb.SOFT}:
            self.touched = True
        if answer.ok:
            self.accepted[verb] = self.accepted.get(verb, 0) + 1
            await self.note(EvidenceKind.ACCEPTED, f"{verb.value} accepted", verb)
        else:
            await self.note(EvidenceKind.NOT_ACCEPTED, f"{verb.value}: {answer.text}", verb)
        return answer

    async def seen(self, wanted: Wanted, confirm: Confirm) -> bool:
        """Poll until the wanted state was seen twice running. An unanswered or unknown poll counts neither way."""
        started = last_sent = self.timing.monotonic()
        hits = 0
        while self.timing.monotonic() - started < wanted.limit_s:
            answer = await self.caller.call(self.target, Verb.STATUS, tries=1, insist=True)
            if answer.ok and answer.state is not PowerState.UNKNOWN:
                self.last, self.state = answer, answer.state
                hits = hits + 1 if answer.state is wanted.state else 0
                if hits >= NEEDED_SIGHTINGS:
                    return True
            elif answer.fault in {FaultClass.AUTH, FaultClass.CIPHER} or self._another_machine(answer):
                return False
            if self._due_again(wanted, last_sent) and hits == 0 and wanted.verb is not None:
                await self.order(wanted.verb, confirm)
                last_sent = self.timing.monotonic()
            await self.timing.sleep(self.settings.poll_s)
        return False

    def _another_machine(self, answer: BmcAnswer) -> bool:
        """Before anything was touched this ends it; after our own off, a BMC that is confused may yet find its host."""
        return answer.fault is FaultClass.IDENTITY and not self.touched

    def _due_again(self, wanted: Wanted, last_sent: float) -> bool:
        if wanted.verb is None or (self.accepted.get(wanted.verb) and not wanted.resend_accepted):
            return False
        return self.timing.monotonic() - last_sent >= self.settings.resend_s

    async def restore_anyway(self) -> Confirm:
        """Confirmation for the power-on that makes up for our own off: the caller's no is noted and not obeyed."""
        try:
            async with asyncio.timeout(PROGRESS_WAIT_S):
                word = await self.confirm()
            why_not = "" if word.ok else word.why_not
        except Exception as error:  # noqa: BLE001 - whatever the check stumbles over, the host must not stay off
            why_not = f"the check failed, {type(error).__name__}"
        if why_not:
            await self.note(
                EvidenceKind.RESTORING, f"switching on although the check says no ({why_not}): the off was ours"
            )
        return _always

    def result(self, outcome: Outcome, text: str, fault: FaultClass | None = None) -> CycleResult:
        """The end of the walk."""
        left_off = self.touched and self.state is not PowerState.ON and outcome is not Outcome.POWERED_OFF
        return CycleResult(outcome, self.state, text, fault, tuple(self.evidence), left_off)
