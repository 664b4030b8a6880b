"""Campaigns at the service once they run: steering, what is still going to happen, looking, watching and audit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostler_contract.campaigns import CampaignRequest, CampaignState
from hostler_contract.domains import CauseKind
from hostler_contract.work import TaskState
from hostler_coordinator.fsck import problems
from hostler_coordinator.layout import key_path
from hostler_coordinator.live import ReportKind
from hostler_coordinator.policy import Policy
from hostler_coordinator.refusals import (
    BadField,
    NotFound,
    Refused,
)
from hostler_coordinator.service.campaigns import CampaignService
from service_office import ALICE, BOB, Office, request


@pytest.fixture
def office() -> Iterator[Office]:
    office = Office()
    yield office
    assert problems(office.state) == []


@pytest.fixture
def campaigns(office: Office) -> CampaignService:
    return CampaignService(office.desk())


async def submitted(campaigns: CampaignService, asked: CampaignRequest, key: str = "k1") -> str:
    campaign, _ = await campaigns.submit(ALICE, key, asked, 0, "", True)
    return campaign.id


# -- steering --------------------------------------------------------------------------------------------------------


async def stage_of_d04(office: Office, campaigns: CampaignService) -> str:
    """20 hosts, 5 done, one before the GO, one let go, one between power off and on, 12 waiting."""
    office.fleet(20)
    office.policy = Policy(rescue_after_s=10.0)
    campaign = await submitted(campaigns, request("gpu-[001-020]", max_down=("fabric=3",)))
    await office.turn()
    for number in range(1, 6):
        await office.reboot(campaign, f"gpu-{number:03d}")
    await office.let_go(campaign, "gpu-007")
    office.silence("gpu-008", 60.0)
    await office.turn()
    assert office.task(campaign, "gpu-006").state is TaskState.RESERVED
    assert office.task(campaign, "gpu-007").state is TaskState.ACTING
    assert office.task(campaign, "gpu-008").state is TaskState.POWER_CYCLING
    return campaign


async def test_fc_d04_abort_says_exactly_what_is_still_going_to_happen_twice_and_after_a_leader_change(
    office: Office, campaigns: CampaignService
):
    campaign = await stage_of_d04(office, campaigns)
    view, told = await campaigns.abort(ALICE, campaign, "wrong kernel", False)
    assert view.state is CampaignState.ABORTING
    assert {part.kind: part.host_count for part in told} == {
        "waiting": 12,
        "withdrawn": 1,
        "carried-on": 2,
        "finished": 5,
    }
    by_kind = {part.kind: part for part in told}
    assert by_kind["withdrawn"].hosts == ("gpu-006",)
    assert "undrained" in by_kind["withdrawn"].text
    assert by_kind["carried-on"].hosts == ("gpu-007", "gpu-008")
    assert "switched on" in by_kind["carried-on"].text
    assert by_kind["waiting"].text == "12 hosts are aborted; nothing has been done to them"
    assert by_kind["withdrawn"].text.startswith("1 host is stopped before")
    _, again = await campaigns.abort(BOB, campaign, "me too", False)
    assert again == told
    await office.turn()
    successor = CampaignService(office.desk())
    view, later = await successor.abort(ALICE, campaign, "", False)
    assert later == told
    assert view.state_reason == "aborted by alice: wrong kernel"
    assert "carried to a safe end" in view.waiting_for


async def test_pause_takes_back_what_can_be_and_resume_goes_on_with_failures_forgiven(
    office: Office, campaigns: CampaignService
):
    campaign = await stage_of_d04(office, campaigns)
    view, told = await campaigns.pause(ALICE, campaign, "look first", False)
    assert view.state is CampaignState.PAUSED
    assert {part.kind: part.host_count for part in told}["withdrawn"] == 1
    assert view.waiting_code == "campaign-paused"
    assert f"hostler campaign resume {campaign}" in view.next_step
    _, again = await campaigns.pause(ALICE, campaign, "look first", False)
    assert again == told
    await office.turn()
    assert office.task(campaign, "gpu-006").state is TaskState.STOPPING
    view, _ = await campaigns.resume(ALICE, campaign, "", False)
    assert view.state is CampaignState.RUNNING


async def test_resume_forgives_the_failures_so_far(office: Office, campaigns: CampaignService):
    office.fleet(3)
    campaign = await submitted(campaigns, request("gpu-[001-003]", max_failures=("1",)))
    await office.turn()
    office.says(campaign, "gpu-001", ReportKind.FAILED, code="not-permitted", text="no right", permanent=True)
    await office.turn()
    view = await campaigns.get(campaign)
    assert view.state is CampaignState.PAUSED
    assert "failure limit reached (1 of 1): gpu-001" in view.state_reason
    assert view.failures[0].host == "gpu-001"
    assert office.state.campaigns[campaign].paused_by_rule
    await campaigns.resume(ALICE, campaign, "known", False)
    assert not office.state.campaigns[campaign].paused_by_rule
    assert office.state.campaigns[campaign].failures_forgiven == 1
    await office.turn()
    assert (await campaigns.get(campaign)).state is CampaignState.RUNNING


async def test_dry_runs_change_nothing_and_say_the_same(office: Office, campaigns: CampaignService):
    campaign = await stage_of_d04(office, campaigns)
    commits = len(office.store.commits)
    _, dry = await campaigns.abort(ALICE, campaign, "", True)
    assert len(office.store.commits) == commits
    assert (await campaigns.get(campaign)).state is CampaignState.RUNNING
    _, wet = await campaigns.abort(ALICE, campaign, "", False)
    assert wet == dry


async def test_an_ended_campaign_refuses_to_be_steered_and_names_its_state(office: Office, campaigns: CampaignService):
    office.fleet(1)
    campaign = await submitted(campaigns, request("gpu-001"))
    await office.turn()
    await office.reboot(campaign, "gpu-001")
    for call in (campaigns.pause, campaigns.resume, campaigns.abort):
        with pytest.raises(Refused, match="succeeded") as refused:
            await call(ALICE, campaign, "", False)
        assert refused.value.code == "campaign-ended"
    with pytest.raises(NotFound):
        await campaigns.abort(ALICE, "c-nothing", "", False)


async def test_aborting_refuses_pause_and_abort_from_paused_is_allowed(office: Office, campaigns: CampaignService):
    campaign = await stage_of_d04(office, campaigns)
    await campaigns.pause(ALICE, campaign, "", False)
    view, _ = await campaigns.abort(ALICE, campaign, "", False)
    assert view.state is CampaignState.ABORTING
    with pytest.raises(Refused, match="aborting"):
        await campaigns.pause(ALICE, campaign, "", False)


# -- looking ---------------------------------------------------------------------------------------------------------


async def test_counts_always_sum_to_the_targets_whatever_became_of_hosts_that_never_moved(
    office: Office, campaigns: CampaignService
):
    campaign = await stage_of_d04(office, campaigns)
    view = await campaigns.get(campaign)
    assert (view.counts.pending, view.counts.running, view.counts.succeeded) == (12, 3, 5)
    assert view.domains[0].model_dump() == {
        "domain": "fabric/ib-a",
        "total": 20,
        "done": 5,
        "charged": 3,
        "limit": 3,
    }
    assert [(flying.host, flying.step) for flying in view.in_flight] == [
        ("gpu-006", "waiting for its agent"),
        ("gpu-007", "shutting down"),
        ("gpu-008", "power cycling"),
    ]
    await campaigns.abort(ALICE, campaign, "", False)
    await office.turn()
    office.now_s += 61.0
    office.hear_all()
    office.hear("gpu-007", "boot-gpu-007-2")
    office.hear("gpu-008", "boot-gpu-008-2")
    await office.turn()
    view = await campaigns.get(campaign)
    assert view.state is CampaignState.ABORTED
    assert (view.counts.aborted, view.counts.succeeded, view.counts.pending) == (13, 7, 0)
    assert sum(view.counts.model_dump().values()) == 20


async def test_eta_is_unknown_until_something_ended_and_then_follows_the_pace(
    office: Office, campaigns: CampaignService
):
    office.fleet(4)
    campaign = await submitted(campaigns, request("gpu-[001-004]"))
    await office.turn()
    assert (await campaigns.get(campaign)).eta is None
    office.now_s += 100.0
    office.hear_all()
    await office.reboot(campaign, "gpu-001")
    view = await campaigns.get(campaign)
    assert view.eta == pytest.approx(office.now_s + 300.0)


async def test_fc_d05_one_line_says_why_nothing_happens(office: Office, campaigns: CampaignService):
    office.fleet(3)
    first = await submitted(campaigns, request("gpu-003"), "k1")
    await office.turn()
    second = await submitted(campaigns, request("gpu-001"), "k2")
    office.enrol("win-1", "ib-w")
    closed = await submitted(campaigns, request("win-1", windows=("Sun 02:00-04:00 UTC",)), "k3")
    office.enrol("job-1", "ib-j")
    office.hear("job-1", blocked_by="job 4711 of dave")
    busy = await submitted(campaigns, request("job-1"), "k4")
    await office.turn()
    full = await campaigns.get(second)
    assert full.waiting_code == "budget-full"
    assert full.waiting_for.startswith(
        f"1 host waits: fabric/ib-a is full: 1 of 1 out of service (gpu-003: campaign {first})"
    )
    assert full.waiting_since == office.state.charges["h-gpu-003"].since
    assert "back in service" in full.next_step
    window = await campaigns.get(closed)
    assert window.waiting_code == "window-closed"
    assert "02:00:00" in window.waiting_for
    assert window.next_at == window.window_opens_at
    assert window.next_at is not None
    blocked = await campaigns.get(busy)
    assert blocked.waiting_code == "blocked"
    assert "job 4711 of dave" in blocked.waiting_for
    assert "--force" in blocked.next_step
    assert (await campaigns.get(first)).waiting_code == "agent-pull"


async def test_fc_d08_and_d09_times_are_instants_and_no_age_is_negative(office: Office, campaigns: CampaignService):
    office.fleet(2)
    campaign = await submitted(campaigns, request("gpu-[001-002]", windows=("Wed 22:00-23:00 America/Chicago",)))
    office.now_s -= 120.0  # the next leader's clock is behind
    view = await campaigns.get(campaign)
    assert view.as_of == office.now_s
    assert view.waiting_since is not None
    assert view.waiting_since <= view.as_of
    text = view.model_dump_json()
    assert '"as_of":"20' in text
    assert view.window_opens_at is not None
    with pytest.raises(BadField, match="no time zone"):
        await campaigns.plan(ALICE, request("gpu-001", windows=("Wed 22:00-23:00",)))


async def test_watch_sends_at_once_then_only_changes_and_ends_with_the_campaign(
    office: Office, campaigns: CampaignService
):
    office.fleet(1)
    campaign = await submitted(campaigns, request("gpu-001"))
    seen = []
    async for view in campaigns.watch(campaign):
        seen.append(view.state)
        office.hear_all()
        if len(seen) == 1:
            await office.turn()
        elif len(seen) == 2:
            await office.reboot(campaign, "gpu-001")
    assert seen[0] is CampaignState.PENDING
    assert seen[-1] is CampaignState.SUCCEEDED
    assert all(wait >= 0.2 for wait in office.waits)
    with pytest.raises(NotFound):
        await anext(campaigns.watch("c-nothing"))


async def test_list_is_newest_first_in_pages_that_neither_repeat_nor_hide(office: Office, campaigns: CampaignService):
    office.fleet(1)
    ids = []
    for number in range(5):
        ids.append(await submitted(campaigns, request("gpu-001"), f"k{number}"))
        office.now_s += 1.0
    first, token = await campaigns.list(2, "", ())
    ids.append(await submitted(campaigns, request("gpu-001"), "k9"))
    second, token = await campaigns.list(2, token, ())
    last, end = await campaigns.list(2, token, ())
    assert [view.id for view in (*first, *second, *last)] == list(reversed(ids[:5]))
    assert end == ""
    none, _ = await campaigns.list(0, "", (CampaignState.FAILED,))
    assert none == ()
    with pytest.raises(BadField) as bad:
        await campaigns.list(2, token, (CampaignState.RUNNING,))
    assert bad.value.field == "page_token"
    with pytest.raises(BadField, match="page_size"):
        await campaigns.list(501, "", ())


async def test_tasks_are_listed_in_order_with_and_without_a_record(office: Office, campaigns: CampaignService):
    campaign = await stage_of_d04(office, campaigns)
    tasks, token = await campaigns.list_tasks(campaign, 8, "", (), "")
    assert [task.host for task in tasks] == [f"gpu-{number:03d}" for number in range(1, 9)]
    rest, end = await campaigns.list_tasks(campaign, 100, token, (), "")
    assert (len(rest), end) == (12, "")
    assert rest[0].state is TaskState.PENDING
    assert "is full" in rest[0].waiting_for
    waiting, _ = await campaigns.list_tasks(campaign, 0, "", (TaskState.PENDING,), "")
    assert len(waiting) == 12
    one, _ = await campaigns.list_tasks(campaign, 0, "", (), "gpu-007")
    assert one == (await campaigns.get_task(campaign, "h-gpu-007"),)
    assert one[0].waiting_for == "let go, and still up on the old boot"
    with pytest.raises(NotFound):
        await campaigns.get_task(campaign, "gpu-999")


async def test_fc_a11_failure_limit_halts_the_campaign_and_its_hosts_stay_out_of_service(
    office: Office, campaigns: CampaignService
):
    office.policy = Policy(boot_allowance_s=60.0, rescues=0)
    campaigns = CampaignService(office.desk())
    office.fleet(10)
    campaign = await submitted(campaigns, request("gpu-[001-010]", max_down=("fabric=2",), max_failures=("2",)))
    await office.turn()
    for name in ("gpu-001", "gpu-002"):
        await office.let_go(campaign, name)
        office.silence(name, 0.0)
    office.now_s += 200.0
    office.hear_all()
    await office.turn()
    view = await campaigns.get(campaign)
    assert view.state is CampaignState.PAUSED
    assert "failure limit reached (2 of 2): gpu-001, gpu-002" in view.state_reason
    assert (view.counts.dead_letter, view.counts.running) == (2, 0)
    assert office.state.ledger("fabric/ib-a").charged == 2
    causes = [{cause.kind for cause in charge.causes} for charge in office.state.charges.values()]
    assert [CauseKind.DEAD_LETTER in kinds for kinds in causes] == [True, True]


async def test_fc_d10_submit_and_refusals_are_audited_with_actor_reason_and_result(
    office: Office, campaigns: CampaignService
):
    office.fleet(60)
    with pytest.raises(Refused):
        await campaigns.submit(BOB, "k0", request(everything=True), 0, "", False)
    office.now_s += 1.0
    campaign = await submitted(campaigns, request("gpu-001"))
    office.now_s += 1.0
    await campaigns.abort(BOB, campaign, "mistake", False)
    entries = office.store.audit_entries
    assert [(entry.actor, entry.action, entry.result) for entry in entries] == [
        ("bob", "campaign.submit", "refused"),
        ("alice", "campaign.submit", "done"),
        ("bob", "campaign.abort", "done"),
    ]
    assert "60 hosts" in entries[0].detail
    assert entries[1].reason == "new kernel"
    assert entries[2].reason == "mistake"
    assert key_path("bob", "k0") not in set(office.state.paths())
