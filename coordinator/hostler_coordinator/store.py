"""The store on etcd: keeps the state in step by a watch, commits guarded changes; it knows no meaning."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import structlog

from hostler_contract.campaigns import AuditRecord
from hostler_contract.codec import UnreadableRecordError, from_record, to_record
from hostler_contract.hosts import Claim
from hostler_coordinator import etcd
from hostler_coordinator.etcd.moments import monotonic
from hostler_coordinator.layout import LEADER, MODELS, model_of, path_of
from hostler_coordinator.ports import Committed, Lost, StoreUnavailableError
from hostler_coordinator.refusals import Refused
from hostler_coordinator.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostler_contract.shapes import Record
    from hostler_contract.work import Token
    from hostler_coordinator.draft import Change
    from hostler_coordinator.ports import Clock

RELOAD_PAUSE_S = 0.5
COMMIT_DEADLINE_S = 8.0
AUDIT_DEADLINE_S = 4.0
"""Whoever reads the audit waits for it: an answer that the store is away comes within their time-out."""
PATHS_SHOWN = 3
_TROUBLE = (etcd.StoreUnavailable, etcd.OutcomeUnknown, etcd.NoSpace, etcd.AuthFailed, etcd.RequestRefused)

log = structlog.get_logger(__name__)


class EtcdStore:
    """One region's records. `follow` must run beside everything else; `lead_with` sets the guard of every commit."""

    def __init__(self, client: etcd.EtcdClient, prefix: str, clock: Clock, changed: Callable[[], None]) -> None:
        """prefix: such as `/hostler/eu-1/`. changed: called after news from the store was taken in."""
        self._client = client
        self._prefix = prefix.encode()
        self._clock = clock
        self._changed = changed
        self._state = State()
        self._leadership: etcd.Leadership | None = None
        self._trouble: tuple[float, str] | None = None
        self._silent = (0.0, 0.0)
        """When the client fell silent, monotonic and epoch."""
        self._loaded = asyncio.Event()
        self._moved = asyncio.Event()

    @property
    def state(self) -> State:
        """Everything known, at one revision."""
        return self._state

    @property
    def leader_key(self) -> bytes:
        """Where the election takes place."""
        return self._prefix + LEADER.encode()

    @property
    def unavailable(self) -> tuple[float, str] | None:
        """Since when (epoch seconds) and why the store refuses work; None while it works."""
        silent = self._client.unavailable_since
        if silent is not None:
            return self._epoch(silent), self._no_member()
        return self._trouble

    @property
    def as_of(self) -> float | None:
        """Up to when (epoch seconds) `state` is known to be true; None before it was ever read."""
        if not self._state.revision:
            return None
        trouble = self.unavailable
        return trouble[0] if trouble is not None else self._clock.now()

    def _no_member(self) -> str:
        """Name whom we ask: a wrong address looks like a dead store."""
        return f"no etcd member answers at {', '.join(self._client.endpoints)}"

    def _epoch(self, moment: float) -> float:
        """The same each time it is asked for: people compare what several answers say."""
        if self._silent[0] != moment:
            self._silent = moment, self._clock.now() - max(0.0, monotonic() - moment)
        return self._silent[1]

    def _news(self) -> None:
        self._moved.set()
        self._changed()

    # -- following ---------------------------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Load everything, then keep it in step for ever; whatever breaks is answered by loading anew."""
        while True:
            try:
                revision = await self._load()
                await self._watch(revision + 1)
            except (*_TROUBLE, etcd.Compacted, etcd.WatchCancelled, etcd.ClusterChanged) as error:
                self._note(error)
                log.warning("store is read anew", reason=str(error))
            self._loaded.clear()
            await asyncio.sleep(RELOAD_PAUSE_S)

    async def _load(self) -> int:
        """All kinds of records that are kept, at one revision and page by page; never the audit, which has no bound."""
        state, revision = State(), 0
        for kind in MODELS:
            async with aclosing(self._client.pages(self._key(kind), revision=revision)) as pages:
                async for page in pages:
                    revision = page.revision
                    for kv in page.kvs:
                        self._take(state, kv.key, kv.value, kv.mod_revision)
        state.revision = revision
        if revision < self._state.revision:
            log.error("the store went back", known=self._state.revision, found=revision)
        self._state = state
        self._trouble = None
        self._loaded.set()
        self._news()
        return revision

    async def _watch(self, start: int) -> None:
        async with aclosing(self._client.watch(self._prefix, start)) as batches:
            async for batch in batches:
                for event in batch.events:
                    if event.deleted:
                        self._state.delete(self._path(event.kv.key), event.kv.mod_revision)
                    else:
                        self._take(self._state, event.kv.key, event.kv.value, event.kv.mod_revision)
                self._state.settle(batch.revision)
                self._news()

    def _path(self, key: bytes) -> str:
        return key[len(self._prefix) :].decode(errors="backslashreplace")

    def _take(self, state: State, key: bytes, value: bytes, revision: int) -> None:
        path = self._path(key)
        model = model_of(path)
        if model is None or state.revision_of(path) >= revision:
            return
        try:
            state.put(path, from_record(model, value, path), revision)
        except UnreadableRecordError as error:
            # One unreadable record must not hide the others (law 7); fsck names it too.
            state.delete(path, revision)
            state.unreadable[path] = str(error).splitlines()[0]
            log.warning("record left out", path=path, reason=str(error))

    async def loaded(self) -> None:
        """Wait until the state holds everything."""
        await self._loaded.wait()

    # -- leading -----------------------------------------------------------------------------------------------------

    async def lead_with(self, leadership: etcd.Leadership | None) -> None:
        """Guard commits with this term; a new leader first reads everything that was true when its term began."""
        former, self._leadership = self._leadership, None
        if former is not None:
            over = former.why_over
            log.warning(
                "commits end with the term", term=former.create_revision, cause=over.cause.value, reason=over.text
            )
        if leadership is not None:
            await self._catch_up(leadership.create_revision)
        self._leadership = leadership

    async def _catch_up(self, revision: int) -> None:
        """Wait until the state is as new as `revision`; the watch brings it, as the leader key is part of it."""
        while not self._loaded.is_set() or self._state.revision < revision:
            self._moved.clear()
            await self._moved.wait()

    async def commit(self, change: Change) -> Committed | Lost:
        """One guarded transaction; the state has it on return.

        Raises:
            StoreUnavailableError: the store cannot be reached, or refuses every write.
            Refused: the store works, and this change is more than it takes (`change-too-large`).
        """
        leadership = self._leadership
        if leadership is None or not await leadership.settled():
            return Lost(deposed=True)
        compares = [leadership.guard()]
        compares += [etcd.mod_revision_is(self._key(path), revision) for path, revision in change.expects.items()]
        compares += [etcd.prefix_empty(self._key(path)) for path in change.empty]
        if change.operations > etcd.OPS_MAX:
            raise _too_large(change, f"it has {change.operations} operations, a transaction at most {etcd.OPS_MAX}")
        values = {path: to_record(record) for path, record in change.puts.items()}
        ops: list[etcd.Op] = [etcd.Put(self._key(path), value) for path, value in values.items()]
        ops += [etcd.Delete(self._key(path)) for path in change.deletes]
        try:
            result = await self._client.txn(
                compares, ops, [etcd.Get(self.leader_key)], idempotent=True, deadline_s=COMMIT_DEADLINE_S
            )
            if result.succeeded:
                return self._committed(change, result.revision)
            if result.repeated:
                return await self._look_up_or_give_up(change, values)
            return self._lost(result, leadership)
        except etcd.RequestTooLarge as error:
            raise _too_large(change, str(error)) from error
        except etcd.OutcomeUnknown as error:
            log.warning("a commit's outcome is unknown", reason=str(error))
            return await self._look_up_or_give_up(change, values)
        except _TROUBLE as error:
            raise self._note(error) from error

    def _key(self, path: str) -> bytes:
        return self._prefix + path.encode()

    def _committed(self, change: Change, revision: int) -> Committed:
        for path, record in change.puts.items():
            if model_of(path) is not None:
                self._state.put(path, record, revision)
        for path in change.deletes:
            self._state.delete(path, revision)
        self._trouble = None
        return Committed(revision)

    @staticmethod
    def _lost(result: etcd.TxnResult, leadership: etcd.Leadership) -> Lost:
        """Which compare failed: the leader's ends the term at once, any other says that we looked at old truth."""
        found = result.responses[0] if result.responses else None
        holder = found.kvs[0] if isinstance(found, etcd.Listing) and found.kvs else None
        if holder is not None and holder.create_revision == leadership.create_revision:
            return Lost(deposed=False)
        leadership.compare_failed(holder)
        return Lost(deposed=True)

    async def _look_up_or_give_up(self, change: Change, values: dict[str, bytes]) -> Committed | Lost:
        try:
            return await self._look_up(change, values)
        except _TROUBLE as error:
            raise self._note(error, in_doubt=True) from error

    async def _look_up(self, change: Change, values: dict[str, bytes]) -> Committed | Lost:
        """Did this very change happen? It did when one of its values stands at a revision newer than it relied on.

        An attempt that is still on its way cannot do harm later: it carries the same compares.
        """
        for path, value in values.items():
            got = await self._client.get(self._key(path))
            if got.kv is not None and got.kv.value == value and got.kv.mod_revision > change.expects.get(path, 0):
                return self._committed(change, got.kv.mod_revision)
            if path in change.expects:
                break
        return Lost(deposed=False)

    def _note(self, error: Exception, *, in_doubt: bool = False) -> StoreUnavailableError:
        silent = isinstance(error, (etcd.StoreUnavailable, etcd.OutcomeUnknown))
        text = self._no_member() if silent else str(error)
        since = self._trouble[0] if self._trouble else self._clock.now()
        self._trouble = (since, text)
        known = self.unavailable or self._trouble
        return StoreUnavailableError(text, min(since, known[0]), in_doubt=in_doubt)

    async def still_newest(self, host: str, token: Token) -> bool:
        """Read from the store itself whether we lead and this token is the newest of its host (law 3)."""
        leadership = self._leadership
        if leadership is None or not await leadership.settled():
            return False
        try:
            key = self._key(f"claims/{host}")
            result = await self._client.txn(
                [leadership.guard()], [etcd.Get(key)], [etcd.Get(self.leader_key)], idempotent=True, deadline_s=4.0
            )
        except _TROUBLE as error:
            raise self._note(error) from error
        if not result.succeeded:
            self._lost(result, leadership)
            return False
        found = result.responses[0]
        if not isinstance(found, etcd.Listing) or not found.kvs:
            return False
        return from_record(Claim, found.kvs[0].value).token == token

    async def audit(self, after: str, limit: int, before: str = "") -> Sequence[AuditRecord]:
        """Audit entries after an id and before another, oldest first."""
        start = self._key(f"audit/{after}") + b"\0"
        end = self._key(f"audit/{before}") if before else etcd.prefix_end(self._key("audit/"))
        if start >= end:
            return ()  # etcd refuses a range that ends before it begins
        try:
            result = await self._client.txn(
                [], [etcd.Get(start, end, limit)], idempotent=True, deadline_s=AUDIT_DEADLINE_S
            )
        except _TROUBLE as error:
            raise self._note(error) from error
        found = result.responses[0]
        if not isinstance(found, etcd.Listing):
            return ()
        return [from_record(AuditRecord, kv.value, kv.key.decode()) for kv in found.kvs]


def _too_large(change: Change, why: str) -> Refused:
    """One change that the store cannot take; everything else goes on."""
    paths = sorted({*change.puts, *change.deletes})
    more = f" and {len(paths) - PATHS_SHOWN} more" if len(paths) > PATHS_SHOWN else ""
    subject = f"the change of {', '.join(paths[:PATHS_SHOWN])}{more}"
    return Refused("change-too-large", subject, why, fix="nothing of it was written")


def unguarded_put(prefix: str, record: Record) -> etcd.Put:
    """The operation that writes one record without a leader, for tools that run while no coordinator does."""
    return etcd.Put(prefix.encode() + path_of(record).encode(), to_record(record))
