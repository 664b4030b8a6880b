"""Hosts that hang, do not boot, or whose BMC fails, in a fleet of real processes: rescued, or waiting for a person."""

from __future__ import annotations

import pytest

from fleet_fixtures import StartFleet
from hostler_contract.campaigns import CampaignState
from hostler_contract.work import TaskState

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]


def test_what_a_bmc_can_bring_back_is_rescued_and_the_rest_ends_as_dead_letters(fleet: StartFleet):
    """One agent hangs with a good BMC, one with a dead BMC, one host never boots again; the others just go on."""
    fleet_up = fleet(hosts=12, fabrics=2, coordinators=2)
    rescued, lost, broken = fleet_up.hosts[0], fleet_up.hosts[1], fleet_up.hosts[6]
    fleet_up.fault(broken, "no-boot")
    fleet_up.fault(lost, "bmc-dead")
    fleet_up.fault(lost, "hang")
    fleet_up.fault(rescued, "hang")
    campaign = fleet_up.submit("fabric=3")
    ended = fleet_up.await_end(campaign.id, 230.0)
    assert ended.state is CampaignState.INCOMPLETE
    assert (ended.counts.succeeded, ended.counts.dead_letter) == (10, 2)
    tasks = fleet_up.tasks(campaign.id)
    assert (tasks[lost].state, tasks[lost].reason_code) == (TaskState.DEAD_LETTER, "bmc-unreachable")
    assert (tasks[broken].state, tasks[broken].reason_code) == (TaskState.DEAD_LETTER, "no-boot")
    truth = fleet_up.truth()
    assert truth.rescued == (rescued,)
    assert truth.down_at_end == (broken,)
    assert lost not in truth.ordered_boots
    assert truth.bmc_actions >= 4  # off and on for the rescued one, and for the broken one
    assert fleet_up.wrong(campaign.id, {"ib-a": 3, "ib-b": 3}) == []
    charged = {host.name: host.charged_to for host in fleet_up.operator.hosts()}
    assert "fabric/ib-b" in charged[broken]
    assert "fabric/ib-a" in charged[lost]
    assert not charged[rescued]
