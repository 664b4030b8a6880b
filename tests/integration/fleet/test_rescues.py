"""Hosts that hang, die or whose BMC fails, in a fleet of real processes: rescued, or waiting for a person."""

from __future__ import annotations

import pytest

from fleet_fixtures import StartFleet
from hostler_contract.campaigns import CampaignState
from hostler_contract.work import TaskState

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]


def test_a_hung_agent_is_rescued_by_its_bmc_and_a_dead_bmc_ends_as_a_dead_letter(fleet: StartFleet):
    """Both hang; only one can be reached out of band. The others of their fabric go on."""
    fleet_up = fleet(hosts=8, fabrics=2, coordinators=2)
    rescued, lost = fleet_up.hosts[0], fleet_up.hosts[4]
    fleet_up.fault(lost, "bmc-dead")
    fleet_up.fault(lost, "hang")
    fleet_up.fault(rescued, "hang")
    campaign = fleet_up.submit("fabric=2")
    ended = fleet_up.await_end(campaign.id, 120.0)
    assert ended.state is CampaignState.INCOMPLETE
    assert (ended.counts.succeeded, ended.counts.dead_letter) == (7, 1)
    tasks = fleet_up.tasks(campaign.id)
    assert tasks[lost].state is TaskState.DEAD_LETTER
    assert tasks[lost].reason_code == "bmc-unreachable"
    truth = fleet_up.truth()
    assert truth.rescued == (rescued,)
    assert truth.hung == ()  # they hung before the campaign
    assert lost not in truth.ordered_boots
    assert fleet_up.wrong(campaign.id, {"ib-a": 2, "ib-b": 2}) == []


def test_a_host_that_does_not_boot_becomes_a_dead_letter_and_stays_charged(fleet: StartFleet):
    fleet_up = fleet(hosts=6, fabrics=1, coordinators=1)
    broken = fleet_up.hosts[0]
    fleet_up.fault(broken, "no-boot")
    campaign = fleet_up.submit("fabric=2")
    ended = fleet_up.await_end(campaign.id, 120.0)
    assert ended.state is CampaignState.INCOMPLETE
    assert fleet_up.tasks(campaign.id)[broken].reason_code == "no-boot"
    truth = fleet_up.truth()
    assert truth.down_at_end == (broken,)
    assert truth.bmc_actions >= 2
    assert fleet_up.wrong(campaign.id, {"ib-a": 2}) == []
    charged = next(host for host in fleet_up.operator.hosts() if host.name == broken).charged_to
    assert "fabric/ib-a" in charged
