"""How services write: one guarded transaction with its audit entry, tried anew when it loses; the content is theirs."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from hostler_contract.campaigns import AuditRecord
from hostler_coordinator.draft import Draft
from hostler_coordinator.enact import audit_id
from hostler_coordinator.ports import Lost, StoreUnavailableError
from hostler_coordinator.refusals import AlreadyDifferent, BadField, BadFields, NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from hostler_coordinator.service.callers import Caller
    from hostler_coordinator.service.desk import Desk

T = TypeVar("T")

TRIES = 5
LONGEST_REASON = 1_000
LONGEST_DETAIL = 500
RETRY_DEPOSED_S = 2.0
RETRY_BUSY_S = 1.0
RETRY_STORE_S = 5.0
_REFUSALS = (BadField, BadFields, NotFound, Refused, AlreadyDifferent)


async def write(desk: Desk, make: Callable[[Draft], T]) -> T:
    """Let `make` fill a draft of the newest state and commit it; anew, up to five times, when another writer was first.

    A draft that writes nothing is not committed. Raises what `make` raises, and Unavailable when this coordinator no
    longer leads, the store cannot be reached, or five tries lost.
    """
    for _ in range(TRIES):
        draft = Draft(desk.store.state)
        result = make(draft)
        if draft.empty:
            return result
        try:
            outcome = await desk.store.commit(draft.change())
        except StoreUnavailableError as error:
            raise Unavailable(error.reason, error.since, RETRY_STORE_S) from error
        if not isinstance(outcome, Lost):
            desk.wake()
            return result
        if outcome.deposed:
            raise Unavailable("this coordinator no longer leads", desk.now(), RETRY_DEPOSED_S)
    raise Unavailable("other writers were first every time; nothing was changed", desk.now(), RETRY_BUSY_S)


def audit(
    draft: Draft,
    desk: Desk,
    caller: Caller,
    action: str,
    *,
    host: str = "",
    campaign: str = "",
    reason: str = "",
    result: str = "done",
    detail: str = "",
) -> None:
    """Add an audit entry to the same transaction; `host` and `campaign` are ids."""
    now = desk.now()
    subject = f"{action}-{host or campaign or 'request'}-{desk.new_id()}"
    entry = AuditRecord(
        id=audit_id(now, subject.replace("/", ".")),
        at=now,
        actor=caller.name,
        action=action,
        host=host,
        campaign=campaign,
        reason=reason[:LONGEST_REASON],
        result=result,
        detail=detail[:LONGEST_DETAIL],
    )
    draft.put(entry, blind=True)


@asynccontextmanager
async def attempt(
    desk: Desk, caller: Caller, action: str, *, host: str = "", campaign: str = "", reason: str = "", dry_run: bool
) -> AsyncIterator[None]:
    """Around a changing request: a refusal is audited too, best effort, and then raised as it is."""
    try:
        yield
    except _REFUSALS as refusal:
        if not dry_run:
            detail = str(refusal)
            with suppress(Unavailable):
                await write(
                    desk,
                    lambda draft: audit(
                        draft,
                        desk,
                        caller,
                        action,
                        host=_key_part(host),
                        campaign=_key_part(campaign),
                        reason=reason,
                        result="refused",
                        detail=detail,
                    ),
                )
        raise


def _key_part(given: str) -> str:
    """What a caller typed where a name was wanted, short enough to be part of a key and without odd characters."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in given[:128])


def check_reason(reason: str, *, needed: bool = False) -> str:
    """The reason without surrounding blanks; raises BadField when it is too long, or missing where one is needed."""
    text = reason.strip()
    if len(text) > LONGEST_REASON:
        raise BadField("reason", text, f"is longer than {LONGEST_REASON} characters", "say it shorter")
    if needed and not text:
        raise BadField("reason", reason, "is missing", "say why, in a few words: audit keeps it")
    return text


BATCH_OPERATIONS = 90
"""Operations in one transaction of a change to many hosts; the store takes 100."""
Item = TypeVar("Item")


async def write_each(
    desk: Desk, items: Sequence[Item], make: Callable[[Draft, Item], None], cost: Callable[[Item], int]
) -> None:
    """Write a change to many things in as few transactions as fit; `cost` is the most operations that one item adds.

    Each item is written whole. When it fails half-way, what was written stays, and doing it again does the rest.
    """
    begin = 0
    while begin < len(items):
        begin += await write(desk, partial(_fill, items[begin:], make, cost))


def _fill(items: Sequence[Item], make: Callable[[Draft, Item], None], cost: Callable[[Item], int], draft: Draft) -> int:
    count = 0
    for item in items:
        if count and draft.change().operations + cost(item) > BATCH_OPERATIONS:
            break
        make(draft, item)
        count += 1
    return count
