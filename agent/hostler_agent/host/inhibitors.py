"""Inhibitor locks: what logind lists, and what a refused reboot command says; whether they bind is for `decide`."""

from __future__ import annotations

import json
import re

from hostler_agent.children import run_child
from hostler_agent.decide import ActState, Blocker, BlockerKind
from hostler_agent.ports import ActResult

_LIST = (
    "busctl", "--json=short", "call", "org.freedesktop.login1", "/org/freedesktop/login1",
    "org.freedesktop.login1.Manager", "ListInhibitors",
)  # fmt: skip
_INHIBITED = re.compile(
    r'Operation inhibited by "(?P<what>[^"]*)" \(PID (?P<pid>\d+) "(?P<who>[^"]*)", user (?P<user>[^)]*)\)'
    r'(?:, reason is "(?P<why>[^"]*)")?'
)
_INTERACTIVE = re.compile(r"Interactive authentication required|Access denied|Permission denied", re.IGNORECASE)


async def blocking_shutdown(deadline_s: float) -> list[Blocker]:
    """Locks that block a shutdown. A logind that does not answer is no lock: the command itself asks once more."""
    ended = await run_child(_LIST, deadline_s=deadline_s)
    return parse_list(ended.output) if ended.status == 0 else []


def parse_list(text: str) -> list[Blocker]:
    """Read the answer of ListInhibitors, a(ssssuu): what, who, why, mode, uid, pid."""
    try:
        rows = json.loads(text)["data"][0]
        return [
            _blocker(row[1], row[5], row[2]) for row in rows if "shutdown" in row[0].split(":") and row[3] == "block"
        ]
    except (ValueError, KeyError, IndexError, TypeError):
        return []


def _blocker(who: str, pid: int, why: str) -> Blocker:
    return Blocker(BlockerKind.INHIBITOR, f"inhibited by {who} (pid {pid}): {why or 'no reason given'}")


def judge_refusal(words: str) -> ActResult:
    """Tell a lock (passes by itself) from a policy that asks a person (never passes) from a plain failure (FC-A27)."""
    if found := _INHIBITED.search(words):
        blocker = _blocker(found["who"] or found["what"], int(found["pid"]), found["why"] or "")
        return ActResult(ActState.INHIBITED, blocker.who)
    if re.search(r"\binhibited\b", words, re.IGNORECASE):
        return ActResult(ActState.INHIBITED, words)
    if _INTERACTIVE.search(words):
        return ActResult(ActState.NOT_PERMITTED, f"the agent may not reboot this host: {words}")
    return ActResult(ActState.FAILED, words)
