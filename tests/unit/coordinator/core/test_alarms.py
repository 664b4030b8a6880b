"""What a person is called for: one alarm per cause, gone when cured."""

from __future__ import annotations

from dataclasses import replace

from hostler_contract.campaigns import CampaignState, ResolvedLimits
from hostler_contract.work import DeadLetterState
from hostler_coordinator.alarms import alarms, aside_alarm
from hostler_coordinator.policy import Policy
from memory_fleet import Fleet

POLICY = Policy(
    leader_grace_s=0.0,
    rescue_after_s=20.0,
    dead_after_s=40.0,
    boot_allowance_s=60.0,
    blocked_alert_s=100.0,
)


def standing(fleet: Fleet) -> dict[str, str]:
    found = alarms(fleet.engine.world(), fleet.engine.plan)
    return {key: alarm.labels["alertname"] for key, alarm in found.items()}


async def test_a_dead_letter_calls_a_person_until_it_is_resolved() -> None:
    fleet = Fleet(3, policy=POLICY)
    fleet.machines["gpu-002"].never_boots = True
    fleet.campaign(ResolvedLimits(domains={"fabric/ib-a": 3}))
    await fleet.run(1000, lambda: bool(fleet.store.state.dead_letters))
    assert standing(fleet) == {"dead-letter/c-1.gpu-002": "HostlerDeadLetter"}
    found = alarms(fleet.engine.world(), fleet.engine.plan)["dead-letter/c-1.gpu-002"]
    assert "gpu-002" in found.annotations["summary"]
    assert "retry" in found.annotations["description"]
    letter = fleet.store.state.dead_letters["c-1.gpu-002"]
    fleet.store.seed(letter.model_copy(update={"state": DeadLetterState.RESOLVED}))
    assert standing(fleet) == {}


async def test_a_campaign_paused_by_its_limit_calls_a_person_and_one_paused_by_a_person_does_not() -> None:
    fleet = Fleet(6, policy=POLICY)
    fleet.machines["gpu-001"].never_boots = True
    fleet.campaign(ResolvedLimits(domains={"fabric/ib-a": 1}, max_failures=1))
    await fleet.run(1000, lambda: fleet.state_of() is CampaignState.PAUSED)
    assert standing(fleet)["paused/c-1"] == "HostlerCampaignPaused"
    fleet.edit(paused_by_rule=False)
    assert "paused/c-1" not in standing(fleet)


async def test_a_campaign_blocked_by_a_full_budget_for_long_calls_a_person() -> None:
    fleet = Fleet(8, policy=POLICY)
    await fleet.run(5)
    fleet.machines["gpu-008"].hung = True
    await fleet.run(60)
    fleet.campaign(ResolvedLimits(domains={"fabric/ib-a": 1}), hosts=["gpu-001"])
    await fleet.run(30)
    assert standing(fleet) == {}
    await fleet.run(60)
    assert standing(fleet) == {"blocked/c-1": "HostlerCampaignBlocked"}
    fleet.come_up(fleet.machines["gpu-008"])
    await fleet.run(60)
    assert standing(fleet) == {}


async def test_a_campaign_that_waits_for_an_agent_that_never_came_calls_a_person() -> None:
    fleet = Fleet(3, policy=POLICY)
    await fleet.run(200)
    fleet.machines["gpu-001"].hung = True
    del fleet.board.sightings["gpu-001"]
    fleet.store.seed(fleet.store.state.hosts["gpu-001"].model_copy(update={"boot_id": None}))
    fleet.campaign(ResolvedLimits(domains={"fabric/ib-a": 1}), hosts=["gpu-001", "gpu-002"])
    await fleet.run(60)
    assert standing(fleet) == {}
    await fleet.run(60)
    assert standing(fleet) == {"blocked/c-1": "HostlerCampaignBlocked"}


async def test_mass_silence_calls_a_person_once_per_domain() -> None:
    fleet = Fleet(12, policy=replace(POLICY, silence_s=10.0))
    await fleet.run(5)
    for number in range(1, 7):
        fleet.machines[f"gpu-{number:03d}"].hung = True
    await fleet.run(20)
    assert standing(fleet) == {
        "mass-silence/fabric/ib-a": "HostlerMassSilence",
        "mass-silence/site/site": "HostlerMassSilence",
    }


def test_a_decision_that_the_store_cannot_take_calls_a_person() -> None:
    alarm = aside_alarm("Move", "c-1/gpu-001", "2026-01-01T00:00:00Z", "2.1 MiB are more than etcd takes")
    assert alarm.labels == {
        "alertname": "HostlerDecisionPutAside",
        "severity": "critical",
        "subject": "c-1/gpu-001",
    }
    assert alarm.annotations["summary"] == (
        "Move of c-1/gpu-001 cannot be written since 2026-01-01T00:00:00Z: 2.1 MiB are more than etcd takes"
    )
