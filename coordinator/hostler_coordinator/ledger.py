"""The one ledger over domains: who is out of service, charged once per domain whatever the causes; pure arithmetic.

What the limits are is said in `limits`; when a host may be charged is the planner's to decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.domains import Cause, CauseKind, Charge
from hostler_coordinator.limits import effective_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.draft import Draft
    from hostler_coordinator.state import State


def add_cause(draft: Draft, host: HostRecord, cause: Cause) -> None:
    """Charge a host for one more cause. Its domains' counters move only when it was in service before."""
    charge = draft.charge(host.id)
    if charge is None:
        for domain in host.domains:
            _count(draft, domain, +1)
        draft.put(Charge(host=host.id, domains=host.domains, causes=(cause,), since=cause.since))
        return
    others = tuple(known for known in charge.causes if (known.kind, known.ref) != (cause.kind, cause.ref))
    draft.put(charge.model_copy(update={"causes": (*others, cause)}))


def drop_causes(draft: Draft, host: str, drop: Callable[[Cause], bool]) -> None:
    """Take causes off a host's charge; when none is left, its domains' counters go down."""
    charge = draft.charge(host)
    if charge is None:
        return
    left = tuple(cause for cause in charge.causes if not drop(cause))
    if len(left) == len(charge.causes):
        return
    if left:
        draft.put(charge.model_copy(update={"causes": left}))
        return
    for domain in charge.domains:
        _count(draft, domain, -1)
    draft.delete(f"charges/{host}")


def drop_task(draft: Draft, host: str, task_id: str) -> None:
    """End a task's charge."""
    drop_causes(draft, host, lambda cause: cause.kind is CauseKind.TASK and cause.ref == task_id)


def _count(draft: Draft, domain: str, step: int) -> None:
    ledger = draft.ledger(domain)
    draft.put(ledger.model_copy(update={"charged": ledger.charged + step}))


def limit_of(state: State, domain: str, campaign_limit: int | None) -> tuple[int, str, str]:
    """Effective limit of a domain, where it comes from, and how it was rounded.

    A site is bounded by the ceiling on simultaneous boots instead of the default of one; here it has a limit only when
    its budget or the campaign gives it one.
    """
    ledger = state.ledger(domain)
    enrolled = len(state.members(domain))
    if domain.startswith("site/") and ledger.budget is None and campaign_limit is None:
        return enrolled, "ceiling", ""
    return effective_limit(domain, enrolled, ledger.budget, campaign_limit)


def holders(state: State, domain: str) -> list[Charge]:
    """Charges that count against a domain, oldest first."""
    found = [charge for charge in state.charges.values() if domain in charge.domains]
    return sorted(found, key=lambda charge: (charge.since, charge.host))
