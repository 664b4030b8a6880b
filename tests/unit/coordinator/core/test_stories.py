"""Whole campaigns on the real planner, ledger and engine, with scripted agents and BMCs: what must be so, happens."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hostler_contract.campaigns import CampaignState, ResolvedLimits, Window
from hostler_contract.domains import CauseKind
from hostler_contract.hosts import Hold, Retirement
from hostler_contract.work import DeadLetterState, EvidenceKind, PowerVerb, RebootMode, TaskState
from hostler_coordinator.fsck import problems
from hostler_coordinator.policy import Policy
from memory_fleet import START, Fleet

FAST = Policy(
    leader_grace_s=0.0,
    rescue_after_s=20.0,
    dead_after_s=40.0,
    boot_allowance_s=60.0,
    backoff_first_s=5.0,
    backoff_cap_s=20.0,
    usable_timeout_s=60.0,
    pull_timeout_s=60.0,
)


def limits(**fields: object) -> ResolvedLimits:
    return ResolvedLimits(**{"domains": {"fabric/ib-a": 2}, "drain_timeout_s": 10.0, **fields})


def ended(fleet: Fleet, name: str = "c-1") -> bool:
    return fleet.store.state.campaigns[name].ended_at is not None


async def test_a_campaign_reboots_every_host_once_and_never_more_than_its_budget() -> None:
    fleet = Fleet(10, policy=FAST)
    fleet.campaign(limits())
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert [len(machine.boots) for machine in fleet.machines.values()] == [1] * 10
    assert fleet.most_down["fabric/ib-a"] == 2
    assert not fleet.store.state.charges
    assert fleet.store.state.ledger("fabric/ib-a").charged == 0


async def test_without_any_limit_one_host_goes_at_a_time() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.campaign(limits(domains={}))
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert fleet.most_down["fabric/ib-a"] == 1


async def test_the_least_of_campaign_and_budget_holds() -> None:
    fleet = Fleet(6, policy=FAST)
    fleet.budget("fabric/ib-a", 1)
    fleet.campaign(limits(domains={"fabric/ib-a": 4}))
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.most_down["fabric/ib-a"] == 1


async def test_a_hung_agent_is_power_cycled_once_and_proved_by_its_boot() -> None:
    fleet = Fleet(5, policy=FAST)
    fleet.machines["gpu-003"].hang_on_offer = True
    fleet.campaign(limits())
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert [host for _, host, _ in fleet.power_calls] == ["gpu-003"]
    assert len(fleet.machines["gpu-003"].boots) == 1
    task = fleet.task("gpu-003")
    assert task is not None
    assert EvidenceKind.BOOT_CHANGED in {evidence.kind for evidence in task.evidence}


async def test_a_host_that_never_boots_becomes_a_dead_letter_and_stays_charged() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.machines["gpu-002"].never_boots = True
    fleet.campaign(limits())
    await fleet.run(1200, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.INCOMPLETE
    letter = fleet.store.state.dead_letters["c-1.gpu-002"]
    assert (letter.cause, letter.state) == ("no-boot", DeadLetterState.OPEN)
    charge = fleet.store.state.charge("gpu-002")
    assert charge is not None
    assert CauseKind.DEAD_LETTER in {cause.kind for cause in charge.causes}
    assert fleet.store.state.ledger("fabric/ib-a").charged == 1


async def test_a_wrong_bmc_password_is_not_tried_again() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.machines["gpu-002"].hang_on_offer = True
    fleet.machines["gpu-002"].bmc_code = "bmc-auth"
    fleet.campaign(limits())
    await fleet.run(1200, lambda: ended(fleet))
    assert fleet.store.state.dead_letters["c-1.gpu-002"].cause == "bmc-auth"


async def test_pause_takes_back_what_was_not_let_go_and_resume_goes_on() -> None:
    fleet = Fleet(8, policy=FAST)
    fleet.campaign(limits())
    await fleet.run(5)
    fleet.edit(state=CampaignState.PAUSED, state_reason="lunch")
    await fleet.run(30)
    boots = sum(len(machine.boots) for machine in fleet.machines.values())
    assert boots == 2
    assert not fleet.store.state.charges
    fleet.edit(state=CampaignState.RUNNING)
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED


async def test_abort_carries_on_what_was_let_go_and_starts_nothing_more() -> None:
    fleet = Fleet(8, policy=FAST)
    fleet.campaign(limits())
    await fleet.run(5)
    fleet.edit(state=CampaignState.ABORTING, state_reason="wrong fleet")
    await fleet.run(120, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.ABORTED
    assert sum(len(machine.boots) for machine in fleet.machines.values()) == 2
    assert not fleet.store.state.charges


async def test_a_new_leader_goes_on_and_reboots_nobody_twice() -> None:
    fleet = Fleet(10, policy=FAST)
    fleet.campaign(limits())
    for number in range(6):
        await fleet.run(7)
        fleet.fail_over(f"c{number + 2}")
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert [len(machine.boots) for machine in fleet.machines.values()] == [1] * 10
    assert fleet.most_down["fabric/ib-a"] <= 2


async def test_a_leader_that_dies_with_a_power_cycle_open_is_followed_after_the_bmc_session() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.machines["gpu-002"].hang_on_offer = True
    fleet.campaign(limits(), hosts=["gpu-002"])
    await fleet.run(300, lambda: bool(fleet.power_calls))
    begun = fleet.power_calls[0][0]
    fleet._events.clear()  # the walk dies with its leader
    fleet.fail_over("c2")
    await fleet.run(2000, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert len(fleet.power_calls) == 2
    assert fleet.power_calls[1][0] - begun >= FAST.intent_lifetime_s + FAST.bmc_session_timeout_s


async def test_a_hold_keeps_hands_off_and_says_so() -> None:
    fleet = Fleet(3, policy=FAST)
    fleet.store.seed(Hold(id="h1", host="gpu-002", reason="debugging", owner="bob", at=START, until=START + 200))
    fleet.campaign(limits())
    await fleet.run(150)
    assert not fleet.machines["gpu-002"].boots
    waiting = fleet.engine.plan.waiting["c-1"]
    assert waiting.reasons["held"].held_by == "bob"
    await fleet.run(300, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED


async def test_mass_silence_rescues_nobody_and_starts_nothing() -> None:
    fleet = Fleet(20, policy=FAST)
    await fleet.run(5)
    for machine in fleet.machines.values():
        machine.hung = True
    fleet.campaign(limits())
    await fleet.run(400)
    assert not fleet.power_calls
    assert sum(len(machine.boots) for machine in fleet.machines.values()) == 0
    assert "fabric/ib-a" in fleet.engine.plan.brakes
    assert len(fleet.store.state.charges) <= 2  # the two that were reserved before the silence could be judged


async def test_dead_hosts_count_against_the_budget() -> None:
    fleet = Fleet(12, policy=FAST)
    await fleet.run(5)
    fleet.machines["gpu-011"].hung = True
    fleet.machines["gpu-012"].hung = True
    await fleet.run(60)
    assert fleet.store.state.ledger("fabric/ib-a").charged == 2
    fleet.campaign(limits(), hosts=["gpu-001", "gpu-002"])
    await fleet.run(60)
    assert not fleet.machines["gpu-001"].boots
    why = fleet.engine.plan.waiting["c-1"].reasons["budget-full"]
    assert "gpu-011" in why.text


async def test_an_unknown_boot_id_proves_nothing() -> None:
    fleet = Fleet(2, policy=FAST)
    machine = fleet.machines["gpu-001"]
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(3)
    assert fleet.task("gpu-001") is not None
    fleet._events.clear()
    machine.up = True
    fleet.board.sightings["gpu-001"].connected = True
    fleet.board.sightings["gpu-001"].boot_id = ""
    await fleet.run(5)
    task = fleet.task("gpu-001")
    assert task is not None
    assert task.state is TaskState.ACTING


async def test_a_failing_command_is_tried_again_then_becomes_a_dead_letter_with_its_words() -> None:
    fleet = Fleet(2, policy=FAST)
    fleet.machines["gpu-001"].fail_with = "Call to Reboot failed: Connection timed out"
    fleet.campaign(limits())
    await fleet.run(600, lambda: ended(fleet))
    letter = fleet.store.state.dead_letters["c-1.gpu-001"]
    assert "Call to Reboot failed: Connection timed out" in letter.text
    assert letter.attempts == 2
    assert fleet.store.state.charge("gpu-001") is None  # the host is in service


async def test_the_failure_limit_pauses_and_names_the_hosts() -> None:
    fleet = Fleet(10, policy=FAST)
    fleet.machines["gpu-003"].never_boots = True
    fleet.machines["gpu-004"].never_boots = True
    fleet.campaign(limits(max_failures=2))
    await fleet.run(2000, lambda: fleet.state_of() is CampaignState.PAUSED)
    record = fleet.store.state.campaigns["c-1"]
    assert "gpu-003, gpu-004" in record.state_reason
    assert not fleet.machines["gpu-010"].boots


async def test_waves_open_when_the_one_before_has_ended() -> None:
    fleet = Fleet(7, policy=FAST)
    fleet.campaign(limits(domains={"fabric/ib-a": 5}, wave_sizes=(1, 3, 3)))
    await fleet.run(600, lambda: ended(fleet))
    first, second, third = (
        [fleet.machines[f"gpu-{n:03d}"].boots[0][0] for n in numbers] for numbers in ((1,), (2, 3, 4), (5, 6, 7))
    )
    assert max(first) < min(second)
    assert max(second) < min(third)


async def test_the_rate_spaces_starts() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.campaign(limits(domains={"fabric/ib-a": 4}, starts_per_minute=2.0))
    await fleet.run(600, lambda: ended(fleet))
    starts = sorted(machine.boots[0][0] for machine in fleet.machines.values())
    assert starts[2] - starts[0] >= 60.0


async def test_the_total_limit_counts_among_the_targets() -> None:
    fleet = Fleet(6, policy=FAST)
    fleet.campaign(limits(domains={"fabric/ib-a": 6}, total=2))
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.most_down["fabric/ib-a"] == 2


async def test_a_closed_window_starts_nothing_and_says_when_it_opens() -> None:
    fleet = Fleet(2, policy=FAST)
    window = Window(text="Sun 02:00-04:00 UTC", weekdays=(6,), start_minute=120, end_minute=240, zone="UTC")
    fleet.campaign(limits(windows=(window,)))
    await fleet.run(20)
    assert not any(machine.boots for machine in fleet.machines.values())
    why = fleet.engine.plan.waiting["c-1"].reasons["window-closed"]
    assert why.next_at is not None
    assert why.next_at > START


async def test_fc_a01_a_removed_host_frees_its_slot_once_and_ends_as_host_removed() -> None:
    fleet = Fleet(5, policy=FAST)
    fleet.campaign(limits(domains={"fabric/ib-a": 1}))
    await fleet.run(3)
    victim = next(host for host, machine in fleet.machines.items() if not machine.up)
    fleet._events.clear()
    fleet.store.remove(f"hosts/{victim}")
    await fleet.run(600, lambda: ended(fleet))
    task = fleet.task(victim)
    assert task is not None
    assert (task.state, task.code) == (TaskState.SKIPPED, "host-removed")
    assert fleet.state_of() is CampaignState.INCOMPLETE
    assert fleet.store.state.ledger("fabric/ib-a").charged == 0
    assert fleet.store.state.claim(victim).task == ""


async def test_fc_a05_a_restarted_agent_gets_its_own_slot_again() -> None:
    fleet = Fleet(2, policy=FAST)
    fleet.campaign(limits(domains={"fabric/ib-a": 1}))
    machine = fleet.machines["gpu-001"]
    machine.hung = True
    await fleet.run(2)
    task = fleet.task("gpu-001")
    assert task is not None
    token = task.token
    machine.hung = False
    fleet.attach(machine)
    await fleet.run(120, lambda: ended(fleet))
    task = fleet.task("gpu-001")
    assert task is not None
    assert (task.state, task.token) == (TaskState.SUCCEEDED, token)


async def test_fc_a24_a_power_cut_pauses_the_campaign_and_reboots_nothing_again() -> None:
    fleet = Fleet(40, policy=FAST)
    fleet.campaign(limits(domains={"fabric/ib-a": 1}))
    await fleet.run(3)
    for machine in fleet.machines.values():
        if machine.up:
            fleet.go_down(machine, "crash")
            fleet.after(5.0, partial(fleet.come_up, machine))
    await fleet.run(120)
    record = fleet.store.state.campaigns["c-1"]
    assert record.state is CampaignState.PAUSED
    assert "rebooted by themselves" in record.state_reason
    assert all(len(machine.boots) == 1 for machine in fleet.machines.values())


async def test_a_hard_campaign_drains_then_cycles_through_the_bmc() -> None:
    fleet = Fleet(3, policy=FAST)
    fleet.campaign(limits(), mode=RebootMode.HARD)
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert len(fleet.power_calls) == 3
    assert [len(machine.boots) for machine in fleet.machines.values()] == [1] * 3


async def test_planning_again_on_the_applied_result_yields_nothing_new() -> None:
    fleet = Fleet(10, policy=FAST)
    fleet.campaign(limits())
    await fleet.run(4)
    assert await fleet.engine.turn() is False
    commits = len(fleet.store.commits)
    for _ in range(20):
        await fleet.engine.turn()
    assert len(fleet.store.commits) == commits


async def test_a_store_that_does_not_answer_starts_nothing() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.campaign(limits())
    fleet.store.leading = False
    await fleet.run(20)
    assert not any(machine.boots for machine in fleet.machines.values())


async def test_a_token_ahead_of_the_store_raises_the_claim() -> None:
    fleet = Fleet(2, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.token = (0, 500)
    fleet.attach(machine)
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(60, lambda: ended(fleet))
    task = fleet.task("gpu-001")
    assert task is not None
    assert task.token is not None
    assert task.token.counter > 500
    assert task.state is TaskState.SUCCEEDED


async def test_a_host_whose_boot_id_was_never_known_is_recorded_at_the_go_and_proved() -> None:
    fleet = Fleet(2, policy=FAST)
    record = fleet.store.state.hosts["gpu-001"]
    fleet.store.seed(record.model_copy(update={"boot_id": None}))
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(120, lambda: ended(fleet))
    task = fleet.task("gpu-001")
    assert task is not None
    assert (task.boot_before, task.boot_after) == ("gpu-001-boot-1", "gpu-001-boot-2")
    assert task.state is TaskState.SUCCEEDED


def never_seen(fleet: Fleet, host: str) -> None:
    """Nobody has ever been heard from this host."""
    fleet.machines[host].hung = True
    del fleet.board.sightings[host]
    fleet.store.seed(fleet.store.state.hosts[host].model_copy(update={"boot_id": None}))


async def test_a_host_that_no_agent_ever_attached_from_takes_no_slot_until_one_does() -> None:
    fleet = Fleet(3, policy=FAST)
    never_seen(fleet, "gpu-001")
    fleet.campaign(limits(), hosts=["gpu-001", "gpu-002"])
    fleet.campaign(limits(), hosts=["gpu-003"], name="c-2")
    await fleet.run(400, lambda: bool(fleet.machines["gpu-002"].boots and fleet.machines["gpu-003"].boots))
    await fleet.run(400)
    assert fleet.task("gpu-001") is None
    assert fleet.store.state.charge("gpu-001") is None
    assert not fleet.power_calls
    why = fleet.engine.plan.waiting["c-1"].reasons["never-seen"]
    assert (why.text, why.since) == ("no agent has ever attached from it", START)
    assert "--mode hard" in why.next_step
    machine = fleet.machines["gpu-001"]
    machine.hung = False
    fleet.attach(machine)
    await fleet.run(400, lambda: ended(fleet))
    task = fleet.task("gpu-001")
    assert task is not None
    assert task.state is TaskState.SUCCEEDED


async def test_an_ordered_hard_reboot_of_a_host_that_was_never_seen_goes_to_its_bmc_and_proves_nothing() -> None:
    fleet = Fleet(3, policy=FAST)
    never_seen(fleet, "gpu-001")
    fleet.campaign(limits(), hosts=["gpu-001"], mode=RebootMode.HARD)
    await fleet.run(4000, lambda: ended(fleet))
    assert {(host, verb) for _, host, verb in fleet.power_calls} == {("gpu-001", PowerVerb.CYCLE)}
    assert fleet.store.state.dead_letters["c-1.gpu-001"].cause == "unproved"


async def test_a_refusal_gives_the_slot_back_and_counts_as_no_failure() -> None:
    fleet = Fleet(3, policy=FAST)
    fleet.machines["gpu-001"].refuse_with = "job 4711 of alice"
    fleet.campaign(limits(domains={"fabric/ib-a": 1}))
    await fleet.run(300, lambda: bool(fleet.machines["gpu-003"].boots))
    task = fleet.task("gpu-001")
    assert task is not None
    assert task.state is TaskState.PENDING
    assert task.refusals >= 1
    assert "job 4711 of alice" in task.reason
    assert fleet.machines["gpu-002"].boots
    assert fleet.machines["gpu-003"].boots
    fleet.machines["gpu-001"].refuse_with = ""
    await fleet.run(300, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED


async def test_the_campaigns_deadline_takes_back_what_was_not_let_go_and_fails_the_campaign() -> None:
    fleet = Fleet(20, policy=FAST)
    fleet.campaign(limits())
    fleet.edit(deadline_at=START + 15)
    await fleet.run(300, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.FAILED
    boots = sum(len(machine.boots) for machine in fleet.machines.values())
    assert 2 <= boots <= 4
    assert not fleet.store.state.charges


async def test_an_old_campaign_is_kept_as_one_record_with_its_summary() -> None:
    policy = replace(FAST, retention_s=100.0, retention_check_s=10.0)
    fleet = Fleet(70, policy=policy, boot_s=1.0)
    fleet.campaign(limits(domains={"fabric/ib-a": 70}))
    await fleet.run(60, lambda: ended(fleet))
    assert len(fleet.store.state.tasks("c-1")) == 70
    await fleet.run(150)
    record = fleet.store.state.campaigns["c-1"]
    assert record.summary == {"succeeded": 70}
    assert not fleet.store.state.tasks("c-1")
    assert not fleet.store.state.targets("c-1")


async def test_two_campaigns_never_hold_one_host_at_once() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.campaign(limits(), hosts=["gpu-001", "gpu-002"], name="c-1")
    fleet.campaign(limits(), hosts=["gpu-001", "gpu-003"], name="c-2")
    await fleet.run(1)
    assert fleet.store.state.claim("gpu-001").task == "c-1/gpu-001"
    assert fleet.task("gpu-001", "c-2") is None
    assert not problems(fleet.store.state)
    await fleet.run(300, lambda: ended(fleet, "c-1") and ended(fleet, "c-2"))
    assert len(fleet.machines["gpu-001"].boots) == 2  # once for each campaign, one after the other
    assert fleet.most_down["fabric/ib-a"] <= 2
    assert not problems(fleet.store.state)


async def test_a_target_that_is_retired_while_it_waits_does_not_keep_its_campaign_open() -> None:
    fleet = Fleet(3, policy=FAST)
    fleet.campaign(limits(domains={"fabric/ib-a": 1}))
    await fleet.run(3)
    record = fleet.store.state.hosts["gpu-003"]
    fleet.store.seed(record.model_copy(update={"retired": Retirement(ticket="RMA-7", by="bob", at=fleet.clock.now())}))
    await fleet.run(300, lambda: ended(fleet))
    task = fleet.task("gpu-003")
    assert task is not None
    assert (task.state, task.code) == (TaskState.SKIPPED, "retired")
    assert fleet.state_of() is CampaignState.INCOMPLETE


async def test_a_host_that_moves_to_another_fabric_while_it_waits_is_started_once() -> None:
    fleet = Fleet(3, policy=FAST)
    fleet.campaign(limits(domains={"fabric/ib-a": 1, "fabric/ib-b": 1}))
    await fleet.run(3)
    fleet.store.seed(fleet.store.state.hosts["gpu-003"].model_copy(update={"fabric": "ib-b"}))
    await fleet.run(300, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert len(fleet.machines["gpu-003"].boots) == 1
    assert not problems(fleet.store.state)


async def test_what_a_dead_host_last_said_of_its_job_outlives_the_leader() -> None:
    fleet = Fleet(4, policy=FAST)
    machine = fleet.machines["gpu-002"]
    machine.blocked_by = "job 4711 of alice"
    fleet.attach(machine)
    await fleet.run(5)
    machine.hung = True
    await fleet.run(60)
    fleet.fail_over("c2")
    fleet.campaign(limits(), hosts=["gpu-002"])
    await fleet.run(200)
    assert not fleet.power_calls
    why = fleet.engine.plan.waiting["c-1"].reasons["blocked"]
    assert why.held_by == "job 4711 of alice"
