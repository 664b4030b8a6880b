"""Dead letters at the service: retried once in a linked campaign, or resolved once, each with its charge set right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostler_contract.campaigns import CampaignState
from hostler_contract.domains import CauseKind
from hostler_contract.work import DeadLetterState, ResolutionKind, TaskState
from hostler_coordinator.fsck import problems
from hostler_coordinator.live import ReportKind
from hostler_coordinator.policy import Policy
from hostler_coordinator.refusals import AlreadyDifferent, BadField, NotFound, Refused
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.service.deadletters import DeadLetterService
from hostler_coordinator.service.fleet import FleetService
from service_office import ALICE, BOB, Office, request


@pytest.fixture
def office() -> Iterator[Office]:
    office = Office(policy=Policy(boot_allowance_s=60.0, rescues=0))
    office.fleet(6)
    yield office
    assert problems(office.state) == []


@pytest.fixture
def letters(office: Office) -> DeadLetterService:
    return DeadLetterService(office.desk())


async def failed(office: Office, *names: str, **more: object) -> tuple[str, list[str]]:
    """A campaign over these hosts whose agents refuse for good; its id and the letters' ids."""
    asked = request(*names, max_down=(f"fabric={len(names)}",), waves="1,x2", **more)  # type: ignore[arg-type]
    campaign, _ = await CampaignService(office.desk()).submit(ALICE, f"k-{names[0]}", asked, 0, "", True)
    await office.turn()
    for name in names:
        office.says(campaign.id, name, ReportKind.FAILED, code="not-permitted", text="polkit says no", permanent=True)
        await office.turn()
    return campaign.id, [f"{campaign.id}.h-{name}" for name in names]


async def lost(office: Office, name: str) -> str:
    """A host that was let go and never came back; the letter's id. It stays charged."""
    campaign, _ = await CampaignService(office.desk()).submit(ALICE, f"k-{name}", request(name), 0, "", True)
    await office.turn()
    await office.let_go(campaign.id, name)
    office.silence(name, 0.0)
    office.now_s += 100.0
    office.hear_all()
    await office.turn()
    return f"{campaign.id}.h-{name}"


def cause_kinds(office: Office, name: str) -> list[CauseKind]:
    charge = office.state.charge(f"h-{name}")
    return [cause.kind for cause in charge.causes] if charge else []


async def test_letters_are_listed_newest_first_with_cause_and_suggestion(office: Office, letters: DeadLetterService):
    campaign, ids = await failed(office, "gpu-001", "gpu-002")
    office.now_s += 5.0
    newest = await lost(office, "gpu-003")
    found, _ = await letters.list(0, "", (), "")
    assert found[0].id == newest
    assert {letter.id for letter in found} == {newest, *ids}
    letter = await letters.get(ids[0])
    assert (letter.host, letter.cause, letter.campaign_id) == ("gpu-001", "not-permitted", campaign)
    assert letter.suggestion
    assert letter.evidence
    ours, _ = await letters.list(0, "", (DeadLetterState.OPEN,), campaign)
    assert len(ours) == 2
    with pytest.raises(NotFound):
        await letters.get("c-nothing.h-x")


async def test_retry_opens_a_linked_campaign_over_exactly_these_hosts_in_one_transaction(
    office: Office, letters: DeadLetterService
):
    campaign, ids = await failed(office, "gpu-001", "gpu-002", mode="hard")
    before = len(office.store.commits)
    retry = await letters.retry(BOB, tuple(ids), "polkit fixed", "retry-1", False)
    assert len(office.store.commits) == before + 1
    assert retry.retry_of == campaign
    assert (retry.created_by, retry.key, retry.mode.value) == ("bob", "retry-1", "hard")
    assert retry.limits.waves == ""
    assert retry.limits.max_down == ("fabric=2",)
    assert office.state.targets(retry.id) == ("h-gpu-001", "h-gpu-002")
    assert [(await letters.get(one)).state for one in ids] == [DeadLetterState.RETRIED] * 2
    assert (await letters.get(ids[0])).retried_by == retry.id
    again = await letters.retry(BOB, tuple(reversed(ids)), "polkit fixed", "retry-1", False)
    assert again.id == retry.id
    with pytest.raises(Refused, match=retry.id) as refused:
        await letters.retry(BOB, tuple(ids), "", "retry-2", False)
    assert refused.value.code == "retried"
    with pytest.raises(AlreadyDifferent):
        await letters.retry(BOB, (ids[0],), "polkit fixed", "retry-1", False)


async def test_a_retried_hosts_charge_passes_to_the_new_task_and_ends_with_its_success(
    office: Office, letters: DeadLetterService
):
    letter = await lost(office, "gpu-001")
    assert CauseKind.DEAD_LETTER in cause_kinds(office, "gpu-001")
    office.hear("gpu-001", "boot-late")
    await office.turn()
    retry = await letters.retry(ALICE, (letter,), "", "r1", False)
    await office.turn()
    assert cause_kinds(office, "gpu-001") == [CauseKind.TASK]
    await office.reboot(retry.id, "gpu-001")
    assert office.state.charges == {}
    assert office.state.ledger("fabric/ib-a").charged == 0
    assert office.state.campaigns[retry.id].state is CampaignState.SUCCEEDED


async def test_retry_refuses_removed_and_retired_hosts_by_name_and_unlike_campaigns(
    office: Office, letters: DeadLetterService
):
    fleet = FleetService(office.desk())
    _, soft = await failed(office, "gpu-001", "gpu-002")
    _, hard = await failed(office, "gpu-003", mode="hard")
    with pytest.raises(BadField, match="different things"):
        await letters.retry(ALICE, (soft[0], hard[0]), "", "r", False)
    await fleet.remove(ALICE, "gpu-001", "", False)
    with pytest.raises(Refused, match="h-gpu-001") as gone:
        await letters.retry(ALICE, tuple(soft), "", "r", False)
    assert gone.value.code == "host-removed"
    await fleet.retire(ALICE, "gpu-002", "RMA-2", "", False)
    with pytest.raises(Refused, match="RMA-2"):
        await letters.retry(ALICE, (soft[1],), "", "r", False)
    with pytest.raises(BadField, match="selects nothing"):
        await letters.retry(ALICE, (), "", "r", False)
    with pytest.raises(BadField) as bad:
        await letters.retry(ALICE, (hard[0],), "", "", False)
    assert bad.value.field == "key"
    assert office.state.dead_letters[hard[0]].state is DeadLetterState.OPEN


async def test_dry_runs_show_the_campaign_and_the_letter_and_change_nothing(office: Office, letters: DeadLetterService):
    _, ids = await failed(office, "gpu-001")
    before = len(office.store.commits)
    shown = await letters.retry(ALICE, tuple(ids), "", "r", True)
    assert shown.target_count == 1
    resolved = await letters.resolve(ALICE, ids[0], ResolutionKind.FIXED, "", "", True)
    assert resolved.state is DeadLetterState.RESOLVED
    assert len(office.store.commits) == before
    assert (await letters.get(ids[0])).state is DeadLetterState.OPEN


@pytest.mark.parametrize("kind", [ResolutionKind.FIXED, ResolutionKind.IGNORED])
async def test_resolve_ends_the_letters_charge_and_answers_the_same_again(
    office: Office, letters: DeadLetterService, kind: ResolutionKind
):
    letter = await lost(office, "gpu-001")
    office.hear("gpu-001", "boot-late")
    await office.turn()
    assert cause_kinds(office, "gpu-001") == [CauseKind.DEAD_LETTER]
    first = await letters.resolve(ALICE, letter, kind, "", "came back", False)
    assert first.state is DeadLetterState.RESOLVED
    assert first.resolution is not None
    assert (first.resolution.kind, first.resolution.by) == (kind, "alice")
    assert office.state.charges == {}
    assert first.suggestion == ""
    assert await letters.resolve(BOB, letter, kind, "", "", False) == first
    with pytest.raises(Refused, match=f"resolved as {kind.value}") as refused:
        await letters.retry(BOB, (letter,), "", "r", False)
    assert refused.value.fix == "to try its host again, begin anew: hostler host reboot gpu-001"


async def test_a_resolution_is_corrected_by_another_and_the_audit_keeps_both(
    office: Office, letters: DeadLetterService
):
    letter = await lost(office, "gpu-001")
    office.hear("gpu-001", "boot-late")
    await office.turn()
    await letters.resolve(ALICE, letter, ResolutionKind.FIXED, "", "reseated", False)
    mended = await letters.resolve(BOB, letter, ResolutionKind.RMA, "RMA-1", "it died again", False)
    assert mended.resolution is not None
    assert (mended.resolution.kind, mended.resolution.by) == (ResolutionKind.RMA, "bob")
    assert office.host("gpu-001").retired is not None
    told = [entry.detail for entry in office.store.audit_entries if entry.action == "deadletter.resolve"]
    assert told[0] == f"{letter} as fixed"
    assert told[1].startswith(f"{letter} as rma under RMA-1; before: fixed by alice at 2027-")
    assert told[1].endswith(": reseated")
    with pytest.raises(Refused, match="rebind gpu-001"):
        await letters.retry(ALICE, (letter,), "", "r", False)


async def test_a_corrected_rma_brings_its_host_back_and_another_ticket_takes_the_place_of_the_first(
    office: Office, letters: DeadLetterService
):
    letter = await lost(office, "gpu-001")
    await letters.resolve(ALICE, letter, ResolutionKind.RMA, "RMA-1", "", False)
    await letters.resolve(ALICE, letter, ResolutionKind.RMA, "RMA-2", "wrong number", False)
    gone = office.host("gpu-001").retired
    assert gone is not None
    assert gone.ticket == "RMA-2"
    assert len(office.state.members("fabric/ib-a")) == 5
    await letters.resolve(BOB, letter, ResolutionKind.IGNORED, "", "wrong host", False)
    assert office.host("gpu-001").retired is None
    assert len(office.state.members("fabric/ib-a")) == 6
    assert cause_kinds(office, "gpu-001") == [CauseKind.DEAD]
    assert office.state.ledger("fabric/ib-a").charged == 1


async def test_a_host_that_is_not_back_is_not_called_fixed(office: Office, letters: DeadLetterService):
    letter = await lost(office, "gpu-001")
    with pytest.raises(Refused, match="still dead") as refused:
        await letters.resolve(ALICE, letter, ResolutionKind.FIXED, "", "nothing", False)
    assert (refused.value.code, refused.value.subject) == ("not-back", "host gpu-001")
    assert refused.value.since == office.sightings["h-gpu-001"].heard_at
    assert refused.value.fix.startswith(f"hostler deadletter retry {letter}; or resolve it as rma or ignored")
    assert "--force" in refused.value.fix
    with pytest.raises(Refused):
        await letters.resolve(ALICE, letter, ResolutionKind.FIXED, "", "nothing", True)
    with pytest.raises(BadField) as bad:
        await letters.resolve(ALICE, letter, ResolutionKind.FIXED, "", " ", False, True)
    assert bad.value.field == "reason"
    assert (await letters.get(letter)).state is DeadLetterState.OPEN
    await letters.resolve(ALICE, letter, ResolutionKind.FIXED, "", "its agent is being replaced", False, True)
    told = [entry.detail for entry in office.store.audit_entries if entry.action == "deadletter.resolve"]
    assert told[-1].startswith(f"{letter} as fixed, forced: it is still dead")


@pytest.mark.parametrize("kind", [ResolutionKind.FIXED, ResolutionKind.IGNORED])
async def test_a_host_that_is_not_heard_stays_charged_whatever_its_letter_became(
    office: Office, letters: DeadLetterService, kind: ResolutionKind
):
    letter = await lost(office, "gpu-001")
    assert cause_kinds(office, "gpu-001") == [CauseKind.DEAD_LETTER]
    await letters.resolve(ALICE, letter, kind, "", "never mind", False, True)
    assert cause_kinds(office, "gpu-001") == [CauseKind.DEAD]
    assert office.state.ledger("fabric/ib-a").charged == 1
    office.hear("gpu-001", "boot-late")
    await office.turn()
    assert office.state.charges == {}


async def test_a_silent_host_of_a_new_leader_is_not_called_fixed_either(office: Office, letters: DeadLetterService):
    _, ids = await failed(office, "gpu-001")
    office.leader_since = office.now_s
    office.sightings.clear()
    with pytest.raises(Refused, match="new leader"):
        await letters.resolve(ALICE, ids[0], ResolutionKind.FIXED, "", "", False)


async def test_rma_needs_a_ticket_and_retires_the_host_under_it(office: Office, letters: DeadLetterService):
    letter = await lost(office, "gpu-001")
    with pytest.raises(BadField) as bad:
        await letters.resolve(ALICE, letter, ResolutionKind.RMA, "", "", False)
    assert bad.value.field == "ticket"
    await letters.resolve(ALICE, letter, ResolutionKind.RMA, "RMA-77", "board is dead", False)
    host = office.host("gpu-001")
    assert host.retired is not None
    assert host.retired.ticket == "RMA-77"
    assert office.state.charges == {}
    assert len(office.state.members("fabric/ib-a")) == 5
    await office.turn()
    assert office.state.charges == {}


async def test_a_letter_of_a_removed_host_can_still_be_resolved(office: Office, letters: DeadLetterService):
    letter = await lost(office, "gpu-001")
    await FleetService(office.desk()).remove(ALICE, "gpu-001", "", False)
    assert office.state.charges == {}
    closed = await letters.resolve(ALICE, letter, ResolutionKind.IGNORED, "", "scrapped", False)
    assert (closed.state, closed.host) == (DeadLetterState.RESOLVED, "h-gpu-001")


async def test_a_retry_that_fails_again_makes_a_letter_of_its_own(office: Office, letters: DeadLetterService):
    _, ids = await failed(office, "gpu-001")
    retry = await letters.retry(ALICE, tuple(ids), "", "r", False)
    await office.turn()
    office.says(retry.id, "gpu-001", ReportKind.FAILED, code="not-permitted", text="still no", permanent=True)
    await office.turn()
    assert office.task(retry.id, "gpu-001").state is TaskState.DEAD_LETTER
    found, _ = await letters.list(0, "", (DeadLetterState.OPEN,), "")
    assert [letter.id for letter in found] == [f"{retry.id}.h-gpu-001"]
