"""Restarts of user space alone, on the real planner, engine and ledger: what proves them, what they never lead to."""

from __future__ import annotations

import pytest

from field_stories import FAST, charged, details, ended, limits, task_state
from hostler_contract.campaigns import CampaignState
from hostler_contract.work import EvidenceKind, OperationKind, TaskState
from memory_fleet import Fleet


async def test_fc_a07_a_soft_reboot_is_proved_by_its_count_on_the_same_boot() -> None:
    fleet = Fleet(2, policy=FAST)
    machine = fleet.machines["gpu-001"]
    machine.soft_reboots = 3
    fleet.attach(machine)
    fleet.campaign(limits(), hosts=["gpu-001"], operation=OperationKind.SOFT_REBOOT)
    await fleet.run(120, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert (machine.boots, machine.boot, machine.soft_reboots) == ([], 1, 4)
    task = fleet.task("gpu-001")
    assert task is not None
    assert (task.boot_before, task.boot_after) == (machine.boot_id, machine.boot_id)
    shown = {evidence.kind: evidence.detail for evidence in task.evidence}
    assert shown[EvidenceKind.USERSPACE_RESTARTED] == (
        f"soft reboots counted: 3 -> 4; boot id unchanged: {machine.boot_id}"
    )
    assert EvidenceKind.USABLE in shown
    assert EvidenceKind.BOOT_CHANGED not in shown
    assert "host.soft-reboot" in {entry.action for entry in fleet.store.audit_entries}
    assert charged(fleet) == 0


async def test_fc_a07_the_count_of_a_new_leader_that_saw_nothing_before_is_proof_as_well() -> None:
    fleet = Fleet(2, policy=FAST)
    fleet.campaign(limits(), hosts=["gpu-001"], operation=OperationKind.SOFT_REBOOT)
    await fleet.run(30, lambda: not fleet.machines["gpu-001"].up)
    fleet.fail_over("c2")
    await fleet.run(120, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert fleet.machines["gpu-001"].soft_reboots == 1


async def test_fc_a07_a_whole_reboot_ends_a_soft_one_and_is_said_to_be_one() -> None:
    fleet = Fleet(2, policy=FAST)
    fleet.machines["gpu-001"].reboots_whole = True
    fleet.campaign(limits(), hosts=["gpu-001"], operation=OperationKind.SOFT_REBOOT)
    await fleet.run(120, lambda: ended(fleet))
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert "gpu-001-boot-1 -> gpu-001-boot-2 (the whole host rebooted; only its user space was to restart)" in details(
        fleet, "gpu-001"
    )


@pytest.mark.parametrize(
    ("trouble", "cause"),
    [("never_boots", "no-soft-reboot"), ("ignores_command", "no-go"), ("hang_on_offer", "agent-silent")],
)
async def test_fc_a07_a_soft_reboot_in_vain_is_for_a_person_and_no_bmc_is_touched(trouble: str, cause: str) -> None:
    fleet = Fleet(5, policy=FAST)
    setattr(fleet.machines["gpu-001"], trouble, True)
    fleet.campaign(limits(), hosts=["gpu-001"], operation=OperationKind.SOFT_REBOOT)
    await fleet.run(600, lambda: ended(fleet))
    (letter,) = fleet.store.state.dead_letters.values()
    assert letter.cause == cause
    assert "hostler host reboot gpu-001" in letter.suggestion
    assert (fleet.power_calls, fleet.bmc_orders) == ([], [])
    assert charged(fleet) == 1


async def test_fc_a07_a_host_that_counts_no_soft_reboots_is_not_let_go_for_one() -> None:
    fleet = Fleet(2, policy=FAST)
    fleet.machines["gpu-001"].soft_reboots = -1
    fleet.attach(fleet.machines["gpu-001"])
    fleet.campaign(limits(), hosts=["gpu-001"], operation=OperationKind.SOFT_REBOOT)
    await fleet.run(60, lambda: ended(fleet))
    (letter,) = fleet.store.state.dead_letters.values()
    assert (letter.cause, fleet.machines["gpu-001"].up) == ("soft-reboots-unknown", True)
    assert charged(fleet) == 0


async def test_a_host_that_is_silent_already_gets_no_soft_reboot_and_no_slot() -> None:
    fleet = Fleet(5, policy=FAST)
    fleet.machines["gpu-001"].hung = True
    await fleet.run(120)
    fleet.campaign(limits(), hosts=["gpu-001"], operation=OperationKind.SOFT_REBOOT)
    await fleet.run(60)
    assert task_state(fleet, "gpu-001") is TaskState.PENDING
    assert list(fleet.engine.plan.waiting["c-1"].reasons) == ["silent"]
