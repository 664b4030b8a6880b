"""The leader's power worker, its engine and ledger over real Redfish: what is stored, shown and refused of a BMC."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bmc_fixtures import write_secret
from field_stories import FAST, limits
from hostler_contract.hosts import BmcRef
from hostler_contract.work import PowerIntent, TaskRecord
from hostler_coordinator import views
from hostler_coordinator.bmc.answers import Machine
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.pool import BmcPool
from hostler_coordinator.bmc.walk import CycleSettings
from hostler_coordinator.live import PowerReport, PowerResult
from hostler_coordinator.power import PowerWorker
from memory_fleet import Fleet
from redfish_fake import SYSTEM, FakeRedfish, system

pytestmark = pytest.mark.integration

HOST = "gpu-001"
BASEBOARD = "/redfish/v1/Systems/HGX_Baseboard_0"
UUID = "11111111-2222-3333-4444-555555555555"
QUICK_WALK = CycleSettings(dwell_s=0.1, poll_s=0.1, off_limit_s=10.0, on_limit_s=10.0, save_sel=False)
WALK_MOST_S = 30.0


@pytest.fixture
def redfish(tmp_path: Path) -> Iterator[FakeRedfish]:
    with FakeRedfish(tmp_path) as fake:
        yield fake


@pytest.fixture
def fleet(redfish: FakeRedfish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """One hung host, whose inventory has the UUID of its own system and not that of the GPU board listed first."""
    redfish.resources["/redfish/v1/Systems"] = {"Members": [{"@odata.id": BASEBOARD}, {"@odata.id": SYSTEM}]}
    redfish.resources[BASEBOARD] = {"UUID": "0"}
    redfish.resources[SYSTEM] |= {"Manufacturer": "NVIDIA", "Model": "DGX H100"}
    monkeypatch.setenv("SSL_CERT_FILE", redfish.ca_file)  # what this site trusts; worker processes inherit it
    fleet = Fleet(3, policy=FAST)
    secret = write_secret(tmp_path / "secret")
    bmc = BmcRef(protocol="redfish", address="127.0.0.1", port=redfish.port, credentials=secret)
    host = fleet.store.state.hosts[HOST]
    fleet.store.seed(host.model_copy(update={"bmc": bmc, "system_uuid": UUID}))
    fleet.machines[HOST].hang_on_offer = True
    return fleet


async def intended(fleet: Fleet, name: str) -> tuple[TaskRecord, PowerIntent]:
    """A campaign whose host hangs, up to the durable intent."""
    fleet.campaign(limits(), hosts=[HOST], name=name)
    before = len(fleet.power_calls)
    await fleet.run(600, lambda: len(fleet.power_calls) > before)
    task = fleet.task(HOST, name)
    assert task is not None
    assert task.power is not None
    return task, task.power


async def walked(fleet: Fleet, pool: BmcPool, name: str, settings: CycleSettings = QUICK_WALK) -> PowerReport:
    """Carry the intent out, with the engine's turns in between; the last report."""
    task, intent = await intended(fleet, name)
    news = asyncio.Event()
    worker = PowerWorker(
        caller=pool,
        pacing=Pacing(),
        settings=settings,
        store=fleet.store,
        clock=fleet.clock,
        sightings=fleet.board.sightings,
        woken=news.set,
        refused=fleet.board.order_refused,
    )
    worker.begin(task.id, HOST, intent)
    fleet._power = worker.reports()
    async with asyncio.timeout(WALK_MOST_S):
        while worker.reports()[task.id].result is PowerResult.WORKING:
            await news.wait()
            news.clear()
            await fleet.engine.turn()
    await worker.close()
    await fleet.engine.turn()
    return worker.reports()[task.id]


async def test_fc_b06_the_choice_is_durable_and_a_change_stops_the_next_walk_of_another_leader(
    bmc_pool: BmcPool, redfish: FakeRedfish, fleet: Fleet
):
    report = await walked(fleet, bmc_pool, "c-1")
    assert report.result is PowerResult.DONE, report
    assert redfish.reset_types == ["ForceOff", "On"]
    told = Machine(SYSTEM, UUID, "the UUID", "NVIDIA", "DGX H100")
    stored = fleet.store.state.bmc_facts(HOST)
    assert stored is not None
    assert (stored.system, stored.system_uuid, stored.of_model) == (SYSTEM, UUID, told.of_model)
    fleet.fail_over("c2")
    fleet.come_up(fleet.machines[HOST])
    await fleet.run(60)
    view = views.host(fleet.engine.world(), fleet.store.state.hosts[HOST])
    assert view.bmc_seen is not None
    assert (view.bmc_seen.system, view.bmc_seen.chosen_by) == (SYSTEM, "the UUID")
    # The firmware renames its systems: the host's own has another path now, and the board could be switched too.
    redfish.resources["/redfish/v1/Systems"] = {"Members": [{"@odata.id": BASEBOARD}]}
    redfish.resources[BASEBOARD] = system(UUID=UUID)
    redfish.reset_types.clear()
    report = await walked(fleet, bmc_pool, "c-2")
    assert (report.result, report.code, report.retry) == (PowerResult.FAILED, "serial-mismatch", False)
    assert f"the host's system was {SYSTEM} (UUID {UUID}), and now {BASEBOARD}" in report.text
    assert redfish.reset_types == []
    assert f"the host's system was {SYSTEM}" in fleet.store.state.dead_letters[f"c-2.{HOST}"].text
    assert fleet.store.state.bmc_facts(HOST) == stored


async def test_fc_b18_a_bmc_that_resets_at_once_is_noted_for_its_model_and_refused_where_force_is_not_permitted(
    bmc_pool: BmcPool, redfish: FakeRedfish, fleet: Fleet
):
    never_force = replace(QUICK_WALK, soft_s=10.0, min_soft_s=60.0, force=False)
    report = await walked(fleet, bmc_pool, "c-1", never_force)
    assert report.result is PowerResult.DONE, report
    assert redfish.reset_types == ["GracefulShutdown", "On"]
    found = fleet.store.state.bmc_model("NVIDIA DGX H100")
    assert found is not None
    fleet.fail_over("c2")
    fleet.come_up(fleet.machines[HOST])
    await fleet.run(60)
    redfish.reset_types.clear()
    report = await walked(fleet, bmc_pool, "c-2", never_force)
    assert (report.code, redfish.reset_types) == ("graceful-not-honoured", [])
    letter = fleet.store.state.dead_letters[f"c-2.{HOST}"]
    assert (letter.cause, "force is not permitted" in letter.text) == ("graceful-not-honoured", True)
    steps = [entry for entry in fleet.store.audit_entries if entry.action == "host.power-step"]
    assert [entry.campaign for entry in steps if entry.detail.startswith("soft accepted")] == ["c-1"]
