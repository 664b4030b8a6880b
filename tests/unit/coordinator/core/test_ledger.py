"""The ledger's arithmetic: whatever is added and dropped, a domain's counter is the number of charges that name it."""

from __future__ import annotations

from collections import Counter
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from hostler_contract.domains import Budget, Cause, CauseKind, Ledger
from hostler_contract.hosts import HostRecord
from hostler_coordinator import ledger
from hostler_coordinator.draft import Draft
from hostler_coordinator.fsck import problems
from memory_store import MemoryStore

HOSTS = [
    HostRecord(id=f"h{n}", name=f"h{n}", fabric=f"f{n % 2}", rack=f"r{n % 3}", feeds=("a", "b"), enrolled_at=0.0)
    for n in range(6)
]
STEPS = st.lists(
    st.tuples(st.sampled_from(HOSTS), st.sampled_from(list(CauseKind)), st.sampled_from("xy"), st.booleans()),
    max_size=40,
)


def is_cause(kind: CauseKind, ref: str, cause: Cause) -> bool:
    return (cause.kind, cause.ref) == (kind, ref)


@given(STEPS, st.integers(1, 5))
async def test_counters_are_the_number_of_charges(
    steps: list[tuple[HostRecord, CauseKind, str, bool]], per_commit: int
) -> None:
    store = MemoryStore()
    store.seed(*HOSTS)
    for begin in range(0, len(steps), per_commit):
        draft = Draft(store.state)
        for host, kind, ref, add in steps[begin : begin + per_commit]:
            if add:
                ledger.add_cause(draft, host, Cause(kind=kind, ref=ref, since=1.0))
            else:
                ledger.drop_causes(draft, host.id, partial(is_cause, kind, ref))
        await store.commit(draft.change())
    counted = Counter(domain for charge in store.state.charges.values() for domain in charge.domains)
    assert all(store.state.ledger(domain).charged == counted[domain] for domain in store.state.domains)
    assert all(0 <= store.state.ledger(domain).charged <= len(HOSTS) for domain in store.state.domains)


async def test_a_host_is_charged_once_whatever_the_causes() -> None:
    store = MemoryStore()
    store.seed(*HOSTS)
    draft = Draft(store.state)
    ledger.add_cause(draft, HOSTS[0], Cause(kind=CauseKind.DEAD, ref="", since=1.0))
    ledger.add_cause(draft, HOSTS[0], Cause(kind=CauseKind.TASK, ref="c/h0", since=2.0))
    await store.commit(draft.change())
    assert store.state.ledger("fabric/f0").charged == 1
    draft = Draft(store.state)
    ledger.drop_task(draft, "h0", "c/h0")
    await store.commit(draft.change())
    assert store.state.ledger("fabric/f0").charged == 1
    assert not problems(store.state)


async def test_two_writers_on_one_ledger_cannot_both_win() -> None:
    store = MemoryStore()
    store.seed(*HOSTS)
    first, second = Draft(store.state), Draft(store.state)
    ledger.add_cause(first, HOSTS[0], Cause(kind=CauseKind.TASK, ref="c/h0", since=1.0))
    ledger.add_cause(second, HOSTS[2], Cause(kind=CauseKind.TASK, ref="c/h2", since=1.0))
    await store.commit(first.change())
    lost = await store.commit(second.change())
    assert type(lost).__name__ == "Lost"
    assert store.state.ledger("fabric/f0").charged == 1


def test_limits_are_the_least_of_what_is_said_and_one_where_nothing_is() -> None:
    store = MemoryStore()
    store.seed(*HOSTS)
    assert ledger.limit_of(store.state, "fabric/f0", None)[:2] == (1, "default")
    assert ledger.limit_of(store.state, "fabric/f0", 2)[0] == 2
    store.seed(Ledger(domain="fabric/f0", budget=Budget(count=1)))
    assert ledger.limit_of(store.state, "fabric/f0", 2)[:2] == (1, "budget")
    assert ledger.limit_of(store.state, "site/site", None)[1] == "ceiling"


async def test_fsck_names_a_ledger_that_does_not_add_up() -> None:
    store = MemoryStore()
    store.seed(*HOSTS, Ledger(domain="fabric/f0", charged=3))
    assert problems(store.state) == ["ledger fabric/f0 says 3 charged, 0 charges name it"]
