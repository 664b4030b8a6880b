"""How a host stands, in one word and one verdict; why it does is said by `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.domains import CauseKind
from hostler_contract.hosts import Usability
from hostler_contract.work import TaskState, Verdict
from hostler_coordinator.lifecycle import LET_GO

if TYPE_CHECKING:
    from hostler_contract.hosts import HostRecord
    from hostler_contract.work import DeadLetterRecord, TaskRecord
    from hostler_coordinator.planner.world import World
    from hostler_coordinator.state import State

STATES = ("up", "silent", "dead", "rebooting", "drained", "held", "retired", "never-seen", "unknown")
"""Every word that `host_state` may answer."""


def host_state(world: World, host: HostRecord) -> str:
    """One word of STATES. What a person decided goes before what is heard; only work in progress and death go first."""
    task = task_of(world.state, host.id)
    if host.retired is not None:
        return "retired"
    if task is not None and task.state in LET_GO and task.state is not TaskState.PROVING:
        return "rebooting"
    if is_dead(world, host):
        return "dead"
    if world.holds(host.id):
        return "held"
    if host.drain is not None:
        return "drained"
    if host.boot_id is None and not world.heard(host.id):
        return "unknown" if world.blind else "never-seen"
    if task is not None and task.state is TaskState.PROVING:
        return "rebooting"
    if world.blind:
        return "unknown"
    return "up" if world.heard(host.id) else "silent"


def host_verdict(world: World, host: HostRecord) -> Verdict:
    """What is known of its health here: heard and usable is ok; silence that no reboot explains is suspect."""
    if is_dead(world, host):
        return Verdict.DEAD
    if world.heard(host.id):
        usable = world.sighting(host.id).condition.usability is Usability.USABLE
        return Verdict.OK if usable else Verdict.UNKNOWN
    task = task_of(world.state, host.id)
    if host.boot_id is None or (task is not None and task.state in LET_GO):
        return Verdict.UNKNOWN
    return Verdict.SUSPECT if world.silent(host.id) else Verdict.UNKNOWN


def is_dead(world: World, host: HostRecord) -> bool:
    """Charged as dead, or silent with a dead letter that keeps it charged."""
    charge = world.state.charge(host.id)
    kinds = {cause.kind for cause in charge.causes} if charge else set()
    if CauseKind.DEAD in kinds:
        return True
    return CauseKind.DEAD_LETTER in kinds and CauseKind.TASK not in kinds and world.silent(host.id)


def task_of(state: State, host: str) -> TaskRecord | None:
    """The task that holds a host now."""
    campaign, slash, target = state.claim(host).task.partition("/")
    return state.task(campaign, target) if slash else None


def open_letter(state: State, host: str) -> DeadLetterRecord | None:
    """The newest dead letter of a host that still waits for a person."""
    found = [letter for letter in state.dead_letters.values() if letter.host == host and letter.state.value == "open"]
    return max(found, key=lambda letter: (letter.at, letter.id), default=None)
