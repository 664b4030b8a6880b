"""`hostler demo`: a rolling reboot of a small fleet under faults, and its judgement; the words are `demo_screens`'s."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostler_contract.campaigns import ENDED, CampaignRequest, CampaignState, Limits, Selector
from hostler_contract.views import Campaign, Task
from hostler_contract.work import OperationKind, TaskState
from hostler_coordinator.cli.errors import Problem
from hostler_coordinator.cli.output import Format
from hostler_coordinator.dev.control import Machines, end_fleet, facts_of, start_detached
from hostler_coordinator.dev.demo_screens import Screen, screen_for
from hostler_coordinator.dev.ground_truth import Truth, disagreements, judge, read_effects
from hostler_coordinator.dev.operator import Operator
from hostler_coordinator.dev.premises import Premises, premises
from hostler_coordinator.dev.shape import Shape

FABRICS = 2
COORDINATORS = 3
BOOT_SECONDS = 1.5
DOWN_PER_FABRIC = 3
END_WITHIN_S = 170.0
POLL_S = 0.25
POWER_STATES = frozenset({TaskState.POWER_CYCLING, TaskState.POWER_CYCLED})


@dataclass
class Play:
    """What is known while the campaign runs."""

    hung: str
    broken: str
    campaign: Campaign
    began_at: float
    tasks: list[Task] = field(default_factory=list)
    leader: str = ""
    leader_since: float | None = None
    killed: str = ""
    leader_changes: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How it went: the figures, the truth they come from, and everything in which the two differ."""

    summary: dict[str, Any]
    truth: Truth
    wrong: list[str]


def run_demo(output: Format, hosts: int, folder: Path | None, *, keep: bool) -> int:
    """Run it and write the closing screen or the summary; returns the exit status: 0 if the ground truth agrees."""
    place = premises(folder if folder is not None else Path(tempfile.mkdtemp(prefix="hostler-demo-")))
    screen = screen_for(output)
    try:
        shape = Shape(hosts, FABRICS, COORDINATORS, 1, BOOT_SECONDS)
        screen.say(f"standing up {hosts} machines, {COORDINATORS} coordinators and an etcd in {place.folder}")
        facts = start_detached(place, shape, screen.detail, bound=not keep)
        play = _play(place, facts, screen)
        verdict = _judge(place, facts, play)
        screen.close(play, verdict, place.folder)
        return 1 if verdict.wrong else 0
    finally:
        if keep:
            screen.say(f"the fleet is still up; end it with: hostler dev down --dir {place.folder}")
        else:
            end_fleet(place)
            if folder is None:  # logs and the record stay; the store's large files are of no use to anybody
                shutil.rmtree(place.folder / "etcd", ignore_errors=True)


def _play(place: Premises, facts: dict[str, Any], screen: Screen) -> Play:
    """Set the faults, submit, kill the leader half-way, and follow the campaign to its end."""
    names = list(facts["hosts"])
    hung, broken = names[len(names) // 2], names[0]
    machines, operator = Machines(place), Operator(place.profile)
    try:
        status = operator.status()
        machines.set_fault(broken, "no-boot")
        machines.set_fault(hung, "hang")
        began_at = time.monotonic()
        screen.say(f"fault: {broken} will not come back from a reboot; the agent of {hung} hangs from now on")
        campaign = operator.submit(f"demo-{secrets.token_hex(6)}", _request(), len(names))
        screen.say(f"campaign {campaign.id}: reboot {len(names)} hosts, at most {DOWN_PER_FABRIC} of a fabric down")
        play = Play(hung, broken, campaign, began_at, leader=status.leader, leader_since=status.leader_since)
        with screen.live():
            while play.campaign.state not in ENDED and time.monotonic() - began_at < END_WITHIN_S:
                _turn(place, operator, play, screen)
                time.sleep(POLL_S)
        return play
    finally:
        operator.close()


def _request() -> CampaignRequest:
    return CampaignRequest(
        operation=OperationKind.REBOOT,
        selector=Selector(all=True),
        limits=Limits(max_down=(f"fabric={DOWN_PER_FABRIC}",)),
        reason="hostler demo",
    )


def _turn(place: Premises, operator: Operator, play: Play, screen: Screen) -> None:
    """Look once; a coordinator that does not answer just now is part of the play."""
    try:
        play.campaign = operator.campaign(play.campaign.id)
        before = {task.host: task.state for task in play.tasks}
        play.tasks = operator.tasks(play.campaign.id)
        status = operator.status()
    except Problem as problem:
        if problem.exit_status != 5:
            raise
        screen.detail(problem.message)
        return
    screen.show(play.campaign)
    _tell_changes(play, before, screen)
    led = status.leader and status.leaderless_since is None
    if led and (status.leader, status.leader_since) != (play.leader, play.leader_since):
        play.leader_changes += 1
        screen.say(f"{status.leader} leads now")
        play.leader, play.leader_since = status.leader, status.leader_since
    if not play.killed and _is_halfway(play):
        _kill_leader(place, play, screen)


def _is_halfway(play: Play) -> bool:
    """Half of it is done, and no power action is under way: a successor would wait out the BMC's session for it."""
    busy = any(task.state in POWER_STATES for task in play.tasks)
    return 2 * play.campaign.counts.succeeded >= play.campaign.target_count and not busy


def _kill_leader(place: Premises, play: Play, screen: Screen) -> None:
    pid = facts_of(place)["coordinators"].get(play.leader, {}).get("pid")
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        play.killed = play.leader
        screen.say(f"killed the leader {play.leader} (kill -9 {pid}), half-way through")


def _tell_changes(play: Play, before: dict[str, TaskState], screen: Screen) -> None:
    """Say what becomes of the two hosts with a fault."""
    for task in play.tasks:
        if task.host not in {play.hung, play.broken} or before.get(task.host) is task.state:
            continue
        word = task.state.value.replace("_", " ")
        reason = f": {task.reason}" if task.reason else ""
        screen.say(f"{task.host}: {word}{reason}")


def _judge(place: Premises, facts: dict[str, Any], play: Play) -> Verdict:
    """Hold what the campaign says against what the machines wrote down."""
    seconds = time.monotonic() - play.began_at
    fabric_of = {host: str(of["fabric"]) for host, of in facts["hosts"].items()}
    budget = dict.fromkeys(sorted(set(fabric_of.values())), DOWN_PER_FABRIC)
    truth = judge(read_effects(place.effects.read_text(encoding="utf-8")), fabric_of, since=play.began_at)
    succeeded = [task.host for task in play.tasks if task.state is TaskState.SUCCEEDED]
    dead = [task.host for task in play.tasks if task.state is TaskState.DEAD_LETTER]
    wrong = disagreements(truth, budget, succeeded=succeeded, never_back=dead) + _plot_holes(play, truth, dead)
    campaign = play.campaign
    summary = {
        "campaign": {
            "id": campaign.id,
            "state": campaign.state.value,
            "counts": campaign.counts.model_dump(mode="json"),
        },
        "hosts": len(fabric_of),
        "rebooted_twice": len(truth.rebooted_twice),
        "max_down": dict(truth.max_down),
        "budget": budget,
        "bmc_actions": truth.bmc_actions,
        "leader_changes": play.leader_changes,
        "seconds": round(seconds, 1),
    }
    return Verdict(summary, truth, wrong)


def _plot_holes(play: Play, truth: Truth, dead: list[str]) -> list[str]:
    """What the demo sets out to show and did not."""
    counts, total = play.campaign.counts, play.campaign.target_count
    expected = {
        f"the campaign ended {play.campaign.state.value}, not incomplete": play.campaign.state
        is CampaignState.INCOMPLETE,
        f"{counts.succeeded} of {total} hosts were rebooted, not {total - 1}": counts.succeeded == total - 1,
        f"the dead letters are {dead or 'none'}, not {play.broken}": dead == [play.broken],
        f"{play.hung} was not brought back by its BMC": play.hung in truth.rescued,
        "no leader was killed": bool(play.killed),
        "nobody took over from the killed leader": play.leader_changes >= 1,
    }
    return [text for text, holds in expected.items() if not holds]
