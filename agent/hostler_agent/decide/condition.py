"""What the coordinator is told of this host, worked out of the situation; nothing is measured here."""

from __future__ import annotations

from hostler_agent.decide.restarted import proved
from hostler_agent.decide.situation import ActState, Situation
from hostler_agent.excerpt import REPORT_MAX_CHARS, excerpt
from hostler_agent.session import Hello
from hostler_contract.hosts import Condition, HostFacts, Usability


def condition_of(situation: Situation, now: float) -> Condition:
    """Usable means: checks passed and, after our own reboot, the soak as well."""
    usability, reason = situation.usability, situation.usability_reason
    if usability is Usability.USABLE and (soak_s := _soak_left_s(situation, now)):
        usability, reason = Usability.STARTING, f"soaking for {soak_s:g} s"
    act = situation.act
    return Condition(
        usability=usability,
        usability_reason=excerpt(reason, REPORT_MAX_CHARS),
        blocked_by=excerpt("; ".join(one.who for one in situation.blockers), REPORT_MAX_CHARS),
        drained_for=situation.entry.drained_for,
        shutting_down=situation.shutting_down or (act is not None and act.state is ActState.ACCEPTED),
        can_drain=situation.can_drain,
    )


def _soak_left_s(situation: Situation, now: float) -> float:
    """The soak that is still running, in whole; 0 when none is."""
    entry, since = situation.entry, situation.usable_since
    if entry.order is None or entry.outcome is not None or not proved(situation):
        return 0.0
    return entry.order.soak_s if since is None or now < since + entry.order.soak_s else 0.0


def hello_of(situation: Situation, now: float, host_id: str, facts: HostFacts) -> Hello:
    """First message of a stream."""
    return Hello(
        host_id=host_id,
        facts=facts,
        boot_id=situation.boot_id,
        newest_token=situation.entry.newest_token,
        journal=situation.entry.on_wire(situation.damage),
        condition=condition_of(situation, now),
    )
