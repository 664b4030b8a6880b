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
from hostler_coordinator.service.trouble import LEADER_CHANGED, store_away

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
UNCHANGED = "nothing was changed"
IN_DOUBT = "it may have been done all the same"
AGAIN = "ask again"
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
            raise _store_away(error) from error
        if not isinstance(outcome, Lost):
            desk.wake()
            return result
        if outcome.deposed:
            text = f"this coordinator no longer leads; {UNCHANGED}"
            raise Unavailable(text, None, RETRY_DEPOSED_S, code=LEADER_CHANGED, fix=AGAIN)
    text = f"other writers were first, {TRIES} times in a row; {UNCHANGED}"
    raise Unavailable(text, None, RETRY_BUSY_S, code="busy", fix=AGAIN)


def _store_away(error: StoreUnavailableError) -> Unavailable:
    trouble = store_away(error.since, error.reason)
    text = f"{trouble.text}; {IN_DOUBT if error.in_doubt else UNCHANGED}"
    return Unavailable(
        text, error.since, RETRY_STORE_S, code=trouble.code, fix=trouble.next_step, in_doubt=error.in_doubt
    )


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
        try:
            begin += await write(desk, partial(_fill, items[begin:], make, cost))
        except Unavailable as stopped:
            if not begin:
                raise
            reason = stopped.reason.removesuffix(UNCHANGED).removesuffix(IN_DOUBT)
            text = f"{reason}{begin} of {len(items)} were changed before"
            fix = f"{stopped.fix}; then ask again: it does the rest"
            raise Unavailable(
                text, stopped.since, stopped.retry_after_s, code=stopped.code, fix=fix, in_doubt=True
            ) from stopped


def _fill(items: Sequence[Item], make: Callable[[Draft, Item], None], cost: Callable[[Item], int], draft: Draft) -> int:
    count = 0
    for item in items:
        if count and draft.change().operations + cost(item) > BATCH_OPERATIONS:
            break
        make(draft, item)
        count += 1
    return count
