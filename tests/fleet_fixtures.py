"""A fleet of real processes for one test: `hostler dev up` in a folder of its own, ended whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hostler_contract.campaigns import ENDED, CampaignRequest, Limits, Selector
from hostler_contract.views import Campaign, Status, Task
from hostler_contract.work import OperationKind, TaskState
from hostler_coordinator.cli.errors import Problem
from hostler_coordinator.dev import debian, etcd_server
from hostler_coordinator.dev.control import Machines, end_fleet, facts_of, start_detached
from hostler_coordinator.dev.ground_truth import Effect, Truth, disagreements, judge, read_effects
from hostler_coordinator.dev.operator import Operator
from hostler_coordinator.dev.premises import Premises, premises
from hostler_coordinator.dev.processes import processes_of, started_ticks
from hostler_coordinator.dev.shape import Shape

POLL_S = 0.1


@dataclass
class RunningFleet:
    """One fleet that is up, with what a test does to it and asks of it."""

    place: Premises
    operator: Operator
    began_at: float
    """Monotonic; where the campaign that is judged begins."""

    @property
    def facts(self) -> dict[str, Any]:
        """ready.json as it stands now."""
        return facts_of(self.place)

    @property
    def hosts(self) -> list[str]:
        """Every host's name."""
        return list(self.facts["hosts"])

    # --- what is done to it -------------------------------------------------------------------------------------------

    def fault(self, host: str, kind: str) -> None:
        """Switch a fault."""
        Machines(self.place).set_fault(host, kind)

    def crash(self, host: str) -> None:
        """Let it reboot by itself."""
        Machines(self.place).crash(host)

    def kill(self, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a process of this fleet; no other is ever touched."""
        mine = self.facts["pids"]
        assert pid in {*mine["etcd"], *mine["coordinators"], *mine["agents"].values(), *mine["bmcs"].values()}
        os.kill(pid, number)

    def leader(self, timeout_s: float = 20.0) -> str:
        """The name of the coordinator that leads."""
        return self.operator.await_leader(timeout_s).leader

    def await_new_leader(self, before: Status, timeout_s: float = 30.0) -> str:
        """Wait until another term has begun; it may be the same coordinator's, started again. Returns its name."""

        def changed() -> str | None:
            with suppress(Problem):
                now = self.operator.status()
                led = now.leader and now.leaderless_since is None
                if led and (now.leader, now.leader_since) != (before.leader, before.leader_since):
                    return now.leader
            return None

        return wait_for(changed, timeout_s, f"somebody takes over from {before.leader}")

    def coordinator_pid(self, name: str) -> int:
        """Its process."""
        return int(self.facts["coordinators"][name]["pid"])

    # --- campaigns ----------------------------------------------------------------------------------------------------

    def submit(
        self, *max_down: str, hosts: tuple[str, ...] = (), operation: OperationKind = OperationKind.REBOOT
    ) -> Campaign:
        """Submit a reboot of all hosts, or of these; or other work."""
        request = CampaignRequest(
            operation=operation,
            selector=Selector(hosts=hosts) if hosts else Selector(all=True),
            limits=Limits(max_down=max_down),
            reason="a test",
        )
        self.began_at = time.monotonic()
        return self.operator.submit(f"test-{uuid.uuid4().hex}", request, len(hosts or self.hosts))

    def campaign(self, campaign_id: str) -> Campaign | None:
        """As it is now; None while nobody can say."""
        with suppress(Problem):
            return self.operator.campaign(campaign_id)
        return None

    def await_succeeded(self, campaign_id: str, count: int, timeout_s: float = 40.0) -> Campaign:
        """Wait until `count` hosts are done."""

        def enough() -> Campaign | None:
            campaign = self.campaign(campaign_id)
            return campaign if campaign is not None and campaign.counts.succeeded >= count else None

        return wait_for(enough, timeout_s, f"{count} hosts done")

    def await_end(self, campaign_id: str, timeout_s: float = 50.0) -> Campaign:
        """Wait until the campaign has ended."""

        def ended() -> Campaign | None:
            campaign = self.campaign(campaign_id)
            return campaign if campaign is not None and campaign.state in ENDED else None

        try:
            return wait_for(ended, timeout_s, "the end of the campaign")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self._why(campaign_id)}") from error

    def tasks(self, campaign_id: str) -> dict[str, Task]:
        """By host name."""
        return {task.host: task for task in self.operator.tasks(campaign_id)}

    def _why(self, campaign_id: str) -> str:
        """What the unfinished tasks wait for."""
        try:
            campaign, tasks = self.operator.campaign(campaign_id), self.operator.tasks(campaign_id)
        except Problem as problem:
            return str(problem)
        done = {TaskState.SUCCEEDED, TaskState.DEAD_LETTER}
        open_tasks = [f"{task.host} {task.state.value}: {task.waiting_for}" for task in tasks if task.state not in done]
        return f"{campaign.state.value}, waiting for {campaign.waiting_for!r}; {'; '.join(open_tasks)}"

    # --- the truth ----------------------------------------------------------------------------------------------------

    def effects(self) -> list[Effect]:
        """What the machines wrote down so far."""
        return read_effects(self.place.effects.read_text(encoding="utf-8"))

    def truth(self) -> Truth:
        """What happened since the last submission."""
        return judge(self.effects(), self.fabrics(), since=self.began_at)

    def fabrics(self) -> dict[str, str]:
        """Fabric by host."""
        return {host: str(of["fabric"]) for host, of in self.facts["hosts"].items()}

    def wrong(self, campaign_id: str, budget: Mapping[str, int]) -> list[str]:
        """Everything in which the campaign's word and the machines' record differ."""
        tasks = self.operator.tasks(campaign_id)
        succeeded = [task.host for task in tasks if task.state is TaskState.SUCCEEDED]
        return disagreements(self.truth(), budget, succeeded=succeeded, never_back=())

    def left_running(self, run: str) -> list[int]:
        """Processes of this fleet that are there now."""
        return processes_of(run, self.place.folder)


A = TypeVar("A")
StartFleet = Callable[..., RunningFleet]


def wait_for(condition: Callable[[], A | None], timeout_s: float, what: str) -> A:
    """Wait for a condition, with a bound, and return what it said."""
    end = time.monotonic() + timeout_s
    while not (said := condition()):
        assert time.monotonic() < end, f"{what}: not within {timeout_s:g} s"
        time.sleep(POLL_S)
    return said


def is_gone(pid: int) -> bool:
    """True when no such process runs."""
    return started_ticks(pid) is None


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[StartFleet]:
    """Start fleets: `fleet(hosts=8, fabrics=2, coordinators=2, etcd_members=1, boot_seconds=0.5, faults=(…))`.

    Their logs stay in the test's folder; the store's preallocated files do not.
    """
    try:
        etcd_server.find_etcd()
    except (debian.FetchFailed, etcd_server.EtcdUnusable) as failure:
        pytest.skip(str(failure))
    with ExitStack() as ending:

        def start(
            hosts: int = 8,
            fabrics: int = 2,
            coordinators: int = 2,
            etcd_members: int = 1,
            boot_seconds: float = 0.5,
            faults: tuple[tuple[str, str], ...] = (),
        ) -> RunningFleet:
            place = premises(tmp_path / f"fleet-{len(list(tmp_path.glob('fleet-*')))}")
            ending.callback(shutil.rmtree, place.folder / "etcd", ignore_errors=True)
            ending.callback(end_fleet, place)
            shape = Shape(hosts, fabrics, coordinators, etcd_members, boot_seconds, faults)
            start_detached(place, shape, print, bound=True)
            operator = Operator(place.profile)
            ending.callback(operator.close)
            return RunningFleet(place, operator, time.monotonic())

        yield start
