"""Reads the audit: who did what, when and why; entries are written by those who act, and by nobody changed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostler_coordinator import views
from hostler_coordinator.enact import audit_id
from hostler_coordinator.pages import ANSWER_BYTES, make_token, page_size, read_token, scope_of
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import BadField, Unavailable
from hostler_coordinator.service.finding import read_at
from hostler_coordinator.service.trouble import store_away
from hostler_coordinator.service.writing import RETRY_STORE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
    from hostler_contract.campaigns import AuditRecord
    from hostler_coordinator.service.desk import Desk

READ_ENTRIES = 1_000
"""Entries read from the store at once."""
SCANNED_ENTRIES = 20_000
"""Entries looked at for one page; a page may be short, or empty, and still have a next one."""
BATCH_ENTRIES = 500
LOOK_BACK_FIRST_S = 60.0
LOOK_BACK_GROWS = 8.0
"""The newest entries are looked for in the last minute, then in the eight minutes before, and so on."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; empty means all. Times are epoch seconds: from the first on, before the second.

    host: name or id. actor: a name, or the first word of a rule ("rule"). action: one, or a whole room ("campaign").
    """

    host: str = ""
    campaign_id: str = ""
    actor: str = ""
    action: str = ""
    from_at: float | None = None
    to_at: float | None = None


class AuditService:
    """The audit, for operators."""

    def __init__(self, desk: Desk, *, read: int = READ_ENTRIES, scanned: int = SCANNED_ENTRIES) -> None:
        """Take the bounds of one page: entries read from the store at once, and looked at in all."""
        self._desk = desk
        self._read_most = read
        self._scanned_most = scanned

    def as_of(self) -> float:
        """When what is listed now was true, epoch seconds."""
        return read_at(self._desk)

    async def list(self, size: int, token: str, wanted: AuditFilter) -> tuple[tuple[V.AuditEntry, ...], str]:
        """One page, oldest first. Raises BadField, Unavailable."""
        most = page_size(size)
        scope = scope_of("audit", wanted)
        after = read_token(token, scope) or _start(wanted)
        found: list[V.AuditEntry] = []
        scanned = byte_count = 0
        while scanned < self._scanned_most:
            batch = await self._read(after)
            for entry in batch:
                if _past(entry, wanted):
                    return tuple(found), ""
                if self._matches(entry, wanted):
                    view = self._view(entry)
                    byte_count += len(view.model_dump_json())
                    if len(found) == most or (found and byte_count > ANSWER_BYTES):
                        return tuple(found), make_token(scope, after)
                    found.append(view)
                after = entry.id
            scanned += len(batch)
            if len(batch) < self._read_most:
                return tuple(found), ""
        return tuple(found), make_token(scope, after)

    async def newest(self, size: int, token: str, wanted: AuditFilter) -> tuple[tuple[V.AuditEntry, ...], str]:
        """One page, newest first. Raises BadField, Unavailable.

        etcd reads a range in its own order only, and sorts a whole one in memory for any other. So spans of time are
        read, each before the last and longer, until there are enough; none is read twice.
        """
        most = page_size(size)
        scope = scope_of("audit-newest", wanted)
        start, before = _start(wanted), read_token(token, scope)
        end = before or (audit_id(wanted.to_at, "") if wanted.to_at is not None else "")
        top = _moment(before) if before else self._desk.now() if wanted.to_at is None else wanted.to_at
        found: deque[AuditRecord] = deque()
        span_s, scanned = LOOK_BACK_FIRST_S, 0
        while True:
            low = max(start, audit_id(max(0.0, top - span_s), ""))
            part, count = await self._last(low, end, wanted, most + 1 - len(found))
            found.extendleft(reversed(part))
            scanned += count
            all_seen = low == start or top <= span_s
            if len(found) > most or all_seen or scanned >= self._scanned_most:
                break
            end, top = low, top - span_s
            # A span that may hold more than is looked at for one page grows no longer.
            span_s *= LOOK_BACK_GROWS if count * LOOK_BACK_GROWS <= self._scanned_most else 1.0
        page: list[V.AuditEntry] = []
        byte_count = 0
        for entry in reversed(found):
            view = self._view(entry)
            byte_count += len(view.model_dump_json())
            if len(page) == most or (page and byte_count > ANSWER_BYTES):
                return tuple(page), make_token(scope, page[-1].id)
            page.append(view)
        return tuple(page), "" if all_seen else make_token(scope, low)

    async def _last(
        self, after: str, before: str, wanted: AuditFilter, most: int
    ) -> tuple[tuple[AuditRecord, ...], int]:
        """The last entries that match behind one id and before another, oldest first, and how many were looked at."""
        found: deque[AuditRecord] = deque(maxlen=most)
        scanned = 0
        while True:
            batch = await self._read(after, before)
            scanned += len(batch)
            found.extend(entry for entry in batch if self._matches(entry, wanted))
            if len(batch) < self._read_most:
                return tuple(found), scanned
            after = batch[-1].id

    async def export(self, wanted: AuditFilter) -> AsyncIterator[tuple[V.AuditEntry, ...]]:
        """Everything that matches, oldest first, in batches below 1 MiB. Raises BadField, Unavailable."""
        after = _start(wanted)
        batch: list[V.AuditEntry] = []
        byte_count = 0
        while True:
            entries = await self._read(after)
            for entry in entries:
                after = entry.id
                if _past(entry, wanted) or not self._matches(entry, wanted):
                    continue
                view = self._view(entry)
                byte_count += len(view.model_dump_json())
                if batch and (len(batch) >= BATCH_ENTRIES or byte_count > ANSWER_BYTES):
                    yield tuple(batch)
                    batch, byte_count = [], len(view.model_dump_json())
                batch.append(view)
            if len(entries) < self._read_most or _past(entries[-1], wanted):
                break
        if batch:
            yield tuple(batch)

    async def _read(self, after: str, before: str = "") -> Sequence[AuditRecord]:
        try:
            return await self._desk.store.audit(after, self._read_most, before)
        except StoreUnavailableError as error:
            away = store_away(error.since, error.reason)
            text = f"{away.text}: the audit lies there alone"
            raise Unavailable(text, error.since, RETRY_STORE_S, code=away.code, fix=away.next_step) from error

    def _view(self, entry: AuditRecord) -> V.AuditEntry:
        """With the host's name as it is now, where it is known."""
        view = views.audit_entry(entry)
        host = self._desk.store.state.hosts.get(entry.host)
        return view.model_copy(update={"host": host.name}) if host else view

    def _matches(self, entry: AuditRecord, wanted: AuditFilter) -> bool:
        if wanted.host:
            host = self._desk.store.state.host(wanted.host)
            if entry.host not in {wanted.host, host.id if host else wanted.host, host.name if host else wanted.host}:
                return False
        if wanted.campaign_id and entry.campaign != wanted.campaign_id:
            return False
        if wanted.actor and entry.actor != wanted.actor and not entry.actor.startswith(f"{wanted.actor} "):
            return False
        if wanted.action and entry.action != wanted.action and not entry.action.startswith(f"{wanted.action}."):
            return False
        return wanted.from_at is None or entry.at >= wanted.from_at


def _start(wanted: AuditFilter) -> str:
    """The id just before the first entry that may match; raises BadField for times that select nothing."""
    if wanted.from_at is not None and wanted.to_at is not None and wanted.from_at >= wanted.to_at:
        raise BadField("filter.to", wanted.to_at, "is not after filter.from", "give the later time as filter.to")
    return audit_id(wanted.from_at, "") if wanted.from_at is not None else ""


def _moment(entry_id: str) -> float:
    """The time in an entry's id."""
    return int(entry_id.partition("-")[0]) / 1e6


def _past(entry: AuditRecord, wanted: AuditFilter) -> bool:
    return wanted.to_at is not None and entry.at >= wanted.to_at
