"""The power worker on a BMC in memory: the last look before an order, and what becomes of an overtaken intent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from bmc_fakes import InMemoryBmc, JumpingClock
from field_stories import FAST, limits
from hostler_contract.hosts import BmcRef, Claim
from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from hostler_contract.work import PowerIntent, TaskRecord, Token
from hostler_coordinator import views
from hostler_coordinator.bmc.answers import BmcAnswer, FaultClass, Machine, Verb
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.walk import CycleSettings
from hostler_coordinator.bmc_memory import binding, facts_of
from hostler_coordinator.cli.host_screens import host_screen
from hostler_coordinator.fsck import problems
from hostler_coordinator.live import PowerReport, PowerResult, RefusedOrder
from hostler_coordinator.power import PowerWorker, bmc_target
from memory_fleet import Fleet

if TYPE_CHECKING:
    from hostler_contract.campaigns import AuditRecord
    from hostler_contract.hosts import BmcFacts
    from hostler_coordinator.bmc.answers import BmcTarget

AT_ONCE = CycleSettings(poll_s=0.0, dwell_s=0.0, off_limit_s=5.0, on_limit_s=5.0)
WALK_MOST_S = 10.0
HOST = "gpu-001"
DGX = Machine("/redfish/v1/Systems/System_0", "U-1", "the UUID", "NVIDIA", "DGX")
DONE = "host.power-cycled"


class Scene:
    """A hung host whose task has a power intent, its BMC, and the worker that shall carry the intent out."""

    def __init__(self, fleet: Fleet, task: TaskRecord, intent: PowerIntent, host: str = HOST) -> None:
        self.fleet, self.task, self.intent, self.host = fleet, task, intent, host
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

    async def led(self) -> PowerReport:
        """The same, while the engine takes its turns: what is told is written down as it happens."""
        self.worker.begin(self.task.id, self.host, self.intent)
        self.fleet._power = self.worker.reports()
        walk = asyncio.ensure_future(self.walked())
        while not walk.done():
            await self.fleet.engine.turn()
            await asyncio.sleep(0)
        await self.fleet.engine.turn()
        return await walk

    def again(self, host: str = HOST) -> BmcTarget:
        """The BMC's target as the next walk would have it."""
        record = self.fleet.store.state.hosts[host]
        return bmc_target(record, facts_of(self.fleet.store.state, record))

    def audited(self, action: str) -> list[AuditRecord]:
        """Audit entries of one action."""
        return [entry for entry in self.fleet.store.audit_entries if entry.action == action]

    async def walked(self) -> PowerReport:
        """The report at the end of the walk."""
        self.worker.begin(self.task.id, self.host, self.intent)
        async with asyncio.timeout(WALK_MOST_S):
            while (report := self.worker.reports()[self.task.id]).result is PowerResult.WORKING:
                self.news.clear()
                await self.news.wait()
        await self.worker.close()
        return report


def wanted(text: str) -> str:
    """A step of the audit, without when and under which token it was."""
    return text.partition("; at ")[0]


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


async def test_fc_b06_the_chosen_system_is_stored_before_any_order_shown_and_known_to_the_next_walk() -> None:
    at = await scene()
    at.bmc.told = lambda answer: replace(answer, machine=DGX)
    before_off: list[BmcFacts | None] = []
    obey = at.bmc._obey

    def note(verb: Verb) -> None:
        before_off.append(at.fleet.store.state.bmc_facts(HOST))
        obey(verb)

    at.bmc._obey = note  # type: ignore[method-assign]
    assert (await at.led()).result is PowerResult.DONE
    host = at.fleet.store.state.hosts[HOST]
    stored = at.fleet.store.state.bmc_facts(HOST)
    assert stored is not None
    assert before_off == [stored, stored]
    assert (at.again().known, stored.binding) == (DGX, binding(host))
    assert [entry.detail for entry in at.audited("host.bmc-facts")] == [
        "stored: /redfish/v1/Systems/System_0 U-1 NVIDIA DGX"
    ]
    at.fleet.fail_over("c2")  # the choice outlives the leader
    view = views.host(at.fleet.engine.world(), host)
    assert json.loads(view.model_dump_json())["bmc_seen"]["system"] == "/redfish/v1/Systems/System_0"
    screen = "\n".join(host_screen(view, None, None))
    assert "/redfish/v1/Systems/System_0, UUID U-1 (chosen by the UUID" in screen
    assert "NVIDIA DGX" in screen
    assert problems(at.fleet.store.state) == []


async def test_fc_b06_facts_hold_for_the_bmc_they_were_told_by_only() -> None:
    at = await scene()
    at.bmc.told = lambda answer: replace(answer, machine=DGX)
    await at.led()
    host = at.fleet.store.state.hosts[HOST]
    for change in ({"system_uuid": "U-2"}, {"bmc": BmcRef(address="127.0.0.9", credentials="env:X")}):
        at.fleet.store.seed(host.model_copy(update=change))
        assert at.again().known == Machine()
        assert views.host(at.fleet.engine.world(), at.fleet.store.state.hosts[HOST]).bmc_seen is None


async def test_fc_b06_a_changed_system_ends_as_a_dead_letter_with_the_reason_and_without_an_order() -> None:
    at = await scene()
    refusal = "the host's system was /redfish/v1/Systems/System_0, and now another is chosen"
    changed = BmcAnswer(ok=False, verb=Verb.STATUS, fault=FaultClass.IDENTITY, text=refusal)
    at.bmc.told = lambda _: changed
    await at.led()
    letter = at.fleet.store.state.dead_letters[f"c-1.{HOST}"]
    assert (letter.cause, at.bmc.sent) == ("serial-mismatch", [])
    assert refusal in letter.text


async def test_fc_b14_each_step_is_in_the_audit_with_its_reason_while_the_walk_goes_on() -> None:
    at = await scene()
    at.worker._settings = replace(AT_ONCE, soft_s=0.2, poll_s=0.01, resend_s=0.05)
    at.bmc.obeys.discard(Verb.SOFT)
    report = await at.led()
    assert report.result is PowerResult.DONE
    steps = at.audited("host.power-step")
    assert [wanted(entry.detail) for entry in steps if "still on" not in entry.detail] == [
        "serial not verified: the inventory knows none",
        "event log saved, 1 entries",
        "state seen",
        "soft accepted",
        "how far the boot is cannot be told: the soft off is not repeated",
        "off accepted",
        "power off seen twice",
        "on accepted",
        "power on seen twice",
    ]
    assert {(entry.reason, entry.actor, entry.campaign) for entry in steps} == {
        (at.intent.why, "rule of campaign c-1 (alice)", "c-1")
    }
    assert f"token {at.intent.token}" in steps[0].detail
    task = at.fleet.task(HOST)
    assert task is not None
    told = [piece.detail for piece in task.evidence]
    assert [told.count(step.evidence.detail) for step in report.steps] == [1] * len(report.steps)


async def test_fc_b14_steps_are_written_once_also_when_the_store_was_away_in_between() -> None:
    at = await scene()
    at.fleet._power = at.worker.reports()
    await at.walked()
    for _ in range(3):
        await at.fleet.engine.turn()
    assert len(at.audited("host.power-step")) == len({entry.detail for entry in at.audited("host.power-step")}) == 7


async def test_fc_b18_a_model_that_does_not_honour_graceful_is_noted_for_all_its_hosts_and_refused_without_force() -> (
    None
):
    at = await scene()
    at.bmc.machine, at.bmc.soft_takes_s = Machine(manufacturer="Dell", model="R750"), 0.0
    at.worker._settings = replace(AT_ONCE, soft_s=5.0, min_soft_s=5.0, force=False)
    assert (await at.led()).result is PowerResult.DONE
    assert at.bmc.orders() == [Verb.SOFT, Verb.ON]
    found = at.fleet.store.state.bmc_model("DELL r750")
    assert found is not None
    assert found.graceful_not_honoured.startswith("gpu-001: graceful not honoured: off 0.")
    assert [entry.host for entry in at.audited("host.bmc-model")] == [HOST]
    view = views.host(at.fleet.engine.world(), at.fleet.store.state.hosts[HOST])
    assert view.bmc_seen is not None
    assert view.bmc_seen.graceful == found.graceful_not_honoured
    assert "not sent to this model: gpu-001: graceful not honoured" in "\n".join(host_screen(view, None, None))
    # Another host of this model, under another leader.
    other = "gpu-002"
    fleet = at.fleet
    fleet.machines[other].hang_on_offer = True
    fleet.campaign(limits(), hosts=[other], name="c-2")
    fleet.fail_over("c2")
    fleet.come_up(fleet.machines[HOST])
    await fleet.run(300, lambda: any(host == other for _, host, _ in fleet.power_calls))
    task = fleet.task(other, "c-2")
    assert task is not None
    assert task.power is not None
    there = Scene(fleet, task, task.power, other)
    there.bmc.machine = at.bmc.machine
    there.worker._settings = at.worker._settings
    report = await there.led()
    assert (report.code, report.retry, there.bmc.sent) == ("graceful-not-honoured", False, [])
    letter = fleet.store.state.dead_letters[f"c-2.{other}"]
    assert letter.cause == "graceful-not-honoured"
    assert "force is not permitted" in letter.text
    assert fleet.store.state.charge(other) is not None


async def test_words_of_firmware_that_are_no_text_end_neither_the_walk_nor_the_engine() -> None:
    at = await scene()
    odd = BmcAnswer(ok=False, verb=Verb.STATUS, fault=FaultClass.PROTOCOL, text="\ud800" * 10_000)
    at.bmc.told = lambda _: odd
    report = await at.led()
    assert report.result is PowerResult.FAILED
    assert 0 < len(report.text) <= 2_000


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
    (order,) = at.refused
    assert (order.host, order.task_id, order.token, order.order) == (HOST, at.task.id, at.intent.token, "BMC cycle")
    assert order.by == "the power worker of c1"


async def test_fc_d10_a_refused_order_is_audited_once_by_the_leader_of_then_and_never_without_leadership() -> None:
    at = await scene()
    at.fleet.store.leading = False  # deposed, and not aware of it
    report = await at.walked()
    assert (report.result, at.bmc.sent) == (PowerResult.CANCELLED, [])
    (order,) = at.refused
    before = len(at.fleet.store.audit_entries)
    at.fleet.board.order_refused(order)
    await at.fleet.engine.turn()
    assert len(at.fleet.store.audit_entries) == before
    at.fleet.store.leading = True
    at.fleet.fail_over("c2")
    at.fleet.board.order_refused(order)
    await at.fleet.engine.turn()
    assert at.audited("host.order") == []  # the token is the newest still: nothing has overtaken it
    token = Token(epoch=order.token.epoch, counter=order.token.counter + 1)
    at.fleet.store.seed(at.fleet.store.state.claim(HOST).model_copy(update={"token": token}))
    for leader in ("c3", "c4"):  # both hear of it
        at.fleet.fail_over(leader)
        at.fleet.board.order_refused(order)
        await at.fleet.engine.turn()
    (entry,) = at.audited("host.order")
    assert (entry.actor, entry.host, entry.campaign) == ("rule of campaign c-1 (alice)", HOST, "c-1")
    assert (entry.reason, entry.result) == ("a newer token has overtaken this intent", "refused")
    assert entry.detail.startswith(
        f"BMC cycle of task {at.task.id}, token {order.token}, by the power worker of c1; at "
    )
    assert at.fleet.store.state.claim(HOST).token == token


async def test_fc_d10_what_makes_up_for_our_own_off_is_no_refused_order() -> None:
    at = await scene()

    async def depose() -> None:
        while Verb.OFF not in at.bmc.orders():  # noqa: ASYNC110 - between two steps of the walk, which tells nobody
            await asyncio.sleep(0)
        at.fleet.store.leading = False

    watching = asyncio.create_task(depose())
    await at.walked()
    await watching
    assert (at.bmc.orders(), at.refused) == ([Verb.OFF, Verb.ON], [])


async def test_fc_d10_an_agents_refusal_of_a_stale_token_is_audited_and_hides_nothing_of_its_present_work() -> None:
    fleet = Fleet(1, policy=FAST)
    machine = fleet.machines[HOST]
    machine.refuse_with, machine.refuse_code = "job 7 runs", "busy"
    fleet.campaign(limits(), hosts=[HOST])
    await fleet.run(1500, lambda: fleet.store.state.claim(HOST).token.counter >= 3)
    present = fleet.store.state.claim(HOST).token
    said = fleet.board.sightings[HOST].report
    assert said is not None
    assert said.token == present
    stale = pb.Outcome(task_id=f"c-1/{HOST}", kind=pb.OUTCOME_KIND_REFUSED, code="stale-token", text="0.1 is older")
    stale.token.counter = 1
    for _ in range(3):
        fleet._say(machine, outcome=stale)
        assert fleet.board.sightings[HOST].report == said
        await fleet.engine.turn()
    entries = [entry for entry in fleet.store.audit_entries if entry.action == "host.order"]
    assert [(entry.host, entry.reason, entry.result) for entry in entries] == [(HOST, "0.1 is older", "refused")]
    assert "token 0.1, by its agent (session on c1)" in entries[0].detail


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


async def test_fc_b14_a_soft_off_that_was_sent_is_followed_to_its_on_although_its_leader_was_deposed() -> None:
    at = await scene()
    at.worker._settings = replace(AT_ONCE, soft_s=600.0)

    async def depose() -> None:
        while Verb.SOFT not in at.bmc.orders():  # noqa: ASYNC110 - between two steps of the walk, which tells nobody
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        at.fleet.store.leading = False
        at.bmc.obeys.discard(Verb.OFF)

    watching = asyncio.create_task(depose())
    at.worker.begin(at.task.id, HOST, at.intent)
    await watching
    await at.worker.close()
    assert (await at.walked()).on_seen
    assert (at.bmc.orders(), at.refused) == ([Verb.SOFT, Verb.ON], [])


async def test_fc_d10_a_hard_off_that_is_refused_after_a_soft_one_is_a_refused_order() -> None:
    at = await scene()
    at.worker._settings = replace(AT_ONCE, soft_s=0.2, poll_s=0.01, resend_s=0.05)
    at.bmc.obeys.discard(Verb.SOFT)

    async def depose() -> None:
        while Verb.SOFT not in at.bmc.orders():  # noqa: ASYNC110 - between two steps of the walk, which tells nobody
            await asyncio.sleep(0)
        at.fleet.store.leading = False

    watching = asyncio.create_task(depose())
    report = await at.walked()
    await watching
    assert (report.result, at.bmc.orders()) == (PowerResult.CANCELLED, [Verb.SOFT])
    assert [order.token for order in at.refused] == [at.intent.token]


async def test_a_walk_that_has_sent_nothing_ends_with_its_leader() -> None:
    at = await scene()
    at.worker.begin(at.task.id, HOST, at.intent)
    await at.worker.close()
    assert at.bmc.orders() == []
