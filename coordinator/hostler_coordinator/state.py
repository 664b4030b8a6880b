"""The coordinator's memory of the store: every record with its revision, and indexes; knows nothing of etcd itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, TypeVar

from hostler_contract.campaigns import (
    ENDED,
    BrakeRelease,
    CampaignRecord,
    EpochRecord,
    KeyRecord,
    Targets,
)
from hostler_contract.domains import Charge, Ledger
from hostler_contract.hosts import BmcFacts, BmcModel, Claim, Hold, HostRecord
from hostler_contract.work import TERMINAL, DeadLetterRecord, TaskRecord, TaskState
from hostler_coordinator.layout import bmc_model_path, key_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from hostler_contract.shapes import Record

R = TypeVar("R", bound="Record")

WAITING = frozenset({TaskState.PENDING, TaskState.BACKING_OFF})
"""States from which a start may follow."""


class State:
    """All records at one revision. `put` and `delete` are called by the store adapter only; everybody else reads.

    `revision` is the newest revision applied. Reading methods return None for what is absent.
    """

    def __init__(self) -> None:
        """Start empty, at revision 0."""
        self.revision = 0
        self._records: dict[str, tuple[Record, int]] = {}
        self._gone: dict[str, int] = {}
        self.unreadable: dict[str, str] = {}
        """Path -> why its record cannot be read. What relies on one is refused; everything else goes on (law 7)."""
        self._by_name: dict[str, str] = {}
        self._hosts: dict[str, HostRecord] = {}
        self._members: dict[str, set[str]] = defaultdict(set)
        self._tasks: dict[str, dict[str, TaskRecord]] = defaultdict(dict)
        self._moving: dict[str, dict[str, TaskRecord]] = defaultdict(dict)
        self._counts: dict[str, Counter[TaskState]] = defaultdict(Counter)
        self._campaigns: dict[str, CampaignRecord] = {}
        self._open: dict[str, CampaignRecord] = {}
        self._targets: dict[str, dict[int, Targets]] = defaultdict(dict)
        self._target_lists: dict[str, tuple[str, ...]] = {}
        self._positions: dict[str, dict[str, int]] = {}
        self._waiting: dict[str, dict[str, dict[str, None]]] = {}
        self._charges: dict[str, Charge] = {}
        self._ledgers: dict[str, Ledger] = {}
        self._holds: dict[str, dict[str, Hold]] = defaultdict(dict)
        self._letters: dict[str, DeadLetterRecord] = {}

    # -- writing, by the store adapter -------------------------------------------------------------------------------

    def put(self, path: str, record: Record, revision: int) -> None:
        """Take in a record; older news than what is known of this path is ignored."""
        known = self._records.get(path)
        if (known is not None and known[1] >= revision) or self._gone.get(path, 0) >= revision:
            return
        self._gone.pop(path, None)
        self.unreadable.pop(path, None)
        if isinstance(record, HostRecord):
            self._regroup(known[0] if known else None, record)
        self._forget_indexes(known[0] if known else None)
        self._records[path] = (record, revision)
        self._index(record)
        self.revision = max(self.revision, revision)

    def delete(self, path: str, revision: int) -> None:
        """Take in a deletion; ignored when the record is newer."""
        known = self._records.get(path)
        self.revision = max(self.revision, revision)
        self._gone[path] = max(revision, self._gone.get(path, 0))
        self.unreadable.pop(path, None)
        if known is None or known[1] > revision:
            return
        del self._records[path]
        if isinstance(known[0], HostRecord):
            self._waiting.clear()
        self._forget_indexes(known[0])

    def settle(self, revision: int) -> None:
        """All news up to a revision has been taken in: deletions that old need not be remembered."""
        self.revision = max(self.revision, revision)
        if self._gone:
            self._gone = {path: at for path, at in self._gone.items() if at > revision}

    def _index(self, record: Record) -> None:
        match record:
            case HostRecord():
                self._index_host(record)
            case TaskRecord():
                self._index_task(record)
            case CampaignRecord():
                self._campaigns[record.id] = record
                if record.state not in ENDED:
                    self._open[record.id] = record
            case Targets():
                self._targets[record.campaign][record.chunk] = record
                self._forget_targets(record.campaign)
            case Charge():
                self._charges[record.host] = record
            case Ledger():
                self._ledgers[record.domain] = record
            case Hold():
                self._holds[record.host][record.id] = record
            case DeadLetterRecord():
                self._letters[record.id] = record
            case _:
                pass

    def _index_host(self, host: HostRecord) -> None:
        self._hosts[host.id] = host
        self._by_name[host.name] = host.id
        if host.retired is None:
            for domain in host.domains:
                self._members[domain].add(host.id)

    def _index_task(self, task: TaskRecord) -> None:
        self._tasks[task.campaign][task.host] = task
        self._counts[task.campaign][task.state] += 1
        if task.state not in TERMINAL:
            self._moving[task.campaign][task.host] = task
        self._wait(task)

    def _forget_indexes(self, record: Record | None) -> None:
        match record:
            case HostRecord():
                self._hosts.pop(record.id, None)
                if self._by_name.get(record.name) == record.id:
                    del self._by_name[record.name]
                for domain in record.domains:
                    self._members[domain].discard(record.id)
            case TaskRecord():
                self._tasks[record.campaign].pop(record.host, None)
                self._moving[record.campaign].pop(record.host, None)
                self._counts[record.campaign][record.state] -= 1
            case CampaignRecord():
                self._campaigns.pop(record.id, None)
                self._open.pop(record.id, None)
            case Targets():
                self._targets[record.campaign].pop(record.chunk, None)
                self._forget_targets(record.campaign)
            case Charge():
                self._charges.pop(record.host, None)
            case Ledger():
                self._ledgers.pop(record.domain, None)
            case Hold():
                self._holds[record.host].pop(record.id, None)
            case DeadLetterRecord():
                self._letters.pop(record.id, None)
            case _:
                pass

    def _forget_targets(self, campaign: str) -> None:
        for cache in (self._target_lists, self._positions, self._waiting):
            cache.pop(campaign, None)

    def _regroup(self, before: Record | None, host: HostRecord) -> None:
        """Waiting hosts are listed by fabric: a host that is new or moves makes the lists be drawn up anew."""
        if not isinstance(before, HostRecord) or before.fabric != host.fabric:
            self._waiting.clear()

    def _wait(self, task: TaskRecord) -> None:
        """Keep the list of waiting hosts in step with a task's new state."""
        groups = self._waiting.get(task.campaign)
        if groups is None:
            return
        group = groups.setdefault(self._fabric_of(task.host), {})
        if task.state in WAITING:
            group[task.host] = None
        else:
            group.pop(task.host, None)

    def _fabric_of(self, host: str) -> str:
        found = self._hosts.get(host)
        return found.fabric if found else ""

    # -- reading -----------------------------------------------------------------------------------------------------

    def record(self, path: str) -> Record | None:
        """The record at a path."""
        known = self._records.get(path)
        return known[0] if known else None

    def bmc_facts(self, host: str) -> BmcFacts | None:
        """What the host's BMC told of the machine behind it, under whatever binding."""
        return self._typed(f"bmcfacts/{host}", BmcFacts)

    def bmc_model(self, name: str) -> BmcModel | None:
        """What was found about all BMCs of a model."""
        return self._typed(bmc_model_path(name), BmcModel) if name else None

    def unreadable_for(self, host: HostRecord) -> str | None:
        """The first record about a host, or a domain of it, that cannot be read."""
        if not self.unreadable:
            return None
        own = (f"hosts/{host.id}", f"claims/{host.id}", f"charges/{host.id}")
        wanted = (*own, *(f"ledgers/{domain}" for domain in host.domains))
        return next((path for path in wanted if path in self.unreadable), None)

    def revision_of(self, path: str) -> int:
        """Revision at which a path was last written; 0 when nothing is there, as a compare wants it."""
        known = self._records.get(path)
        return known[1] if known else 0

    def paths(self) -> Iterator[str]:
        """Every path known."""
        return iter(self._records)

    def _typed(self, path: str, model: type[R]) -> R | None:
        known = self._records.get(path)
        return known[0] if known and isinstance(known[0], model) else None

    @property
    def hosts(self) -> Mapping[str, HostRecord]:
        """Every host by id, retired ones included."""
        return self._hosts

    def host(self, name_or_id: str) -> HostRecord | None:
        """A host by id or name; the id wins."""
        found = self._hosts.get(name_or_id)
        return found if found is not None else self._hosts.get(self._by_name.get(name_or_id, ""))

    def members(self, domain: str) -> frozenset[str] | set[str]:
        """Ids of the hosts enrolled in a domain; retired ones left out."""
        return self._members.get(domain, frozenset())

    @property
    def domains(self) -> Iterable[str]:
        """Every domain that has members, or a ledger."""
        return sorted({domain for domain, ids in self._members.items() if ids} | set(self._ledgers))

    def claim(self, host: str) -> Claim:
        """The claim on a host; a fresh one where none was ever made."""
        return self._typed(f"claims/{host}", Claim) or Claim(host=host)

    def charge(self, host: str) -> Charge | None:
        """Why a host is out of service, if it is."""
        return self._charges.get(host)

    @property
    def charges(self) -> Mapping[str, Charge]:
        """Every charge by host."""
        return self._charges

    def ledger(self, domain: str) -> Ledger:
        """A domain's ledger; an empty one where nothing was ever written."""
        return self._ledgers.get(domain) or Ledger(domain=domain)

    def holds(self, host: str) -> tuple[Hold, ...]:
        """Holds on a host, expired ones included."""
        return tuple(self._holds[host].values()) if host in self._holds else ()

    @property
    def all_holds(self) -> tuple[Hold, ...]:
        """Every hold."""
        return tuple(hold for by_id in self._holds.values() for hold in by_id.values())

    @property
    def campaigns(self) -> Mapping[str, CampaignRecord]:
        """Every campaign by id."""
        return self._campaigns

    @property
    def open_campaigns(self) -> Mapping[str, CampaignRecord]:
        """Campaigns that have not ended."""
        return self._open

    def targets(self, campaign: str) -> tuple[str, ...]:
        """Host ids of a campaign in order; empty while chunks are missing from memory."""
        known = self._target_lists.get(campaign)
        if known is None:
            chunks = self._targets.get(campaign, {})
            known = tuple(host for number in sorted(chunks) for host in chunks[number].hosts)
            self._target_lists[campaign] = known
        return known

    def positions(self, campaign: str) -> Mapping[str, int]:
        """Host id -> its place in the campaign's order, from 0."""
        known = self._positions.get(campaign)
        if known is None:
            known = {host: place for place, host in enumerate(self.targets(campaign))}
            self._positions[campaign] = known
        return known

    def target_set(self, campaign: str) -> AbstractSet[str]:
        """The campaign's targets, for asking whether a host is one."""
        return self.positions(campaign).keys()

    def waiting_by_fabric(self, campaign: str) -> Mapping[str, Mapping[str, None]]:
        """Targets from which a start may follow, in order, by fabric."""
        known = self._waiting.get(campaign)
        if known is None:
            known = {}
            for host in self.targets(campaign):
                task = self.task(campaign, host)
                if task is None or task.state in WAITING:
                    known.setdefault(self._fabric_of(host), {})[host] = None
            self._waiting[campaign] = known
        return {fabric: dict(group) for fabric, group in known.items() if group}

    def waiting(self, campaign: str) -> tuple[str, ...]:
        """Targets from which a start may follow."""
        return tuple(host for group in self.waiting_by_fabric(campaign).values() for host in group)

    def task(self, campaign: str, host: str) -> TaskRecord | None:
        """One task; None while its host has not moved yet."""
        return self._tasks[campaign].get(host) if campaign in self._tasks else None

    def tasks(self, campaign: str) -> Mapping[str, TaskRecord]:
        """Tasks of a campaign that have a record, by host."""
        return self._tasks.get(campaign, {})

    def moving(self, campaign: str) -> Mapping[str, TaskRecord]:
        """Tasks of a campaign that have a record and have not ended, by host."""
        return self._moving.get(campaign, {})

    def counts(self, campaign: str) -> Mapping[TaskState, int]:
        """How many tasks of a campaign are recorded in each state."""
        return self._counts.get(campaign, Counter())

    @property
    def dead_letters(self) -> Mapping[str, DeadLetterRecord]:
        """Every dead letter by id."""
        return self._letters

    def key(self, caller: str, key: str) -> KeyRecord | None:
        """An idempotency key of a caller."""
        return self._typed(key_path(caller, key), KeyRecord)

    def release(self, host: str) -> BrakeRelease | None:
        """A person's release of the mass-silence brake for a host."""
        return self._typed(f"releases/{host}", BrakeRelease)

    @property
    def epoch(self) -> int:
        """Restore epoch of the store."""
        found = self._typed("epoch", EpochRecord)
        return found.epoch if found else 0
