"""Policies, limits and short questions for field cases that are told on the fleet in memory; no test lives here."""

from __future__ import annotations

from hostler_contract.campaigns import ResolvedLimits
from hostler_contract.work import TaskState
from hostler_coordinator.policy import Policy
from memory_fleet import Fleet

REAL = Policy(leader_grace_s=0.0)
"""The bounds for real iron."""
FAST = Policy(
    leader_grace_s=0.0,
    rescue_after_s=20.0,
    dead_after_s=40.0,
    shutdown_timeout_s=60.0,
    boot_allowance_s=60.0,
    backoff_first_s=5.0,
    backoff_cap_s=20.0,
    usable_timeout_s=60.0,
    pull_timeout_s=60.0,
)
FABRIC = "fabric/ib-a"
MINUTE = 60.0


def limits(**fields: object) -> ResolvedLimits:
    return ResolvedLimits(**{"domains": {FABRIC: 1}, "drain_timeout_s": 10.0, **fields})


def ended(fleet: Fleet, name: str = "c-1") -> bool:
    return fleet.store.state.campaigns[name].ended_at is not None


def task_state(fleet: Fleet, host: str, campaign: str = "c-1") -> TaskState:
    task = fleet.task(host, campaign)
    return task.state if task is not None else TaskState.PENDING


def waits(fleet: Fleet, host: str, campaign: str = "c-1") -> str:
    why = fleet.engine.plan.whys.get(f"{campaign}/{host}")
    return why.code if why is not None else ""


def details(fleet: Fleet, host: str) -> str:
    task = fleet.task(host)
    return "; ".join(evidence.detail for evidence in task.evidence) if task is not None else ""


def booted(fleet: Fleet) -> list[str]:
    return [host for host, machine in fleet.machines.items() if machine.boots]


def charged(fleet: Fleet) -> int:
    return fleet.store.state.ledger(FABRIC).charged
