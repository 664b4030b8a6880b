"""The pool with a scripted worker program: deadlines, retries, the turn of each BMC, lanes, lock-out, recycling."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import fake_bmc_worker
from bmc_fakes import JumpingClock, no_after, target, yes
from hostler_coordinator.bmc.answers import BmcTarget, Confirmation, FaultClass, PowerState, Verb
from hostler_coordinator.bmc.lanes import LaneName, lane_for
from hostler_coordinator.bmc.pool import BmcPool, PoolSettings

WORKER = (sys.executable, fake_bmc_worker.__file__)
SILENT = {"fault": "unreachable", "text": "no answer"}
Script = Callable[..., BmcTarget]


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def seen() -> list[tuple[str, str]]:
    return []


@pytest_asyncio.fixture
async def pool(clock: JumpingClock, seen: list[tuple[str, str]]) -> AsyncIterator[BmcPool]:
    made = BmcPool(
        PoolSettings(power_workers=2, readings_workers=1, slow_workers=1),
        timing=clock.timing(),
        observer=lambda verb, outcome, _: seen.append((verb, outcome)),
        worker_command=WORKER,
    )
    yield made
    await made.close()


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(*steps: dict[str, Any]) -> BmcTarget:
        path = tmp_path / f"bmc-{len(list(tmp_path.glob('*.json')))}.json"
        path.write_text(json.dumps(steps))
        return target(address=str(path))

    return write


def requests(where: BmcTarget) -> list[dict[str, Any]]:
    log = Path(f"{where.address}.log")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


async def test_silence_is_retried_with_back_off_until_it_is_answered(
    pool: BmcPool, script: Script, clock: JumpingClock, seen: list[tuple[str, str]]
):
    bmc = script(SILENT, SILENT, {"state": "on"})
    answer = await pool.call(bmc, Verb.STATUS)
    assert (answer.state, answer.tries) == (PowerState.ON, 3)
    assert [wait for wait in clock.slept if wait > 1.0] == [2.0, 4.0]
    assert seen == [("status", "ok")]


async def test_four_tries_are_all(pool: BmcPool, script: Script, seen: list[tuple[str, str]]):
    bmc = script(SILENT)
    answer = await pool.call(bmc, Verb.STATUS)
    assert (answer.fault, answer.tries) == (FaultClass.UNREACHABLE, 4)
    assert len(requests(bmc)) == 4
    assert seen == [("status", "unreachable")]


@pytest.mark.parametrize("verb", [Verb.SOFT, Verb.RESET, Verb.CYCLE, Verb.NMI, Verb.COLD_RESET])
async def test_a_single_shot_reaches_a_worker_once(pool: BmcPool, script: Script, verb: Verb):
    bmc = script(SILENT, {})
    assert (await pool.call(bmc, verb, yes)).fault is FaultClass.UNREACHABLE
    assert len(requests(bmc)) == 1


async def test_the_confirmation_is_asked_again_before_each_transmission(pool: BmcPool, script: Script):
    bmc = script(SILENT, {})
    answer = await pool.call(bmc, Verb.OFF, no_after(1, "lost leadership"))
    assert (answer.withheld, answer.sent, answer.tries) == ("lost leadership", True, 2)


async def test_a_confirmation_that_fails_is_a_no(pool: BmcPool, script: Script):
    async def broken() -> Confirmation:
        raise ConnectionError("store unavailable")

    answer = await pool.call(script({}), Verb.OFF, broken)
    assert "ConnectionError: store unavailable" in answer.withheld
    assert not answer.sent


async def test_a_destructive_verb_without_a_confirmation_is_a_bug(pool: BmcPool, script: Script):
    with pytest.raises(ValueError, match="needs a confirm"):
        await pool.call(script({}), Verb.OFF)


async def test_a_worker_that_hangs_is_killed_at_the_deadline_and_replaced(pool: BmcPool, script: Script):
    bmc = script({"hang": True}, {"state": "off"})
    answer = await pool.call(bmc, Verb.STATUS, deadline_s=3.0)
    assert (answer.state, answer.tries) == (PowerState.OFF, 2)
    first, second = (request["pid"] for request in requests(bmc))
    assert first != second
    assert gone(first)


async def test_a_hang_after_the_go_says_that_the_order_may_have_been_sent(pool: BmcPool, script: Script):
    bmc = script({"hang": True})
    answer = await pool.call(bmc, Verb.RESET, yes, deadline_s=0.5)
    assert (answer.fault, answer.sent) == (FaultClass.WEDGED, False)  # it hung before it had logged in


@pytest.mark.parametrize("trouble", ["die", "babble"])
async def test_a_worker_that_dies_or_babbles_is_ours_and_not_the_silence_of_the_bmc(
    pool: BmcPool, script: Script, trouble: str
):
    bmc = script({trouble: True}, {"state": "on"})
    answer = await pool.call(bmc, Verb.STATUS)
    assert (answer.state, answer.tries) == (PowerState.ON, 2)
    assert pool.silent_bmcs() == 0


async def test_fc_b17_two_refusals_an_hour_and_then_nothing_is_sent(pool: BmcPool, script: Script, clock: JumpingClock):
    bmc = script({"fault": "auth", "text": "Incorrect password provided"})
    for _ in range(4):
        answer = await pool.call(bmc, Verb.STATUS)
        assert (answer.fault, answer.state) == (FaultClass.AUTH, PowerState.UNKNOWN)
    assert len(requests(bmc)) == 2
    clock.passed_s += 3600
    await pool.call(bmc, Verb.STATUS)
    assert len(requests(bmc)) == 3
    await pool.call(bmc, Verb.STATUS)
    pool.pardon(bmc)
    await pool.call(bmc, Verb.STATUS)
    assert len(requests(bmc)) == 5


async def test_other_credentials_are_tried_at_once(pool: BmcPool, script: Script):
    bmc = script({"fault": "auth"}, {"fault": "auth"}, {"state": "on"})
    for _ in range(3):
        await pool.call(bmc, Verb.STATUS)
    other = dataclasses.replace(bmc, credentials_ref="env:OTHER")
    assert (await pool.call(other, Verb.STATUS)).state is PowerState.ON


async def test_no_free_session_is_waited_out(pool: BmcPool, script: Script, clock: JumpingClock):
    bmc = script({"fault": "no_slots"}, {"state": "on"})
    assert (await pool.call(bmc, Verb.STATUS)).state is PowerState.ON
    assert max(clock.slept) >= 65.0


async def test_fc_b16_a_bmc_that_is_not_ready_for_two_minutes_is_waited_for(
    pool: BmcPool, script: Script, clock: JumpingClock
):
    bmc = script(*[{"fault": "not_ready", "retry_after_s": 30.0}] * 4, {"state": "on"})
    answer = await pool.call(bmc, Verb.STATUS)
    assert answer.state is PowerState.ON
    assert clock.passed_s >= 120.0


async def test_fc_b16_a_bmc_that_stays_not_ready_is_given_up(pool: BmcPool, script: Script, clock: JumpingClock):
    answer = await pool.call(script({"fault": "not_ready", "text": "BMC not ready"}), Verb.STATUS)
    assert (answer.fault, answer.text) == (FaultClass.NOT_READY, "BMC not ready")
    assert clock.passed_s <= 180.0


async def test_a_bmc_that_stopped_answering_is_probed_slowly_and_comes_back(
    pool: BmcPool, script: Script, clock: JumpingClock
):
    bmc = script(SILENT, SILENT, SILENT, SILENT, {"state": "on"})
    await pool.call(bmc, Verb.STATUS)
    assert pool.silent_bmcs() == 1
    unasked = await pool.call(bmc, Verb.STATUS)
    assert (unasked.tries, unasked.fault) == (0, FaultClass.UNREACHABLE)
    assert len(requests(bmc)) == 4
    clock.passed_s += 60.0
    assert (await pool.call(bmc, Verb.STATUS)).state is PowerState.ON
    assert pool.silent_bmcs() == 0


async def test_a_walk_may_insist_on_asking_a_silent_bmc(pool: BmcPool, script: Script):
    bmc = script(SILENT, SILENT, SILENT, SILENT, {"state": "off"})
    await pool.call(bmc, Verb.STATUS)
    assert (await pool.call(bmc, Verb.STATUS, insist=True)).state is PowerState.OFF


async def test_silent_bmcs_and_event_logs_have_lanes_of_their_own():
    assert lane_for(Verb.OFF, silent=False) is LaneName.POWER
    assert lane_for(Verb.SEL, silent=False) is LaneName.READINGS
    assert lane_for(Verb.OFF, silent=True) is LaneName.SLOW


async def test_one_operation_at_a_time_per_bmc(pool: BmcPool, script: Script):
    bmc, running, most = script({}), 0, 0

    async def confirm() -> Confirmation:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        return Confirmation(ok=True)

    await asyncio.gather(*(pool.call(bmc, Verb.OFF, confirm) for _ in range(3)))
    assert most == 1
    assert len(requests(bmc)) == 3


async def test_two_bmcs_are_served_at_the_same_time(pool: BmcPool, script: Script):
    both = asyncio.Barrier(2)

    async def confirm() -> Confirmation:
        async with asyncio.timeout(4):
            await both.wait()  # passes only when the other one is in flight as well
        return Confirmation(ok=True)

    answers = await asyncio.gather(*(pool.call(script({}), Verb.OFF, confirm) for _ in range(2)))
    assert all(answer.ok for answer in answers)


async def test_workers_are_recycled(clock: JumpingClock, script: Script):
    settings = PoolSettings(power_workers=1, recycle_after=2)
    pool = BmcPool(settings, timing=clock.timing(), worker_command=WORKER)
    bmc = script({"state": "on"})
    for _ in range(5):
        await pool.call(bmc, Verb.STATUS)
    await pool.close()
    pids = [request["pid"] for request in requests(bmc)]
    assert [pids[0] == pids[1], pids[1] == pids[2], pids[2] == pids[3], pids[3] == pids[4]] == [
        True,
        False,
        True,
        False,
    ]


async def test_a_cancelled_call_kills_its_worker(pool: BmcPool, script: Script):
    bmc = script({"hang": True})
    call = asyncio.ensure_future(pool.call(bmc, Verb.STATUS))
    async with asyncio.timeout(10):
        while not requests(bmc):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert gone(requests(bmc)[0]["pid"])


async def test_a_closed_pool_sends_nothing(pool: BmcPool, script: Script):
    bmc = script({})
    await pool.close()
    assert (await pool.call(bmc, Verb.STATUS)).text == "the pool is closed"
    assert requests(bmc) == []
