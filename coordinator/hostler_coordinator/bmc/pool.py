"""The pool that carries out BMC operations: lanes of workers, one limiter and one breaker per BMC, retry classes.

It knows no campaign and no host: which operation is due is decided elsewhere, and the walk off → on lives in `cycle`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hostler_coordinator.bmc.answers import BmcAnswer, BmcTarget, FaultClass, Verb
from hostler_coordinator.bmc.clock import REAL_TIME, Timing
from hostler_coordinator.bmc.health import BmcHealth, HealthSettings
from hostler_coordinator.bmc.lanes import Lane, LaneName, lane_for
from hostler_coordinator.bmc.retries import RetrySettings, wait_before_retry
from hostler_coordinator.bmc.worker_process import WORKER_COMMAND, Confirm, WorkerProcess

Observer = Callable[[str, str, float], None]
"""Called after each operation with (verb, outcome, seconds); outcome is "ok", "withheld" or a fault class."""


@dataclass(frozen=True)
class PoolSettings:
    """Sizes and deadlines; a deadline is for one attempt on one worker."""

    power_workers: int = 16
    readings_workers: int = 4
    slow_workers: int = 4
    deadline_s: float = 15.0
    readings_deadline_s: float = 30.0
    single_shot_deadline_s: float = 65.0
    lane_wait_s: float = 120.0
    recycle_after: int = 500
    bmcs_max: int = 50_000
    health: HealthSettings = field(default_factory=HealthSettings)
    retries: RetrySettings = field(default_factory=RetrySettings)


@dataclass
class _Bmc:
    """One BMC: what is remembered of it, and the lock that keeps it at one operation in flight."""

    health: BmcHealth
    credentials_ref: str
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class BmcPool:
    """Ask and order BMCs. `observer` must not raise; `worker_command` is replaced only by tests of the pool itself."""

    def __init__(
        self,
        settings: PoolSettings | None = None,
        *,
        timing: Timing = REAL_TIME,
        observer: Observer | None = None,
        worker_command: Sequence[str] = WORKER_COMMAND,
    ) -> None:
        self._settings = settings or PoolSettings()
        self._timing = timing
        self._observer = observer
        sizes = {
            LaneName.POWER: self._settings.power_workers,
            LaneName.READINGS: self._settings.readings_workers,
            LaneName.SLOW: self._settings.slow_workers,
        }
        self._lanes = {
            name: Lane(size, self._settings.recycle_after, lambda: WorkerProcess(worker_command))
            for name, size in sizes.items()
        }
        self._bmcs: dict[tuple[str, int], _Bmc] = {}
        self._closed = False

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
        """Carry out `verb` on `target` and return its answer; it never raises for what a BMC does.

        `confirm` is asked when the session stands, just before each transmission of a destructive verb, which needs
        one (ValueError). `deadline_s` replaces the deadline of one attempt, `tries` lowers the number of attempts.
        A BMC that has been silent is asked only when its next probe is due, unless `insist`: a walk that has already
        switched something off must not wait for that.
        """
        if verb.destructive and confirm is None:
            raise ValueError(f"{verb.value} changes something: it needs a confirm")
        bmc = self._bmc(target)
        asked_at, started = self._timing.now(), self._timing.monotonic()
        answer = self._refused_unasked(bmc, verb, insist=insist)
        if answer is None:
            answer = await self._attempts(bmc, target, verb, confirm, deadline_s, tries)
        spent_s = self._timing.monotonic() - started
        answer = dataclasses.replace(answer, asked_at=asked_at, answered_at=self._timing.now())
        if self._observer is not None:
            self._observer(verb.value, _outcome(answer), spent_s)
        return answer

    def silent_since(self, target: BmcTarget) -> float | None:
        """Epoch seconds since when this BMC has not answered, None while it does (or was never asked)."""
        bmc = self._bmcs.get((target.address, target.port))
        if bmc is None or bmc.health.silent_since is None:
            return None
        return self._timing.now() - (self._timing.monotonic() - bmc.health.silent_since)

    def busy(self) -> dict[str, int]:
        """Workers at work now, by lane."""
        return {name.value: lane.busy for name, lane in self._lanes.items()}

    def silent_bmcs(self) -> int:
        """Number of BMCs in the slow lane."""
        return sum(bmc.health.silent for bmc in self._bmcs.values())

    def pardon(self, target: BmcTarget) -> None:
        """Forget what speaks against this BMC (a person has changed its password or brought it back)."""
        self._bmcs.pop((target.address, target.port), None)

    async def close(self) -> None:
        """Kill all workers; operations in flight are answered as wedged."""
        self._closed = True
        for lane in self._lanes.values():
            await lane.close()

    async def _attempts(
        self,
        bmc: _Bmc,
        target: BmcTarget,
        verb: Verb,
        confirm: Confirm | None,
        deadline_s: float | None,
        tries: int | None,
    ) -> BmcAnswer:
        started, made, sent = self._timing.monotonic(), 0, False
        most = 1 if bmc.health.silent else tries
        while True:
            answer = await self._attempt(bmc, target, verb, confirm, deadline_s or self._deadline_s(verb))
            made += 1
            sent = sent or answer.sent
            answer = dataclasses.replace(answer, tries=made, sent=sent)
            if self._closed or (most is not None and made >= most) or bmc.health.locked_out(self._timing.monotonic()):
                return answer
            spent_s = self._timing.monotonic() - started
            wait_s = wait_before_retry(verb, answer, made, spent_s, self._timing.chance(), self._settings.retries)
            if wait_s is None:
                return answer
            await self._timing.sleep(wait_s)

    async def _attempt(
        self, bmc: _Bmc, target: BmcTarget, verb: Verb, confirm: Confirm | None, deadline_s: float
    ) -> BmcAnswer:
        async with bmc.turn:
            await self._limited(bmc.health, verb)
            lane = self._lanes[lane_for(verb, silent=bmc.health.silent)]
            try:
                async with lane.worker(self._settings.lane_wait_s) as worker:
                    if self._closed:
                        return _unsent(verb, FaultClass.BUSY, "the pool is closed")
                    answer = await worker.exchange(verb, target, confirm, deadline_s)
            except TimeoutError:
                return _unsent(verb, FaultClass.BUSY, f"no free worker for {self._settings.lane_wait_s:g} s")
            bmc.health.record(answer, self._timing.monotonic())
            return answer

    async def _limited(self, health: BmcHealth, verb: Verb) -> None:
        wait_s = health.earliest(verb) - self._timing.monotonic()
        if wait_s > 0:
            await self._timing.sleep(wait_s)

    def _refused_unasked(self, bmc: _Bmc, verb: Verb, *, insist: bool) -> BmcAnswer | None:
        """What is known without asking: pool closed, log-ins refused too often, BMC silent and no probe due."""
        now = self._timing.monotonic()
        if self._closed:
            return _unsent(verb, FaultClass.BUSY, "the pool is closed")
        refusal = bmc.health.locked_out(now)
        if refusal is not None:
            wait_s = bmc.health.next_login_at() - now
            text = f"not tried again for {wait_s:.0f} s, so that the account is not locked: {refusal.text}"
            return _unsent(verb, refusal.fault or FaultClass.AUTH, text)
        if not insist and not bmc.health.probe_due(now):
            wait_s, silent_s = bmc.health.next_probe - now, now - (bmc.health.silent_since or now)
            text = f"the BMC has not answered for {silent_s:.0f} s; it is asked again in {wait_s:.0f} s"
            return _unsent(verb, FaultClass.UNREACHABLE, text)
        return None

    def _deadline_s(self, verb: Verb) -> float:
        if verb.single_shot:
            return self._settings.single_shot_deadline_s
        return self._settings.readings_deadline_s if verb is Verb.SEL else self._settings.deadline_s

    def _bmc(self, target: BmcTarget) -> _Bmc:
        key = (target.address, target.port)
        bmc = self._bmcs.get(key)
        if bmc is None:
            if len(self._bmcs) >= self._settings.bmcs_max:
                self._forget_idle()
            bmc = self._bmcs[key] = _Bmc(BmcHealth(self._settings.health), target.credentials_ref)
        elif bmc.credentials_ref != target.credentials_ref:  # other credentials: refusals of the old ones say nothing
            bmc.credentials_ref = target.credentials_ref
            bmc.health.refusals, bmc.health.refusal = (), None
        return bmc

    def _forget_idle(self) -> None:
        """Drop the BMCs that nothing speaks against and nobody is asking: forgetting those costs nothing."""
        for key in [key for key, bmc in self._bmcs.items() if not (bmc.turn.locked() or bmc.health.failures)]:
            if not self._bmcs[key].health.refusals:
                del self._bmcs[key]


def _unsent(verb: Verb, fault: FaultClass, text: str) -> BmcAnswer:
    return BmcAnswer(ok=False, verb=verb, fault=fault, text=text, tries=0)


def _outcome(answer: BmcAnswer) -> str:
    if answer.ok:
        return "ok"
    return "withheld" if answer.withheld else (answer.fault or FaultClass.PROTOCOL).value
