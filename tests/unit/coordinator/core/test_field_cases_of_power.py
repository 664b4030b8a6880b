"""Field cases of power, and of people in front of it, on the real planner, engine and ledger."""

from __future__ import annotations

from collections import Counter

from field_stories import FABRIC, FAST, MINUTE, REAL, booted, charged, ended, limits, task_state, waits
from hostler_contract.campaigns import CampaignState
from hostler_contract.work import RebootMode, TaskState
from hostler_coordinator.fsck import problems
from memory_fleet import Fleet, Machine

# -- B: power --------------------------------------------------------------------------------------------------------


async def test_fc_b01_while_agents_are_heard_no_bmc_answer_brings_a_power_order() -> None:
    fleet = Fleet(41, policy=REAL)
    for machine in list(fleet.machines.values())[:40]:
        machine.blocked_by, machine.bmc_code = "job 7", "bmc-unreachable"
        fleet.beat(machine)
    fleet.campaign(limits(domains={FABRIC: 41}))
    await fleet.run(10 * MINUTE)
    assert (fleet.power_calls, fleet.bmc_orders) == ([], [])
    assert booted(fleet) == ["gpu-041"]


async def test_fc_b03_a_bmc_that_is_not_trusted_is_for_a_person_and_the_slot_stays_held() -> None:
    fleet = Fleet(3, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.hang_on_offer, machine.bmc_code = True, "bmc-lies"
    fleet.campaign(limits())
    await fleet.run(600, lambda: bool(fleet.store.state.dead_letters))
    letter = fleet.store.state.dead_letters["c-1.gpu-001"]
    assert letter.cause == "bmc-lies"
    assert "power-cycle on site" in letter.suggestion
    await fleet.run(120)
    assert (charged(fleet), booted(fleet), fleet.bmc_orders) == (1, [], [])


async def test_fc_b14_the_oob_steps_of_a_host_are_in_the_audit_with_their_reason() -> None:
    fleet = Fleet(3, policy=FAST)
    fleet.machines["gpu-001"].hang_on_offer = True
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(600, lambda: ended(fleet))
    told = [(entry.action, entry.result) for entry in fleet.store.audit_entries if entry.host == "gpu-001"]
    assert told == [("host.power-cycle", "asked"), ("host.power-cycled", "done")]


async def test_fc_b15_a_leader_that_dies_between_off_and_on_is_followed_by_one_on() -> None:
    fleet = Fleet(4, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.hang_on_offer = True
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(300, lambda: not machine.powered)
    off_at = fleet.clock.now()
    fleet.fail_over("c2")
    await fleet.run(2000, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert [order for _, _, order in fleet.bmc_orders] == ["off", "on"]
    bound_s = FAST.intent_lifetime_s + FAST.bmc_session_timeout_s
    assert fleet.bmc_orders[-1][0] - off_at <= bound_s + 5.0
    assert len(machine.boots) == 1


async def test_fc_b18_a_hung_agents_job_is_not_power_cycled_away() -> None:
    fleet = Fleet(3, policy=REAL)
    machine = fleet.machines["gpu-001"]
    machine.blocked_by = "job 4711 of alice"
    fleet.beat(machine)
    machine.hung = True
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(60 * MINUTE)
    assert fleet.power_calls == []
    why = fleet.engine.plan.waiting["c-1"].reasons["blocked"]
    assert why.text == "blocked by job 4711 of alice, as its agent said before it fell silent"
    assert "--force" in why.next_step


async def test_fc_b18_an_agent_that_hangs_while_it_drains_a_job_calls_a_person_and_not_its_bmc() -> None:
    fleet = Fleet(3, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.blocked_by, machine.can_drain, machine.hang_on_offer = "job 4711 of alice", True, True
    fleet.beat(machine)
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.power_calls == []
    letter = fleet.store.state.dead_letters["c-1.gpu-001"]
    assert letter.cause == "job-may-run"
    assert "job 4711 of alice may still run" in letter.text
    assert charged(fleet) == 1


async def test_fc_b18_with_force_the_operator_has_decided_and_the_host_is_rescued() -> None:
    fleet = Fleet(3, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.blocked_by = "job 4711 of alice"
    fleet.beat(machine)
    machine.hung = True
    fleet.campaign(limits(), hosts=["gpu-001"], force=True)
    await fleet.run(600, lambda: bool(fleet.power_calls))
    assert [host for _, host, _ in fleet.power_calls] == ["gpu-001"]


async def test_fc_b19_after_a_control_fault_no_further_power_order_is_given_without_a_person() -> None:
    fleet = Fleet(3, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.hang_on_offer, machine.bmc_code = True, "bmc-hardware"
    fleet.no_retry.add("bmc-hardware")
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(3600)
    assert len(fleet.power_calls) == 1
    assert fleet.store.state.dead_letters["c-1.gpu-001"].cause == "bmc-hardware"


async def test_fc_b20_powered_but_not_running_is_not_done_and_the_next_step_follows_at_the_deadline() -> None:
    fleet = Fleet(3, policy=REAL)
    machine = fleet.machines["gpu-001"]
    machine.never_boots = True
    fleet.power_text = "off and on were both seen; powered, host not running (Quiesced)"
    fleet.campaign(limits(), hosts=["gpu-001"], mode=RebootMode.HARD)
    await fleet.run(20 * MINUTE)
    task = fleet.task("gpu-001")
    assert task is not None
    assert (task.state, waits(fleet, "gpu-001")) == (TaskState.POWER_CYCLED, "booting")
    assert "powered, host not running (Quiesced)" in task.reason
    await fleet.run(3 * 60 * MINUTE, lambda: ended(fleet))
    assert len(fleet.power_calls) == 2
    gap_s = fleet.power_calls[1][0] - fleet.power_calls[0][0]
    assert gap_s >= REAL.boot_allowance_s
    assert fleet.store.state.dead_letters["c-1.gpu-001"].cause == "no-boot"


# -- D: people -------------------------------------------------------------------------------------------------------


def _stage_of_d04(fleet: Fleet) -> Machine:
    """20 hosts, budget 3; the sixth is slow to go down, the seventh's agent hangs, the eighth is not let go."""
    fleet.machines["gpu-006"].shutdown_s = 30.0
    fleet.machines["gpu-007"].hang_on_offer = True
    fleet.campaign(limits(domains={FABRIC: 3}))
    return fleet.machines["gpu-007"]


async def test_fc_d04_cancelled_in_every_stage_each_host_comes_to_its_safe_end_under_the_next_leader() -> None:
    fleet = Fleet(20, policy=FAST)
    off = _stage_of_d04(fleet)
    for host in list(fleet.machines)[7:]:
        fleet.machines[host].slow_to_start = True
    await fleet.run(300, lambda: not off.powered)
    before = Counter(task_state(fleet, host) for host in fleet.machines)
    assert before == {
        TaskState.SUCCEEDED: 5,
        TaskState.ACTING: 1,
        TaskState.POWER_CYCLING: 1,
        TaskState.RESERVED: 1,
        TaskState.PENDING: 12,
    }
    fleet.edit(state=CampaignState.ABORTING, state_reason="cancelled by alice")
    fleet.fail_over("c2")
    await fleet.run(1200, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.ABORTED
    counts = fleet.store.state.counts("c-1")
    never_moved = 20 - sum(counts.values())
    assert (counts[TaskState.SUCCEEDED], counts[TaskState.ABORTED] + never_moved) == (7, 13)
    assert task_state(fleet, "gpu-008") is TaskState.ABORTED
    assert booted(fleet) == [f"gpu-{number:03d}" for number in range(1, 8)]
    assert (off.powered, off.up, len(off.boots)) == (True, True, 1)
    assert not fleet.store.state.charges
    assert problems(fleet.store.state) == []


async def test_fc_d12_an_ordered_power_off_is_never_seen_as_on_again() -> None:
    fleet = Fleet(2, policy=FAST)
    fleet.campaign(limits(), hosts=["gpu-001"], operation="power_off")
    await fleet.run(120, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert [order for _, _, order in fleet.bmc_orders] == ["off"]
    assert not fleet.machines["gpu-001"].up
