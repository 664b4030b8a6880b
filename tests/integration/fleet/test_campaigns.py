"""Campaigns over a fleet of real processes, with kills in their midst; the machines' own record is the judge."""

from __future__ import annotations

import signal

import pytest

from fleet_fixtures import StartFleet, wait_for
from hostler_contract.campaigns import CampaignState
from hostler_contract.work import TaskState

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


def test_without_any_limit_one_host_of_a_fabric_is_down_at_a_time(fleet: StartFleet):
    fleet_up = fleet(hosts=6, fabrics=2, coordinators=1)
    campaign = fleet_up.submit()
    assert fleet_up.await_end(campaign.id).state is CampaignState.SUCCEEDED
    assert fleet_up.wrong(campaign.id, {"ib-a": 1, "ib-b": 1}) == []


def test_killed_leader_follower_etcd_agent_and_bmc_leave_the_campaign_right(fleet: StartFleet):
    """One after the other, each while hosts are down."""
    fleet_up = fleet(hosts=12, fabrics=2, coordinators=3)
    campaign = fleet_up.submit("fabric=2")
    fleet_up.await_succeeded(campaign.id, 2)
    leader = fleet_up.leader()
    fleet_up.kill(fleet_up.coordinator_pid(leader))
    successor = wait_for(
        lambda: (name := fleet_up.leader()) != leader and name, 20.0, "another coordinator takes the lead"
    )
    fleet_up.await_succeeded(campaign.id, 4)
    follower = next(name for name in fleet_up.facts["coordinators"] if name not in {successor, leader})
    fleet_up.kill(fleet_up.coordinator_pid(follower))
    fleet_up.await_succeeded(campaign.id, 6)
    fleet_up.kill(fleet_up.facts["pids"]["etcd"][0])
    waiting = [host for host, task in fleet_up.tasks(campaign.id).items() if task.state is TaskState.PENDING]
    pids = fleet_up.facts["pids"]
    fleet_up.kill(pids["agents"].get(waiting[-1]) or next(iter(pids["agents"].values())))
    fleet_up.kill(pids["bmcs"][waiting[-1]])
    ended = fleet_up.await_end(campaign.id)
    assert ended.state is CampaignState.SUCCEEDED
    assert fleet_up.wrong(campaign.id, BUDGET) == []
    assert fleet_up.truth().rebooted_twice == ()


def test_a_frozen_leader_is_replaced_and_its_return_harms_nobody(fleet: StartFleet):
    fleet_up = fleet(hosts=8, fabrics=2, coordinators=3)
    campaign = fleet_up.submit("fabric=1")
    fleet_up.await_succeeded(campaign.id, 2)
    leader = fleet_up.leader()
    pid = fleet_up.coordinator_pid(leader)
    fleet_up.kill(pid, signal.SIGSTOP)
    wait_for(lambda: fleet_up.leader() != leader, 20.0, "another coordinator takes the lead")
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
