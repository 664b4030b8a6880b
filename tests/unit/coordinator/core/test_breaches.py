"""What an adversary once found: each breach by its own story, so that none comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from field_stories import FAST, ended, limits
from hostler_contract.campaigns import CampaignState
from hostler_contract.domains import CauseKind
from hostler_contract.hosts import Claim
from hostler_contract.work import TaskState, Token
from hostler_coordinator.draft import Draft
from hostler_coordinator.fsck import problems
from hostler_coordinator.refusals import Refused
from hostler_coordinator.service.hosts import remove_host
from memory_fleet import Fleet


async def test_a_slow_shutdown_keeps_its_slot_however_late_the_machine_goes_down() -> None:
    policy = replace(FAST, shutdown_timeout_s=20.0)
    fleet = Fleet(3, policy=policy)
    first = fleet.machines["gpu-001"]
    first.shutdown_s = 40.0
    fleet.campaign(limits(domains={"fabric/ib-a": 1}))
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.most_down["fabric/ib-a"] == 1
    assert all(len(machine.boots) <= 1 for machine in fleet.machines.values())


async def test_a_host_that_was_let_go_and_stays_up_is_a_dead_letter_and_stays_charged() -> None:
    fleet = Fleet(3, policy=replace(FAST, shutdown_timeout_s=20.0))
    fleet.machines["gpu-001"].ignores_command = True
    fleet.campaign(limits(domains={"fabric/ib-a": 1}), hosts=["gpu-001"])
    await fleet.run(600, lambda: ended(fleet))
    assert fleet.store.state.dead_letters["c-1.gpu-001"].cause in {"still-up", "no-go"}
    charge = fleet.store.state.charge("gpu-001")
    assert charge is not None
    assert [cause.kind for cause in charge.causes] == [CauseKind.DEAD_LETTER]


async def test_a_token_from_nowhere_is_not_followed() -> None:
    fleet = Fleet(2, policy=FAST)
    machine = fleet.machines["gpu-001"]
    fleet.board.sightings["gpu-001"].newest_token = Token(counter=2**50)
    fleet.campaign(limits(), hosts=["gpu-001"])
    await fleet.run(120, lambda: ended(fleet))
    assert fleet.store.state.claim("gpu-001").token.counter < 100
    assert len(machine.boots) == 1
    assert not problems(fleet.store.state)


async def test_fsck_names_a_token_that_cannot_have_been_issued() -> None:
    fleet = Fleet(1, policy=FAST)
    fleet.store.seed(Claim(host="gpu-001", token=Token(counter=2**50)))
    assert "cannot have been issued" in problems(fleet.store.state)[0]


async def test_a_record_that_cannot_be_read_stops_its_own_host_only_and_says_so() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.store.state.unreadable["claims/gpu-002"] = "cut in half"
    fleet.campaign(limits())
    await fleet.run(120)
    done = {task.host for task in fleet.store.state.tasks("c-1").values() if task.state is TaskState.SUCCEEDED}
    assert done == {"gpu-001", "gpu-003", "gpu-004"}
    why = fleet.engine.plan.waiting["c-1"].reasons["record-unreadable"]
    assert why.held_by == "claims/gpu-002"
    assert problems(fleet.store.state) == ["record claims/gpu-002 cannot be read: cut in half"]
    del fleet.store.state.unreadable["claims/gpu-002"]
    await fleet.run(120, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED


async def test_an_action_that_loses_for_ever_does_not_hold_up_the_others() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.campaign(limits(domains={"fabric/ib-a": 4}))
    holds = fleet.store.lose_when
    holds.append(lambda change: "tasks/c-1/gpu-001" in change.puts)
    await fleet.run(120)
    done = {task.host for task in fleet.store.state.tasks("c-1").values() if task.state is TaskState.SUCCEEDED}
    assert done == {"gpu-002", "gpu-003", "gpu-004"}


async def test_a_host_is_not_removed_while_its_bmc_switches_it() -> None:
    fleet = Fleet(4, policy=FAST)
    fleet.machines["gpu-002"].hang_on_offer = True
    fleet.campaign(limits(), hosts=["gpu-002"])
    await fleet.run(300, lambda: bool(fleet.power_calls))
    record = fleet.store.state.hosts["gpu-002"]
    with pytest.raises(Refused, match="switch it off and on"):
        remove_host(Draft(fleet.store.state), record)
    await fleet.run(300, lambda: ended(fleet))
    draft = Draft(fleet.store.state)
    remove_host(draft, record)
    await fleet.store.commit(draft.change())
    assert "gpu-002" not in fleet.store.state.hosts
