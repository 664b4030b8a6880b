"""A fleet's own life: what is killed comes back, what is stopped stays stopped, and nothing outlives its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fleet_fixtures import RunningFleet, StartFleet, is_gone, wait_for
from hostler_coordinator.dev.control import NotRunning, end_fleet, facts_of, mark_of, prepare
from hostler_coordinator.dev.premises import FolderRefused, premises
from hostler_coordinator.dev.processes import processes_of, started_ticks

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def everything(fleet_up: RunningFleet) -> list[int]:
    """Every process that ready.json names, and the supervisor."""
    facts = fleet_up.facts
    pids = facts["pids"]
    return [
        facts["supervisor"],
        *pids["etcd"],
        *pids["coordinators"],
        *pids["agents"].values(),
        *pids["bmcs"].values(),
    ]


def test_ready_json_names_everything_and_down_leaves_nothing(fleet: StartFleet):
    fleet_up = fleet(hosts=4, fabrics=2, coordinators=2)
    facts = fleet_up.facts
    assert set(facts["pids"]["agents"]) == set(facts["pids"]["bmcs"]) == set(fleet_up.hosts)
    assert len(facts["endpoints"]) == len(facts["pids"]["coordinators"]) == 2
    listed = subprocess.run(
        [sys.executable, "-m", "hostler_coordinator.cli", "--profile", facts["profile"], "host", "list", "-o", "name"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert listed.stdout.split() == fleet_up.hosts
    with pytest.raises(FolderRefused, match="a fleet is up"):
        prepare(fleet_up.place)
    pids, mark = everything(fleet_up), mark_of(fleet_up.place)
    assert mark is not None
    assert end_fleet(fleet_up.place)
    assert [pid for pid in pids if not is_gone(pid)] == []
    assert fleet_up.left_running(mark.run) == []
    assert not end_fleet(fleet_up.place)
    with pytest.raises(NotRunning):
        facts_of(fleet_up.place)


def test_a_killed_supervisor_takes_everything_with_it_even_what_was_stopped(fleet: StartFleet):
    fleet_up = fleet(hosts=4, fabrics=1, coordinators=1)
    pids, mark = everything(fleet_up), mark_of(fleet_up.place)
    assert mark is not None
    fleet_up.kill(fleet_up.facts["pids"]["etcd"][0], signal.SIGSTOP)
    fleet_up.kill(fleet_up.facts["pids"]["agents"][fleet_up.hosts[0]], signal.SIGSTOP)
    os.kill(mark.pid, signal.SIGKILL)
    wait_for(lambda: is_gone(mark.pid), 10.0, "the supervisor is gone")
    assert not end_fleet(fleet_up.place)
    assert [pid for pid in pids if not is_gone(pid)] == []
    assert fleet_up.left_running(mark.run) == []


def test_what_is_killed_comes_back_under_its_name_and_what_is_stopped_stays(fleet: StartFleet):
    fleet_up = fleet(hosts=3, fabrics=1, coordinators=2)
    first, second, third = fleet_up.hosts
    before = fleet_up.facts["pids"]
    boots = [effect.boot_id for effect in fleet_up.effects()]
    fleet_up.kill(before["agents"][first])
    fleet_up.kill(before["bmcs"][first])
    fleet_up.kill(before["coordinators"][0])
    fleet_up.kill(before["agents"][second], signal.SIGSTOP)

    def is_back() -> bool:
        now = fleet_up.facts["pids"]
        agent, bmc = now["agents"].get(first), now["bmcs"].get(first)
        return (
            agent not in {None, before["agents"][first]}
            and bmc not in {None, before["bmcs"][first]}
            and len(now["coordinators"]) == 2
            and now["coordinators"][0] != before["coordinators"][0]
        )

    wait_for(is_back, 20.0, "agent, BMC and coordinator run again")
    assert fleet_up.facts["pids"]["agents"][second] == before["agents"][second]
    assert fleet_up.facts["pids"]["agents"][third] == before["agents"][third]
    assert [effect.boot_id for effect in fleet_up.effects()] == boots  # an agent's death is no boot
    assert started_ticks(before["agents"][second]) is not None


def test_bmc_faults_switch_while_it_runs(fleet: StartFleet):
    fleet_up = fleet(hosts=3, fabrics=1, coordinators=1)
    host = fleet_up.hosts[0]
    fleet_up.fault(host, "bmc-dead")
    wait_for(lambda: host not in fleet_up.facts["pids"]["bmcs"], 10.0, "its BMC is gone from ready.json")
    fleet_up.fault(host, "clear")
    wait_for(lambda: host in fleet_up.facts["pids"]["bmcs"], 10.0, "its BMC is back in ready.json")
    pid = fleet_up.facts["pids"]["bmcs"][host]
    fleet_up.fault(host, "bmc-wrong-password")
    wait_for(lambda: fleet_up.facts["pids"]["bmcs"].get(host, pid) != pid, 10.0, "it runs with another password")


def test_a_bound_fleet_ends_with_whoever_started_it(tmp_path: Path):
    """As the demo's does, even when that is killed."""
    place = premises(tmp_path / "fleet")
    program = (
        "import sys, time; from pathlib import Path; from hostler_coordinator.dev import control, premises, shape; "
        "place = premises.premises(Path(sys.argv[1])); "
        "control.start_detached(place, shape.Shape(2, 1, 1, 1, 0.5), print, bound=True); time.sleep(60)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", program, str(place.folder)], env=environment) as starter:
        try:
            wait_for(lambda: place.ready.exists() or starter.poll() is not None, 40.0, "the fleet is up")
            mark = mark_of(place)
            starter.kill()
            assert mark is not None
            wait_for(lambda: not processes_of(mark.run, place.folder), 20.0, "nothing of it is left")
        finally:
            starter.kill()
            end_fleet(place)
    shutil.rmtree(place.folder / "etcd")


def test_two_fleets_stand_side_by_side(fleet: StartFleet):
    one, other = fleet(hosts=2, fabrics=1, coordinators=1), fleet(hosts=2, fabrics=1, coordinators=1)
    assert set(one.facts["endpoints"]).isdisjoint(other.facts["endpoints"])
    assert one.leader()
    assert other.leader()
