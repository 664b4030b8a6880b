"""The engine's turn apart from the planner: what the store refuses holds up nothing else, and doubt acts on nothing."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

import memory_fleet
from etcd_fixtures import wait_until
from hostler_contract.campaigns import CampaignState, ResolvedLimits
from hostler_coordinator import engine as engines
from hostler_coordinator.engine import PutAside
from hostler_coordinator.policy import Policy
from hostler_coordinator.refusals import Refused
from memory_fleet import START, Fleet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hostler_coordinator.draft import Change

POLICY = Policy(leader_grace_s=0.0)
ALL = ResolvedLimits(domains={"fabric/ib-a": 6})


class Counts:
    """engine.Observer that adds up."""

    def __init__(self) -> None:
        self.turns = 0
        self.races = 0
        self.actions: dict[str, int] = {}

    def turn(self, seconds: float, actions: Mapping[str, int]) -> None:
        self.turns += 1
        for kind, count in actions.items():
            self.actions[kind] = self.actions.get(kind, 0) + count

    def lost_race(self) -> None:
        self.races += 1


class Full:
    """Refuses, as the real store does, every change that writes one of `paths`, or more than `puts_most` records."""

    def __init__(self, fleet: Fleet) -> None:
        self.paths: set[str] = set()
        self.puts_most = 1000
        self.refused: list[tuple[float, int]] = []
        self._clock = fleet.clock
        fleet.store.before_commit = self._look

    def _look(self, change: Change) -> None:
        if self.paths.intersection(change.puts) or len(change.puts) > self.puts_most:
            self.refused.append((self._clock.now(), len(change.puts)))
            raise Refused("change-too-large", f"the change of {min(change.puts)}", "it is more than the store takes")


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """What the engines of this test's fleets tell their observer."""
    heard = Counts()
    monkeypatch.setattr(memory_fleet, "Deaf", lambda: heard)
    return heard


# -- what the store cannot take --------------------------------------------------------------------------------------


async def test_one_decision_that_is_too_large_is_put_aside_and_the_others_go_on(counts: Counts) -> None:
    fleet = Fleet(6, policy=POLICY)
    engine = fleet.engine
    full = Full(fleet)
    full.paths = {"tasks/c-1/gpu-003"}
    fleet.campaign(ALL)
    with capture_logs() as said:
        await fleet.run(60)
    others = [host for host in fleet.machines if host != "gpu-003"]
    assert {host: len(fleet.machines[host].boots) for host in fleet.machines} == {
        **dict.fromkeys(others, 1),
        "gpu-003": 0,
    }
    assert fleet.task("gpu-003") is None
    (aside,) = engine.aside
    assert (aside.what, aside.task, aside.since) == ("Reserve", "c-1/gpu-003", START + 1)
    assert "it is more than the store takes" in aside.reason
    assert engine.plan.whys["c-1/gpu-003"].code == "change-too-large"
    assert engine.plan.whys["c-1/gpu-003"].next_at == aside.again_at
    told = [entry for entry in said if entry["event"] == "a decision is put aside"]
    assert {entry["log_level"] for entry in told} == {"error"}
    assert [entry["again_in_s"] for entry in told] == [5.0, 10.0, 20.0, 40.0][: aside.tries]
    assert counts.actions[PutAside.__name__] == aside.tries == len(told)
    assert counts.races == 0  # nobody was faster: there is nothing to look up again


async def test_what_was_put_aside_is_tried_again_later_and_forgotten_when_it_fits() -> None:
    fleet = Fleet(3, policy=POLICY)
    engine = fleet.engine
    full = Full(fleet)
    full.paths = {"tasks/c-1/gpu-001"}
    fleet.campaign(ALL)
    await fleet.run(3)
    asked = len(full.refused)
    full.paths = set()
    await fleet.run(1)
    assert engine.aside  # not before its time
    assert len(full.refused) == asked
    await fleet.run(200, lambda: fleet.state_of() is CampaignState.SUCCEEDED)
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert engine.aside == ()
    assert "change-too-large" not in {why.code for why in engine.plan.whys.values()}


async def test_the_waits_double_up_to_a_bound() -> None:
    fleet = Fleet(1, policy=POLICY)
    engine = fleet.engine
    full = Full(fleet)
    full.paths = {"tasks/c-1/gpu-001"}
    fleet.campaign(ALL)
    await fleet.run(2_000)
    times = [at for at, _ in full.refused]
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert [round(wait) for wait in waits[:6]] == [5, 10, 20, 40, 80, 160]
    assert all(round(wait) == engines.ASIDE_MOST_S for wait in waits[6:])
    assert engine.aside[0].tries == len(times)


async def test_what_is_wanted_no_more_is_forgotten() -> None:
    fleet = Fleet(2, policy=POLICY)
    engine = fleet.engine
    full = Full(fleet)
    full.paths = {"tasks/c-1/gpu-001"}
    fleet.campaign(ALL)
    await fleet.run(3)
    assert engine.aside
    fleet.edit(state=CampaignState.PAUSED)
    await fleet.run(30)
    assert engine.aside == ()


async def test_decisions_that_are_too_large_together_go_one_by_one_and_none_is_put_aside() -> None:
    fleet = Fleet(6, policy=POLICY)
    engine = fleet.engine
    full = Full(fleet)
    fleet.campaign(ALL)
    full.puts_most = 8
    await fleet.run(200, lambda: fleet.state_of() is CampaignState.SUCCEEDED)
    assert fleet.state_of() is CampaignState.SUCCEEDED
    assert full.refused
    assert engine.aside == ()


# -- doubt -----------------------------------------------------------------------------------------------------------


async def test_a_moment_of_doubt_ends_no_term_and_nothing_is_done_meanwhile(counts: Counts) -> None:
    fleet = Fleet(2, policy=POLICY)
    engine = fleet.engine
    running = asyncio.create_task(engine.run())
    await wait_until(lambda: counts.turns > 0)
    fleet.store.leading = False
    fleet.campaign(ALL)
    engine.wake()
    turns = counts.turns
    for _ in range(10):
        await asyncio.sleep(engines.DOUBT_LOOK_S)
        assert counts.turns <= turns + 1  # one that was under way may end
    assert fleet.task("gpu-001") is None
    assert not running.done()
    fleet.store.leading = True
    await wait_until(lambda: fleet.task("gpu-001") is not None)
    fleet.store.leading = False
    await asyncio.wait_for(running, 5.0)


async def test_a_term_that_ends_in_the_midst_of_a_turn_tells_nobody_anything() -> None:
    fleet = Fleet(1, policy=POLICY)
    engine = fleet.engine
    fleet.campaign(ALL)

    def end_the_term(change: Change) -> bool:
        fleet.store.leading = "tasks/c-1/gpu-001" not in change.puts
        return False

    fleet.store.lose_when.append(end_the_term)
    for _ in range(5):
        if not fleet.store.leading:
            break
        await engine.turn()
    assert fleet.task("gpu-001") is not None  # committed while it led
    assert fleet.machines["gpu-001"].task == ""  # and not sent: the next leader does that
    fleet.store.lose_when.clear()
    fleet.store.leading = True
    await engine.turn()
    assert fleet.machines["gpu-001"].task == "c-1/gpu-001"
