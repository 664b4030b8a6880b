"""What a development fleet asks of its coordinators, as an ordinary operator over the public API."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from hostler_contract import codec
from hostler_contract.campaigns import CampaignRequest
from hostler_contract.pb.hostler.v1 import campaign_pb2, fleet_pb2
from hostler_contract.views import Campaign, Host, Status, Task
from hostler_coordinator.cli import api
from hostler_coordinator.cli.connection import Connection
from hostler_coordinator.cli.errors import Problem
from hostler_coordinator.cli.output import Format, Output
from hostler_coordinator.cli.profile import load_profile
from hostler_coordinator.cli.run import Run

CALL_TIMEOUT_S = 10.0
PAUSE_S = 0.2
A = TypeVar("A")
_NOT_YET = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED"})


class Operator:
    """One caller; not for use by several threads."""

    def __init__(self, profile: Path, going_on: Callable[[], None] = lambda: None) -> None:
        """Read the profile; nothing is connected yet. `going_on` is called while it waits; it may raise."""
        self.run = Run(
            Connection(load_profile(str(profile), {}, _nothing), CALL_TIMEOUT_S, _nothing), Output(Format.TABLE)
        )
        self._going_on = going_on

    def close(self) -> None:
        """Close its channels."""
        self.run.connection.close()

    def status(self) -> Status:
        """How the control plane is; raises Problem."""
        return self.run.status()

    def await_leader(self, timeout_s: float) -> Status:
        """Wait until a coordinator leads and its store answers; raises Problem."""

        def ready() -> Status | None:
            status = self.status()
            return status if status.leader and not status.next_step else None

        return self._until(ready, timeout_s, "no coordinator became the leader")

    def import_inventory(self, content: bytes, timeout_s: float = 30.0) -> int:
        """Import and return the number of changes; raises Problem."""
        request = fleet_pb2.ImportInventoryRequest(content=content, format="yaml", reason="hostler dev up")

        def imported() -> int | None:
            return len(self.run.call(api.IMPORT_INVENTORY, request).changes)

        return self._until(imported, timeout_s, "the inventory could not be imported")

    def open_domains(self, domains: Iterable[str], timeout_s: float = 30.0) -> None:
        """Set the budgets of domains to 100 %; raises Problem."""
        for domain in domains:
            request = fleet_pb2.SetDomainBudgetRequest(name=domain, budget="100%", reason="hostler dev up")

            def done(request: Any = request) -> bool:
                self.run.call(api.SET_DOMAIN_BUDGET, request)
                return True

            self._until(done, timeout_s, f"the budget of {domain} could not be set")

    def hosts(self) -> list[Host]:
        """Every host; raises Problem."""
        return list(self.run.pages(api.LIST_HOSTS, fleet_pb2.ListHostsRequest(), "hosts", Host))

    def await_hosts_up(self, count: int, timeout_s: float, told: Callable[[int], None] = lambda _: None) -> None:
        """Wait until `count` hosts are up with a known boot id; raises Problem naming some that are not."""
        missing: list[str] = []

        def all_up() -> bool:
            hosts = self.hosts()
            up = [host for host in hosts if host.state == "up" and host.boot_id]
            missing[:] = [host.name for host in hosts if host not in up]
            told(len(up))
            return len(up) >= count

        try:
            self._until(all_up, timeout_s, "not every agent attached")
        except Problem as problem:
            shown = ", ".join(missing[:5])
            raise Problem(problem.code, f"{problem.message}; missing: {shown} ({len(missing)} in all)") from problem

    def submit(self, key: str, request: CampaignRequest, count: int) -> Campaign:
        """Submit a campaign for exactly `count` hosts; raises Problem."""
        asked = campaign_pb2.SubmitCampaignRequest(
            key=key, request=codec.to_message(request, campaign_pb2.CampaignRequest), expect_count=count
        )
        return codec.from_message(Campaign, self.run.call(api.SUBMIT_CAMPAIGN, asked).campaign)

    def campaign(self, campaign_id: str) -> Campaign:
        """One campaign; raises Problem."""
        answer = self.run.call(api.GET_CAMPAIGN, campaign_pb2.GetCampaignRequest(id=campaign_id))
        return codec.from_message(Campaign, answer.campaign)

    def tasks(self, campaign_id: str) -> list[Task]:
        """The tasks of a campaign; raises Problem."""
        request = campaign_pb2.ListTasksRequest(campaign_id=campaign_id)
        return list(self.run.pages(api.LIST_TASKS, request, "tasks", Task))

    def _until(self, ready: Callable[[], A | None], timeout_s: float, what: str) -> A:
        """Ask again until the answer is good; no answer yet is no error before the time is over."""
        end = time.monotonic() + timeout_s
        last = ""
        while True:
            self._going_on()
            try:
                if answer := ready():
                    return answer
                last = ""
            except Problem as problem:
                if problem.code not in _NOT_YET:
                    raise
                last = f" ({problem.message})"
            if time.monotonic() >= end:
                raise Problem("DEADLINE_EXCEEDED", f"{what} within {timeout_s:g} s{last}")
            time.sleep(PAUSE_S)


def _nothing(text: str) -> None:
    """Warnings (such as that a certificate of 30 days runs out one day) are of no use here."""
    del text
