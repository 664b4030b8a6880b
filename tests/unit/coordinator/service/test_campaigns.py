"""Campaigns at the service: plan, submit, keys, counts, steering and watching, over the product's own planner."""

from __future__ import annotations

import pytest

from hostler_contract.campaigns import CampaignRequest, CampaignState, KeyRecord, Selector, Targets
from hostler_contract.domains import Budget, CauseKind
from hostler_contract.hosts import Hold
from hostler_contract.work import TaskState
from hostler_coordinator.draft import Change
from hostler_coordinator.layout import key_path
from hostler_coordinator.live import ReportKind
from hostler_coordinator.policy import Policy
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import (
    AlreadyDifferent,
    BadField,
    BadFields,
    NotFound,
    Refused,
    Unavailable,
)
from hostler_coordinator.service.campaigns import CampaignService
from service_office import ALICE, BOB, NOON, Office, request


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def campaigns(office: Office) -> CampaignService:
    return CampaignService(office.desk())


async def submitted(campaigns: CampaignService, asked: CampaignRequest, key: str = "k1") -> str:
    campaign, _ = await campaigns.submit(ALICE, key, asked, 0, "", True)
    return campaign.id


# -- submitting ------------------------------------------------------------------------------------------------------


async def test_submit_stores_key_campaign_and_targets_in_one_transaction(office: Office, campaigns: CampaignService):
    office.fleet(3)
    campaign, repeated = await campaigns.submit(ALICE, "k1", request("gpu-[001-003]"), 0, "", False)
    assert not repeated
    assert campaign.state is CampaignState.PENDING
    assert campaign.created_by == "alice"
    assert campaign.counts.pending == campaign.target_count == 3
    [change] = office.store.commits
    kinds = sorted({path.split("/")[0] for path in change.puts})
    assert kinds == ["audit", "campaigns", "keys", "targets"]
    assert office.state.targets(campaign.id) == ("h-gpu-001", "h-gpu-002", "h-gpu-003")
    assert office.woken == 1


async def test_same_key_and_request_is_the_same_campaign_even_after_it_ended(
    office: Office, campaigns: CampaignService
):
    office.fleet(1)
    asked = request("gpu-001")
    first = await submitted(campaigns, asked)
    await office.turn()
    await office.reboot(first, "gpu-001")
    assert (await campaigns.get(first)).state is CampaignState.SUCCEEDED
    again, repeated = await campaigns.submit(ALICE, "k1", asked, 0, "", False)
    assert (again.id, repeated) == (first, True)
    assert len(office.state.campaigns) == 1


async def test_same_key_with_another_request_is_refused_and_names_the_campaign(
    office: Office, campaigns: CampaignService
):
    office.fleet(2)
    first = await submitted(campaigns, request("gpu-001"))
    with pytest.raises(AlreadyDifferent, match=first):
        await campaigns.submit(ALICE, "k1", request("gpu-002"), 0, "", False)
    assert ("alice", "campaign.submit", "refused") in office.actions_audited()
    assert len(office.state.campaigns) == 1


async def test_keys_are_scoped_to_their_caller(office: Office, campaigns: CampaignService):
    office.fleet(1)
    first = await submitted(campaigns, request("gpu-001"))
    other, repeated = await campaigns.submit(BOB, "k1", request("gpu-001"), 0, "", False)
    assert not repeated
    assert other.id != first


async def test_the_digest_is_of_the_request_as_asked_so_a_label_may_come_to_other_hosts(
    office: Office, campaigns: CampaignService
):
    office.fleet(1)
    asked = request(labels=("fabric=ib-a",))
    first = await submitted(campaigns, asked)
    office.enrol("gpu-002")
    again, repeated = await campaigns.submit(ALICE, "k1", asked, 0, "", False)
    assert (again.id, repeated, again.target_count) == (first, True, 1)


async def test_a_key_whose_campaign_is_no_longer_kept_is_refused_as_expired_and_never_runs_again(
    office: Office, campaigns: CampaignService
):
    office.fleet(1)
    asked = request("gpu-001")
    first = await submitted(campaigns, asked)
    office.store.remove(f"campaigns/{first}")
    with pytest.raises(Refused) as refused:
        await campaigns.submit(ALICE, "k1", asked, 0, "", False)
    assert refused.value.code == "key-expired"


async def test_ten_thousand_targets_are_stored_in_chunks_in_one_transaction(office: Office, campaigns: CampaignService):
    for number in range(10_000):
        office.enrol(f"n{number:05d}", heard=False)
    campaign = await submitted(campaigns, request("n[00000-09999]"))
    [change] = office.store.commits
    chunks = [path for path in change.puts if path.startswith("targets/")]
    assert len(chunks) == 5
    assert change.operations <= 100
    assert len(office.state.targets(campaign)) == 10_000
    assert office.state.targets(campaign)[9_999] == "h-n09999"


async def test_a_lost_compare_is_looked_at_again_and_a_key_taken_meanwhile_answers_its_campaign(
    office: Office, campaigns: CampaignService
):
    office.fleet(1)
    asked = request("gpu-001")
    first = await submitted(campaigns, asked, "k1")
    taken = office.state.key("alice", "k1")
    assert taken is not None

    def rival(_change: Change) -> None:
        office.store.before_commit = None
        office.store.seed(KeyRecord(caller="alice", key="k2", digest=taken.digest, campaign=first, at=NOON))

    office.store.before_commit = rival
    again, repeated = await campaigns.submit(ALICE, "k2", asked, 0, "", False)
    assert (again.id, repeated) == (first, True)
    assert len(office.state.campaigns) == 1


async def test_five_lost_races_end_as_unavailable_and_change_nothing(office: Office, campaigns: CampaignService):
    office.fleet(1)
    lost = []

    def rival(change: Change) -> None:
        lost.append(change)
        path = next(path for path in change.puts if path.startswith("targets/"))
        office.store.seed(Targets(campaign=path.split("/")[1], chunk=0, hosts=("h-other",)))

    office.store.before_commit = rival
    with pytest.raises(Unavailable, match="nothing was changed"):
        await campaigns.submit(ALICE, "k1", request("gpu-001"), 0, "", False)
    assert len(lost) == 5
    assert not office.state.campaigns


async def test_deposed_or_cut_off_from_the_store_is_unavailable_with_a_time_to_ask_again(
    office: Office, campaigns: CampaignService
):
    office.fleet(1)
    office.store.leading = False
    with pytest.raises(Unavailable) as deposed:
        await campaigns.submit(ALICE, "k1", request("gpu-001"), 0, "", False)
    assert deposed.value.retry_after_s > 0
    office.store.leading = True
    office.store.fail_with = StoreUnavailableError("etcd answers nothing", NOON - 30.0)
    with pytest.raises(Unavailable, match="etcd answers nothing") as cut:
        await campaigns.submit(ALICE, "k1", request("gpu-001"), 0, "", False)
    assert cut.value.since == NOON - 30.0
    assert not office.state.campaigns


async def test_every_bad_field_is_named_at_once_and_nothing_changes(office: Office, campaigns: CampaignService):
    office.fleet(2)
    asked = request(
        "gpu-009",
        max_down=("fabric=0",),
        rate="often",
        waves="0",
        max_failures=("200%",),
        attempts=-1,
        deadline_s=-5.0,
        windows=("Sunday night",),
        reason="",
        force=True,
    )
    with pytest.raises(BadFields) as bad:
        await campaigns.submit(ALICE, "k1", asked, 0, "", False)
    fields = {problem.field for problem in bad.value.problems}
    assert fields == {
        "selector.hosts[0]",
        "reason",
        "limits.max_down[0]",
        "limits.rate",
        "limits.waves",
        "limits.max_failures[0]",
        "limits.attempts",
        "limits.deadline_s",
        "limits.windows[0]",
    }
    assert not office.state.campaigns


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "\0", "   "])
async def test_bad_keys_name_the_field_and_the_fix(office: Office, campaigns: CampaignService, key: str):
    office.fleet(1)
    with pytest.raises(BadField) as bad:
        await campaigns.submit(ALICE, key, request("gpu-001"), 0, "", False)
    assert bad.value.field == "key"
    assert "1 to 200" in bad.value.fix


@pytest.mark.parametrize(
    "selector",
    [Selector(), Selector(hosts=("",)), Selector(hosts=(" , ",)), Selector(labels=("",)), Selector(labels=(":",))],
)
async def test_fc_d01_an_empty_selector_selects_nothing(office: Office, campaigns: CampaignService, selector: Selector):
    office.fleet(2)
    for call in (
        campaigns.plan(ALICE, CampaignRequest(selector=selector)),
        campaigns.submit(ALICE, "k1", CampaignRequest(selector=selector), 0, "", True),
    ):
        with pytest.raises(BadField, match="selects nothing") as bad:
            await call
        assert bad.value.field.startswith("selector")
    assert not office.state.campaigns


async def test_fc_d01_all_has_its_own_word_and_its_count_is_confirmed(office: Office, campaigns: CampaignService):
    office.fleet(60)
    with pytest.raises(Refused, match="60 hosts"):
        await campaigns.submit(ALICE, "k1", request(everything=True), 0, "", False)
    campaign, _ = await campaigns.submit(ALICE, "k1", request(everything=True), 60, "", False)
    assert campaign.target_count == 60


async def test_fc_d02_a_forgotten_host_list_wants_the_exact_count_and_no_budget_means_the_default(
    office: Office, campaigns: CampaignService
):
    office.fleet(800)
    asked = request(labels=("fabric=ib-a",))
    with pytest.raises(Refused) as refused:
        await campaigns.submit(ALICE, "k1", asked, 0, "", False)
    assert refused.value.code == "count-needed"
    assert "800" in refused.value.reason
    with pytest.raises(Refused) as differs:
        await campaigns.submit(ALICE, "k1", asked, 8, "", True)
    assert differs.value.code == "count-differs"
    assert not office.state.campaigns
    campaign, _ = await campaigns.submit(ALICE, "k1", asked, 800, "", False)
    await office.turn()
    assert (await campaigns.get(campaign.id)).counts.running == 1


async def test_fc_d02_the_site_ceiling_holds_over_all_campaigns():
    office = Office(policy=Policy(site_boot_ceiling=5))
    campaigns = CampaignService(office.desk())
    office.fleet(10, "ib-a", "a-")
    office.fleet(10, "ib-b", "b-")
    first = await submitted(campaigns, request(labels=("fabric=ib-a",), max_down=("fabric=10",)), "k1")
    second = await submitted(campaigns, request(labels=("fabric=ib-b",), max_down=("fabric=10",)), "k2")
    await office.turn()
    running = [(await campaigns.get(name)).counts.running for name in (first, second)]
    assert sum(running) == 5
    assert (await campaigns.get(second)).waiting_code == "site-ceiling"


async def test_fc_d03_padded_ranges_are_different_hosts_and_absurd_ones_are_refused(
    office: Office, campaigns: CampaignService
):
    for number in range(1, 5):
        office.enrol(f"gpu{number:02d}")
        office.enrol(f"gpu{number:03d}")
    short = await campaigns.plan(ALICE, request("gpu[01-04]"))
    long = await campaigns.plan(ALICE, request("gpu[001-004]"))
    assert short.waves[0].hosts == ("gpu01", "gpu02", "gpu03", "gpu04")
    assert long.waves[0].hosts == ("gpu001", "gpu002", "gpu003", "gpu004")
    for absurd in ("gpu[01-004]", "gpu[04-01]", "node[1-100000000]"):
        with pytest.raises(BadField) as bad:
            await campaigns.plan(ALICE, request(absurd))
        assert bad.value.field == "selector.hosts[0]"


# -- planning --------------------------------------------------------------------------------------------------------


async def test_a_plan_shows_waves_peaks_limits_with_rounding_time_and_what_would_not_start(
    office: Office, campaigns: CampaignService
):
    office.fleet(61, "ib-a", "a-")
    office.enrol("b-001", "ib-b", bmc=None)
    office.store.seed(Hold(id="x", host="h-a-002", reason="memory test", owner="carol", at=NOON))
    asked = request(everything=True, max_down=("fabric=5%",), waves="1,10")
    plan = await campaigns.plan(ALICE, asked)
    assert plan.target_count == 62
    assert [wave.host_count for wave in plan.waves][:3] == [1, 10, 10]
    fabric = next(domain for domain in plan.domains if domain.domain == "fabric/ib-a")
    assert (fabric.enrolled, fabric.targets, fabric.limit, fabric.peak_down) == (61, 61, 3, 3)
    assert fabric.limit_from == "campaign"
    assert "5% of 61" in fabric.rounding
    assert [(blocked.host, blocked.code) for blocked in plan.blocked] == [("a-002", "held")]
    assert "memory test" in plan.blocked[0].why
    assert any("b-001" in note and "no BMC" in note for note in plan.notes)
    assert plan.needs_count
    # one wave of 1, then six waves of 10 hosts (the last of 11 begins a seventh), 3 at once: 1 + 6 * 4 + 1 rounds
    assert plan.expected_duration_s == pytest.approx(26 * 300.0)
    assert "26 rounds of 5 min" in plan.expected_from
    assert not office.store.commits


async def test_a_plan_learns_the_time_from_reboots_that_were_proved(office: Office, campaigns: CampaignService):
    office.fleet(5)
    office.budget("fabric/ib-a", Budget(count=5))
    first = await submitted(campaigns, request("gpu-[001-005]"))
    await office.turn()
    office.now_s += 100.0
    office.hear_all()
    for number in range(1, 6):
        await office.reboot(first, f"gpu-00{number}")
    plan = await campaigns.plan(ALICE, request("gpu-[001-005]"))
    assert plan.expected_duration_s == pytest.approx(100.0)
    assert "median of the last 5" in plan.expected_from


async def test_fc_d11_a_stale_plan_token_is_refused_with_the_difference_and_a_fresh_one_runs(
    office: Office, campaigns: CampaignService
):
    for number in range(1, 121):
        office.enrol(f"gpu-{number:03d}", labels={"batch": "q3"})
    asked = request(labels=("batch=q3",))
    plan = await campaigns.plan(ALICE, asked)
    assert not office.store.commits
    assert not office.probes
    assert plan.target_count == 120
    for name in ("gpu-121", "gpu-122", "gpu-123"):
        office.enrol(name, labels={"batch": "q3"})
    office.enrol("gpu-007", labels={})
    with pytest.raises(Refused) as stale:
        await campaigns.submit(ALICE, "k1", asked, 0, plan.plan_token, True)
    assert stale.value.code == "plan-stale"
    assert "+3 -1: +gpu-121, +gpu-122, +gpu-123, -gpu-007" in stale.value.reason
    assert not office.state.campaigns
    again = await campaigns.plan(ALICE, asked)
    campaign, _ = await campaigns.submit(ALICE, "k1", asked, 122, again.plan_token, False)
    assert campaign.target_count == 122


async def test_a_plan_token_survives_a_leader_change_and_then_tells_the_counts(
    office: Office, campaigns: CampaignService
):
    office.fleet(3)
    asked = request(labels=("fabric=ib-a",))
    token = (await campaigns.plan(ALICE, asked)).plan_token
    office.enrol("gpu-004")
    successor = CampaignService(office.desk())
    with pytest.raises(Refused, match="3 hosts when it was planned, 4 now"):
        await successor.submit(ALICE, "k1", asked, 0, token, True)
    with pytest.raises(Refused, match="another request"):
        await successor.submit(ALICE, "k1", request("gpu-001"), 0, token, True)
    with pytest.raises(BadField, match="plan_token"):
        await successor.submit(ALICE, "k1", asked, 0, "nonsense", True)


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
    assert "cancelled" in by_kind["waiting"].text
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
    await campaigns.resume(ALICE, campaign, "known", False)
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
    assert full.waiting_for.startswith("1 host waits: fabric/ib-a is full: 1 of 1 out of service (gpu-003: task)")
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
