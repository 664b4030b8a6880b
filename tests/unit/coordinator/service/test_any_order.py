"""Whatever people do in whatever order, the stored state stays consistent and every host has a why."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostler_contract.campaigns import Selector
from hostler_contract.hosts import HoldKind
from hostler_contract.work import ResolutionKind, TaskRecord, TaskState
from hostler_coordinator.explain import host_why
from hostler_coordinator.fsck import problems
from hostler_coordinator.live import ReportKind
from hostler_coordinator.refusals import BadField, NotFound, Refused
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.service.deadletters import DeadLetterService
from hostler_coordinator.service.fleet import FleetService
from service_office import ALICE, BOB, Office, request

HOSTS = 5
DEEDS = (
    "drain",
    "undrain",
    "retire",
    "hold",
    "release",
    "submit",
    "pause",
    "resume",
    "abort",
    "turn",
    "let-go",
    "come-back",
    "fail",
    "silence",
    "retry",
    "fixed",
    "rma",
)


class Story:
    """One office in which deeds follow each other; one campaign is open at a time, contention is the planner's."""

    def __init__(self) -> None:
        self.office = Office()
        self.office.fleet(HOSTS)
        self.campaigns = CampaignService(self.office.desk())
        self.fleet = FleetService(self.office.desk())
        self.letters = DeadLetterService(self.office.desk())

    async def do(self, deed: str, number: int) -> None:
        """Do one deed to the host, campaign or letter of this number; a refusal is a fine answer."""
        self.office.now_s += 1.0
        self.office.hear_all()
        with suppress(BadField, NotFound, Refused):
            await self._people(deed, f"gpu-{number % HOSTS + 1:03d}", number)
        await self._machines(deed, number)

    async def _people(self, deed: str, name: str, number: int) -> None:
        chosen = Selector(hosts=(name,))
        campaign = self._pick(self.office.state.campaigns, number)
        letter = self._pick(self.office.state.dead_letters, number)
        match deed:
            case "drain":
                await self.fleet.drain(ALICE, chosen, "", False)
            case "undrain":
                await self.fleet.undrain(BOB, chosen, "", False)
            case "retire":
                await self.fleet.retire(ALICE, name, "RMA-1", "", False)
            case "hold":
                until = self.office.now_s + 3.0
                await self.fleet.add_hold(ALICE, chosen, HoldKind.HANDS_OFF, "look", until, False)
            case "release":
                await self.fleet.release_brake(ALICE, (name,), "sure", False)
            case "submit":
                asked = request(f"gpu-[001-{number % HOSTS + 1:03d}]", max_down=("fabric=2",))
                await self.campaigns.submit(ALICE, f"k{self.office.now_s}", asked, 0, "", True)
            case "pause" | "resume" | "abort":
                steer = getattr(self.campaigns, deed)
                await steer(BOB, campaign, "", False)
            case "retry":
                await self.letters.retry(ALICE, (letter,), "", f"r{self.office.now_s}", False)
            case "fixed":
                await self.letters.resolve(BOB, letter, ResolutionKind.FIXED, "", "", False)
            case "rma":
                await self.letters.resolve(BOB, letter, ResolutionKind.RMA, "RMA-2", "", False)

    async def _machines(self, deed: str, number: int) -> None:
        moving = [task for name in self.office.state.open_campaigns for task in self._held(name)]
        task = moving[number % len(moving)] if moving else None
        name = self.office.state.hosts[task.host].name if task else ""
        match deed:
            case "turn":
                await self.office.turn()
            case "silence":
                self.office.silence(f"gpu-{number % HOSTS + 1:03d}", 130.0)
            case "let-go" if task is not None and self.office.sightings[task.host].connected:
                await self.office.let_go(task.campaign, name)
            case "come-back" if task is not None:
                self.office.hear(name, f"boot-{self.office.now_s}")
                await self.office.turn()
            case "fail" if task is not None:
                self.office.says(
                    task.campaign, name, ReportKind.FAILED, code="not-permitted", text="no", permanent=True
                )
                await self.office.turn()

    def _held(self, campaign: str) -> list[TaskRecord]:
        waiting = {TaskState.PENDING, TaskState.BACKING_OFF}
        return [task for task in self.office.state.moving(campaign).values() if task.state not in waiting]

    @staticmethod
    def _pick(known: Iterable[str], number: int) -> str:
        names = sorted(known)
        return names[number % len(names)] if names else "nothing"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 30)), min_size=4, max_size=30))
def test_any_order_of_deeds_leaves_a_consistent_state_and_a_why_for_every_host(deeds: list[tuple[str, int]]):
    async def run() -> None:
        story = Story()
        for deed, number in deeds:
            await story.do(deed, number)
            assert problems(story.office.state) == [], (deed, number)
        world = story.office.world()
        for host in story.office.state.hosts.values():
            assert host_why(world, host).waiting_for
        for campaign in story.office.state.campaigns.values():
            view = await story.campaigns.get(campaign.id)
            assert sum(view.counts.model_dump().values()) == view.target_count
            assert view.waiting_for or view.ended_at is not None

    asyncio.run(run())
