"""The table of a task's life: complete, closed at its ends, and drawn in the docs as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler_contract.work import TERMINAL, TaskState
from hostler_coordinator import lifecycle
from hostler_coordinator.lifecycle import TABLE, Event, IllegalTransitionError, may, step

DOCS = Path(__file__).parents[4] / "docs" / "lifecycle.md"


def test_nothing_leaves_a_terminal_state() -> None:
    assert not [row for row in TABLE if row.state in TERMINAL]


def test_every_state_can_be_reached_and_every_other_one_left() -> None:
    reached = {row.then for row in TABLE} | {TaskState.PENDING}
    assert reached == set(TaskState)
    assert {row.state for row in TABLE} == set(TaskState) - TERMINAL


def test_a_pair_stands_in_the_table_once_and_every_event_is_used() -> None:
    pairs = [(row.state, row.event) for row in TABLE]
    assert len(pairs) == len(set(pairs))
    assert {row.event for row in TABLE} == set(Event)


def test_every_row_says_its_guard() -> None:
    assert all(len(row.guard) > 10 for row in TABLE)


def test_an_unknown_pair_is_refused_by_name() -> None:
    with pytest.raises(IllegalTransitionError, match="state pending knows no event go"):
        step(TaskState.PENDING, Event.GO)


def test_a_host_that_left_the_inventory_ends_its_task_from_anywhere() -> None:
    assert all(may(state, Event.REMOVED) for state in set(TaskState) - TERMINAL)


def test_only_evidence_leads_to_success() -> None:
    events = {row.event for row in TABLE if row.then is TaskState.SUCCEEDED}
    assert events == {Event.USABLE, Event.POWER_SETTLED}
    assert {row.state for row in TABLE if row.event is Event.USABLE} == {TaskState.PROVING, TaskState.POWER_CYCLED}


def test_power_states_are_entered_by_an_intent_only() -> None:
    entering = {row.event for row in TABLE if row.then is TaskState.POWER_CYCLING}
    assert entering == {Event.ESCALATE}


def test_the_diagram_in_the_docs_is_the_table() -> None:
    assert lifecycle.diagram() in DOCS.read_text()
