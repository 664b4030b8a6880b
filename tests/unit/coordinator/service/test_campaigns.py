"""Campaigns at the service: plan, submit, keys and counts, over the product's own planner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostler_contract.campaigns import CampaignRequest, CampaignState, KeyRecord, Selector, Targets
from hostler_contract.domains import Budget
from hostler_contract.hosts import Hold
from hostler_contract.work import OperationKind, RebootMode
from hostler_coordinator.draft import Change
from hostler_coordinator.fsck import problems
from hostler_coordinator.policy import Policy
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import (
    AlreadyDifferent,
    BadField,
    BadFields,
    Refused,
    Unavailable,
)
from hostler_coordinator.service.campaigns import CampaignService
from service_office import ALICE, BOB, NOON, Office, request


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


async def test_more_than_one_campaign_can_hold_is_refused_by_field_and_stores_nothing(
    office: Office, campaigns: CampaignService
):
    for number in range(11_000):
        office.enrol(f"{'x' * 110}{number:05d}", heard=False)
    with pytest.raises(BadField, match="one campaign can hold") as many:
        await campaigns.submit(ALICE, "k1", request(everything=True), 11_000, "", False)
    assert many.value.field == "selector"
    names = tuple(host.name for host in office.state.hosts.values())[:5_000]
    with pytest.raises(BadField, match="ranges, labels or all"):
        await campaigns.submit(ALICE, "k1", request(*names), 5_000, "", False)
    assert not office.state.campaigns


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


async def test_fc_a07_a_soft_reboot_goes_to_no_bmc(office: Office, campaigns: CampaignService):
    office.fleet(1)
    asked = request("gpu-001", operation=OperationKind.SOFT_REBOOT, mode=RebootMode.HARD)
    with pytest.raises(BadField, match="no BMC can restart user space alone") as bad:
        await campaigns.submit(ALICE, "k", asked, 0, "", False)
    assert bad.value.field == "mode"
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
    assert any("b-001" in note and "BMC" in note for note in plan.notes)
    assert plan.needs_count
    # one wave of 1, then six waves of 10 hosts (the last of 11 begins a seventh), 3 at once: 1 + 6 * 4 + 1 rounds
    assert plan.expected_duration_s == pytest.approx(26 * 300.0)
    assert "26 rounds of 5 min" in plan.expected_from
    assert "the tightest limit is fabric/ib-a: 3 of 3 free for 61 hosts" in plan.expected_from
    assert plan.expected_from.endswith("; 1 blocked now, and that wait comes on top")
    assert fabric.free == 3
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
