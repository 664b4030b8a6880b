"""How long to stay away after a failure: jittered, drawn after the cap; whether to try at all is not asked here."""

from __future__ import annotations

import random


def full_jitter_s(attempt: int, chance: random.Random, *, first_s: float, cap_s: float) -> float:
    """How long to stay away; `attempt` counts from 0, and the span doubles from `first_s` up to `cap_s`.

    Below the cap the draw is over the whole span, so that a short outage is over soon. At the cap it is over its upper
    half: with draws from 0 on, twice as many as on average would be due in the first second after a long outage, as
    short pauses end soon and are begun anew; so they come back evenly over the whole cap (FC-A23).
    """
    span_s = first_s * 2.0 ** min(attempt, 32)
    if span_s < cap_s:
        return chance.uniform(0.0, span_s)
    return chance.uniform(cap_s / 2.0, cap_s)
