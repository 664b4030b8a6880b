"""What is remembered of one BMC: limiter, breaker, refused log-ins; pure, `now` is an argument. All lanes share it."""

from __future__ import annotations

from dataclasses import dataclass

from hostler_coordinator.bmc.answers import BmcAnswer, FaultClass, Verb

_SILENT = frozenset({FaultClass.UNREACHABLE, FaultClass.WEDGED})
_REFUSED = frozenset({FaultClass.AUTH, FaultClass.CIPHER})


@dataclass(frozen=True)
class HealthSettings:
    """Spans in seconds."""

    poll_gap_s: float = 1.0
    order_gap_s: float = 5.0
    failures_to_open: int = 3
    probe_first_s: float = 60.0
    probe_max_s: float = 600.0
    refusals_max: int = 2
    refusals_window_s: float = 3600.0


@dataclass
class BmcHealth:
    """Memory of one BMC; times are monotonic seconds."""

    settings: HealthSettings
    last_contact: float | None = None
    last_order: float | None = None
    not_before: float = 0.0
    failures: int = 0
    silent_since: float | None = None
    probe_gap_s: float = 0.0
    next_probe: float = 0.0
    refusals: tuple[float, ...] = ()
    refusal: BmcAnswer | None = None

    @property
    def silent(self) -> bool:
        """True while the breaker is open: the BMC belongs to the slow lane."""
        return self.failures >= self.settings.failures_to_open

    def earliest(self, verb: Verb) -> float:
        """When the next operation may start, by the limiter and by a wait that the BMC asked for."""
        if verb.destructive:
            gap_end = None if self.last_order is None else self.last_order + self.settings.order_gap_s
        else:
            gap_end = None if self.last_contact is None else self.last_contact + self.settings.poll_gap_s
        return max(self.not_before, gap_end or 0.0)

    def probe_due(self, now: float) -> bool:
        """True when an operation may be tried although the BMC has been silent."""
        return not self.silent or now >= self.next_probe

    def locked_out(self, now: float) -> BmcAnswer | None:
        """The refusal that stands in the way: log-ins that fail are tried at most twice an hour (lock-out)."""
        self.refusals = tuple(at for at in self.refusals if now - at < self.settings.refusals_window_s)
        return self.refusal if len(self.refusals) >= self.settings.refusals_max else None

    def next_login_at(self) -> float:
        """When a locked-out BMC may be tried again."""
        return self.refusals[0] + self.settings.refusals_window_s if self.refusals else 0.0

    def record(self, answer: BmcAnswer, now: float) -> None:
        """Learn from one attempt that reached, or failed to reach, the BMC."""
        if answer.fault is FaultClass.CREDENTIALS:
            return  # ours to mend; the BMC was not contacted
        self.last_contact = now
        if answer.sent:
            self.last_order = now
        if answer.fault in _REFUSED:
            self.refusals = (*self.refusals, now)[-self.settings.refusals_max :]
            self.refusal = answer
        elif answer.fault not in _SILENT:
            self.refusals, self.refusal = (), None
        if answer.fault is not None and answer.retry_after_s:
            self.not_before = now + answer.retry_after_s
        if answer.fault in _SILENT:
            self._count_silence(now)
        else:
            self.failures, self.silent_since, self.probe_gap_s = 0, None, 0.0

    def _count_silence(self, now: float) -> None:
        self.failures += 1
        if self.silent_since is None:
            self.silent_since = now
        if not self.silent or now < self.next_probe:  # a walk may insist between probes; that is not the next probe
            return
        doubled_s = self.probe_gap_s * 2 if self.probe_gap_s else self.settings.probe_first_s
        self.probe_gap_s = min(self.settings.probe_max_s, doubled_s)
        self.next_probe = now + self.probe_gap_s
