"""Which of the things found on the host forbid work, and how that is said; finding them belongs to `host`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hostler_agent.decide.situation import Blocker, BlockerKind


@dataclass(frozen=True, slots=True)
class Blocked:
    """A stable code and the words for people."""

    code: str
    text: str


def blocked_by(blockers: Iterable[Blocker], *, drained: bool, force: bool) -> Blocked | None:
    """The reason to leave the host alone, or None. A drain clears people; force clears everything."""
    if force:
        return None
    binding = [one for one in blockers if not (drained and one.kind is BlockerKind.PERSON)]
    if not binding:
        return None
    inhibited = all(one.kind is BlockerKind.INHIBITOR for one in binding)
    return Blocked("inhibited" if inhibited else "blocked", "; ".join(one.who for one in binding))
