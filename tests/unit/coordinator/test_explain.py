"""Every host and every campaign has a why: one sentence, a code, a holder, since when and what is next."""

from __future__ import annotations

from typing import Any

import pytest

from hostler_contract.domains import Cause, CauseKind
from hostler_contract.hosts import DrainMark, Hold, HoldKind, Retirement, Usability
from hostler_contract.views import HostWhy
from hostler_contract.work import TaskState, Verdict
from hostler_coordinator import ledger
from hostler_coordinator.draft import Draft
from hostler_coordinator.explain import campaign_waits, host_why
from hostler_coordinator.live import PowerReport, PowerResult, ReportKind
from hostler_coordinator.policy import Policy
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.standing import STATES, host_state
from service_office import ALICE, NOON, Office, request


@pytest.fixture
def office() -> Office:
    return Office()


async def submitted(office: Office, *hosts: str, key: str = "k1", **more: Any) -> str:
    campaign, _ = await CampaignService(office.desk()).submit(ALICE, key, request(*hosts, **more), 0, "", True)
    await office.turn()
    return campaign.id


def why(office: Office, name: str) -> HostWhy:
    return host_why(office.world(), office.host(name))


async def charge(office: Office, name: str, kind: CauseKind) -> None:
    draft = Draft(office.state)
    ledger.add_cause(draft, office.host(name), Cause(kind=kind, ref="", since=office.now_s - 60.0))
    await office.store.commit(draft.change())


def test_an_idle_host_says_that_it_waits_for_nothing(office: Office):
    office.fleet(1)
    told = why(office, "gpu-001")
    assert told.waiting_for == "nothing: no work is waiting for it"
    assert (told.code, told.state, told.verdict) == ("idle", "up", Verdict.OK)
    assert told.boot_id == "boot-gpu-001-1"
    assert told.charged_to == ()
    assert told.as_of == NOON


def test_hosts_at_rest_name_who_holds_them_and_since_when(office: Office):
    gone = Retirement(ticket="RMA-7", by="carol", at=NOON - 10.0)
    office.enrol("gone", retired=gone)
    office.enrol("kept", drain=DrainMark(owner="dave", reason="fan noise", at=NOON - 20.0))
    office.enrol("off-limits")
    office.store.seed(
        Hold(id="1", host="h-off-limits", kind=HoldKind.FIRMWARE, reason="BIOS", owner="eve", at=NOON, until=NOON + 60)
    )
    office.enrol("unborn", heard=False)
    retired, drained, held, unseen = (why(office, name) for name in ("gone", "kept", "off-limits", "unborn"))
    assert (retired.state, retired.code, retired.held_by) == ("retired", "retired", "carol")
    assert "RMA-7" in retired.waiting_for
    assert (drained.state, drained.held_by, drained.since) == ("drained", "dave", NOON - 20.0)
    assert drained.next_step == "hostler host undrain kept"
    assert (held.state, held.code, held.held_by, held.next_at) == ("held", "held", "eve", NOON + 60)
    assert "firmware" in held.waiting_for
    assert (unseen.state, unseen.code, unseen.verdict) == ("never-seen", "never-seen", Verdict.UNKNOWN)


async def test_silent_dead_and_braked_hosts_are_told_apart(office: Office):
    office.fleet(8)
    office.silence("gpu-001", 20.0)
    told = why(office, "gpu-001")
    assert (told.state, told.code, told.verdict) == ("silent", "silent", Verdict.SUSPECT)
    assert told.next_at == NOON - 20.0 + office.policy.dead_after_s
    office.silence("gpu-002", 200.0)
    await charge(office, "gpu-002", CauseKind.DEAD)
    told = why(office, "gpu-002")
    assert (told.state, told.code, told.verdict) == ("dead", "dead", Verdict.DEAD)
    assert told.charged_to == ("fabric/ib-a", "site/site")
    for number in range(3, 7):
        office.silence(f"gpu-00{number}", 20.0)
    told = why(office, "gpu-003")
    assert told.code == "mass-silence"
    assert told.held_by == "fabric/ib-a"


def test_a_new_leader_calls_nobody_suspect_before_its_grace_ends(office: Office):
    office.fleet(1)
    office.sightings.clear()
    office.leader_since = NOON - 5.0
    told = why(office, "gpu-001")
    assert (told.state, told.code, told.verdict) == ("silent", "leader-grace", Verdict.UNKNOWN)
    assert told.next_at == NOON - 5.0 + office.policy.leader_grace_s


async def test_hosts_in_a_campaign_say_what_their_task_waits_for_and_who_holds_them(office: Office):
    office.fleet(2)
    campaign = await submitted(office, "gpu-[001-002]")
    first, second = why(office, "gpu-001"), why(office, "gpu-002")
    assert first.waiting_for == "waiting for its agent to ask for work"
    assert (first.held_by, first.task_state) == (f"campaign {campaign} of alice", TaskState.RESERVED)
    assert first.charged_to == ("fabric/ib-a", "site/site")
    assert (second.code, second.task_state, second.campaign_id) == ("budget-full", TaskState.PENDING, campaign)
    assert "gpu-001" in second.held_by
    await office.let_go(campaign, "gpu-001")
    office.silence("gpu-001", 1.0)
    told = why(office, "gpu-001")
    assert (told.state, told.code, told.verdict) == ("rebooting", "down", Verdict.UNKNOWN)
    office.hear("gpu-001", "boot-gpu-001-2", Usability.STARTING, usability_reason="GPU checks run")
    assert why(office, "gpu-001").code == "about-boot-changed"
    await office.turn()
    told = why(office, "gpu-001")
    assert told.waiting_for == "booted; GPU checks run"
    assert told.state == "rebooting"


async def test_of_several_campaigns_the_running_one_is_named(office: Office):
    office.fleet(2)
    service = CampaignService(office.desk())
    paused = await submitted(office, "gpu-[001-002]")
    office.now_s += 1.0
    running = await submitted(office, "gpu-002", key="k2")
    assert why(office, "gpu-002").campaign_id == paused
    await service.pause(ALICE, paused, "wait", False)
    told = why(office, "gpu-002")
    assert told.campaign_id == running
    assert told.code == "budget-full"


async def test_a_dead_letter_names_itself_its_cause_and_the_next_step(office: Office):
    office.fleet(1)
    campaign = await submitted(office, "gpu-001")
    office.says(campaign, "gpu-001", ReportKind.FAILED, code="not-permitted", text="polkit says no", permanent=True)
    await office.turn()
    told = why(office, "gpu-001")
    assert told.code == "dead-letter"
    assert f"{campaign}.h-gpu-001 (not-permitted): polkit says no" in told.waiting_for
    assert "hostler" in told.next_step or "correct" in told.next_step
    assert told.state == "up"


async def test_fc_d12_a_host_being_switched_off_shows_its_goal_all_the_while(office: Office):
    office.fleet(1)
    campaign = await submitted(office, "gpu-001", operation="power_off")
    task = office.task(campaign, "gpu-001")
    assert task.power is not None
    report = PowerReport(task.id, task.power.token, PowerResult.WORKING, NOON, step="off sent, BMC still says on")
    office.power[task.id] = report
    assert why(office, "gpu-001").waiting_for == "shutting down (goal off): off sent, BMC still says on"


async def test_no_age_is_negative_when_a_former_leaders_clock_was_ahead(office: Office):
    office.fleet(1)
    await submitted(office, "gpu-001")
    office.now_s -= 420.0
    told = why(office, "gpu-001")
    assert told.since is not None
    assert told.since <= told.as_of


async def test_every_host_of_a_mixed_fleet_has_a_sentence_a_code_and_a_known_state(office: Office):
    office.policy = Policy(rescue_after_s=5.0)
    office.fleet(12)
    office.enrol("b-1", "ib-b", heard=False)
    campaign = await submitted(office, "gpu-[001-010]", max_down=("fabric=4",))
    await office.reboot(campaign, "gpu-001")
    await office.let_go(campaign, "gpu-002")
    office.silence("gpu-003", 60.0)
    await office.turn()
    for host in office.state.hosts.values():
        told = host_why(office.world(), host)
        assert told.waiting_for, host.name
        assert told.code, host.name
        assert told.state in STATES
        assert told.state == host_state(office.world(), host)


# -- campaigns -------------------------------------------------------------------------------------------------------


async def test_a_campaign_tells_the_commonest_reason_and_counts_the_others(office: Office):
    office.fleet(6)
    office.store.seed(Hold(id="1", host="h-gpu-002", reason="BIOS", owner="eve", at=NOON))
    campaign = await submitted(office, "gpu-[001-006]", max_down=("fabric=2",))
    told = campaign_waits(office.world(), office.newest_plan, office.state.campaigns[campaign])
    assert told is not None
    assert told.code == "budget-full"
    assert told.text.endswith("; 2 in flight")
    assert told.held_by


async def test_in_flight_only_the_stuck_host_is_named_before_those_that_go_as_they_should(office: Office):
    office.fleet(2)
    campaign = await submitted(office, "gpu-[001-002]", max_down=("fabric=2",))
    await office.let_go(campaign, "gpu-001")
    office.silence("gpu-002", 20.0)
    await office.turn()
    told = campaign_waits(office.world(), office.newest_plan, office.state.campaigns[campaign])
    assert told is not None
    assert told.code == "silent"
    assert told.text.startswith("gpu-002: its agent is silent (1 more")
    assert told.next_step == "rescue through the BMC"


async def test_an_ended_campaign_waits_for_nothing(office: Office):
    office.fleet(1)
    campaign = await submitted(office, "gpu-001")
    await office.reboot(campaign, "gpu-001")
    assert campaign_waits(office.world(), office.newest_plan, office.state.campaigns[campaign]) is None


async def test_fc_d05_a_bmc_that_refuses_the_password_is_named_while_tried_and_ends_as_a_letter_with_the_next_step(
    office: Office,
):
    office.fleet(2)
    campaign = await submitted(office, "gpu-001", mode="hard")
    office.silence("gpu-001", 60.0)
    await office.turn()
    intent = office.task(campaign, "gpu-001").power
    assert intent is not None
    task_id = f"{campaign}/h-gpu-001"
    busy = PowerReport(task_id, intent.token, PowerResult.FAILED, NOON, code="bmc-busy", text="no session slot, try 14")
    office.power[task_id] = busy
    office.now_s += 1.0
    await office.turn()
    told = campaign_waits(office.world(), office.newest_plan, office.state.campaigns[campaign])
    assert told is not None
    assert told.code == "power-retry"
    assert told.text == "gpu-001: power action failed: no session slot, try 14"
    assert told.next_at is not None
    assert told.next_at > office.now_s
    office.power[task_id] = PowerReport(
        task_id, intent.token, PowerResult.FAILED, NOON, code="bmc-auth", text="wrong password", retry=False
    )
    await office.turn()
    host = why(office, "gpu-001")
    assert host.code == "dead-letter"
    assert "(bmc-auth): wrong password" in host.waiting_for
    assert "credentials" in host.next_step


async def test_brakes_and_graces_do_not_hide_what_a_person_decided(office: Office):
    office.fleet(8)
    mark = DrainMark(owner="dave", reason="fan", at=NOON)
    office.store.seed(office.host("gpu-001").model_copy(update={"drain": mark}))
    for number in range(1, 8):
        office.silence(f"gpu-00{number}", 20.0)
    assert why(office, "gpu-001").code == "drained"
    assert why(office, "gpu-002").code == "mass-silence"
    assert why(office, "gpu-008").code == "idle"


async def test_a_waiting_host_of_a_paused_campaign_says_how_to_resume_and_names_a_hold_first(office: Office):
    office.fleet(2)
    service = CampaignService(office.desk())
    office.store.seed(Hold(id="1", host="h-gpu-001", reason="BIOS", owner="eve", at=NOON))
    campaign = await submitted(office, "gpu-[001-002]", max_down=("fabric=1",))
    assert why(office, "gpu-001").code == "held"
    await service.pause(ALICE, campaign, "wait for eve", False)
    told = why(office, "gpu-001")
    assert (told.code, told.state, told.held_by) == ("held", "held", "eve")
    assert told.waiting_for.startswith("held by eve (hands off): BIOS; besides, fabric/ib-a is full: 1 of 1 ")
    assert told.waiting_for.endswith("paused by alice: wait for eve")
    assert told.next_step.startswith("hostler hold remove 1; then: starts when one of them is back")
    assert told.next_step.endswith(f"; then: hostler campaign resume {campaign}")
    assert [cause.code for cause in told.causes] == ["held", "budget-full", "campaign-paused"]
    assert [cause.held_by for cause in told.causes][::2] == ["eve", campaign]
    tasks, _ = await service.list_tasks(campaign, 0, "", (), "gpu-001")
    assert tasks[0].waiting_for.startswith("held by eve (hands off): BIOS; besides, campaign ")
    office.store.remove("holds/h-gpu-001/1")
    told = why(office, "gpu-001")
    assert [cause.code for cause in told.causes] == ["budget-full", "campaign-paused"]


async def test_every_cause_of_a_host_is_told_and_the_first_is_the_one_that_its_state_names(office: Office):
    office.fleet(3)
    mark = DrainMark(owner="dave", reason="fan", at=NOON - 20.0)
    office.store.seed(office.host("gpu-001").model_copy(update={"drain": mark}))
    office.store.seed(Hold(id="1", host="h-gpu-001", reason="BIOS", owner="eve", at=NOON, until=NOON + 60.0))
    office.store.seed(Hold(id="2", host="h-gpu-001", reason="dump", owner="fay", at=NOON))
    told = why(office, "gpu-001")
    assert told.state == "held"
    assert [(cause.code, cause.held_by) for cause in told.causes] == [
        ("held", "eve"),
        ("held", "fay"),
        ("drained", "dave"),
    ]
    steps = told.next_step.split("; then: ")
    assert steps[0].startswith("hostler hold remove 1, or it ends by itself at 2027-")
    assert steps[1:] == ["hostler hold remove 2", "hostler host undrain gpu-001"]
    await charge(office, "gpu-001", CauseKind.DEAD)
    office.silence("gpu-001", 500.0)
    told = why(office, "gpu-001")
    assert (told.state, told.code) == ("dead", "dead")
    assert [cause.code for cause in told.causes] == ["dead", "held", "held", "drained"]


async def test_a_dead_host_of_a_paused_campaign_says_both(office: Office):
    office.fleet(2)
    campaign = await submitted(office, "gpu-[001-002]", max_down=("fabric=1",))
    await charge(office, "gpu-002", CauseKind.DEAD)
    office.silence("gpu-002", 500.0)
    await CampaignService(office.desk()).pause(ALICE, campaign, "lunch", False)
    told = why(office, "gpu-002")
    assert told.state == "dead"
    assert [cause.code for cause in told.causes] == ["dead", "campaign-paused"]
    assert told.next_step.endswith(f"; then: hostler campaign resume {campaign}")


async def test_a_host_whose_work_is_taken_back_for_a_hold_says_so_once(office: Office):
    office.fleet(1)
    campaign = await submitted(office, "gpu-001")
    office.store.seed(Hold(id="1", host="h-gpu-001", reason="BIOS", owner="eve", at=NOON))
    told = why(office, "gpu-001")
    assert (told.state, told.campaign_id) == ("held", campaign)
    assert told.waiting_for.count("held by eve") == 1


async def test_a_campaign_that_waits_for_held_hosts_alone_says_how_to_remove_the_hold(office: Office):
    office.fleet(2)
    office.store.seed(Hold(id="1", host="h-gpu-002", reason="BIOS", owner="eve", at=NOON, until=NOON + 7_200.0))
    campaign = await submitted(office, "gpu-[001-002]")
    await office.reboot(campaign, "gpu-001")
    told = campaign_waits(office.world(), office.newest_plan, office.state.campaigns[campaign])
    assert told is not None
    assert told.text == "only held hosts are left: 1 host waits: held by eve (hands off): BIOS"
    assert (told.next_step, told.next_at) == ("hostler hold remove 1, or it ends by itself", NOON + 7_200.0)


async def test_a_campaign_that_starts_whole_waits_for_nothing_and_one_with_a_rate_counts_who_waits_for_it(
    office: Office,
):
    office.fleet(5)
    service = CampaignService(office.desk())
    free, _ = await service.submit(ALICE, "k1", request("gpu-[001-002]", max_down=("fabric=2",)), 0, "", True)
    assert free.waiting_for == "nothing: 2 hosts start now"
    await office.turn()
    await office.reboot(free.id, "gpu-001")
    await office.reboot(free.id, "gpu-002")
    slow, _ = await service.submit(
        ALICE, "k2", request("gpu-[003-005]", max_down=("fabric=3",), rate="1/min"), 0, "", True
    )
    assert slow.waiting_for == "nothing: 1 host starts now; then 2 hosts wait: the campaign's rate is used up"


async def test_a_campaign_says_what_it_waits_for_before_the_planner_has_looked(office: Office):
    office.fleet(3)
    await submitted(office, "gpu-001")
    service = CampaignService(office.desk())
    blocked, _ = await service.submit(ALICE, "k2", request("gpu-002"), 0, "", True)
    assert blocked.waiting_code == "budget-full"
    assert blocked.waiting_for.startswith(
        "1 host waits: fabric/ib-a is full: 1 of 1 out of service (gpu-001: campaign "
    )
    free, _ = await service.submit(ALICE, "k3", request("gpu-[002-003]", max_down=("fabric=2",)), 0, "", True)
    assert free.waiting_code == "ready"
    assert free.waiting_for.startswith("nothing: 1 host starts now; then 1 host waits: fabric/ib-a is full")
