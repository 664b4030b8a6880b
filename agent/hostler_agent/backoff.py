"""How long to stay away after a failure: jittered, drawn after the cap; whether to try at all is not asked here."""

from __future__ import annotations

import math
import random

SHORTEST_AT_CAP = 0.8
"""No pause at the cap is shorter than this part of it, but for the first one there."""


def full_jitter_s(attempt: int, chance: random.Random, *, first_s: float, cap_s: float) -> float:
    """How long to stay away; `attempt` counts from 0, and the span doubles from `first_s` up to `cap_s`.

    Below the cap the draw is over the whole span, so that a short outage is over soon.

    At the cap, of N agents that lost one coordinator at one instant, N divided by the mean pause come back in the first
    second after the outage, as short pauses end soon and are begun anew (FC-A23). Draws from 0 on would make that twice
    what an even spread over the cap would give, and the noise of 3,000 agents three times; draws from the upper fifth
    make it 1.11 times. Such pauses alone would keep those together who reach the cap together. Hence the first one is
    what is left, at a moment that falls anywhere, of a pause of that kind (the renewal process in equilibrium): from
    then on the rate is the same at every moment, however long the outage lasts.
    """
    span_s = first_s * 2.0 ** min(attempt, 32)
    if span_s < cap_s:
        return chance.uniform(0.0, span_s)
    least_s = cap_s * SHORTEST_AT_CAP
    if attempt == 0 or span_s < 2.0 * cap_s:
        # A moment that falls anywhere falls into longer pauses more often, hence the square root.
        return chance.uniform(0.0, math.sqrt(chance.uniform(least_s**2, cap_s**2)))
    return chance.uniform(least_s, cap_s)
