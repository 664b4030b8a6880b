"""Which failed operation may be repeated, how often and after which wait: a pure table; sending belongs to the pool."""

from __future__ import annotations

from dataclasses import dataclass

from hostler_coordinator.bmc.answers import BmcAnswer, FaultClass, Verb


@dataclass(frozen=True)
class RetrySettings:
    """Waits in seconds. The defaults are measured or taken from the BMCs' own time-outs (`docs/decisions/0005`)."""

    tries: int = 4
    backoff_s: float = 2.0
    backoff_max_s: float = 60.0
    spread: float = 0.25
    busy_s: float = 5.0
    session_timeout_s: float = 65.0
    not_ready_gap_s: float = 15.0
    not_ready_limit_s: float = 180.0


# Idempotent: a second copy does no second thing. The light and the serial number are cheap to ask for again.
_REPEATABLE = frozenset({Verb.STATUS, Verb.ON, Verb.OFF, Verb.SERIAL, Verb.LOCATE_ON, Verb.LOCATE_OFF})
_TRANSIENT = frozenset({FaultClass.UNREACHABLE, FaultClass.WEDGED, FaultClass.CONFLICT})


def wait_before_retry(
    verb: Verb, answer: BmcAnswer, tries: int, spent_s: float, chance: float, settings: RetrySettings
) -> float | None:
    """Seconds to wait before asking again, or None when this answer is final.

    `tries` have been made in `spent_s` seconds; `chance` in [0, 1) spreads the wait. Soft, reset, cycle, NMI and the
    BMC's own reset are never repeated; wrong credentials neither (lock-out), nor 0xd5 (the state must be read anew),
    nor what repeating cannot change (not supported, another machine, a certificate).
    """
    if answer.ok or answer.withheld or answer.fault is None or verb not in _REPEATABLE:
        return None
    backoff_s = _spread(min(settings.backoff_max_s, settings.backoff_s * 2 ** (tries - 1)), chance, settings.spread)
    if answer.fault is FaultClass.NOT_READY:
        wait_s = max(min(backoff_s, settings.not_ready_gap_s), answer.retry_after_s or 0.0)
        return wait_s if spent_s + wait_s <= settings.not_ready_limit_s else None
    if tries >= settings.tries:
        return None
    if answer.fault is FaultClass.NO_SLOTS:
        return max(settings.session_timeout_s, answer.retry_after_s or 0.0) if tries == 1 else None
    if answer.fault is FaultClass.BUSY:
        return max(_spread(settings.busy_s, chance, settings.spread), answer.retry_after_s or 0.0)
    return backoff_s if answer.fault in _TRANSIENT else None


def _spread(wait_s: float, chance: float, spread: float) -> float:
    return wait_s * (1.0 - spread + 2.0 * spread * chance)
