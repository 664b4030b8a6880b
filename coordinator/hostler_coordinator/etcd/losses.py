"""Why a lease or a term of leadership ended, as plain values; noticing it is the work of `leases` and `election`."""

from __future__ import annotations

import enum
from dataclasses import dataclass

SHOWN_CHARACTERS = 200


class LossCause(enum.Enum):
    """What ended it; the values are stable and stand in logs."""

    EXPIRED = "lease-expired"  # etcd itself says that the lease is no more
    NOT_RENEWED = "not-renewed"  # members were asked, and none answered in time
    UNREACHABLE = "store-unreachable"  # no member could be asked
    KEY_GONE = "leader-key-gone"
    OVERTAKEN = "overtaken"  # the leader key is another candidate's
    COMPARE_FAILED = "compare-failed"  # a guarded write was refused by its compare
    UNWATCHED = "leader-key-unwatched"  # the store refuses to show the leader key
    STOPPED = "asked-to-stop"


@dataclass(frozen=True, slots=True)
class Loss:
    """One end: its cause, and a sentence for people without full stop."""

    cause: LossCause
    text: str

    def __str__(self) -> str:
        """Write as one sentence with the stable word behind it."""
        return f"{self.text} ({self.cause.value})"


def holder_text(value: bytes) -> str:
    """A candidate's value as it can be shown: whoever campaigns says in it who it is."""
    text = value.decode(errors="backslashreplace")
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
