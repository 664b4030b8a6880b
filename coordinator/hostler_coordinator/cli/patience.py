"""How long one call keeps trying, and what every endpoint said meanwhile; sending is done by `connection`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hostler_coordinator.cli.errors import Problem, is_unavailable

PAUSE_FIRST_S = 0.2
PAUSE_MOST_S = 1.0
SAY_AFTER_S = 2.0
ATTEMPTS_MAX = 1000
STORE_AWAY = "store-unavailable"
STORE_PATIENCE_S = 5.0
"""A store that elects its own leader is away for less; one that is away for longer waits for a person."""
RETRIED = frozenset({"no-leader", "leader-changed", "leader-unreachable", STORE_AWAY, "busy"})
"""What a coordinator says when another, or the same one a moment later, may well do it."""


@dataclass
class Patience:
    """One call's attempts. `repeatable`: carried out twice it does the same as once."""

    timeout_s: float
    endpoints: tuple[str, ...]
    warn: Callable[[str], None]
    repeatable: bool
    store_patience_s: float = STORE_PATIENCE_S
    began: float = field(default_factory=time.monotonic)
    said: dict[str, Problem] = field(default_factory=dict)
    _attempts: int = 0
    _told: bool = False
    _in_doubt: bool = False

    @property
    def left_s(self) -> float:
        """Seconds until the time-out."""
        return self.began + self.timeout_s - time.monotonic()

    @property
    def is_fresh(self) -> bool:
        """True before the first failure."""
        return self._attempts == 0

    def restart(self) -> None:
        """Count the time from now on: a stream that went on for hours has all of it when it breaks."""
        self.began = time.monotonic()

    def failed(self, endpoint: str, problem: Problem) -> bool:
        """Take in what an endpoint said; true while it makes sense to try on."""
        self._attempts += 1
        self.said[endpoint] = problem
        self._in_doubt |= problem.in_doubt
        if not self._may_repeat(problem) or self.left_s <= 0 or self._attempts >= ATTEMPTS_MAX:
            return False
        return not (len(self.said) == len(self.endpoints) and all(one.hopeless for one in self.said.values()))

    def waits(self, problem: Problem) -> None:
        """Before the next attempt: a pause after each round over all endpoints, and a word when it takes long."""
        left_s = self.left_s
        if not self._told and left_s < self.timeout_s - SAY_AFTER_S:
            self._told = True
            most_s = self.store_patience_s - SAY_AFTER_S if problem.reason == STORE_AWAY else left_s
            self.warn(f"{_waited_for(problem)}; trying for up to {max(min(left_s, most_s), 0.0):.0f} s more")
        if self._attempts % len(self.endpoints) == 0:
            rounds = self._attempts // len(self.endpoints)
            pause_s = min(PAUSE_MOST_S, PAUSE_FIRST_S * 2.0 ** min(rounds - 1, 8))
            time.sleep(max(0.0, min(pause_s, left_s)))

    def given_up(self, problem: Problem) -> Problem:
        """The error in the end: a coordinator's own word before one of the transport's, and what each one said."""
        if not is_unavailable(problem):
            return problem
        own = [one for one in self.said.values() if one.from_server and is_unavailable(one)]
        final = replace(problem if problem.from_server or not own else own[-1], in_doubt=self._in_doubt)
        several = {one.brief for one in self.said.values()}
        if len(self.endpoints) > 1 and not final.from_server:
            final.message = f"no coordinator answered {_within(self)}"
        if len(self.endpoints) > 1 and (not final.from_server or len(several) > 1):
            final.said = tuple((name, self.said[name].brief) for name in self.endpoints if name in self.said)
        if not final.from_server:
            final.fix = final.fix or "check the endpoints and certificates of the profile, and that coordinators run"
        if self._in_doubt and not self.repeatable:
            final.message += "; it may have been carried out, and is not sent twice unasked"
            final.fix = "look whether it was done before you ask again"
        return final

    def _may_repeat(self, problem: Problem) -> bool:
        if not is_unavailable(problem) or (problem.from_server and problem.reason not in RETRIED):
            return False
        if problem.reason == STORE_AWAY and time.monotonic() - self.began > self.store_patience_s:
            return False
        return self.repeatable or not problem.in_doubt


def _within(patience: Patience) -> str:
    return f"within {patience.timeout_s:g} s" if patience.left_s <= 0 else "in any way that trying again could help"


def _waited_for(problem: Problem) -> str:
    if problem.reason in {"no-leader", "leader-changed", "leader-unreachable"}:
        return "a leader is being elected"
    return problem.message if problem.from_server else f"no coordinator answers yet ({problem.message})"
