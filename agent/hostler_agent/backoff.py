"""How long to stay away after a failure: full jitter, drawn after the cap; whether to try at all is not asked here."""

from __future__ import annotations

import random


def full_jitter_s(attempt: int, chance: random.Random, *, first_s: float, cap_s: float) -> float:
    """A moment within (0, min(cap, first * 2^attempt)]; `attempt` counts from 0.

    The draw is made over the capped span, so that a fleet which waited long enough to be at the cap comes back spread
    over the whole of it and not in one second (FC-A23).
    """
    span_s = min(cap_s, first_s * 2.0 ** min(attempt, 32))
    return chance.uniform(0.0, span_s)
