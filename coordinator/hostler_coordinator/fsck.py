"""Checks every invariant of the stored state and names what breaks it; pure, it repairs nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hostler_contract.campaigns import ENDED
from hostler_contract.domains import CauseKind
from hostler_contract.work import TERMINAL, TaskState
from hostler_coordinator.lifecycle import CHARGED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostler_contract.campaigns import CampaignRecord
    from hostler_contract.work import TaskRecord
    from hostler_coordinator.state import State


TOKEN_MOST = 2**40
"""No host sees this many orders."""


def problems(state: State) -> list[str]:
    """One sentence per broken invariant; empty when all hold."""
    return [
        *_unreadable(state),
        *_ledgers(state),
        *_charges(state),
        *_claims(state),
        *_bmc_facts(state),
        *_campaigns(state),
    ]


def _unreadable(state: State) -> Iterator[str]:
    for path, why in sorted(state.unreadable.items()):
        yield f"record {path} cannot be read: {why}"


def _ledgers(state: State) -> Iterator[str]:
    counted: Counter[str] = Counter(domain for charge in state.charges.values() for domain in charge.domains)
    for domain in sorted(set(state.domains) | set(counted)):
        written = state.ledger(domain).charged
        if written != counted[domain]:
            yield f"ledger {domain} says {written} charged, {counted[domain]} charges name it"


def _charges(state: State) -> Iterator[str]:
    for host, charge in sorted(state.charges.items()):
        if host not in state.hosts and not any(cause.kind is CauseKind.TASK for cause in charge.causes):
            yield f"charge of {host}: no such host"
        for cause in charge.causes:
            if cause.kind is CauseKind.TASK and not _holds(state, cause.ref):
                yield f"charge of {host} names task {cause.ref}, which does not hold it"
            if cause.kind is CauseKind.DEAD_LETTER and cause.ref not in state.dead_letters:
                yield f"charge of {host} names dead letter {cause.ref}, which does not exist"


def _holds(state: State, task_id: str) -> bool:
    campaign, _, host = task_id.partition("/")
    task = state.task(campaign, host)
    return task is not None and task.state in CHARGED


def _claims(state: State) -> Iterator[str]:
    for path in sorted(state.paths()):
        if path.startswith("claims/"):
            claim = state.claim(path.removeprefix("claims/"))
            if not 0 <= claim.token.counter <= TOKEN_MOST:
                yield f"claim on {claim.host} has token {claim.token}, which cannot have been issued"
            if claim.task and not _holds(state, claim.task):
                yield f"claim on {claim.host} names task {claim.task}, which does not hold it"


def _bmc_facts(state: State) -> Iterator[str]:
    for path in sorted(state.paths()):
        if path.startswith("bmcfacts/") and path.removeprefix("bmcfacts/") not in state.hosts:
            yield f"BMC facts of {path.removeprefix('bmcfacts/')}: no such host"


def _campaigns(state: State) -> Iterator[str]:
    for campaign in sorted(state.campaigns.values(), key=lambda record: record.id):
        targets = state.targets(campaign.id)
        if len(targets) != campaign.target_count:
            yield f"campaign {campaign.id} has {len(targets)} targets stored, {campaign.target_count} by its record"
        known = set(targets)
        for task in state.tasks(campaign.id).values():
            if task.host not in known:
                yield f"task {task.id}: its host is no target of its campaign"
            yield from _task(state, campaign, task)


def _task(state: State, campaign: CampaignRecord, task: TaskRecord) -> Iterator[str]:
    if campaign.state in ENDED and task.state not in TERMINAL:
        yield f"task {task.id} is {task.state.value}, though its campaign has ended {campaign.state.value}"
    if task.state in CHARGED:
        charge = state.charge(task.host)
        refs = {cause.ref for cause in charge.causes} if charge is not None else set()
        if task.id not in refs:
            yield f"task {task.id} is {task.state.value}, and its host is not charged for it"
        claim = state.claim(task.host)
        if claim.task != task.id:
            yield f"task {task.id} is {task.state.value}, and the claim on its host names {claim.task or 'nobody'}"
        if task.token is None or task.token > claim.token:
            yield f"task {task.id} has token {task.token}, newer than its host's claim {claim.token}"
    if task.state is TaskState.POWER_CYCLING and task.power is None:
        yield f"task {task.id} is power_cycling without an intent"
    if task.state is TaskState.DEAD_LETTER and f"{task.campaign}.{task.host}" not in state.dead_letters:
        yield f"task {task.id} is a dead letter without its record"
