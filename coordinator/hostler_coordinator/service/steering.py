"""Pause, resume and abort: what each does to a campaign's record, and exactly what is still going to happen; pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
from hostler_contract.campaigns import ENDED, CampaignState
from hostler_contract.work import TERMINAL, TaskState
from hostler_coordinator.lifecycle import LET_GO
from hostler_coordinator.phrases import counted
from hostler_coordinator.planner.campaigns import failures
from hostler_coordinator.refusals import Refused
from hostler_coordinator.views import MOST_SHOWN, host_name

if TYPE_CHECKING:
    from hostler_contract.campaigns import CampaignRecord
    from hostler_contract.work import TaskRecord
    from hostler_coordinator.planner.world import World


class Verb(StrEnum):
    """What a person does to a campaign."""

    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"


_DONE = {Verb.PAUSE: "paused", Verb.RESUME: "resumed", Verb.ABORT: "aborted"}
_FROM = {
    Verb.PAUSE: frozenset({CampaignState.PENDING, CampaignState.RUNNING}),
    Verb.RESUME: frozenset({CampaignState.PAUSED}),
    Verb.ABORT: frozenset({CampaignState.PENDING, CampaignState.RUNNING, CampaignState.PAUSED}),
}
_ALREADY = {
    Verb.PAUSE: frozenset({CampaignState.PAUSED}),
    Verb.RESUME: frozenset({CampaignState.PENDING, CampaignState.RUNNING}),
    Verb.ABORT: frozenset({CampaignState.ABORTING, CampaignState.ABORTED}),
}

_KINDS = ("waiting", "withdrawn", "carried-on", "finished")
# Of one host, and of more.
_TEXTS = {
    Verb.PAUSE: {
        "waiting": ("stays waiting; nothing has been done to it", "stay waiting; nothing has been done to them"),
        "withdrawn": (
            "is stopped before the point of no return and undrained; it waits again",
            "are stopped before the point of no return and undrained; they wait again",
        ),
        "carried-on": (
            "is past the point of no return and is carried to a safe end",
            "are past the point of no return and are carried to a safe end",
        ),
        "finished": ("has ended", "have ended"),
    },
    Verb.RESUME: {
        "waiting": ("starts as budgets and windows allow", "start as budgets and windows allow"),
        "withdrawn": (
            "is still being stopped and undrained, then waits for its start",
            "are still being stopped and undrained, then wait for their start",
        ),
        "carried-on": ("goes on", "go on"),
        "finished": ("has ended", "have ended"),
    },
    Verb.ABORT: {
        "waiting": ("is aborted; nothing has been done to it", "are aborted; nothing has been done to them"),
        "withdrawn": (
            "is stopped before the point of no return and undrained",
            "are stopped before the point of no return and undrained",
        ),
        "carried-on": (
            "is past the point of no return and is carried to a safe end; if it is off it is switched on",
            "are past the point of no return and are carried to a safe end; one that is off is switched on",
        ),
        "finished": ("had ended before", "had ended before"),
    },
}


def steered(world: World, campaign: CampaignRecord, verb: Verb, caller: str, reason: str) -> CampaignRecord | None:
    """The campaign's record afterwards; None when it is so already.

    Raises Refused, naming the state, when the campaign cannot be steered this way any more.
    """
    if campaign.state in _ALREADY[verb]:
        return None
    if campaign.state not in _FROM[verb]:
        over = campaign.state in ENDED
        raise Refused(
            "campaign-ended" if over else f"campaign-{campaign.state.value}",
            f"campaign {campaign.id}",
            f"it is {campaign.state.value} and cannot be {_DONE[verb]}",
            since=campaign.state_since,
            fix="submit a new campaign" if over else "it ends by itself",
        )
    said = f"{_DONE[verb]} by {caller}" + (f": {reason}" if reason else "")
    update: dict[str, object] = {
        "state": _after(campaign, verb),
        "state_reason": said,
        "state_since": world.now,
        "paused_by_rule": False,
    }
    if verb is Verb.RESUME:
        update["failures_forgiven"] = failures(world, campaign)
    return campaign.model_copy(update=update)


def _after(campaign: CampaignRecord, verb: Verb) -> CampaignState:
    if verb is Verb.RESUME:
        return CampaignState.RUNNING if campaign.started_at is not None else CampaignState.PENDING
    return CampaignState.PAUSED if verb is Verb.PAUSE else CampaignState.ABORTING


def consequences(world: World, campaign: CampaignRecord, verb: Verb) -> tuple[V.Consequence, ...]:
    """What is still going to happen, by kind, kinds without hosts left out.

    Asked again while an abort goes on, the answer is the same: what it has done already still counts as its doing.
    """
    hosts: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    since = campaign.state_since if campaign.state is CampaignState.ABORTING else None
    for host_id in world.state.targets(campaign.id):
        task = world.state.task(campaign.id, host_id)
        hosts[_kind(campaign, task, since)].append(host_name(world, host_id))
    return tuple(
        V.Consequence(
            kind=kind,
            host_count=len(names),
            hosts=tuple(names[:MOST_SHOWN]),
            text=f"{counted(len(names), 'host')} {_TEXTS[verb][kind][len(names) != 1]}",
        )
        for kind, names in hosts.items()
        if names
    )


def _kind(campaign: CampaignRecord, task: TaskRecord | None, aborted_at: float | None) -> str:
    if task is None:
        return "finished" if campaign.state in ENDED - {CampaignState.ABORTED} else "waiting"
    if task.state is TaskState.ABORTED:
        return "withdrawn" if task.stop_to is TaskState.ABORTED else "waiting"
    if task.state in TERMINAL:
        late = aborted_at is not None and task.ended_at is not None and task.ended_at > aborted_at
        return "carried-on" if late else "finished"
    if task.state in LET_GO:
        return "carried-on"
    return "withdrawn" if task.state in {TaskState.RESERVED, TaskState.STOPPING} else "waiting"
