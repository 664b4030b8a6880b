"""Hosts, domains, holds and imports at the service: each change charged, audited and undone by people only."""

from __future__ import annotations

import pytest

from hostler_contract.campaigns import Selector
from hostler_contract.domains import Budget, CauseKind
from hostler_contract.hosts import BmcRef, HoldKind
from hostler_contract.views import BmcVerb
from hostler_contract.work import TaskState
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import BadField, BadFields, NotFound, Refused, Unavailable
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.service.fleet import FleetService
from service_office import ALICE, BOB, NOON, Office, request


@pytest.fixture
def office() -> Office:
    return Office()


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


# -- drain -----------------------------------------------------------------------------------------------------------


async def test_drain_marks_charges_and_audits_and_undrain_ends_it(office: Office, fleet: FleetService):
    office.fleet(2)
    office.budget("fabric/ib-a", Budget(count=2))
    assert await fleet.drain(ALICE, chosen("gpu-001"), "fan noise", False) == ("gpu-001",)
    host = await fleet.get_host("gpu-001")
    assert (host.state, host.drained_by, host.drain_reason) == ("drained", "alice", "fan noise")
    assert host.charged_to == ("fabric/ib-a", "site/site")
    assert office.state.ledger("fabric/ib-a").charged == 1
    assert await fleet.drain(BOB, chosen("gpu-001"), "mine now", False) == ()
    assert (await fleet.get_host("gpu-001")).drained_by == "alice"
    assert await fleet.undrain(BOB, chosen("gpu-[001-002]"), "quiet again", False) == ("gpu-001",)
    assert kinds(office, "gpu-001") == []
    assert charged_truly(office)
    assert office.actions_audited() == [("alice", "host.drain", "done"), ("bob", "host.undrain", "done")]


async def test_a_person_may_drain_over_a_full_budget_and_is_told(office: Office, fleet: FleetService):
    office.fleet(3)
    names = await fleet.drain(ALICE, chosen("gpu-[001-002]"), "", False)
    assert names == ("gpu-001", "gpu-002 (fabric/ib-a then has 2 of 1 out of service)")
    assert office.state.ledger("fabric/ib-a").charged == 2
    campaign = await submitted(office, "gpu-003")
    view = await CampaignService(office.desk()).get(campaign)
    assert view.waiting_code == "budget-full"
    assert "gpu-001: drain" in view.waiting_for


async def test_drains_of_many_hosts_go_in_transactions_that_fit_and_survive_a_lost_race(
    office: Office, fleet: FleetService
):
    for number in range(60):
        office.enrol(f"n{number:02d}", "ib-a", rack=f"r{number}")

    def rival(_change: object) -> None:
        office.store.before_commit = None
        office.store.seed(office.host("n03").model_copy(update={"note": "meanwhile"}))

    office.store.before_commit = rival
    assert len(await fleet.drain(ALICE, Selector(all=True), "move", False)) == 60
    assert len(office.store.commits) > 1
    assert all(change.operations <= 100 for change in office.store.commits)
    assert office.host("n03").note == "meanwhile"
    assert office.state.ledger("fabric/ib-a").charged == 60
    assert charged_truly(office)


async def test_fc_a03_an_operators_drain_outlives_the_reboot_of_its_host(office: Office, fleet: FleetService):
    office.fleet(1)
    await fleet.drain(ALICE, chosen("gpu-001"), "memory test", False)
    campaign = await submitted(office, "gpu-001")
    assert kinds(office, "gpu-001") == [CauseKind.DRAIN, CauseKind.TASK]
    assert office.state.ledger("fabric/ib-a").charged == 1
    await office.reboot(campaign, "gpu-001")
    host = await fleet.get_host("gpu-001")
    assert (host.state, host.drained_by, host.drain_reason) == ("drained", "alice", "memory test")
    assert kinds(office, "gpu-001") == [CauseKind.DRAIN]


async def test_dry_runs_of_every_change_write_nothing(office: Office, fleet: FleetService):
    office.fleet(2)
    await fleet.drain(ALICE, chosen("gpu-002"), "", False)
    before = len(office.store.commits)
    assert await fleet.drain(ALICE, chosen("gpu-001"), "", True) == (
        "gpu-001 (fabric/ib-a then has 2 of 1 out of service)",
    )
    assert await fleet.undrain(ALICE, chosen("gpu-002"), "", True) == ("gpu-002",)
    assert (await fleet.retire(ALICE, "gpu-001", "RMA-1", "", True)).state == "retired"
    assert (await fleet.rebind(ALICE, "gpu-001", "NEW-1", None, "", True)).serial == "NEW-1"
    assert (await fleet.remove(ALICE, "gpu-001", "", True))[0] == "h-gpu-001"
    assert (await fleet.set_budget(ALICE, "fabric/ib-a", "50%", "", True)).limit == 1
    assert len(await fleet.add_hold(ALICE, chosen("gpu-001"), HoldKind.FIRMWARE, "BIOS", None, True)) == 1
    with pytest.raises(NotFound):
        await fleet.retire(ALICE, "gpu-009", "RMA-1", "", True)
    assert len(office.store.commits) == before


# -- one host --------------------------------------------------------------------------------------------------------


async def test_retire_takes_a_host_out_of_charge_and_denominator_and_answers_the_same_again(
    office: Office, fleet: FleetService
):
    office.fleet(4)
    office.budget("fabric/ib-a", Budget(percent=50.0))
    await fleet.drain(ALICE, chosen("gpu-001"), "", False)
    host = await fleet.retire(ALICE, "gpu-001", "RMA-4711", "dead board", False)
    assert host.state == "retired"
    assert host.charged_to == ()
    domain = await fleet.get_domain("fabric/ib-a")
    assert (domain.enrolled, domain.charged, domain.limit) == (3, 0, 1)
    assert "rounded down to 1" in domain.rounding
    assert await fleet.retire(BOB, "gpu-001", "RMA-4711", "", False) == host
    with pytest.raises(Refused, match="RMA-4711"):
        await fleet.retire(BOB, "gpu-001", "RMA-9", "", False)
    with pytest.raises(BadField) as bad:
        await fleet.retire(BOB, "gpu-002", " ", "", False)
    assert bad.value.field == "ticket"
    assert charged_truly(office)


async def test_rebind_carries_the_identity_to_a_new_board_and_brings_a_retired_host_back(
    office: Office, fleet: FleetService
):
    office.fleet(2)
    await fleet.retire(ALICE, "gpu-001", "RMA-1", "", False)
    bmc = BmcRef(address="127.1.0.9", credentials="env:NEW")
    host = await fleet.rebind(ALICE, "gpu-001", "SN-new", bmc, "new board", False)
    assert (host.id, host.serial, host.state) == ("h-gpu-001", "SN-new", "up")
    assert host.bmc == bmc
    with pytest.raises(Refused, match="gpu-002") as taken:
        await fleet.rebind(ALICE, "gpu-001", "sn-GPU-002", None, "", False)
    assert taken.value.code == "serial-taken"
    with pytest.raises(BadField, match="serial"):
        await fleet.rebind(ALICE, "gpu-001", "", None, "", False)
    with pytest.raises(BadFields) as bad:
        await fleet.rebind(
            ALICE, "gpu-001", "To be filled by O.E.M.", BmcRef(address="", credentials="hunter2"), "", False
        )
    assert {problem.field for problem in bad.value.problems} == {"serial", "bmc.credentials", "bmc.address"}
    assert "hunter2" not in str(bad.value)
    await submitted(office, "gpu-002")
    with pytest.raises(Refused, match="in flight") as busy:
        await fleet.rebind(ALICE, "gpu-002", "SN-x", None, "", False)
    assert busy.value.holder.startswith("campaign c-")


async def test_fc_a01_a_host_removed_in_flight_frees_its_charge_exactly_once_and_ends_as_removed(
    office: Office, fleet: FleetService
):
    office.fleet(20)
    campaign = await submitted(office, "gpu-[001-020]")
    await office.let_go(campaign, "gpu-001")
    office.silence("gpu-001", 1.0)
    assert office.state.ledger("fabric/ib-a").charged == 1
    host_id, told = await fleet.remove(ALICE, "gpu-001", "scrapped", False)
    assert host_id == "h-gpu-001"
    assert told == f"its task in campaign {campaign} (acting) ends as host-removed and frees its charge"
    assert [holder.host for holder in (await fleet.get_domain("fabric/ib-a")).holders] == ["h-gpu-001"]
    await office.turn()
    task = office.state.task(campaign, "h-gpu-001")
    assert task is not None
    assert (task.state, task.code) == (TaskState.SKIPPED, "host-removed")
    assert office.task(campaign, "gpu-002").state is TaskState.RESERVED
    assert office.state.ledger("fabric/ib-a").charged == 1
    assert charged_truly(office)
    released = [entry for entry in office.store.audit_entries if entry.action == "task.host-removed"]
    assert len(released) == 1
    with pytest.raises(NotFound):
        await fleet.get_host("gpu-001")


async def test_removing_a_host_ends_its_drain_and_holds_and_keeps_its_claim(office: Office, fleet: FleetService):
    office.fleet(2)
    campaign = await submitted(office, "gpu-001")
    await office.reboot(campaign, "gpu-001")
    token = office.state.claim("h-gpu-001").token
    await fleet.drain(ALICE, chosen("gpu-001"), "", False)
    await fleet.add_hold(ALICE, chosen("gpu-001"), HoldKind.HANDS_OFF, "look", None, False)
    _, told = await fleet.remove(ALICE, "gpu-001", "", False)
    assert "no longer counts as out of service" in told
    assert office.state.all_holds == ()
    assert office.state.charges == {}
    assert office.state.claim("h-gpu-001").token == token
    assert charged_truly(office)


async def test_probe_asks_the_bmc_and_holds_keep_the_led_alone(office: Office, fleet: FleetService):
    office.fleet(1)
    office.enrol("bare", bmc=None)
    assert (await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.POWER_STATE)).power == "on"
    assert office.store.audit_entries == []
    await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.LOCATE_ON)
    assert office.actions_audited() == [("alice", "host.locate-on", "asked")]
    with pytest.raises(Refused) as none:
        await fleet.probe_bmc(ALICE, "bare", BmcVerb.POWER_STATE)
    assert none.value.code == "no-bmc"
    await fleet.add_hold(BOB, chosen("gpu-001"), HoldKind.HANDS_OFF, "look", None, False)
    await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.POWER_STATE)
    with pytest.raises(Refused, match="look") as held:
        await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.LOCATE_OFF)
    assert held.value.holder == "bob"
    await fleet.add_hold(BOB, chosen("gpu-001"), HoldKind.FIRMWARE, "BIOS", None, False)
    with pytest.raises(Refused):
        await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.POWER_STATE)
    assert len(office.probes) == 3


async def test_notes_are_kept_bounded_and_audited(office: Office, fleet: FleetService):
    office.fleet(1)
    assert (await fleet.note(ALICE, "gpu-001", " loose cable ")).note == "loose cable"
    with pytest.raises(BadField, match="note"):
        await fleet.note(ALICE, "gpu-001", "x" * 1_001)
    with pytest.raises(NotFound, match="gpu-001"):
        await fleet.note(ALICE, "gpu-0001", "x")
    assert [entry.action for entry in office.store.audit_entries if entry.result == "done"] == ["host.note"]


# -- lists -----------------------------------------------------------------------------------------------------------


async def test_hosts_are_listed_in_natural_order_in_pages_by_selector_and_state(office: Office, fleet: FleetService):
    for number in (10, 9, 2, 1):
        office.enrol(f"gpu-{number}")
    office.enrol("old", heard=False)
    first, token = await fleet.list_hosts(3, "", None, ())
    rest, end = await fleet.list_hosts(3, token, None, ())
    assert [host.name for host in (*first, *rest)] == ["gpu-1", "gpu-2", "gpu-9", "gpu-10", "old"]
    assert end == ""
    unseen, _ = await fleet.list_hosts(0, "", None, ("never-seen",))
    assert [host.name for host in unseen] == ["old"]
    some, _ = await fleet.list_hosts(0, "", chosen("gpu-[9-10]"), ())
    assert [host.name for host in some] == ["gpu-9", "gpu-10"]
    with pytest.raises(BadField, match="states"):
        await fleet.list_hosts(0, "", None, ("broken",))
    with pytest.raises(BadField, match="selects nothing"):
        await fleet.list_hosts(0, "", Selector(), ())
    with pytest.raises(BadField, match="page_token"):
        await fleet.list_hosts(3, "%%%", None, ())


async def test_pages_stay_below_one_mebibyte(office: Office, fleet: FleetService):
    for number in range(300):
        office.enrol(f"n{number:03d}", labels={f"key{part}": "v" * 120 for part in range(40)}, heard=False)
    shown, token = await fleet.list_hosts(500, "", None, ())
    assert 0 < len(shown) < 300
    assert sum(len(host.model_dump_json()) for host in shown) <= 1_048_576
    seen = len(shown)
    while token:
        shown, token = await fleet.list_hosts(500, token, None, ())
        seen += len(shown)
    assert seen == 300


async def test_status_counts_the_fleet(office: Office, fleet: FleetService):
    office.fleet(3)
    office.silence("gpu-001", 60.0)
    await submitted(office, "gpu-002")
    status = await fleet.status()
    assert (status.hosts, status.hosts_heard, status.campaigns_running) == (3, 2, 1)
    assert status.leader == "coord-1"
    assert status.now == NOON


# -- domains ---------------------------------------------------------------------------------------------------------


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
    first = await fleet.add_hold(ALICE, chosen("gpu-[001-002]"), HoldKind.HANDS_OFF, "look", NOON + 60.0, False)
    office.now_s += 1.0
    [second] = await fleet.add_hold(BOB, chosen("gpu-001"), HoldKind.CRASH_DUMP, "dumping", None, False)
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
    changes, unchanged, applied = await fleet.import_inventory(ALICE, FILE, "csv", True, False, "")
    assert [(change.kind, change.name) for change in changes] == [("added", "gpu-001"), ("added", "gpu-002")]
    assert (unchanged, applied) == (0, False)
    assert not office.store.commits
    same, _, applied = await fleet.import_inventory(ALICE, FILE, "csv", False, False, "first racks")
    assert applied
    assert same == changes
    again, unchanged, _ = await fleet.import_inventory(ALICE, FILE, "csv", False, False, "")
    assert (again, unchanged) == ((), 2)
    moved = FILE.replace(b"gpu-002,ib-a,r1", b"gpu-two,ib-a,r2")
    [change], _, _ = await fleet.import_inventory(ALICE, moved, "csv", False, False, "")
    assert change.fields == ("name: gpu-002 -> gpu-two", "rack: r1 -> r2")
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
    changes, _, _ = await fleet.import_inventory(ALICE, short, "csv", False, False, "")
    assert changes == ()
    [change], unchanged, _ = await fleet.import_inventory(ALICE, short, "csv", False, True, "scrapped")
    assert (change.kind, change.name, unchanged) == ("removed", "gpu-002", 1)
    assert office.state.charges == {}
    assert charged_truly(office)


async def test_import_of_thousands_goes_in_transactions_that_fit_and_its_answer_below_one_mebibyte(
    office: Office, fleet: FleetService
):
    rows = [b"name,fabric,rack,serial,labels"]
    rows += [f"n{n:05d},ib-{n % 4},r{n // 16},SN{n:05d},note={'x' * 100}".encode() for n in range(3_000)]
    changes, _, _ = await fleet.import_inventory(ALICE, b"\n".join(rows), "csv", False, False, "")
    assert len(office.state.hosts) == 3_000
    assert all(change.operations <= 100 for change in office.store.commits)
    assert sum(len(change.model_dump_json()) for change in changes) <= 1_048_576


async def test_bad_files_name_every_bad_line_and_change_nothing(office: Office, fleet: FleetService):
    bad = FILE + b"gpu 3,ib-a,r1,SN-3,127.1.0.3,hunter2\n"
    with pytest.raises(BadFields) as refused:
        await fleet.import_inventory(ALICE, bad, "csv", False, False, "")
    assert all(problem.field.startswith("line 4: ") for problem in refused.value.problems)
    assert "hunter2" not in str(refused.value)
    assert not office.state.hosts


# -- the store -------------------------------------------------------------------------------------------------------


async def test_without_the_store_every_change_is_unavailable_and_reads_still_answer(
    office: Office, fleet: FleetService
):
    office.fleet(1)
    office.store.fail_with = StoreUnavailableError("NOSPACE alarm", NOON - 5.0)
    calls = (
        fleet.drain(ALICE, chosen("gpu-001"), "", False),
        fleet.retire(ALICE, "gpu-001", "RMA-1", "", False),
        fleet.remove(ALICE, "gpu-001", "", False),
        fleet.set_budget(ALICE, "fabric/ib-a", "3", "", False),
        fleet.add_hold(ALICE, chosen("gpu-001"), HoldKind.HANDS_OFF, "x", None, False),
    )
    for call in calls:
        with pytest.raises(Unavailable, match="NOSPACE"):
            await call
    assert (await fleet.get_host("gpu-001")).state == "up"
