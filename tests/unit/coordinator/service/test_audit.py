"""The audit as read: pages and export, filters by person, host, campaign, room and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from hostler_contract.campaigns import AuditRecord
from hostler_contract.domains import Budget
from hostler_contract.hosts import HoldKind
from hostler_contract.pb.hostler.v1 import audit_pb2
from hostler_contract.work import Token
from hostler_coordinator.enact import audit_id
from hostler_coordinator.fsck import problems
from hostler_coordinator.live import RefusedOrder
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import BadField, Refused, Unavailable
from hostler_coordinator.service.audit import AuditFilter, AuditService
from hostler_coordinator.service.callers import Caller
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.service.fleet import FleetService
from service_office import ALICE, BOB, NOON, Office, request

ZOE = Caller("zoe", "operator")


@pytest.fixture
def office() -> Iterator[Office]:
    office = Office()
    yield office
    assert problems(office.state) == []


@pytest.fixture
def audit(office: Office) -> AuditService:
    return AuditService(office.desk())


def written(office: Office, count: int, **more: str) -> None:
    for number in range(count):
        at = NOON + number
        fields = {"id": audit_id(at, f"x-{number}"), "at": at, "actor": "alice", "action": "host.note"}
        office.store.seed(AuditRecord.model_validate(fields | more))


async def test_pages_go_oldest_first_and_neither_repeat_nor_hide(office: Office, audit: AuditService):
    written(office, 25)
    seen = []
    token = ""
    for _ in range(3):
        page, token = await audit.list(10, token, AuditFilter())
        seen += [entry.at for entry in page]
    assert seen == [NOON + number for number in range(25)]
    assert token == ""
    with pytest.raises(BadField, match="page_token"):
        await audit.list(10, "x", AuditFilter())


async def all_newest(audit: AuditService, size: int, wanted: AuditFilter) -> list[float]:
    """Every page, newest first, as seconds after noon."""
    seen: list[float] = []
    token = ""
    for _ in range(100):
        page, token = await audit.newest(size, token, wanted)
        seen += [entry.at - NOON for entry in page]
        if not token:
            return seen
    raise AssertionError("the pages do not end")


async def test_the_newest_come_first_and_pages_go_back_without_repeat_or_gap(office: Office, audit: AuditService):
    written(office, 25)
    office.now_s = NOON + 30.0
    page, _ = await audit.newest(3, "", AuditFilter())
    assert [entry.at - NOON for entry in page] == [24.0, 23.0, 22.0]
    assert await all_newest(audit, 10, AuditFilter()) == [float(number) for number in reversed(range(25))]
    with pytest.raises(BadField, match="page_token"):
        await audit.newest(10, "x", AuditFilter())


async def test_the_newest_are_found_however_long_ago_they_were_and_from_a_clock_that_is_ahead(
    office: Office, audit: AuditService
):
    written(office, 3)
    office.now_s = NOON + 90 * 86_400.0
    assert await all_newest(audit, 10, AuditFilter()) == [2.0, 1.0, 0.0]
    office.now_s = NOON - 5.0
    assert await all_newest(audit, 2, AuditFilter()) == [2.0, 1.0, 0.0]


async def test_the_newest_of_a_time_or_a_person_only(office: Office, audit: AuditService):
    written(office, 25)
    office.now_s = NOON + 1_000.0
    between = AuditFilter(from_at=NOON + 3.0, to_at=NOON + 6.0)
    assert await all_newest(audit, 2, between) == [5.0, 4.0, 3.0]
    assert await all_newest(audit, 2, AuditFilter(actor="bob")) == []


async def test_of_very_many_entries_some_are_looked_at_for_one_page(office: Office):
    audit = AuditService(office.desk(), read=50, scanned=100)
    written(office, 600)
    office.now_s = NOON + 600.0
    page, token = await audit.newest(10, "", AuditFilter(actor="bob"))
    assert (page, token != "") == ((), True)
    assert await all_newest(audit, 500, AuditFilter()) == [float(number) for number in reversed(range(600))]


async def test_no_entry_is_read_twice_for_one_page(office: Office):
    audit = AuditService(office.desk(), read=50, scanned=10_000)
    written(office, 600)
    office.now_s = NOON + 600.0
    asked: list[int] = []
    read = office.store.audit

    async def counting(after: str, limit: int, before: str = "") -> Sequence[AuditRecord]:
        found = await read(after, limit, before)
        asked.append(len(found))
        return found

    office.store.audit = counting  # type: ignore[method-assign]
    page, token = await audit.newest(500, "", AuditFilter(actor="bob"))
    assert (page, token) == ((), "")
    assert sum(asked) == 600


async def test_filters_by_time_bound_the_page(office: Office, audit: AuditService):
    written(office, 25)
    page, token = await audit.list(0, "", AuditFilter(from_at=NOON + 3.0, to_at=NOON + 6.0))
    assert ([entry.at - NOON for entry in page], token) == ([3.0, 4.0, 5.0], "")
    with pytest.raises(BadField, match=r"filter\.to"):
        await audit.list(0, "", AuditFilter(from_at=NOON, to_at=NOON))


async def test_export_sends_everything_in_batches(office: Office, audit: AuditService):
    written(office, 1_200, detail="y" * 400)
    batches = [batch async for batch in audit.export(AuditFilter())]
    assert sum(len(batch) for batch in batches) == 1_200
    assert max(len(batch) for batch in batches) <= 500
    assert all(sum(len(entry.model_dump_json()) for entry in batch) < 1_048_576 for batch in batches)


async def test_without_the_store_the_audit_is_unavailable(office: Office, audit: AuditService):
    office.store.fail_with = StoreUnavailableError("no quorum", NOON)
    with pytest.raises(Unavailable, match="no quorum"):
        await audit.list(0, "", AuditFilter())


async def test_fc_d10_who_did_this_names_person_or_rule_with_time_host_reason_and_result(
    office: Office, audit: AuditService
):
    """X submits, Y raises the budget, Z spares one host, the rule goes to a BMC, an old leader's order is refused."""
    office.fleet(6)
    campaigns, fleet = CampaignService(office.desk()), FleetService(office.desk())
    office.budget("fabric/ib-a", Budget(count=1))
    campaign, _ = await campaigns.submit(ALICE, "k", request("gpu-[001-003]"), 0, "", False)
    office.now_s += 1.0
    await fleet.set_budget(BOB, "fabric/ib-a", "3", "hurry", False)
    office.hear_all()
    await office.turn()
    office.silence("gpu-001", 130.0)
    office.now_s += 1.0
    office.hear_all()
    await office.turn()
    await fleet.add_hold(ZOE, request("gpu-002").selector, HoldKind.HANDS_OFF, "not this one", None, False)
    old = office.task(campaign.id, "gpu-001").token
    assert old is not None
    claim = office.state.claim("h-gpu-001")
    office.store.seed(claim.model_copy(update={"token": Token(epoch=old.epoch, counter=old.counter + 1)}))
    office.now_s += 1.0
    why = "a newer token has overtaken this intent"
    order = RefusedOrder("h-gpu-001", f"{campaign.id}/h-gpu-001", old, "BMC cycle", "the power worker of c0", why, NOON)
    office.refused[order.host, order.token] = order
    await office.turn()
    with pytest.raises(Refused):
        await fleet.rebind(ZOE, "gpu-003", "SN-9", None, "oops", False)
    after_leader_change = AuditService(office.desk())
    page, _ = await after_leader_change.list(0, "", AuditFilter())
    told = [(entry.actor, entry.action, entry.host, entry.reason, entry.result) for entry in page]
    rule = f"rule of campaign {campaign.id} (alice)"
    assert ("alice", "campaign.submit", "", "new kernel", "done") in told
    assert ("bob", "domain.set-budget", "", "hurry", "done") in told
    assert ("zoe", "hold.add", "gpu-002", "not this one", "done") in told
    assert ("zoe", "host.rebind", "gpu-003", "oops", "refused") in told
    assert (rule, "host.power-cycle", "gpu-001", "the agent hangs: silent before it was let go", "asked") in told
    assert told.count((rule, "host.order", "gpu-001", why, "refused")) == 1
    assert all(NOON <= entry.at <= office.now_s for entry in page)
    mine, _ = await audit.list(0, "", AuditFilter(actor="rule"))
    assert {entry.actor for entry in mine} == {rule}
    room, _ = await audit.list(0, "", AuditFilter(action="campaign"))
    assert {entry.action for entry in room} == {"campaign.submit"}
    host, _ = await audit.list(0, "", AuditFilter(host="gpu-001"))
    assert {entry.host for entry in host} == {"gpu-001"}
    ours, _ = await audit.list(0, "", AuditFilter(campaign_id=campaign.id))
    assert {entry.campaign_id for entry in ours} == {campaign.id}


def test_fc_d10_nobody_is_offered_a_way_to_change_the_audit():
    service = audit_pb2.DESCRIPTOR.services_by_name["AuditService"]
    assert sorted(method.name for method in service.methods) == ["ExportAudit", "ListAudit"]
    asked = [one for message in audit_pb2.DESCRIPTOR.message_types_by_name.values() for one in message.fields]
    assert "AuditRecord" not in {one.message_type.name for one in asked if one.message_type}
