"""The memory of the store: newer news wins, old news of deleted records does not bring them back."""

from __future__ import annotations

from hostler_contract.hosts import HostRecord
from hostler_contract.work import TaskRecord, TaskState
from hostler_coordinator.state import State


def host(name: str, fabric: str = "f0") -> HostRecord:
    return HostRecord(id="h1", name=name, fabric=fabric, enrolled_at=0.0)


def test_older_news_is_ignored() -> None:
    state = State()
    state.put("hosts/h1", host("new"), 5)
    state.put("hosts/h1", host("old"), 4)
    assert state.hosts["h1"].name == "new"
    assert state.host("new") is not None
    assert state.host("old") is None


def test_a_deleted_record_is_not_brought_back_by_news_from_before() -> None:
    state = State()
    state.put("hosts/h1", host("a"), 5)
    state.delete("hosts/h1", 9)
    state.put("hosts/h1", host("a"), 7)
    assert "h1" not in state.hosts
    assert state.revision_of("hosts/h1") == 0
    state.settle(9)
    state.put("hosts/h1", host("b"), 10)
    assert state.hosts["h1"].name == "b"


def test_a_host_that_moves_leaves_its_former_domain() -> None:
    state = State()
    state.put("hosts/h1", host("a", "f0"), 1)
    state.put("hosts/h1", host("a", "f1"), 2)
    assert not state.members("fabric/f0")
    assert state.members("fabric/f1") == {"h1"}


def test_counts_follow_a_task_through_its_states() -> None:
    state = State()
    task = TaskRecord(campaign="c", host="h1", state=TaskState.RESERVED, since=0.0)
    state.put("tasks/c/h1", task, 1)
    assert state.moving("c")
    state.put("tasks/c/h1", task.model_copy(update={"state": TaskState.SUCCEEDED}), 2)
    assert state.counts("c")[TaskState.SUCCEEDED] == 1
    assert state.counts("c")[TaskState.RESERVED] == 0
    assert not state.moving("c")
