"""Field cases as operators meet them at the services: what they read, and what is refused."""

from __future__ import annotations

from hostler_contract.work import TaskState
from hostler_coordinator.explain import host_why
from hostler_coordinator.live import PowerReport, PowerResult
from hostler_coordinator.policy import Policy
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.standing import host_state
from service_office import ALICE, Office, request


async def test_fc_d05_wrong_bmc_credentials_are_named_with_holder_and_what_to_do() -> None:
    office = Office(policy=Policy(rescue_after_s=10.0))
    office.fleet(3)
    campaigns = CampaignService(office.desk())
    campaign, _ = await campaigns.submit(ALICE, "k", request("gpu-[001-002]"), 0, "", False)
    await office.turn()
    office.silence("gpu-001", 60.0)
    await office.turn()
    task = office.task(campaign.id, "gpu-001")
    assert task.power is not None
    text = "the BMC refuses the credentials (failed 2 times, the most within an hour)"
    office.power[task.id] = PowerReport(
        task.id, task.power.token, PowerResult.FAILED, office.now_s, code="bmc-auth", text=text, retry=False
    )
    await office.turn()
    view = await campaigns.get(campaign.id)
    assert (view.waiting_code, view.waiting_for) == (
        "budget-full",
        f"1 host waits: fabric/ib-a is full: 1 of 1 out of service (gpu-001: dead letter {campaign.id}.h-gpu-001)",
    )
    assert view.waiting_since is not None
    why = host_why(office.world(), office.host("gpu-001"))
    assert why.code == "dead-letter"
    assert text in why.waiting_for
    assert why.next_step.startswith("correct the BMC's credentials, then: hostler deadletter retry ")


async def test_fc_d12_a_host_that_was_ordered_off_goes_off_once_and_never_back_to_on() -> None:
    office = Office()
    office.fleet(2)
    campaigns = CampaignService(office.desk())
    await campaigns.submit(ALICE, "k", request("gpu-001", operation="power_off"), 0, "", False)
    await office.turn()
    task = office.task((await campaigns.list(1, "", ()))[0][0].id, "gpu-001")
    assert task.power is not None
    shown: list[str] = []
    for step in ("off sent", "still on", "still on", "off seen"):
        office.now_s += 30.0
        office.power[task.id] = PowerReport(task.id, task.power.token, PowerResult.WORKING, office.now_s, step=step)
        await office.turn()
        assert "goal off" in host_why(office.world(), office.host("gpu-001")).waiting_for
        shown.append(host_state(office.world(), office.host("gpu-001")))
    office.silence("gpu-001", 60.0)
    office.power[task.id] = PowerReport(task.id, task.power.token, PowerResult.DONE, office.now_s)
    await office.turn()
    assert office.task(task.campaign, "gpu-001").state is TaskState.SUCCEEDED
    for _ in range(3):
        office.now_s += 60.0
        office.hear("gpu-002")
        await office.turn()
        shown.append(host_state(office.world(), office.host("gpu-001")))
    assert "up" not in shown
