"""Domains, brakes, holds and imports at the service: bounds said with their origin, differences shown first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostler_contract.campaigns import Selector
from hostler_contract.domains import Budget, CauseKind
from hostler_contract.hosts import HoldKind
from hostler_contract.work import TaskState
from hostler_coordinator.fsck import problems
from hostler_coordinator.live import ReportKind
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import AlreadyDifferent, BadField, BadFields, NotFound, Refused, Unavailable
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.service.fleet import FleetService
from service_office import ALICE, BOB, NOON, Office, request


@pytest.fixture
def office() -> Iterator[Office]:
    office = Office()
    yield office
    assert problems(office.state) == []


@pytest.fixture
def fleet(office: Office) -> FleetService:
    return FleetService(office.desk())


def chosen(*names: str) -> Selector:
    return Selector(hosts=names)


async def submitted(office: Office, *hosts: str, **more: object) -> str:
    asked = request(*hosts, **more)  # type: ignore[arg-type]
    campaign, _ = await CampaignService(office.desk()).submit(ALICE, "k1", asked, 0, "", True)
    await office.turn()
    return campaign.id


def kinds(office: Office, name: str) -> list[CauseKind]:
    charge = office.state.charge(office.host(name).id)
    return [cause.kind for cause in charge.causes] if charge else []


def charged_truly(office: Office) -> bool:
    """Every ledger's counter equals the charges that name its domain."""
    return all(
        office.state.ledger(name).charged == sum(name in charge.domains for charge in office.state.charges.values())
        for name in office.state.domains
    )


# -- domains ---------------------------------------------------------------------------------------------------------


async def test_a_domain_without_a_budget_shows_the_largest_limit_of_the_campaigns_at_work_there(
    office: Office, fleet: FleetService
):
    office.fleet(9)
    office.fleet(3, "ib-b", "b-")
    campaigns = CampaignService(office.desk())
    assert ((await fleet.get_domain("fabric/ib-a")).limit_from) == "default"
    small, _ = await campaigns.submit(ALICE, "k1", request("gpu-[001-004]", max_down=("fabric=2",)), 0, "", True)
    large, _ = await campaigns.submit(ALICE, "k2", request("gpu-[005-009]", max_down=("fabric=4",)), 0, "", True)
    await office.turn()
    shown = await fleet.get_domain("fabric/ib-a")
    assert (shown.charged, shown.limit, shown.limit_from) == (4, 4, f"campaign {large.id}")
    other = await fleet.get_domain("fabric/ib-b")
    assert (other.limit, other.limit_from) == (1, "default")
    await campaigns.abort(ALICE, large.id, "", False)
    for number in range(5, 10):
        if office.state.charge(f"h-gpu-00{number}"):
            office.says(large.id, f"gpu-00{number}", ReportKind.STOPPED)
    await office.turn()
    assert (await fleet.get_domain("fabric/ib-a")).limit_from == f"campaign {small.id}"
    office.budget("fabric/ib-a", Budget(count=3))
    shown = await fleet.get_domain("fabric/ib-a")
    assert (shown.limit, shown.limit_from) == (3, "budget")


async def test_domains_show_limit_origin_rounding_and_holders(office: Office, fleet: FleetService):
    office.fleet(61)
    office.enrol("b-1", "ib-b")
    view = await fleet.set_budget(BOB, "fabric/ib-a", "5%", "more room", False)
    assert (view.limit, view.limit_from, view.budget) == (3, "budget", "5%")
    assert view.rounding == "5% of 61 enrolled hosts = 3.05, rounded down to 3"
    await fleet.drain(ALICE, chosen("gpu-001"), "fans", False)
    [holder] = (await fleet.get_domain("fabric/ib-a")).holders
    assert (holder.host, holder.cause, holder.since) == ("gpu-001", "drained by alice", NOON)
    campaign = await submitted(office, "gpu-002")
    [_, second] = (await fleet.get_domain("fabric/ib-a")).holders
    assert second.cause == f"campaign {campaign}, task reserved"
    names, _ = await fleet.list_domains(0, "", "fabric")
    assert [domain.name for domain in names] == ["fabric/ib-a", "fabric/ib-b"]
    assert (names[1].limit, names[1].limit_from) == (1, "default")
    site = await fleet.get_domain("site/site")
    assert (site.limit, site.limit_from) == (office.policy.site_boot_ceiling, "ceiling")
    assert ("bob", "domain.set-budget", "done") in office.actions_audited()


@pytest.mark.parametrize("budget", ["0", "-1", "101%", "many", "", "0%"])
async def test_bad_budgets_name_the_field_and_change_nothing(office: Office, fleet: FleetService, budget: str):
    office.fleet(1)
    with pytest.raises(BadField) as bad:
        await fleet.set_budget(ALICE, "fabric/ib-a", budget, "", False)
    assert bad.value.field == "budget"
    assert office.state.ledger("fabric/ib-a").budget is None


async def test_unknown_domains_and_kinds_are_named(office: Office, fleet: FleetService):
    office.fleet(1)
    with pytest.raises(NotFound, match="fabric/ib-a"):
        await fleet.get_domain("ib-a")
    with pytest.raises(NotFound):
        await fleet.set_budget(ALICE, "fabric/nowhere", "3", "", False)
    with pytest.raises(BadField, match="kind"):
        await fleet.list_domains(0, "", "planet")


async def test_a_budget_lowered_below_what_is_out_stops_starts_and_ends_nothing(office: Office, fleet: FleetService):
    office.fleet(4)
    await fleet.set_budget(ALICE, "fabric/ib-a", "2", "", False)
    campaign = await submitted(office, "gpu-[001-004]")
    await fleet.set_budget(ALICE, "fabric/ib-a", "1", "", False)
    await office.turn()
    assert office.state.ledger("fabric/ib-a").charged == 2
    await fleet.set_budget(ALICE, "fabric/ib-a", "default", "", False)
    assert office.state.ledger("fabric/ib-a").budget is None
    assert office.task(campaign, "gpu-002").state is TaskState.RESERVED


async def test_a_brake_is_released_for_named_hosts_with_reason_for_an_hour(office: Office, fleet: FleetService):
    office.fleet(8)
    for number in range(1, 6):
        office.silence(f"gpu-00{number}", 20.0)
    assert (await fleet.get_domain("fabric/ib-a")).brake.startswith("5 of 8 hosts of fabric/ib-a fell silent")
    with pytest.raises(BadField) as bad:
        await fleet.release_brake(ALICE, ("gpu-001",), "", False)
    assert bad.value.field == "reason"
    names, until = await fleet.release_brake(ALICE, ("gpu-[001-002]",), "switch was rebooted", False)
    assert names == ("gpu-001", "gpu-002")
    assert until == NOON + 3_600.0
    assert (await fleet.explain_host("gpu-001")).code == "silent"
    assert (await fleet.explain_host("gpu-003")).code == "mass-silence"
    office.enrol("b-1", "ib-b", site="other")
    with pytest.raises(Refused, match="no brake"):
        await fleet.release_brake(ALICE, ("b-1",), "why not", False)


# -- holds -----------------------------------------------------------------------------------------------------------


async def test_holds_overlap_bind_name_their_owner_and_end(office: Office, fleet: FleetService):
    office.fleet(2)
    first, _ = await fleet.add_hold(ALICE, chosen("gpu-[001-002]"), HoldKind.HANDS_OFF, "look", NOON + 60.0, False)
    office.now_s += 1.0
    [second], _ = await fleet.add_hold(BOB, chosen("gpu-001"), HoldKind.CRASH_DUMP, "dumping", None, False)
    office.now_s += 1.0
    listed, _ = await fleet.list_holds(0, "")
    assert [(hold.host, hold.owner) for hold in listed] == [
        ("gpu-001", "alice"),
        ("gpu-001", "bob"),
        ("gpu-002", "alice"),
    ]
    campaign = await submitted(office, "gpu-001")
    assert office.state.task(campaign, "h-gpu-001") is None
    assert (await fleet.explain_host("gpu-001")).code == "held"
    removed = await fleet.remove_hold(ALICE, second.id, "dump is done", False)
    assert removed == second
    with pytest.raises(NotFound, match="hold"):
        await fleet.remove_hold(ALICE, second.id, "", False)
    office.now_s = NOON + 61.0
    assert (await fleet.list_holds(0, ""))[0] == ()
    await fleet.add_hold(ALICE, chosen("gpu-001"), HoldKind.HANDS_OFF, "again", None, False)
    assert first[0].id not in {hold.id for hold in office.state.all_holds}


async def test_a_hold_under_a_key_is_added_once_and_not_again_when_it_was_removed(office: Office, fleet: FleetService):
    office.fleet(60)
    asked = (ALICE, chosen("gpu-[001-060]"), HoldKind.HANDS_OFF, "look", None, False, "k1")
    first, repeated = await fleet.add_hold(*asked)
    assert (len(first), repeated) == (60, False)
    await fleet.remove_hold(BOB, first[3].id, "mine", False)
    again, repeated = await fleet.add_hold(*asked)
    assert repeated
    assert {hold.id for hold in again} == {hold.id for hold in first} - {first[3].id}
    with pytest.raises(AlreadyDifferent, match="k1"):
        await fleet.add_hold(ALICE, chosen("gpu-001"), HoldKind.HANDS_OFF, "look", None, False, "k1")
    with pytest.raises(AlreadyDifferent, match="holds"):
        await submitted(office, "gpu-001")
    other, repeated = await fleet.add_hold(BOB, chosen("gpu-001"), HoldKind.HANDS_OFF, "look", None, False, "k1")
    assert (len(other), repeated) == (1, False)


async def test_a_hold_that_broke_off_goes_on_under_its_key(office: Office, fleet: FleetService):
    office.fleet(60)
    asked = (ALICE, chosen("gpu-[001-060]"), HoldKind.HANDS_OFF, "look", None, False, "k1")

    def away(_change: object) -> None:
        if office.store.commits:
            office.store.fail_with = StoreUnavailableError("etcd is away", NOON)

    office.store.before_commit = away
    with pytest.raises(Unavailable):
        await fleet.add_hold(*asked)
    done = len(office.state.all_holds)
    assert 0 < done < 60
    office.store.before_commit, office.store.fail_with = None, None
    found, repeated = await fleet.add_hold(*asked)
    assert (len(found), len(office.state.all_holds), repeated) == (60, 60, False)
    assert len([entry for entry in office.store.audit_entries if entry.action == "hold.add"]) == 60


@pytest.mark.parametrize(
    ("reason", "until", "field"), [("", None, "reason"), ("x", NOON, "until"), ("x", 1e11, "until")]
)
async def test_bad_holds_name_the_field(office: Office, fleet: FleetService, reason: str, until: float, field: str):
    office.fleet(1)
    with pytest.raises(BadField) as bad:
        await fleet.add_hold(ALICE, chosen("gpu-001"), HoldKind.HANDS_OFF, reason, until, False)
    assert bad.value.field == field
    assert office.state.all_holds == ()


# -- import ----------------------------------------------------------------------------------------------------------

FILE = b"""name,fabric,rack,serial,bmc.address,bmc.credentials
gpu-001,ib-a,r1,SN-1,127.1.0.1,env:BMC
gpu-002,ib-a,r1,SN-2,127.1.0.2,env:BMC
"""


async def test_import_shows_the_difference_first_then_applies_it(office: Office, fleet: FleetService):
    shown = await fleet.import_inventory(ALICE, FILE, "csv", True, False, "")
    assert [(change.kind, change.name) for change in shown.changes] == [("added", "gpu-001"), ("added", "gpu-002")]
    assert (shown.added, shown.unchanged, shown.applied, shown.fleet) == (2, 0, False, 0)
    assert not office.store.commits
    same = await fleet.import_inventory(ALICE, FILE, "csv", False, False, "first racks")
    assert same == shown.model_copy(update={"applied": True})
    again = await fleet.import_inventory(ALICE, FILE, "csv", False, False, "")
    assert (again.changes, again.unchanged, again.fleet) == ((), 2, 2)
    moved = FILE.replace(b"gpu-002,ib-a,r1", b"gpu-two,ib-a,r2")
    told = await fleet.import_inventory(ALICE, moved, "csv", False, False, "")
    assert (told.changed, told.unchanged) == (1, 1)
    assert told.changes[0].fields == ("name: gpu-002 -> gpu-two", "rack: r1 -> r2")
    assert office.host("gpu-two").rack == "r2"
    kinds_of = [entry.action for entry in office.store.audit_entries]
    assert sorted(kinds_of) == ["host.change", "host.enrol", "host.enrol"]


async def test_import_refuses_by_name_to_move_a_charged_host_and_writes_nothing(office: Office, fleet: FleetService):
    await fleet.import_inventory(ALICE, FILE, "csv", False, False, "")
    await fleet.drain(BOB, chosen("gpu-002"), "fans", False)
    before = len(office.store.commits)
    moved = FILE.replace(b"gpu-001,ib-a,r1", b"gpu-001,ib-a,r5").replace(b"gpu-002,ib-a,r1", b"gpu-002,ib-b,r1")
    with pytest.raises(Refused, match="gpu-002") as refused:
        await fleet.import_inventory(ALICE, moved, "csv", False, False, "")
    assert refused.value.code == "charged-host-moves"
    assert refused.value.holder == "drain bob"
    assert office.host("gpu-001").rack == "r1"
    assert len(office.store.commits) == before + 1  # the audit of the refusal
    assert charged_truly(office)


async def test_import_removes_what_the_file_lacks_only_when_told(office: Office, fleet: FleetService):
    await fleet.import_inventory(ALICE, FILE, "csv", False, False, "")
    await fleet.drain(BOB, chosen("gpu-002"), "", False)
    short = FILE.rsplit(b"gpu-002", 1)[0]
    assert (await fleet.import_inventory(ALICE, short, "csv", False, False, "")).changes == ()
    told = await fleet.import_inventory(ALICE, short, "csv", False, True, "scrapped", 1)
    assert [(change.kind, change.name) for change in told.changes] == [("removed", "gpu-002")]
    assert (told.removed, told.unchanged, told.fleet) == (1, 1, 2)
    assert office.state.charges == {}
    assert charged_truly(office)


async def test_import_of_thousands_goes_in_transactions_that_fit_and_its_answer_below_one_mebibyte(
    office: Office, fleet: FleetService
):
    rows = [b"name,fabric,rack,serial,labels"]
    rows += [f"n{n:05d},ib-{n % 4},r{n // 16},SN{n:05d},note={'x' * 100}".encode() for n in range(3_000)]
    told = await fleet.import_inventory(ALICE, b"\n".join(rows), "csv", False, False, "")
    assert told.added == 3_000
    assert len(office.state.hosts) == 3_000
    assert all(change.operations <= 100 for change in office.store.commits)
    assert sum(len(change.model_dump_json()) for change in told.changes) <= 1_048_576


@pytest.mark.parametrize(
    ("known", "kept", "needs"), [(30, 27, False), (30, 26, True), (300, 280, False), (300, 279, True)]
)
async def test_removing_many_hosts_needs_their_exact_number_whoever_says_yes(
    office: Office, fleet: FleetService, known: int, kept: int, needs: bool
):
    office.fleet(known)
    rows = b"id,name\n" + b"".join(f"h-gpu-{n:03d},gpu-{n:03d}\n".encode() for n in range(1, kept + 1))
    shown = await fleet.import_inventory(ALICE, rows, "csv", True, True, "")
    assert (shown.removed, shown.fleet, shown.needs_count) == (known - kept, known, needs)
    with pytest.raises(Refused, match=f"{known - kept + 1} were expected"):
        await fleet.import_inventory(ALICE, rows, "csv", False, True, "", known - kept + 1)
    if needs:
        with pytest.raises(Refused, match=f"it removes {known - kept} hosts of {known}") as refused:
            await fleet.import_inventory(ALICE, rows, "csv", False, True, "")
        assert refused.value.fix.startswith(f"give --expect-removed {known - kept}")
        assert len(office.state.hosts) == known
    told = await fleet.import_inventory(ALICE, rows, "csv", False, True, "", known - kept if needs else 0)
    assert told.applied
    assert len(office.state.hosts) == kept


async def test_bad_files_name_every_bad_line_and_change_nothing(office: Office, fleet: FleetService):
    bad = FILE + b"gpu 3,ib-a,r1,SN-3,127.1.0.3,hunter2\n"
    with pytest.raises(BadFields) as refused:
        await fleet.import_inventory(ALICE, bad, "csv", False, False, "")
    assert all(problem.field.startswith("line 4: ") for problem in refused.value.problems)
    assert "hunter2" not in str(refused.value)
    assert not office.state.hosts


@pytest.mark.parametrize(
    ("name", "budget", "told"),
    [
        ("fabric/ib-a", "50%", (2, "budget", "50%")),
        ("fabric/ib-a", "default", (1, "default", "")),
        ("site/site", "default", (100, "ceiling", "")),
    ],
)
async def test_a_dry_budget_tells_the_limit_that_it_would_make(
    office: Office, fleet: FleetService, name: str, budget: str, told: tuple[int, str, str]
):
    office.fleet(4)
    office.budget("fabric/ib-a", Budget(count=3))
    view = await fleet.set_budget(ALICE, name, budget, "", True)
    assert (view.limit, view.limit_from, view.budget) == told
    assert office.state.ledger("fabric/ib-a").budget == Budget(count=3)
