"""Who asks; how a caller proved to be that one is the edge's business."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """The person or program behind a request, by its certificate: keys are scoped to it, and audit names it."""

    name: str
    role: str = "operator"
