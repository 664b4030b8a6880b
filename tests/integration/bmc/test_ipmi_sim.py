"""Real IPMI packets to OpenIPMI's simulator: verbs, walks, packet faults, dead BMCs, and what other clients say."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bmc_fixtures import PASSWORD, QUICK, USERNAME, StartMachine, await_bmc, write_secret
from hostler_coordinator.bmc.answers import BmcAnswer, BmcTarget, Confirmation, FaultClass, PowerState, Protocol, Verb
from hostler_coordinator.bmc.audit import SuiteZero, audit_suite_zero
from hostler_coordinator.bmc.cycle import power_cycle
from hostler_coordinator.bmc.health import HealthSettings
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.pool import BmcPool
from hostler_coordinator.bmc.walk import CycleResult, CycleSettings, Evidence, EvidenceKind, Outcome
from hostler_coordinator.bmc.worker_process import WorkerProcess
from udp_fault_proxy import PacketFaults, UdpFaultProxy

pytestmark = pytest.mark.integration

QUICK_WALK = CycleSettings(dwell_s=0.2, poll_s=0.1, off_limit_s=30.0, on_limit_s=30.0, resend_s=5.0)


async def yes() -> Confirmation:
    return Confirmation(ok=True)


async def cycled(pool: BmcPool, target: BmcTarget, settings: CycleSettings = QUICK_WALK) -> CycleResult:
    return await power_cycle(pool, target, settings, yes, Pacing())


async def test_each_verb_does_to_the_machine_what_it_says(bmc_pool: BmcPool, start_machine: StartMachine):
    machine = start_machine()
    assert (await bmc_pool.call(machine.target, Verb.STATUS)).state is PowerState.ON
    assert (await bmc_pool.call(machine.target, Verb.SERIAL)).serials == ("SN0000",)
    assert (await bmc_pool.call(machine.target, Verb.LOCATE_ON)).ok
    assert (await bmc_pool.call(machine.target, Verb.LOCATE_OFF)).ok
    assert (await bmc_pool.call(machine.target, Verb.OFF, yes)).ok
    assert machine.power == "off"
    assert (await bmc_pool.call(machine.target, Verb.STATUS)).state is PowerState.OFF
    assert (await bmc_pool.call(machine.target, Verb.ON, yes)).ok
    assert machine.boots == 1
    assert (await bmc_pool.call(machine.target, Verb.RESET, yes)).ok
    assert machine.boots == 2
    assert (await bmc_pool.call(machine.target, Verb.SOFT, yes)).ok
    assert machine.power == "off"


async def test_the_event_log_is_read_without_its_sensor_records(bmc_pool: BmcPool, start_machine: StartMachine):
    machine = start_machine()
    (machine.folder / "inputs" / "psu1").write_text("9\n")
    give_up_at = time.monotonic() + 20
    events: tuple[str, ...] = ()
    while not any("sensor=0x02" in event for event in events) and time.monotonic() < give_up_at:
        answer = await bmc_pool.call(machine.target, Verb.SEL)
        assert answer.ok, answer.text
        events = answer.events
    assert any("sensor_type=0x08 sensor=0x02" in event for event in events)


async def test_a_cycle_boots_the_machine_once(bmc_pool: BmcPool, start_machine: StartMachine):
    machine = start_machine()
    result = await cycled(bmc_pool, machine.target)
    assert result.outcome is Outcome.CYCLED, result.text
    assert (machine.power, machine.boots) == ("on", 1)
    assert machine.orders == ["power 0", "power 1"]


async def test_another_machine_is_left_alone(bmc_pool: BmcPool, start_machine: StartMachine):
    machine = start_machine(serial="OTHER")
    result = await cycled(bmc_pool, dataclasses.replace(machine.target, serial="EXPECTED"))
    assert result.fault is FaultClass.IDENTITY
    assert machine.orders == []


async def test_a_lying_bmc_is_not_trusted(bmc_pool: BmcPool, start_machine: StartMachine):
    machine = start_machine()
    machine.fault("ignore-power")
    result = await cycled(bmc_pool, machine.target, dataclasses.replace(QUICK_WALK, off_limit_s=2.0))
    assert result.fault is FaultClass.UNTRUSTED
    assert machine.orders == ["power 0"]


async def test_fc_b18_the_model_is_read_and_an_off_at_once_after_a_soft_off_is_noted_for_it(
    bmc_pool: BmcPool, start_machine: StartMachine
):
    machine = start_machine()
    told = await bmc_pool.call(machine.target, Verb.MACHINE)
    assert told.machine.of_model
    asked: list[str] = []

    def broken(model: str) -> str:
        asked.append(model)
        return ""

    settings = dataclasses.replace(QUICK_WALK, soft_s=20.0, min_soft_s=60.0, force=False, soft_off_broken=broken)
    result = await cycled(bmc_pool, machine.target, settings)
    assert result.outcome is Outcome.CYCLED
    assert asked == [told.machine.of_model]
    noted = [fact for fact in result.evidence if fact.kind is EvidenceKind.GRACEFUL_NOT_HONOURED]
    assert [fact.machine.of_model for fact in noted] == asked
    assert EvidenceKind.SOFT_NOT_REPEATED in [fact.kind for fact in result.evidence]


async def test_an_ignored_soft_off_is_followed_by_off(bmc_pool: BmcPool, start_machine: StartMachine):
    machine = start_machine()
    machine.fault("hung")
    result = await cycled(bmc_pool, machine.target, dataclasses.replace(QUICK_WALK, soft_s=1.0))
    assert result.outcome is Outcome.CYCLED
    assert machine.orders == ["shutdown 1", "power 0", "power 1"]
    assert machine.boots == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(PacketFaults(lose_requests=0.1, lose_replies=0.1), id="lost"),
        pytest.param(PacketFaults(delay_requests_s=0.1, delay_replies_s=0.1), id="delayed"),
        pytest.param(PacketFaults(extra_requests=3, extra_replies=3), id="duplicated"),
    ],
)
async def test_under_packet_faults_a_recovery_boots_the_machine_exactly_once(
    bmc_pool: BmcPool, start_machine: StartMachine, faults: PacketFaults
):
    machine = start_machine()
    target = machine.target
    with UdpFaultProxy((target.address, target.port), faults) as proxy:
        result = await cycled(bmc_pool, machine.behind(proxy.address))
        assert result.outcome is Outcome.CYCLED, result
    assert (machine.power, machine.boots) == ("on", 1)


@pytest.mark.slow
async def test_an_order_whose_reply_is_lost_is_one_datagram_and_no_second_login(
    bmc_pool: BmcPool, start_machine: StartMachine
):
    """pyghmi by itself sends a reset four times here and logs in again behind the caller's back."""
    machine = start_machine()
    target = machine.target
    with UdpFaultProxy((target.address, target.port)) as proxy:

        async def then_lose_replies() -> Confirmation:
            proxy.faults = PacketFaults(lose_replies=1.0)
            return Confirmation(ok=True)

        answer = await bmc_pool.call(machine.behind(proxy.address), Verb.RESET, then_lose_replies, deadline_s=12.0)
    assert (answer.ok, answer.fault, answer.sent) == (False, FaultClass.WEDGED, True)
    assert machine.orders == ["reset 1"]


async def test_a_withheld_order_is_never_sent(bmc_pool: BmcPool, start_machine: StartMachine):
    machine = start_machine()

    async def no() -> Confirmation:
        return Confirmation(ok=False, why_not="held by ops")

    answer = await bmc_pool.call(machine.target, Verb.OFF, no)
    assert (answer.withheld, answer.sent) == ("held by ops", False)
    assert machine.orders == []


async def test_a_confirmation_that_takes_too_long_is_a_no(bmc_pool: BmcPool, start_machine: StartMachine):
    machine = start_machine()

    async def slow() -> Confirmation:
        await asyncio.sleep(30)
        return Confirmation(ok=True)

    answer = await bmc_pool.call(machine.target, Verb.OFF, slow)
    assert "took longer" in answer.withheld
    assert machine.orders == []


async def test_a_wrong_password_is_tried_twice_an_hour_and_shown_nowhere(
    bmc_pool: BmcPool, start_machine: StartMachine, tmp_path: Path
):
    machine = start_machine()
    wrong = dataclasses.replace(machine.target, credentials_ref=write_secret(tmp_path / "wrong", "WrongSecret99"))
    answers = [await bmc_pool.call(wrong, Verb.STATUS) for _ in range(4)]
    assert [answer.fault for answer in answers] == [FaultClass.AUTH] * 4
    assert [answer.tries for answer in answers] == [1, 1, 0, 0]
    assert answers[0].state is PowerState.UNKNOWN
    assert "not tried again" in answers[3].text
    assert "WrongSecret99" not in repr(answers)
    assert (await bmc_pool.call(machine.target, Verb.STATUS)).ok  # the right reference is not held back


async def test_a_dead_bmc_is_unreachable_and_moves_to_the_slow_lane(bmc_pool: BmcPool, start_machine: StartMachine):
    machine = start_machine()
    machine.process.kill()
    answer = await bmc_pool.call(machine.target, Verb.STATUS, tries=3, deadline_s=2.0)
    assert answer.fault in {FaultClass.UNREACHABLE, FaultClass.WEDGED}
    assert bmc_pool.silent_bmcs() == 1
    assert bmc_pool.silent_since(machine.target) is not None
    asked = await bmc_pool.call(machine.target, Verb.STATUS)
    assert asked.tries == 0
    assert "asked again in" in asked.text


def children_s() -> float:
    """Processor seconds of every worker that has been reaped."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


async def test_a_worker_that_waits_for_a_silent_bmc_spends_no_processor(start_machine: StartMachine):
    machine = start_machine()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        before_s = children_s()
        worker = WorkerProcess()
        answer = await worker.exchange(Verb.STATUS, machine.behind(silent.getsockname()), None, 15.0)
        await worker.kill()
    assert answer.fault is FaultClass.UNREACHABLE
    assert children_s() - before_s < 1.0  # it was 4.5 s of the 5 s that a log-in takes to fail


async def test_a_closed_port_is_told_at_once(start_machine: StartMachine):
    machine = start_machine()
    machine.process.kill()
    machine.process.wait()
    before_s = children_s()
    worker = WorkerProcess()
    answer = await worker.exchange(Verb.STATUS, machine.target, None, 15.0)
    await worker.kill()
    assert answer.fault is FaultClass.UNREACHABLE
    assert "port is closed" in answer.text
    assert children_s() - before_s < 1.0


async def test_a_bmc_that_dies_in_mid_session_is_told_at_once_and_its_order_never_sent_again(
    start_machine: StartMachine,
):
    machine, other = start_machine(), start_machine()

    async def die() -> Confirmation:
        machine.process.kill()
        machine.process.wait()
        return Confirmation(ok=True)

    before_s = children_s()
    worker = WorkerProcess()
    answer = await worker.exchange(Verb.OFF, machine.target, die, 15.0)
    assert (answer.fault, answer.sent) == (FaultClass.UNREACHABLE, True)  # whether it arrived is not ours to say
    assert "port is closed" in answer.text
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heir:
        heir.bind((machine.target.address, machine.target.port))
        heir.setblocking(False)
        assert (await worker.exchange(Verb.STATUS, other.target, None, 15.0)).state is PowerState.ON
        with pytest.raises(BlockingIOError):
            heir.recv(2048)
    await worker.kill()
    assert children_s() - before_s < 2.0


async def test_a_worker_gives_way_to_the_leader(start_machine: StartMachine):
    worker = WorkerProcess()
    assert (await worker.exchange(Verb.STATUS, start_machine().target, None, 15.0)).ok
    assert worker.pid is not None
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(19, own + 5)
    await worker.kill()


async def test_fc_b15_a_worker_killed_after_off_leaves_nothing_that_the_next_walk_cannot_finish(
    bmc_pool: BmcPool, start_machine: StartMachine
):
    machine = start_machine()
    walk: asyncio.Task[CycleResult]

    async def progress(fact: Evidence) -> None:
        if fact.kind is EvidenceKind.ACCEPTED and fact.verb is Verb.OFF:
            walk.cancel()

    walk = asyncio.ensure_future(power_cycle(bmc_pool, machine.target, QUICK_WALK, yes, Pacing(), progress))
    with pytest.raises(asyncio.CancelledError):
        await walk
    assert machine.power == "off"
    result = await cycled(bmc_pool, machine.target)
    assert result.outcome is Outcome.POWERED_ON
    assert machine.orders == ["power 0", "power 1"]
    assert machine.boots == 1


async def test_workers_die_with_their_parent(start_machine: StartMachine, tmp_path: Path):
    """A coordinator that is killed leaves no worker behind that could still send something."""
    machine = start_machine()
    program = tmp_path / "parent.py"
    program.write_text(
        "import asyncio, os, sys\n"
        "from hostler_coordinator.bmc.answers import BmcTarget, Protocol, Verb\n"
        "from hostler_coordinator.bmc.worker_process import WorkerProcess\n"
        "async def main():\n"
        "    worker = WorkerProcess()\n"
        f"    target = BmcTarget('h', Protocol.IPMI, '127.0.0.1', {machine.target.port},"
        f" {machine.target.credentials_ref!r})\n"
        "    answer = await worker.exchange(Verb.STATUS, target, None, 15)\n"
        "    print(worker.pid, answer.ok, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    done = await asyncio.to_thread(_python, program)
    pid, ok = done.stdout.split()
    assert ok == "True"
    give_up_at = time.monotonic() + 10
    while _alive(int(pid)) and time.monotonic() < give_up_at:  # noqa: ASYNC110 - a process has no event
        await asyncio.sleep(0.05)
    assert not _alive(int(pid))


def _python(program: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, str(program)], env=env, capture_output=True, text=True, timeout=30, check=False
    )


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


def _ask(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return (done.stdout + done.stderr).casefold()


@pytest.mark.parametrize("state", ["on", "off"])
async def test_ipmitool_agrees_on_the_power_state(
    bmc_pool: BmcPool, start_machine: StartMachine, ipmitool: str, state: str
):
    machine = start_machine(power=state)
    answer = await bmc_pool.call(machine.target, Verb.STATUS)
    port = str(machine.target.port)
    where = ("-H", "127.0.0.1", "-p", port, "-U", USERNAME, "-P", PASSWORD)
    told = _ask([ipmitool, "-I", "lanplus", "-C", "3", "-R", "1", "-N", "5", *where, "chassis", "power", "status"])
    assert f"chassis power is {state}" in told
    assert answer.state.value == state


@pytest.mark.parametrize("state", ["on", "off"])
async def test_ipmipower_agrees_on_the_power_state(
    bmc_pool: BmcPool, start_machine: StartMachine, ipmipower: str, state: str
):
    machine = start_machine(power=state)
    answer = await bmc_pool.call(machine.target, Verb.STATUS)
    where = ("-h", f"127.0.0.1:{machine.target.port}", "-u", USERNAME, "-p", PASSWORD)
    told = _ask([ipmipower, "-D", "LAN_2_0", *where, "-I", "3", "-l", "admin", "-W", "opensesspriv", "--stat"])
    assert told.strip().endswith(f": {state}")
    assert answer.state.value == state


async def test_the_audit_finds_a_bmc_that_lets_suite_zero_in(start_machine: StartMachine, ipmitool: str):
    machine = start_machine()
    finding = await audit_suite_zero(machine.target, tool=ipmitool)
    assert finding.result is SuiteZero.OPEN
    assert (await audit_suite_zero(machine.target, tool="/nonexistent/ipmitool")).result is SuiteZero.UNKNOWN


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_300_bmcs_with_a_third_dead_neither_hang_nor_slow_the_others(
    start_machine: StartMachine, monkeypatch: pytest.MonkeyPatch
):
    """First sweep: nobody is known to be dead. Second sweep: the living are done while the dead are being probed."""
    monkeypatch.setenv("BMC_SECRET_OF_THE_DEAD", "ADMIN\nunused")
    probes: list[asyncio.Future[BmcAnswer]] = []
    machines = [start_machine(wait=False) for _ in range(200)]
    await_bmc(machines[-1].target.port, machines[-1].process)
    health = HealthSettings(poll_gap_s=0.0, order_gap_s=0.0, failures_to_open=1, probe_first_s=0.0)
    pool = BmcPool(dataclasses.replace(QUICK, power_workers=24, slow_workers=4, health=health))
    with contextlib.ExitStack() as silent:
        dead = [_silent_target(silent, number) for number in range(100)]
        living = [machine.target for machine in machines]
        mixed = [target for trio in zip(living[::2], living[1::2], dead, strict=True) for target in trio]
        try:
            answers = await asyncio.gather(*(pool.call(target, Verb.STATUS, tries=1) for target in mixed))
            assert [answer.ok for answer in answers] == [target in set(living) for target in mixed]
            assert {answer.fault for answer in answers if not answer.ok} <= {FaultClass.UNREACHABLE, FaultClass.WEDGED}
            assert pool.silent_bmcs() == 100

            probes += [asyncio.ensure_future(pool.call(target, Verb.STATUS, tries=1)) for target in dead]
            again = await asyncio.gather(*(pool.call(target, Verb.STATUS, tries=1) for target in living))
            assert all(answer.ok and answer.state is PowerState.ON for answer in again)
            assert sum(not probe.done() for probe in probes) > 50
        finally:
            await pool.close()
            for probe in probes:
                probe.cancel()
            await asyncio.gather(*probes, return_exceptions=True)


def _silent_target(silent: contextlib.ExitStack, number: int) -> BmcTarget:
    """A BMC that takes packets and says nothing."""
    taker = silent.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    taker.bind(("127.0.0.1", 0))
    port = taker.getsockname()[1]
    return BmcTarget(f"dead-{number}", Protocol.IPMI, "127.0.0.1", port, "env:BMC_SECRET_OF_THE_DEAD")
