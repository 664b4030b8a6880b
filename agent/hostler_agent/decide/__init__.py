"""What an agent does next, and why: pure, from plain data to plain data; reading, writing and waiting are elsewhere."""

from __future__ import annotations

from hostler_agent.decide.blocking import Blocked, blocked_by
from hostler_agent.decide.condition import condition_of, hello_of
from hostler_agent.decide.entry import Entry
from hostler_agent.decide.next_step import next_step
from hostler_agent.decide.receive import Received, receive
from hostler_agent.decide.situation import (
    Act,
    ActState,
    Blocker,
    BlockerKind,
    DrainProgress,
    DrainState,
    GoTicket,
    Pauses,
    Situation,
)

__all__ = [
    "Act",
    "ActState",
    "Blocked",
    "Blocker",
    "BlockerKind",
    "DrainProgress",
    "DrainState",
    "Entry",
    "GoTicket",
    "Pauses",
    "Received",
    "Situation",
    "blocked_by",
    "condition_of",
    "hello_of",
    "next_step",
    "receive",
]
