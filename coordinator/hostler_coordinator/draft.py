"""A change to the store while it is put together: what it relies on and writes; pure, committing is the store's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hostler_contract.domains import Charge, Ledger
from hostler_contract.hosts import Claim
from hostler_coordinator.layout import path_of
from hostler_coordinator.refusals import Refused

if TYPE_CHECKING:
    from hostler_contract.shapes import Record
    from hostler_coordinator.state import State

R = TypeVar("R", bound="Record")


@dataclass(frozen=True, slots=True)
class Change:
    """One transaction: it happens whole, only while we lead and while every expectation holds.

    expects: path -> revision of its last write (0: absent). puts: path -> record. deletes: paths. empty: path prefixes
    below which nothing may lie.
    """

    expects: dict[str, int]
    puts: dict[str, Record]
    deletes: frozenset[str]
    empty: frozenset[str] = frozenset()

    @property
    def operations(self) -> int:
        """Operations in the larger of the transaction's lists; etcd takes 128, we use at most 100."""
        return max(len(self.puts) + len(self.deletes), len(self.expects) + len(self.empty) + 1)


class Draft:
    """Reads go to the draft's own writes first, then to the state; every path touched becomes an expectation."""

    def __init__(self, state: State) -> None:
        """Begin with nothing to write."""
        self.state = state
        self._expects: dict[str, int] = {}
        self._puts: dict[str, Record] = {}
        self._deletes: set[str] = set()
        self._empty: set[str] = set()

    def fork(self) -> Draft:
        """A copy to try one more action on."""
        copy = Draft(self.state)
        copy._expects = dict(self._expects)
        copy._puts = dict(self._puts)
        copy._deletes = set(self._deletes)
        copy._empty = set(self._empty)
        return copy

    def rely_on(self, path: str) -> None:
        """Make the change depend on this path being as it is in the state now; Refused when that cannot be read."""
        if path in self.state.unreadable:
            fix = "repair or delete it with etcdctl; hostler-coordinator fsck names every such record"
            raise Refused("record-unreadable", path, self.state.unreadable[path], fix=fix)
        self._expects.setdefault(path, self.state.revision_of(path))

    def rely_on_empty(self, prefix: str) -> None:
        """Make the change depend on nothing lying below this prefix."""
        self._empty.add(prefix)

    def put(self, record: Record, *, blind: bool = False) -> None:
        """Write a record; `blind` for append-only ones, whose key is new by construction."""
        path = path_of(record)
        if not blind:
            self.rely_on(path)
        self._deletes.discard(path)
        self._puts[path] = record

    def delete(self, path: str) -> None:
        """Delete what lies at a path."""
        self.rely_on(path)
        self._puts.pop(path, None)
        self._deletes.add(path)

    def _pending(self, path: str, model: type[R]) -> R | None:
        self.rely_on(path)
        if path in self._deletes:
            return None
        found = self._puts.get(path) or self.state.record(path)
        return found if isinstance(found, model) else None

    def claim(self, host: str) -> Claim:
        """The claim as this draft leaves it."""
        return self._pending(f"claims/{host}", Claim) or Claim(host=host)

    def charge(self, host: str) -> Charge | None:
        """The charge as this draft leaves it."""
        return self._pending(f"charges/{host}", Charge)

    def ledger(self, domain: str) -> Ledger:
        """The ledger as this draft leaves it."""
        return self._pending(f"ledgers/{domain}", Ledger) or Ledger(domain=domain)

    def record(self, path: str, model: type[R]) -> R | None:
        """Any record as this draft leaves it."""
        return self._pending(path, model)

    @property
    def empty(self) -> bool:
        """True while nothing would be written."""
        return not self._puts and not self._deletes

    def change(self) -> Change:
        """The transaction as it stands."""
        return Change(dict(self._expects), dict(self._puts), frozenset(self._deletes), frozenset(self._empty))
