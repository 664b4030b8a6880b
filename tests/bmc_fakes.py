"""An in-memory BMC that lies, lags and falls silent on demand, and a clock that jumps: tests of walks need no I/O."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

from hostler_coordinator.bmc.answers import (
    BmcAnswer,
    BmcTarget,
    Condition,
    Confirmation,
    FaultClass,
    Machine,
    PowerState,
    Protocol,
    Verb,
)
from hostler_coordinator.bmc.clock import Timing
from hostler_coordinator.bmc.cycle import power_cycle
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.walk import CycleResult, CycleSettings, EvidenceKind
from hostler_coordinator.bmc.worker_process import Confirm

EPOCH_S = 1_700_000_000.0


@dataclass
class JumpingClock:
    """Time that passes only when somebody sleeps."""

    passed_s: float = 0.0
    slept: list[float] = field(default_factory=list)

    def timing(self) -> Timing:
        return Timing(
            now=lambda: EPOCH_S + self.passed_s,
            monotonic=lambda: self.passed_s,
            sleep=self._sleep,
            chance=lambda: 0.5,
        )

    async def _sleep(self, seconds: float) -> None:
        self.passed_s += seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)


def target(**changes: object) -> BmcTarget:
    plain = BmcTarget("host-1", Protocol.IPMI, "127.0.0.1", 623, "env:UNUSED", serial="SN1", rack="r1", feed="f1")
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


@dataclass
class InMemoryBmc:
    """A `PowerCaller`: one machine with power, and faults as switches.

    `statuses` are answers that are told once each, before the truth; `told` rewrites every later status answer.
    `refuses` are answers to verbs that are not sent at all; `ordered_of` is what each order's caller knew of it all.
    """

    clock: JumpingClock
    power: PowerState = PowerState.ON
    serials: tuple[str, ...] = ("SN1",)
    statuses: list[BmcAnswer] = field(default_factory=list)
    told: Callable[[BmcAnswer], BmcAnswer] = lambda answer: answer
    faults: dict[Verb, FaultClass] = field(default_factory=dict)
    obeys: set[Verb] = field(default_factory=lambda: {Verb.ON, Verb.OFF, Verb.SOFT})
    off_takes_s: float = 0.0
    soft_takes_s: float = 20.0
    latency_s: float = 0.1
    conditions: frozenset[Condition] = frozenset()
    machine: Machine = field(default_factory=Machine)
    refuses: dict[Verb, BmcAnswer] = field(default_factory=dict)
    ordered_of: list[Machine] = field(default_factory=list)
    sent: list[tuple[float, Verb]] = field(default_factory=list)
    boots: int = 0
    _due: tuple[float, PowerState] | None = None

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
        await self.clock.timing().sleep(self.latency_s)
        self._settle()
        if verb in self.refuses:
            return self.refuses[verb]
        if verb.destructive:
            self.ordered_of.append(target.known)
            return await self._order(verb, confirm)
        if verb in self.faults:
            return BmcAnswer(ok=False, verb=verb, fault=self.faults[verb], text="made to fail")
        if verb is Verb.STATUS:
            return self._status()
        if verb is Verb.SERIAL:
            return BmcAnswer(ok=True, verb=verb, serials=self.serials)
        if verb is Verb.MACHINE:
            return BmcAnswer(ok=True, verb=verb, machine=self.machine)
        return BmcAnswer(ok=True, verb=verb, events=("one event",), text="1 entries")

    def orders(self) -> list[Verb]:
        return [verb for _, verb in self.sent]

    def _status(self) -> BmcAnswer:
        if self.statuses:
            return self.statuses.pop(0)
        answer = BmcAnswer(
            ok=True, verb=Verb.STATUS, state=self.power, raw_state=self.power.value, conditions=self.conditions
        )
        return self.told(answer)

    async def _order(self, verb: Verb, confirm: Confirm | None) -> BmcAnswer:
        assert confirm is not None
        word: Confirmation = await confirm()
        if not word.ok:
            return BmcAnswer(ok=False, verb=verb, withheld=word.why_not, text=f"not sent: {word.why_not}")
        self.sent.append((self.clock.passed_s, verb))
        if verb in self.obeys:
            self._obey(verb)
        if verb in self.faults:
            return BmcAnswer(ok=False, verb=verb, fault=self.faults[verb], text="made to fail", sent=True)
        return BmcAnswer(ok=True, verb=verb, sent=True, text="accepted")

    def _obey(self, verb: Verb) -> None:
        if verb is Verb.ON:
            if self.power is PowerState.OFF:
                self.boots += 1
            self.power = PowerState.ON
        else:
            takes_s = self.off_takes_s if verb is Verb.OFF else self.soft_takes_s
            self._due = (self.clock.passed_s + takes_s, PowerState.OFF)
            self._settle()

    def _settle(self) -> None:
        if self._due is not None and self.clock.passed_s >= self._due[0]:
            self.power, self._due = self._due[1], None


def silence(verb: Verb = Verb.STATUS) -> BmcAnswer:
    return BmcAnswer(ok=False, verb=verb, fault=FaultClass.UNREACHABLE, text="no answer from the BMC")


def status(state: PowerState, raw: str = "", **fields: object) -> BmcAnswer:
    answer = BmcAnswer(ok=True, verb=Verb.STATUS, state=state, raw_state=raw or state.value)
    return dataclasses.replace(answer, **fields)  # type: ignore[arg-type]


async def yes() -> Confirmation:
    return Confirmation(ok=True)


def no_after(orders: int, why: str = "the host came back by itself") -> Confirm:
    """A confirmation that says yes to the first `orders` orders and no to all later ones."""
    asked = 0

    async def confirm() -> Confirmation:
        nonlocal asked
        asked += 1
        return Confirmation(ok=asked <= orders, why_not="" if asked <= orders else why)

    return confirm


async def cycle(
    bmc: InMemoryBmc, confirm: Confirm = yes, where: BmcTarget | None = None, **settings: object
) -> CycleResult:
    timing = bmc.clock.timing()
    wanted = dataclasses.replace(CycleSettings(), **settings)  # type: ignore[arg-type]
    return await power_cycle(bmc, where or target(), wanted, confirm, Pacing(timing=timing), timing=timing)


def kinds(result: CycleResult) -> list[EvidenceKind]:
    return [fact.kind for fact in result.evidence]
