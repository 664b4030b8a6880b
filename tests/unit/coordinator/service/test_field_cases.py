"""Field cases as operators meet them at the services: what they read, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

from hostler_contract.campaigns import CampaignState
from hostler_contract.work import TaskState
from hostler_coordinator.cli.campaign_screens import CAMPAIGN_COLUMNS, campaign_row
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
    assert view.waiting_code == "budget-full"
    assert view.waiting_for == (
        f"1 host waits: fabric/ib-a is full: 1 of 1 out of service (gpu-001: dead letter {campaign.id}.h-gpu-001)"
        f"; for a person: gpu-001 (bmc-auth, after 1 power action): {text}"
    )
    assert "correct the BMC's credentials" in view.next_step
    assert view.waiting_since is not None
    why = host_why(office.world(), office.host("gpu-001"))
    assert why.code == "dead-letter"
    assert text in why.waiting_for
    assert why.next_step.startswith("correct the BMC's credentials, then: hostler deadletter retry ")


async def test_fc_d05_four_campaigns_that_stand_still_each_say_it_in_one_line_and_in_json() -> None:
    office = Office()
    office.fleet(3)
    campaigns = CampaignService(office.desk())

    async def submitted(key: str, host: str, **more: object) -> str:
        asked = request(host, **more)  # type: ignore[arg-type]
        campaign, _ = await campaigns.submit(ALICE, key, asked, 0, "", False)
        return campaign.id

    holder = await submitted("k0", "gpu-003")
    await office.turn()
    full = await submitted("k1", "gpu-001")
    office.enrol("win-1", "ib-w")
    window = await submitted("k2", "win-1", windows=("daily 22:00-23:00 UTC",))
    office.enrol("job-1", "ib-j")
    office.hear("job-1", blocked_by="job 4711 of dave")
    blocked = await submitted("k3", "job-1")
    office.enrol("bmc-1", "ib-b")
    refused = await submitted("k4", "bmc-1", mode="hard")
    await office.turn()
    office.silence("bmc-1", 60.0)
    await office.turn()
    intent = office.task(refused, "bmc-1").power
    assert intent is not None
    text = "power state cannot be read, nothing was sent: Incorrect password provided"
    failed = PowerReport(
        f"{refused}/h-bmc-1", intent.token, PowerResult.FAILED, office.now_s, code="bmc-auth", text=text
    )
    office.power[failed.task_id] = replace(failed, retry=False)
    failed_at = office.now_s
    await office.turn()
    office.now_s += 600.0
    office.hear_all()
    await office.turn()
    told = {view.id: view for view in (await campaigns.list(0, "", ()))[0]}
    lines = {
        name: campaign_row(told[name])[[column.title for column in CAMPAIGN_COLUMNS].index("WAITING FOR")]
        for name in (full, window, blocked, refused)
    }
    assert told[full].waiting_since is not None
    assert lines[full] == (
        f"1 host waits: fabric/ib-a is full: 1 of 1 out of service (gpu-003: campaign {holder}), for 10 min; next:"
        " starts when one of them is back in service; limit and holders: hostler domain show fabric/ib-a"
    )
    assert lines[window] == (
        "the maintenance window is closed (daily 22:00-23:00 UTC), opens 2027-01-15T22:00:00.000000Z; not to wait,"
        " abort it and submit without --window, held by window daily 22:00-23:00 UTC, for 10 min; next: starts when it"
        " opens at 2027-01-15 22:00:00Z (in 13 h 50 min)"
    )
    assert lines[blocked] == (
        "1 host waits: blocked by job 4711 of dave, for 10 min; next: starts when that ends; or configure a drain, or"
        " use --force with a reason"
    )
    assert lines[refused] == (
        f"a person: bmc-1 (bmc-auth, after 1 power action): {text}, held by dead letter {refused}.h-bmc-1, for 10 min;"
        f" next: correct the BMC's credentials, then: hostler deadletter retry {refused}.h-bmc-1"
    )
    codes = {full: "budget-full", window: "window-closed", blocked: "blocked", refused: "bmc-auth"}
    for name, code in codes.items():
        plain = json.loads(told[name].model_dump_json())
        assert plain["waiting_code"] == code
        assert plain["held_by"]
        assert plain["next_step"]
        assert plain["waiting_since"].endswith("Z")
    assert "gpu-003" in told[full].held_by
    assert told[window].next_at == told[window].window_opens_at
    assert told[refused].state is CampaignState.INCOMPLETE
    assert told[refused].waiting_since == failed_at


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
