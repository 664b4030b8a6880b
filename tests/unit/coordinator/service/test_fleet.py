"""Hosts at the service: each change charged, audited, and undone by people only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostler_contract.campaigns import Selector
from hostler_contract.domains import Budget, Cause, CauseKind, Charge
from hostler_contract.hosts import BmcRef, HoldKind
from hostler_contract.views import BmcSeen, BmcVerb, Drained
from hostler_contract.work import TaskState
from hostler_coordinator.fsck import problems
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import BadField, BadFields, NotFound, Refused, Unavailable
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


# -- drain -----------------------------------------------------------------------------------------------------------


async def test_drain_marks_charges_and_audits_and_undrain_ends_it(office: Office, fleet: FleetService):
    office.fleet(2)
    office.budget("fabric/ib-a", Budget(count=2))
    assert await fleet.drain(ALICE, chosen("gpu-001"), "fan noise", False) == Drained(hosts=("gpu-001",))
    host = await fleet.get_host("gpu-001")
    assert (host.state, host.drained_by, host.drain_reason) == ("drained", "alice", "fan noise")
    assert host.charged_to == ("fabric/ib-a", "site/site")
    assert office.state.ledger("fabric/ib-a").charged == 1
    assert await fleet.drain(BOB, chosen("gpu-001"), "mine now", False) == Drained()
    assert (await fleet.get_host("gpu-001")).drained_by == "alice"
    assert await fleet.undrain(BOB, chosen("gpu-[001-002]"), "quiet again", False) == ("gpu-001",)
    assert kinds(office, "gpu-001") == []
    assert charged_truly(office)
    assert office.actions_audited() == [("alice", "host.drain", "done"), ("bob", "host.undrain", "done")]


async def test_a_drain_stays_within_the_budgets_all_of_it_or_nothing(office: Office, fleet: FleetService):
    office.fleet(4)
    with pytest.raises(Refused, match=r"fabric/ib-a would have 2 of 1 .default. out of service .0 now") as refused:
        await fleet.drain(ALICE, chosen("gpu-[001-002]"), "", False)
    assert refused.value.code == "over-budget"
    assert "--force with --reason" in refused.value.fix
    assert office.state.charges == {}
    await fleet.drain(BOB, chosen("gpu-001"), "fans", False)
    with pytest.raises(Refused, match=r"2 of 1 .default. out of service .1 now: gpu-001: drained by bob"):
        await fleet.drain(ALICE, chosen("gpu-[001-002]"), "", False)
    assert charged_truly(office)
    office.budget("fabric/ib-a", Budget(count=2))
    await fleet.drain(ALICE, chosen("gpu-[001-002]"), "", False)
    with pytest.raises(Refused, match=r"3 of 2 .budget"):
        await fleet.drain(ALICE, chosen("gpu-003"), "", False)


async def test_a_host_that_is_out_of_service_already_may_always_be_drained(office: Office, fleet: FleetService):
    office.fleet(2)
    campaign = await submitted(office, "gpu-001")
    assert office.task(campaign, "gpu-001").state is TaskState.RESERVED
    done = await fleet.drain(ALICE, chosen("gpu-001"), "", False)
    assert (done.hosts, done.over_budget) == (("gpu-001",), ())
    assert office.state.ledger("fabric/ib-a").charged == 1
    office.silence("gpu-002", 60.0)
    assert (await fleet.drain(ALICE, chosen("gpu-002"), "", False)).hosts == ("gpu-002",)
    assert charged_truly(office)


async def test_a_place_that_is_taken_while_a_drain_is_written_is_seen(office: Office, fleet: FleetService):
    office.fleet(2)

    def rival(_change: object) -> None:
        office.store.before_commit = None
        host = office.host("gpu-001")
        cause = Cause(kind=CauseKind.DEAD, ref="", since=NOON)
        office.store.seed(Charge(host=host.id, domains=host.domains, causes=(cause,), since=NOON))
        for name in host.domains:
            office.store.seed(office.state.ledger(name).model_copy(update={"charged": 1}))

    office.store.before_commit = rival
    with pytest.raises(Refused, match="host gpu-002: fabric/ib-a would have 2 of 1"):
        await fleet.drain(ALICE, chosen("gpu-002"), "", False)
    assert office.host("gpu-002").drain is None
    assert charged_truly(office)


async def test_a_person_drains_over_a_full_budget_by_force_with_a_reason(office: Office, fleet: FleetService):
    office.fleet(3)
    with pytest.raises(BadField) as bad:
        await fleet.drain(ALICE, chosen("gpu-[001-002]"), " ", False, True)
    assert bad.value.field == "reason"
    done = await fleet.drain(ALICE, chosen("gpu-[001-002]"), "the rack leaks", False, True)
    assert done.hosts == ("gpu-001", "gpu-002")
    assert done.over_budget == ("fabric/ib-a would have 2 of 1 (default) out of service (0 now)",)
    entries = [one for one in office.store.audit_entries if (one.action, one.result) == ("host.drain", "done")]
    details = {entry.host: entry.detail for entry in entries}
    assert details["h-gpu-001"] == ""
    assert details["h-gpu-002"].startswith("over budget, forced: fabric/ib-a would have 2 of 1")
    assert office.state.ledger("fabric/ib-a").charged == 2
    campaign = await submitted(office, "gpu-003")
    view = await CampaignService(office.desk()).get(campaign)
    assert view.waiting_code == "budget-full"
    assert "gpu-001: drained by alice" in view.waiting_for


async def test_drains_of_many_hosts_go_in_transactions_that_fit_and_survive_a_lost_race(
    office: Office, fleet: FleetService
):
    for number in range(60):
        office.enrol(f"n{number:02d}", "ib-a", rack=f"r{number}")

    def rival(_change: object) -> None:
        office.store.before_commit = None
        office.store.seed(office.host("n03").model_copy(update={"note": "meanwhile"}))

    office.store.before_commit = rival
    assert len((await fleet.drain(ALICE, Selector(all=True), "move", False, True)).hosts) == 60
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
    shown = await fleet.drain(ALICE, chosen("gpu-001"), "", True)
    assert shown.hosts == ("gpu-001",)
    assert shown.over_budget[0].startswith("fabric/ib-a would have 2 of 1 (default) out of service (1 now: gpu-002")
    assert (await fleet.note(ALICE, "gpu-001", "look", "why", True)).note == "look"
    assert await fleet.undrain(ALICE, chosen("gpu-002"), "", True) == ("gpu-002",)
    assert (await fleet.retire(ALICE, "gpu-001", "RMA-1", "", True))[0].state == "retired"
    assert (await fleet.rebind(ALICE, "gpu-001", "NEW-1", None, "", True)).serial == "NEW-1"
    assert (await fleet.remove(ALICE, "gpu-001", "", True))[0] == "h-gpu-001"
    assert (await fleet.set_budget(ALICE, "fabric/ib-a", "50%", "", True)).limit == 1
    held, _ = await fleet.add_hold(ALICE, chosen("gpu-001"), HoldKind.FIRMWARE, "BIOS", None, True)
    assert len(held) == 1
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
    host, told = await fleet.retire(ALICE, "gpu-001", "RMA-4711", "dead board", False)
    assert told == "it no longer counts as out of service (drained by alice)"
    assert host.state == "retired"
    assert host.charged_to == ()
    domain = await fleet.get_domain("fabric/ib-a")
    assert (domain.enrolled, domain.charged, domain.limit) == (3, 0, 1)
    assert "rounded down to 1" in domain.rounding
    assert await fleet.retire(BOB, "gpu-001", "RMA-4711", "", False) == (host, "")
    with pytest.raises(Refused, match="RMA-4711"):
        await fleet.retire(BOB, "gpu-001", "RMA-9", "", False)
    with pytest.raises(BadField) as bad:
        await fleet.retire(BOB, "gpu-002", " ", "", False)
    assert bad.value.field == "ticket"
    assert charged_truly(office)


async def test_retiring_a_host_at_work_names_the_work_and_is_refused_while_its_bmc_is_told(
    office: Office, fleet: FleetService
):
    office.fleet(3)
    campaign = await submitted(office, "gpu-[001-002]")
    _, told = await fleet.retire(ALICE, "gpu-001", "RMA-1", "", True)
    assert told == f"its task in campaign {campaign} (reserved) goes on and keeps its charge until it ends"
    _, told = await fleet.retire(ALICE, "gpu-002", "RMA-2", "", False)
    assert told == f"it is skipped as retired in {campaign}"
    moving = office.task(campaign, "gpu-001")
    office.store.seed(moving.model_copy(update={"state": TaskState.POWER_CYCLING}))
    with pytest.raises(Refused, match="its BMC is being told") as refused:
        await fleet.retire(ALICE, "gpu-001", "RMA-1", "", False)
    assert (refused.value.code, refused.value.holder) == ("power-action", campaign)
    assert office.host("gpu-001").retired is None
    office.store.seed(moving)


async def test_a_reason_for_asking_a_bmc_and_one_for_a_note_are_audited(office: Office, fleet: FleetService):
    office.fleet(1)
    await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.POWER_STATE)
    assert not office.store.audit_entries
    await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.POWER_STATE, "it does not answer")
    await fleet.note(ALICE, "gpu-001", "see 4711", "for the night shift")
    noted, asked = sorted(office.store.audit_entries, key=lambda entry: entry.action)
    assert (asked.action, asked.reason, asked.result) == ("host.power-state", "it does not answer", "asked")
    assert (noted.action, noted.reason, noted.detail) == ("host.note", "for the night shift", "see 4711")


async def test_rebind_carries_the_identity_to_a_new_board_and_brings_a_retired_host_back(
    office: Office, fleet: FleetService
):
    office.fleet(2)
    await fleet.retire(ALICE, "gpu-001", "RMA-1", "", False)
    bmc = BmcRef(address="127.1.0.9", credentials="env:NEW")
    host = await fleet.rebind(ALICE, "gpu-001", "SN-new", bmc, "new board", False)
    assert (host.id, host.serial, host.state) == ("h-gpu-001", "SN-new", "up")
    assert host.bmc == bmc
    assert office.host("gpu-001").boot_id is None  # the new board's first boot is news, not a surprise
    await office.turn()
    assert office.host("gpu-001").boot_id == "boot-gpu-001-1"
    moved = BmcRef(address="127.1.0.8", credentials="")
    host = await fleet.rebind(ALICE, "gpu-001", "", moved, "BMC moved", False)
    assert host.bmc == moved.model_copy(update={"credentials": "env:NEW"})
    assert office.host("gpu-001").boot_id == "boot-gpu-001-1"
    assert office.host("gpu-001").unexpected_boot_at is None
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


async def test_fc_b06_a_probe_stores_what_nobody_knew_and_overwrites_nothing(office: Office, fleet: FleetService):
    office.fleet(1)
    first = BmcSeen(system="/redfish/v1/Systems/System_0", system_uuid="U-1", chosen_by="the UUID", model="DGX")
    office.bmc_seen = first
    await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.POWER_STATE)
    host = await fleet.get_host("gpu-001")
    assert host.bmc_seen == first.model_copy(update={"at": NOON})
    assert office.actions_audited() == [("alice", "host.bmc-facts", "done")]
    office.bmc_seen = first.model_copy(update={"system": "/redfish/v1/Systems/HGX_Baseboard_0"})
    await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.POWER_STATE)
    assert (await fleet.get_host("gpu-001")).bmc_seen == host.bmc_seen
    office.store.fail_with = StoreUnavailableError("no quorum", NOON)
    office.store.remove("bmcfacts/h-gpu-001")
    assert (await fleet.probe_bmc(ALICE, "gpu-001", BmcVerb.POWER_STATE)).power == "on"


async def test_fc_b06_a_rebind_or_a_removal_forgets_what_the_bmc_told(office: Office, fleet: FleetService):
    office.fleet(2)
    office.bmc_seen = BmcSeen(system="/redfish/v1/Systems/System_0")
    for name in ("gpu-001", "gpu-002"):
        await fleet.probe_bmc(ALICE, name, BmcVerb.POWER_STATE)
    await fleet.rebind(ALICE, "gpu-001", "SN-gpu-001", None, "looked at it", True)
    assert (await fleet.get_host("gpu-001")).bmc_seen is not None
    office.now_s += 1.0
    await fleet.rebind(ALICE, "gpu-001", "SN-gpu-001", None, "the same board, looked at it", False)
    assert (await fleet.get_host("gpu-001")).bmc_seen is None
    entry = office.store.audit_entries[-1]
    assert (entry.actor, entry.action, entry.reason) == ("alice", "host.bmc-facts", "the same board, looked at it")
    await fleet.remove(ALICE, "gpu-002", "", False)
    assert not [path for path in office.state.paths() if path.startswith("bmcfacts/")]
    assert problems(office.state) == []


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
