"""Builds situations for the tables of the agent's decisions: a healthy, attached host, a task, and changes to both."""

from __future__ import annotations

from typing import Any

from hostler_agent.decide import Entry, Situation
from hostler_agent.session import Assignment, Outcome, OutcomeKind
from hostler_contract.hosts import JournalPhase, Usability
from hostler_contract.work import OperationKind, Token

OLD = "aaaaaaaa-0000-4000-8000-000000000000"
NEW = "bbbbbbbb-0000-4000-8000-000000000000"
NOW = 1000.0
TASK = "c-1/h1"


def order(**over: Any) -> Assignment:
    values: dict[str, Any] = {
        "task_id": TASK,
        "token": Token(epoch=1, counter=7),
        "operation": OperationKind.REBOOT,
        "campaign_id": "c-1",
        "actor": "ada",
        "drain_timeout_s": 60.0,
        "shutdown_timeout_s": 300.0,
        **over,
    }
    return Assignment(**values)


def entry(phase: JournalPhase = JournalPhase.ACCEPTED, **over: Any) -> Entry:
    wanted = over.pop("order", None) or order()
    values: dict[str, Any] = {
        "newest_token": wanted.token,
        "newest_task": wanted.task_id,
        "order": wanted,
        "phase": phase,
        "boot_before": OLD,
        **over,
    }
    return Entry(**values)


def outcome(kind: OutcomeKind = OutcomeKind.DONE, code: str = "rebooted", **over: Any) -> Outcome:
    return Outcome(task_id=TASK, token=Token(epoch=1, counter=7), kind=kind, code=code, **over)


def situation(given: Entry | None = None, **over: Any) -> Situation:
    values: dict[str, Any] = {
        "entry": Entry() if given is None else given,
        "boot_id": OLD,
        "usability": Usability.USABLE,
        "usable_since": NOW - 500,
        "attached": True,
        **over,
    }
    return Situation(**values)
