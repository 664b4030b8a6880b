"""Failure domains: budgets, ledgers and charges as stored; the arithmetic lives in the coordinator's ledger."""

from __future__ import annotations

from enum import StrEnum

from hostler_contract.moments import Instant
from hostler_contract.shapes import Record, Value


class CauseKind(StrEnum):
    """Why a host is out of service."""

    TASK = "task"
    DEAD_LETTER = "dead_letter"
    DRAIN = "drain"
    DEAD = "dead"


class Cause(Value):
    """One reason for a charge; `ref` is the task id, the drain's owner, or empty for a dead host."""

    kind: CauseKind
    ref: str
    since: Instant
    detail: str = ""
    blocked_by: str = ""
    """What a dead host last said forbids work on it: a job outlives its agent, and this outlives the leader."""


class Charge(Record):
    """A host that is out of service, charged once to each of its domains whatever the causes. Key: `charges/<host>`."""

    host: str
    domains: tuple[str, ...]
    causes: tuple[Cause, ...]
    since: Instant


class Budget(Value):
    """How many hosts of a domain may be out of service at once; exactly one of the two is set."""

    count: int | None = None
    percent: float | None = None


class Ledger(Record):
    """One domain's counter. Key: `ledgers/<kind>/<name>`. `charged` is the number of charges that name the domain."""

    domain: str
    charged: int = 0
    budget: Budget | None = None
    budget_by: str = ""
