"""A store in memory with the compare semantics of the real one, for tests; deciding is the rooms' under test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.campaigns import AuditRecord
from hostler_contract.codec import from_record, to_record
from hostler_coordinator.layout import path_of
from hostler_coordinator.ports import Committed, Lost, StoreUnavailableError
from hostler_coordinator.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostler_contract.shapes import Record
    from hostler_contract.work import Token
    from hostler_coordinator.draft import Change

MOST_OPERATIONS = 100
"""Operations in one transaction, as `draft.Change.operations` counts them."""
MOST_VALUE_BYTES = 1_048_576


class MemoryStore:
    """Implements `ports.Store`. Records go through the codec both ways, as they would through etcd.

    leading: False answers every commit with Lost(deposed=True). fail_with: raised by commit and audit while set.
    before_commit: called with each change before it is compared, so that a test can let another writer win.
    """

    def __init__(self) -> None:
        self.state = State()
        self.leading = True
        self.fail_with: StoreUnavailableError | None = None
        self.before_commit: Callable[[Change], None] | None = None
        self.lose_when: list[Callable[[Change], bool]] = []
        """Tests of a change; one that is true makes the commit lose, as another writer would."""
        self.commits: list[Change] = []
        """Every change that was committed, oldest first."""
        self._audit: dict[str, AuditRecord] = {}

    async def commit(self, change: Change) -> Committed | Lost:
        """Compare, then write everything at one new revision, or nothing."""
        if self.before_commit is not None:
            self.before_commit(change)
        if self.fail_with is not None:
            raise self.fail_with
        if not self.leading:
            return Lost(deposed=True)
        if change.operations > MOST_OPERATIONS:
            msg = f"{change.operations} operations in one transaction, more than {MOST_OPERATIONS}"
            raise ValueError(msg)
        if not self._holds(change) or any(lose(change) for lose in self.lose_when):
            return Lost(deposed=False)
        revision = self.state.revision + 1
        for path in change.deletes:
            self.state.delete(path, revision)
        for path, record in change.puts.items():
            self._write(path, record, revision)
        self.commits.append(change)
        return Committed(revision)

    async def still_newest(self, host: str, token: Token) -> bool:
        """Whether we lead and this token is the newest of its host."""
        if self.fail_with is not None:
            raise self.fail_with
        return self.leading and self.state.claim(host).token == token

    async def audit(self, after: str, limit: int, before: str = "") -> Sequence[AuditRecord]:
        """Audit entries after an id and before another, oldest first."""
        if self.fail_with is not None:
            raise self.fail_with
        found = sorted(entry for entry in self._audit if entry > after and (not before or entry < before))
        return [self._audit[entry] for entry in found[:limit]]

    def seed(self, *records: Record) -> None:
        """Write records as another writer would: unconditionally, each at a revision of its own."""
        for record in records:
            self._write(path_of(record), record, self.state.revision + 1)

    def remove(self, path: str) -> None:
        """Delete a record as another writer would."""
        self.state.delete(path, self.state.revision + 1)

    @property
    def audit_entries(self) -> list[AuditRecord]:
        """Every audit entry, oldest first."""
        return [self._audit[entry] for entry in sorted(self._audit)]

    def _holds(self, change: Change) -> bool:
        if any(self.state.revision_of(path) != revision for path, revision in change.expects.items()):
            return False
        return not any(path.startswith(prefix) for prefix in change.empty for path in self.state.paths())

    def _write(self, path: str, record: Record, revision: int) -> None:
        raw = to_record(record)
        if len(raw) > MOST_VALUE_BYTES:
            msg = f"{path} has {len(raw)} bytes, more than {MOST_VALUE_BYTES}"
            raise ValueError(msg)
        read = from_record(type(record), raw, path)
        if isinstance(read, AuditRecord):
            self._audit[read.id] = read
            self.state.revision = max(self.state.revision, revision)
        else:
            self.state.put(path, read, revision)
