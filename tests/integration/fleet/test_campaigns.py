"""Campaigns over a fleet of real processes, with kills in their midst; the machines' own record is the judge."""

from __future__ import annotations

import signal

import pytest

from fleet_fixtures import StartFleet, wait_for
from hostler_contract.campaigns import CampaignState
from hostler_contract.work import EvidenceKind, OperationKind

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

BUDGET = {"ib-a": 2, "ib-b": 2}


def test_a_campaign_reboots_every_host_once_within_budget(fleet: StartFleet):
    fleet_up = fleet(hosts=12, fabrics=2, coordinators=2)
    campaign = fleet_up.submit("fabric=2")
    ended = fleet_up.await_end(campaign.id)
    assert ended.state is CampaignState.SUCCEEDED
    assert ended.counts.succeeded == 12
    truth = fleet_up.truth()
    assert dict.fromkeys(fleet_up.hosts, 1) == truth.ordered_boots
    assert fleet_up.wrong(campaign.id, BUDGET) == []
    assert truth.bmc_actions == 0


def test_fc_a07_a_campaign_restarts_user_space_once_on_every_host_and_boots_none(fleet: StartFleet):
    fleet_up = fleet(hosts=4, fabrics=2, coordinators=2)
    campaign = fleet_up.submit("fabric=1", operation=OperationKind.SOFT_REBOOT)
    ended = fleet_up.await_end(campaign.id)
    assert (ended.state, ended.counts.succeeded) == (CampaignState.SUCCEEDED, 4)
    for task in fleet_up.tasks(campaign.id).values():
        assert task.boot_before == task.boot_after
        (proof,) = [one.detail for one in task.evidence if one.kind is EvidenceKind.USERSPACE_RESTARTED]
        assert proof == f"soft reboots counted: 0 -> 1; boot id unchanged: {task.boot_before}"
    truth = fleet_up.truth()
    assert (truth.ordered_boots, truth.bmc_actions, truth.max_down) == ({}, 0, {"ib-a": 0, "ib-b": 0})


def test_without_any_limit_one_host_of_a_fabric_is_down_at_a_time(fleet: StartFleet):
    fleet_up = fleet(hosts=6, fabrics=2, coordinators=1)
    campaign = fleet_up.submit()
    assert fleet_up.await_end(campaign.id).state is CampaignState.SUCCEEDED
    assert fleet_up.wrong(campaign.id, {"ib-a": 1, "ib-b": 1}) == []


def test_killed_agent_bmc_leader_follower_and_etcd_leave_the_campaign_right(fleet: StartFleet):
    """One after the other, each while a host is down."""
    fleet_up = fleet(hosts=16, fabrics=2, coordinators=3)
    campaign = fleet_up.submit("fabric=1")
    waiting = fleet_up.hosts[-1]
    pids = fleet_up.facts["pids"]
    fleet_up.kill(pids["agents"][waiting])
    fleet_up.kill(pids["bmcs"][waiting])
    fleet_up.await_succeeded(campaign.id, 1)
    before = fleet_up.operator.status()
    fleet_up.kill(fleet_up.coordinator_pid(before.leader))
    leader = fleet_up.await_new_leader(before)
    fleet_up.await_succeeded(campaign.id, 4)
    follower = next(name for name in fleet_up.facts["coordinators"] if name not in {leader, before.leader})
    fleet_up.kill(fleet_up.coordinator_pid(follower))
    fleet_up.await_succeeded(campaign.id, 7)
    fleet_up.kill(fleet_up.facts["pids"]["etcd"][0])
    assert fleet_up.await_end(campaign.id).state is CampaignState.SUCCEEDED
    assert fleet_up.wrong(campaign.id, {"ib-a": 1, "ib-b": 1}) == []
    assert dict.fromkeys(fleet_up.hosts, 1) == fleet_up.truth().ordered_boots


def test_a_frozen_leader_is_replaced_and_its_return_harms_nobody(fleet: StartFleet):
    fleet_up = fleet(hosts=8, fabrics=2, coordinators=3)
    campaign = fleet_up.submit("fabric=1")
    fleet_up.await_succeeded(campaign.id, 2)
    before = fleet_up.operator.status()
    pid = fleet_up.coordinator_pid(before.leader)
    fleet_up.kill(pid, signal.SIGSTOP)
    assert fleet_up.await_new_leader(before) != before.leader
    fleet_up.await_succeeded(campaign.id, 4)
    fleet_up.kill(pid, signal.SIGCONT)
    assert fleet_up.await_end(campaign.id).state is CampaignState.SUCCEEDED
    assert fleet_up.wrong(campaign.id, {"ib-a": 1, "ib-b": 1}) == []


def test_a_member_of_three_dies_and_nobody_notices(fleet: StartFleet):
    fleet_up = fleet(hosts=6, fabrics=1, coordinators=2, etcd_members=3)
    campaign = fleet_up.submit("fabric=2")
    fleet_up.await_succeeded(campaign.id, 1)
    before = fleet_up.facts["pids"]["etcd"]
    fleet_up.kill(before[0])
    assert fleet_up.await_end(campaign.id).state is CampaignState.SUCCEEDED
    assert fleet_up.wrong(campaign.id, {"ib-a": 2}) == []
    wait_for(lambda: len(after := fleet_up.facts["pids"]["etcd"]) == 3 and after != before, 20.0, "the member is back")
