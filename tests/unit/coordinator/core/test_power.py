"""The power worker on a BMC in memory: the last look before an order, and what becomes of an overtaken intent."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bmc_fakes import InMemoryBmc, JumpingClock
from field_stories import FAST, limits
from hostler_contract.hosts import Claim
from hostler_contract.work import PowerIntent, TaskRecord, Token
from hostler_coordinator.bmc.answers import BmcAnswer, FaultClass, Verb
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.walk import CycleSettings
from hostler_coordinator.live import PowerReport, PowerResult, RefusedOrder
from hostler_coordinator.power import PowerWorker
from memory_fleet import Fleet

AT_ONCE = CycleSettings(poll_s=0.0, dwell_s=0.0, off_limit_s=5.0, on_limit_s=5.0)
WALK_MOST_S = 10.0
HOST = "gpu-001"
DONE = "host.power-cycled"


class Scene:
    """A hung host whose task has a power intent, its BMC, and the worker that shall carry the intent out."""

    def __init__(self, fleet: Fleet, task: TaskRecord, intent: PowerIntent) -> None:
        self.fleet, self.task, self.intent = fleet, task, intent
        self.bmc = InMemoryBmc(JumpingClock())
        self.news = asyncio.Event()
        self.refused: list[RefusedOrder] = []
        self.worker = PowerWorker(
            caller=self.bmc,
            pacing=Pacing(),
            settings=AT_ONCE,
            store=fleet.store,
            clock=fleet.clock,
            sightings=fleet.board.sightings,
            woken=self.news.set,
            refused=self.refused.append,
        )

    async def walked(self) -> PowerReport:
        """The report at the end of the walk."""
        self.worker.begin(self.task.id, HOST, self.intent)
        async with asyncio.timeout(WALK_MOST_S):
            while (report := self.worker.reports()[self.task.id]).result is PowerResult.WORKING:
                self.news.clear()
                await self.news.wait()
        await self.worker.close()
        return report


async def scene() -> Scene:
    fleet = Fleet(3, policy=FAST)
    fleet.machines[HOST].hang_on_offer = True
    fleet.campaign(limits(), hosts=[HOST])
    await fleet.run(300, lambda: bool(fleet.power_calls))
    task = fleet.task(HOST)
    assert task is not None
    assert task.power is not None
    return Scene(fleet, task, task.power)


async def test_a_hung_host_is_taken_through_off_and_on_with_its_evidence() -> None:
    at = await scene()
    report = await at.walked()
    assert (report.result, report.off_seen, report.on_seen) == (PowerResult.DONE, True, True)
    assert report.text == "off and on were both seen"
    assert at.bmc.orders() == [Verb.OFF, Verb.ON]


async def test_fc_a26_a_host_that_comes_up_right_before_the_reset_is_not_reset() -> None:
    at = await scene()

    def comes_up(answer: BmcAnswer) -> BmcAnswer:
        at.bmc.told = lambda same: same
        at.fleet.clock.time += 1.0
        at.fleet.come_up(at.fleet.machines[HOST])
        return answer

    at.bmc.told = comes_up
    report = await at.walked()
    assert (report.result, at.bmc.sent) == (PowerResult.CANCELLED, [])
    assert "its agent answers again" in report.text


async def test_fc_b02_a_host_that_is_found_off_is_switched_on_and_task_and_audit_say_so() -> None:
    at = await scene()
    at.bmc.power = at.bmc.power.OFF
    report = await at.walked()
    assert (report.result, at.bmc.orders()) == (PowerResult.DONE, [Verb.ON])
    at.fleet._power[at.task.id] = report
    await at.fleet.engine.turn()
    told = [entry.reason for entry in at.fleet.store.audit_entries if (entry.action, entry.host) == (DONE, HOST)]
    assert told == ["the host was off already and has been switched on"]


async def test_fc_b03_on_for_ever_after_an_accepted_off_is_said_and_not_taken_for_off() -> None:
    at = await scene()
    at.bmc.obeys.clear()
    at.worker._settings = replace(AT_ONCE, off_limit_s=0.05)
    report = await at.walked()
    assert (report.result, report.code, report.off_seen) == (PowerResult.FAILED, "bmc-lies", False)
    assert "BMC state not trusted" in report.text
    assert at.bmc.orders() == [Verb.OFF]


async def test_fc_b17_a_refused_password_is_not_worth_another_try() -> None:
    at = await scene()
    at.bmc.faults[Verb.STATUS] = FaultClass.CREDENTIALS
    report = await at.walked()
    assert (report.result, report.code, report.retry) == (PowerResult.FAILED, "bmc-auth", False)
    assert at.bmc.sent == []


async def test_fc_d10_an_order_whose_token_was_overtaken_is_refused_where_it_would_act() -> None:
    at = await scene()
    token = Token(epoch=at.intent.token.epoch, counter=at.intent.token.counter + 1)
    at.fleet.store.seed(Claim(host=HOST, token=token, task=at.task.id, at=at.fleet.clock.now()))
    report = await at.walked()
    assert (report.result, at.bmc.sent) == (PowerResult.CANCELLED, [])
    assert "a newer token has overtaken this intent" in report.text


async def test_an_intent_that_has_expired_sends_nothing() -> None:
    at = await scene()
    at.fleet.clock.time = at.intent.expires_at
    report = await at.walked()
    assert (report.result, at.bmc.sent) == (PowerResult.CANCELLED, [])
    assert "the intent has expired" in report.text


async def test_a_walk_that_has_switched_off_ends_on_although_its_leader_was_deposed() -> None:
    at = await scene()
    deposed = asyncio.Event()

    async def depose() -> None:
        while Verb.OFF not in at.bmc.orders():  # noqa: ASYNC110 - between two steps of the walk, which tells nobody
            await asyncio.sleep(0)
        at.fleet.store.leading = False
        await at.worker.close()
        deposed.set()

    watching = asyncio.create_task(depose())
    report = await at.walked()
    await watching
    assert deposed.is_set()
    assert at.bmc.orders() == [Verb.OFF, Verb.ON]
    assert report.on_seen


async def test_a_walk_that_has_sent_nothing_ends_with_its_leader() -> None:
    at = await scene()
    at.worker.begin(at.task.id, HOST, at.intent)
    await at.worker.close()
    assert at.bmc.orders() == []
