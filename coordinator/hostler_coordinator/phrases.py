"""The small grammar of sentences that people read: counts, a state with its reason; what to say is not decided here."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 host`, `3 hosts`; `noun` is the word for one, and takes an s for more."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def because(state: str, reason: str) -> str:
    """A state and why, without the same word twice: `paused by alice: lunch`, `aborting, asked for by alice`."""
    done = {"aborting": "aborted"}.get(state, state)
    if reason.startswith(f"{done} by "):
        who = reason.removeprefix(f"{done} ")
        return f"{state} {who}" if done == state else f"{state}, asked for {who}"
    return f"{state}: {reason}" if reason else state
