"""Field cases of reboot coordination on the real planner, engine and ledger: each shows what its *Expected* says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from field_stories import FABRIC, FAST, MINUTE, REAL, booted, charged, details, ended, limits, task_state, waits
from hostler_contract.campaigns import CampaignState
from hostler_contract.domains import CauseKind
from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from hostler_contract.work import EvidenceKind, TaskState
from hostler_coordinator.fsck import problems
from hostler_coordinator.windows import parse_windows
from memory_fleet import Fleet

INHIBITED = "inhibited by installer (pid 1844): update in progress"


# -- A: slots, drains, probes ----------------------------------------------------------------------------------------


async def test_fc_a01_a_host_removed_while_no_one_leads_is_freed_once_by_the_next_leader() -> None:
    fleet = Fleet(20, policy=FAST)
    fleet.machines["gpu-007"].never_boots = True
    fleet.campaign(limits(), hosts=["gpu-007", *(host for host in fleet.machines if host != "gpu-007")])
    await fleet.run(30)
    assert [charge.host for charge in fleet.store.state.charges.values()] == ["gpu-007"]
    why = fleet.engine.plan.waiting["c-1"].reasons["budget-full"]
    assert (why.held_by, why.since) == ("gpu-007: campaign c-1", fleet.store.state.charges["gpu-007"].since)
    fleet.store.leading = False
    fleet.store.remove("hosts/gpu-007")
    await fleet.run(30)
    fleet.store.leading = True
    fleet.fail_over("c2")
    await fleet.run(5)
    task = fleet.task("gpu-007")
    assert task is not None
    assert (task.state, task.code) == (TaskState.SKIPPED, "host-removed")
    assert len(booted(fleet)) >= 2
    await fleet.run(600, lambda: ended(fleet))
    freed = [entry for entry in fleet.store.audit_entries if entry.action == "task.host-removed"]
    assert [(entry.host, entry.reason) for entry in freed] == [("gpu-007", "the host was removed from the inventory")]
    assert fleet.most_down[FABRIC] == 1
    assert problems(fleet.store.state) == []


async def test_fc_a02_a_blocked_host_takes_no_slot_and_says_by_what_it_is_blocked() -> None:
    fleet = Fleet(2, policy=REAL)
    fleet.machines["gpu-001"].blocked_by = "job 4711 of alice"
    fleet.beat(fleet.machines["gpu-001"])
    fleet.campaign(limits())
    await fleet.run(5 * MINUTE, lambda: task_state(fleet, "gpu-002") is TaskState.SUCCEEDED)
    assert task_state(fleet, "gpu-002") is TaskState.SUCCEEDED
    await fleet.run(10 * MINUTE)
    why = fleet.engine.plan.waiting["c-1"].reasons["blocked"]
    assert why.text == "blocked by job 4711 of alice"
    assert (booted(fleet), charged(fleet)) == (["gpu-002"], 0)
    fleet.machines["gpu-001"].blocked_by = ""
    fleet.beat(fleet.machines["gpu-001"])
    await fleet.run(5 * MINUTE, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED


async def test_fc_a02_a_job_that_begins_after_the_slot_was_granted_takes_the_slot_back() -> None:
    fleet = Fleet(2, policy=FAST)
    first = fleet.machines["gpu-001"]
    fleet.campaign(limits())
    fleet.engine._courier = Silence()  # the assignment is still on its way
    await fleet.run(2)
    assert task_state(fleet, "gpu-001") is TaskState.RESERVED
    first.blocked_by = "job 4711 of alice"
    fleet.beat(first)
    fleet.engine._courier = fleet
    await fleet.run(120, lambda: task_state(fleet, "gpu-002") is TaskState.SUCCEEDED)
    assert booted(fleet) == ["gpu-002"]
    task = fleet.task("gpu-001")
    assert task is not None
    assert (task.state, task.code, task.reason) == (TaskState.PENDING, "blocked", "blocked by job 4711 of alice")


class Silence:
    """A courier that loses everything."""

    def send(self, host: str, response: object) -> bool:
        return False


async def test_fc_a03_a_campaigns_own_drain_mark_is_undone_before_its_slot_is_freed_also_by_the_next_leader() -> None:
    fleet = Fleet(2, policy=FAST)
    machine = fleet.machines["gpu-001"]
    fleet.campaign(limits(), hosts=["gpu-001"])
    machine.mark = "c-1/gpu-001"
    await fleet.run(60, lambda: task_state(fleet, "gpu-001") is TaskState.PROVING)
    fleet.fail_over("c2")
    await fleet.run(20)
    assert (task_state(fleet, "gpu-001"), charged(fleet)) == (TaskState.PROVING, 1)
    machine.mark = ""
    fleet.beat(machine)
    await fleet.run(20, lambda: ended(fleet))
    assert (fleet.state_of(), charged(fleet)) == (CampaignState.SUCCEEDED, 0)


async def test_fc_a04_a_check_that_cannot_be_run_is_unknown_and_brings_no_second_reboot() -> None:
    fleet = Fleet(2, policy=FAST)
    for machine in fleet.machines.values():
        machine.usability = pb.USABILITY_UNKNOWN
        fleet.beat(machine)
    await fleet.run(120)
    assert booted(fleet) == []  # nothing is ever rebooted for a check's sake
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(1200, lambda: ended(fleet))
    letter = fleet.store.state.dead_letters["c-1.gpu-001"]
    assert letter.cause == "unusable"
    await fleet.run(3600)
    assert len(fleet.machines["gpu-001"].boots) == 1
    assert fleet.power_calls == []


async def test_fc_a05_the_slot_count_is_never_two_for_an_agent_that_asks_again() -> None:
    fleet = Fleet(3, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.hung = True
    fleet.campaign(limits())
    await fleet.run(1)
    before = fleet.task("gpu-001")
    for _ in range(5):
        machine.hung = False
        fleet.attach(machine)
        machine.hung = True
        await fleet.run(1)
        after = fleet.task("gpu-001")
        assert charged(fleet) == 1
        assert before is not None
        assert after is not None
        assert (after.id, after.token) == (before.id, before.token)
    assert booted(fleet) == []


# -- A: what proves a reboot -----------------------------------------------------------------------------------------


async def test_fc_a06_shutting_down_then_down_then_done_with_the_slot_held_and_no_oob_before() -> None:
    fleet = Fleet(3, policy=REAL)
    machine = fleet.machines["gpu-001"]
    machine.shutdown_s, machine.boot_s = 9 * MINUTE, 8 * MINUTE
    fleet.campaign(limits())
    await fleet.run(5, lambda: task_state(fleet, "gpu-001") is TaskState.ACTING)
    begun = fleet.clock.now()
    seen: list[str] = []
    while task_state(fleet, "gpu-001") is TaskState.ACTING:
        await fleet.run(5)
        seen.append(waits(fleet, "gpu-001"))
        if seen[-1]:
            assert charged(fleet) == 1
    assert 16.9 * MINUTE <= fleet.clock.now() - begun <= 17.2 * MINUTE
    words = [word for number, word in enumerate(seen) if word and word not in seen[:number]]
    assert words == ["shutting-down", "down"]
    assert fleet.power_calls == []
    assert (len(machine.boots), fleet.most_down[FABRIC]) == (1, 1)


async def test_fc_a06_quick_boots_that_were_learned_do_not_cut_a_long_shutdown_short() -> None:
    fleet = Fleet(8, policy=replace(REAL, boots_to_learn=3))
    slow = fleet.machines["gpu-008"]
    slow.shutdown_s, slow.boot_s = 9 * MINUTE, 2 * MINUTE
    fleet.campaign(limits())
    await fleet.run(60 * MINUTE, lambda: task_state(fleet, "gpu-008") is TaskState.ACTING)
    assert fleet.engine.world().allowances[""] == REAL.boot_allowance_least_s
    await fleet.run(60 * MINUTE, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert fleet.power_calls == []
    assert len(slow.boots) == 1


async def test_fc_a07_a_userspace_restart_is_no_reboot_and_the_next_rung_follows() -> None:
    fleet = Fleet(2, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.fail_with = "userspace restarted, kernel did not"
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(10, lambda: task_state(fleet, "gpu-001") is TaskState.BACKING_OFF)
    task = fleet.task("gpu-001")
    assert task is not None
    assert task.state is TaskState.BACKING_OFF
    assert "userspace restarted, kernel did not" in task.reason
    machine.fail_with = ""
    await fleet.run(120, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert len(machine.boots) == 1


async def test_fc_a08_a_boot_between_two_heartbeats_is_done_at_its_first_word_and_closes_all_work_of_the_boot() -> None:
    fleet = Fleet(3, policy=replace(FAST, silence_s=90.0, backoff_first_s=300.0, backoff_cap_s=300.0))
    machine = fleet.machines["gpu-001"]
    machine.fail_with = "Call to Reboot failed: Connection timed out"
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(10)
    assert task_state(fleet, "gpu-001") is TaskState.BACKING_OFF  # half finished, and of another campaign
    machine.fail_with = ""
    machine.boot_s = 0.5
    fleet.campaign(limits(), hosts=["gpu-001"], name="c-2")
    await fleet.run(20, lambda: ended(fleet, "c-2"))
    assert fleet.state_of("c-2") is CampaignState.SUCCEEDED
    await fleet.run(400, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert "by itself" in details(fleet, "gpu-001")
    assert len(machine.boots) == 1
    assert problems(fleet.store.state) == []


async def test_fc_a10_the_budget_is_rebuilt_before_the_first_grant_of_every_leader() -> None:
    fleet = Fleet(31, policy=REAL)
    machine = fleet.machines["gpu-010"]
    machine.never_boots = True
    fleet.campaign(limits(), hosts=["gpu-010", *(host for host in fleet.machines if host != "gpu-010")])
    await fleet.run(30, lambda: not machine.up)
    await fleet.run(1)
    fleet.fail_over("c2")
    await fleet.run(31 * MINUTE)
    assert [host for _, host, _ in fleet.power_calls] == ["gpu-010"]  # overtime escalates
    await fleet.run(30 * MINUTE)
    fleet.fail_over("c3")
    await fleet.run(20 * MINUTE)
    assert booted(fleet) == ["gpu-010"]
    assert (charged(fleet), fleet.most_down[FABRIC]) == (1, 1)
    assert problems(fleet.store.state) == []


async def test_fc_a11_two_that_never_return_stay_out_of_service_and_halt_the_campaign_by_name() -> None:
    fleet = Fleet(10, policy=REAL)
    order = ["gpu-003", "gpu-004", *(host for host in fleet.machines if host not in {"gpu-003", "gpu-004"})]
    for host in order[:2]:
        fleet.machines[host].never_boots = True
    fleet.campaign(limits(domains={FABRIC: 2}, max_failures=2), hosts=order)
    await fleet.run(20)
    task = fleet.task("gpu-003")
    assert task is not None
    assert task.deadline_at == (task.go_at or 0.0) + REAL.boot_allowance_s + REAL.go_lifetime_s
    assert waits(fleet, "gpu-003") == "down"
    await fleet.run(35 * MINUTE)
    assert {host for _, host, _ in fleet.power_calls} == {"gpu-003", "gpu-004"}
    await fleet.run(3 * 60 * MINUTE, lambda: fleet.state_of() is CampaignState.PAUSED)
    record = fleet.store.state.campaigns["c-1"]
    assert record.state_reason == "failure limit reached (2 of 2): gpu-003, gpu-004"
    await fleet.run(60 * MINUTE)
    kinds = [{cause.kind for cause in charge.causes} for charge in fleet.store.state.charges.values()]
    assert [CauseKind.DEAD_LETTER in found for found in kinds] == [True, True]
    assert (charged(fleet), sorted(booted(fleet))) == (2, ["gpu-003", "gpu-004"])


async def test_fc_a12_the_old_boots_word_on_its_own_reboot_is_a_hint_and_boot_evidence_decides() -> None:
    fleet = Fleet(2, policy=REAL)
    first, second = fleet.machines["gpu-001"], fleet.machines["gpu-002"]
    first.shutdown_s, first.boot_s = 6.0, 4 * MINUTE
    second.ignores_command = True
    fleet.campaign(limits(domains={FABRIC: 2}, attempts=1))
    await fleet.run(3)
    for machine in (first, second):
        fleet.say_of_old_boot(machine, pb.OUTCOME_KIND_DONE)  # exit 0, or SIGTERM: "done", says the old boot
    await fleet.run(60)
    assert [task_state(fleet, host) for host in fleet.machines] == [TaskState.ACTING] * 2
    await fleet.run(30 * MINUTE, lambda: ended(fleet))
    assert task_state(fleet, "gpu-001") is TaskState.SUCCEEDED
    assert task_state(fleet, "gpu-002") is TaskState.DEAD_LETTER


async def test_fc_a13_a_failed_command_is_never_in_progress_without_a_running_or_a_next_attempt() -> None:
    fleet = Fleet(2, policy=FAST)
    words = "Failed to set wall message, ignoring: Connection timed out Call to Reboot failed: Connection timed out"
    fleet.machines["gpu-001"].fail_with = words
    fleet.campaign(limits(attempts=3), hosts=["gpu-001"])
    pauses: set[float] = set()
    while not ended(fleet):
        await fleet.run(1)
        task = fleet.task("gpu-001")
        assert task is not None
        if task.state is TaskState.BACKING_OFF:
            assert task.next_attempt_at is not None
            pauses.add(task.next_attempt_at - task.since)
            assert task.reason == words
        elif task.state is not TaskState.DEAD_LETTER:
            assert task.deadline_at is not None
    letter = fleet.store.state.dead_letters["c-1.gpu-001"]
    assert words in letter.text
    assert (letter.attempts, len(pauses)) == (3, 2)
    told = [(entry.action, entry.result) for entry in fleet.store.audit_entries if entry.action == "task.attempt"]
    assert told == [("task.attempt", "failed")] * 2
    assert all("attempt" in detail for detail in details(fleet, "gpu-001").split("; ") if "failed" in detail.lower())


async def test_fc_a24_a_thousand_hosts_that_boot_at_once_are_one_event_and_nothing_is_rebooted_again() -> None:
    fleet = Fleet(1000, policy=FAST)
    fleet.campaign(limits(), hosts=list(fleet.machines)[:300])
    await fleet.run(3)
    for number, machine in enumerate(fleet.machines.values()):
        if machine.up:
            fleet.go_down(machine, "power cut")
            fleet.after(5.0 + number % 10, partial(fleet.come_up, machine))
    entries = len(fleet.store.audit_entries)
    await fleet.run(30)
    record = fleet.store.state.campaigns["c-1"]
    assert (record.state, record.paused_by_rule) == (CampaignState.PAUSED, True)
    assert "hosts of fabric/ib-a rebooted by themselves within a minute" in record.state_reason
    told = fleet.store.audit_entries[entries:]
    assert [entry.action for entry in told if entry.action == "campaign.paused"] == ["campaign.paused"]
    assert len(told) < 10
    assert all(len(machine.boots) == 1 for machine in fleet.machines.values())
    assert fleet.power_calls == []


async def test_fc_a25_an_agent_that_forgot_its_work_is_not_rebooted_again_by_it() -> None:
    fleet = Fleet(2, policy=FAST)
    machine = fleet.machines["gpu-001"]
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(5, lambda: not machine.up)
    machine.phase, machine.task, machine.token = "", "", (0, 0)  # its file was empty when it started again
    await fleet.run(120, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert len(machine.boots) == 1


async def test_fc_a25_an_agent_that_forgot_on_the_old_boot_is_not_rebooted_and_a_person_is_called() -> None:
    fleet = Fleet(2, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.ignores_command = True
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(5, lambda: task_state(fleet, "gpu-001") is TaskState.ACTING)
    machine.phase, machine.task, machine.token, machine.ignores_command = "", "", (0, 0), False
    fleet.attach(machine)
    await fleet.run(FAST.shutdown_timeout_s - 10)
    assert machine.boots == []
    await fleet.run(300, lambda: ended(fleet))
    assert (fleet.state_of(), machine.boots) == (CampaignState.INCOMPLETE, [])
    # It was let go, and nobody knows whether the command was given: it stays charged.
    assert fleet.store.state.dead_letters["c-1.gpu-001"].cause == "still-up"
    assert fleet.store.state.ledger(FABRIC).charged == 1


async def test_fc_a26_a_shutdown_that_hangs_gets_one_reset_at_its_deadline_proved_by_a_new_boot() -> None:
    fleet = Fleet(3, policy=REAL)
    machine = fleet.machines["gpu-001"]
    machine.ignores_command = True
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(20)
    fleet.beat(machine)
    machine.hung = True
    fleet.board.detached(machine.host, "c1", machine.session, "end of stream", fleet.clock.now())
    task = fleet.task("gpu-001")
    assert task is not None
    deadline = task.deadline_at or 0.0
    await fleet.run(60 * MINUTE, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert [host for _, host, _ in fleet.power_calls] == ["gpu-001"]
    assert 0.0 <= fleet.power_calls[0][0] - deadline < 2.0
    asked = [entry for entry in fleet.store.audit_entries if entry.action == "host.power-cycle"]
    assert [entry.reason.split(":")[0] for entry in asked] == ["shutdown started, host did not restart"]
    assert EvidenceKind.BOOT_CHANGED in {evidence.kind for evidence in (fleet.task("gpu-001") or task).evidence}


async def test_fc_a27_an_inhibited_reboot_is_asked_again_after_a_pause_and_never_goes_to_the_bmc() -> None:
    fleet = Fleet(3, policy=REAL)
    machine = fleet.machines["gpu-001"]
    machine.refuse_code, machine.refuse_with = "inhibited", INHIBITED
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(10 * MINUTE)
    task = fleet.task("gpu-001")
    assert task is not None
    assert (task.state, task.code, task.reason) == (TaskState.PENDING, "inhibited", INHIBITED)
    assert 8 <= task.refusals <= 11
    refused = [entry for entry in fleet.store.audit_entries if entry.result == "refused"]
    assert {(entry.action, entry.host, entry.reason) for entry in refused} == {("task.attempt", "gpu-001", INHIBITED)}
    assert fleet.engine.plan.waiting["c-1"].reasons["refused"].text == f"refused: {INHIBITED}"
    machine.refuse_with = ""
    await fleet.run(5 * MINUTE, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert fleet.power_calls == []


async def test_fc_a27_a_reboot_that_is_not_permitted_is_for_a_person_at_once() -> None:
    fleet = Fleet(3, policy=REAL)
    machine = fleet.machines["gpu-001"]
    machine.refuse_code, machine.refuse_permanent = "not-permitted", True
    machine.refuse_with = "Call to Reboot failed: Interactive authentication required."
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(30, lambda: ended(fleet))
    letter = fleet.store.state.dead_letters["c-1.gpu-001"]
    assert (letter.cause, letter.attempts) == ("not-permitted", 1)
    assert "polkit" in letter.suggestion
    assert fleet.power_calls == []


async def test_fc_a28_a_host_that_returns_under_another_name_and_address_is_the_same_host() -> None:
    fleet = Fleet(2, policy=FAST)
    record = fleet.store.state.hosts["gpu-001"]
    fleet.store.seed(record.model_copy(update={"address": "10.1.0.11"}))
    machine = fleet.machines["gpu-001"]
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(5, lambda: not machine.up)
    machine.hostname, machine.address = "gpu-001.site.example", "10.1.0.99"
    await fleet.run(60, lambda: ended(fleet))
    assert (fleet.state_of(), charged(fleet)) == (CampaignState.SUCCEEDED, 0)
    await fleet.run(2)
    assert fleet.store.state.hosts["gpu-001"].flags == (
        "name: calls itself gpu-001.site.example",
        "address: comes from 10.1.0.99, inventory says 10.1.0.11",
    )
    assert len(fleet.store.state.hosts) == 2


async def test_fc_a30_a_host_granted_in_the_window_is_not_granted_again_in_the_repeated_hour() -> None:
    fleet = Fleet(3, policy=FAST)
    fleet.clock.time = datetime(2026, 10, 24, 23, 50, tzinfo=UTC).timestamp()
    fleet.fail_over("c2")
    fleet.campaign(limits(windows=parse_windows(("Sun 02:00-04:00 Europe/Berlin",))))
    fleet.machines["gpu-003"].blocked_by = "job 1"
    fleet.beat(fleet.machines["gpu-003"])
    await fleet.run(5 * MINUTE)
    why = fleet.engine.plan.waiting["c-1"].reasons["window-closed"]
    opens = datetime(2026, 10, 25, 0, 0, tzinfo=UTC).timestamp()
    assert why.next_at == opens
    await fleet.run(3 * 60 * MINUTE + 10 * MINUTE)
    starts = [when for machine in fleet.machines.values() for when, _ in machine.boots]
    assert len(starts) == 2
    assert all(opens <= when < opens + MINUTE for when in starts)
