"""What an operator sees, over real processes, while the store is frozen and while leaders are killed."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from fleet_fixtures import RunningFleet, StartFleet, wait_for
from hostler_coordinator.cli import main

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

Ask = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs one command line; its exit status, its document and what it said beside it."""

    def run(fleet_up: RunningFleet, *words: str) -> tuple[int, Any, str]:
        capsys.readouterr()
        status = main(["--profile", str(fleet_up.place.profile), *words, "-o", "json"])
        out, err = capsys.readouterr()
        return status, json.loads(out), err

    return run


def test_without_the_store_everything_that_is_known_is_answered_and_nothing_is_changed(fleet: StartFleet, ask: Ask):
    fleet_up = fleet(hosts=4, fabrics=1, coordinators=2)
    assert ask(fleet_up, "hold", "add", "gpu-002", "--reason", "debugging")[0] == 0
    etcd = fleet_up.facts["pids"]["etcd"][0]
    fleet_up.kill(etcd, signal.SIGSTOP)

    def leaderless() -> dict[str, Any] | None:
        status, found, _ = ask(fleet_up, "status")
        assert status == 0
        known: dict[str, Any] = found
        return known if known["store_unavailable_since"] and not known["leader"] else None

    found = wait_for(leaderless, 30.0, "nobody leads")
    assert (found["hosts"], found["hosts_heard"]) == (4, None)
    assert found["store_problem"].startswith("no etcd member answers at ")
    assert found["next_step"].startswith("look at etcd")
    for endpoint in fleet_up.facts["endpoints"]:
        status, why, _ = ask(fleet_up, "--endpoint", endpoint, "host", "why", "gpu-002")
        assert (status, why["state"], why["code"]) == (0, "held", "store-unavailable")
        assert why["waiting_for"].count("since") == 1
        assert "nothing is started; by the records as of" in why["waiting_for"]
        assert "debugging" in why["waiting_for"]
    status, hosts, err = ask(fleet_up, "host", "list")
    assert (status, {host["state"] for host in hosts}) == (0, {"unknown", "held"})
    assert "warning: the store is unavailable since" in err
    status, refused, _ = ask(fleet_up, "host", "drain", "gpu-003", "--reason", "x", "--yes")
    error = refused["error"]
    assert (status, error["reason"], error["outcome"]) == (5, "store-unavailable", "none")
    assert error["message"].endswith("; nothing was changed")
    assert error["fix"].startswith("look at etcd")

    fleet_up.kill(etcd, signal.SIGCONT)
    fleet_up.leader()
    assert ask(fleet_up, "host", "show", "gpu-003")[1]["drained_by"] == ""
    assert ask(fleet_up, "host", "drain", "gpu-003", "--reason", "x", "--yes")[0] == 0


def test_a_leader_that_is_killed_delays_a_command_and_fails_none(fleet: StartFleet, ask: Ask):
    fleet_up = fleet(hosts=4, fabrics=1, coordinators=3)
    before = fleet_up.operator.status()
    fleet_up.kill(fleet_up.coordinator_pid(before.leader))
    status, found, _ = ask(fleet_up, "status")
    assert status == 0
    assert found["leaderless_since"] or found["leader"] != before.leader
    status, campaign, err = ask(fleet_up, "--timeout", "20s", "campaign", "submit", "gpu-001", "--yes", "--reason", "x")
    assert (status, campaign["target_count"]) == (0, 1)
    assert "UNKNOWN" not in err
    after = fleet_up.operator.await_leader(20.0)
    fleet_up.kill(fleet_up.coordinator_pid(after.leader))
    status, hosts, _ = ask(fleet_up, "--timeout", "20s", "host", "list")
    assert (status, len(hosts)) == (0, 4)
    assert "unknown" not in {host["state"] for host in hosts}
