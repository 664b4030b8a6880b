"""The bounded ladder of one task: how long to pause, whether a rung is left, and what a person should do at its end.

Whether a rung may be climbed *now* (witnesses, brake, holds, budget) is the planner's to say; rungs are counted here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostler_contract.campaigns import ResolvedLimits
    from hostler_contract.work import TaskRecord
    from hostler_coordinator.policy import Policy

ADOPTIONS_MAX = 8
"""Power intents of a task in all, those of dead leaders included: a host that was switched off must end on."""

_SUGGESTIONS: dict[str, str] = {
    "bmc-auth": "correct the BMC's credentials, then: hostler deadletter retry {id}",
    "bmc-cipher": "correct the BMC's cipher suites or credentials, then: hostler deadletter retry {id}",
    "bmc-unreachable": "look at the BMC and its network, then: hostler deadletter retry {id}",
    "bmc-lies": "the BMC accepts commands and does nothing: power-cycle on site, then: hostler deadletter retry {id}",
    "serial-mismatch": "the BMC belongs to another machine: correct the inventory (hostler host rebind), then retry",
    "no-bmc": "no BMC is known: restart the host by hand, then: hostler deadletter resolve {id} --as fixed",
    "no-boot": "look at the console: the host was powered and did not boot; then: hostler deadletter retry {id}",
    "unproved": "no boot id was known before: check the host by hand, then: hostler deadletter resolve {id} --as fixed",
    "unusable": "the host is up and its post-boot checks fail: see the evidence, repair, then resolve as fixed",
    "contradiction": "the BMC and the agent contradict each other: look at the host before anything else is done to it",
    "never-seen": "no agent has ever attached: install and start hostler-agent, then: hostler deadletter retry {id}",
    "still-up": "the host accepts the reboot and stays up: try hostler host reboot {host} --mode hard",
    "no-soft-reboot": "its user space did not restart: look at it, or order a full reboot: hostler host reboot {host}",
    "no-go": "it was let go and did nothing: look at its agent; to go past it: hostler host reboot {host} --mode hard",
    "agent-silent": "its agent is silent: look at the host, or order a full reboot: hostler host reboot {host}",
    "soft-reboots-unknown": "it does not count soft reboots: order a full one: hostler host reboot {host}",
    "job-may-run": "see whether its job is alive; if it is not: hostler deadletter retry {id}, or submit with --force",
    "inhibited": "something on the host forbids the reboot: end it, or retry with --force and a reason",
    "not-permitted": "the agent may not reboot its host: correct its unit or polkit rules, then retry",
}


def pause_s(policy: Policy, attempt: int, jitter: float) -> float:
    """Pause before the attempt after `attempt` (1-based): exponential, capped, then full jitter over the whole span."""
    span = min(policy.backoff_cap_s, policy.backoff_first_s * 2.0 ** (max(1, attempt) - 1))
    return span * jitter


def attempts_left(task: TaskRecord, limits: ResolvedLimits) -> int:
    """Attempts through the agent that are still allowed."""
    return max(0, limits.attempts - (task.attempt - task.rescues))


def rescues_left(task: TaskRecord, policy: Policy) -> int:
    """Power intents that are still allowed."""
    return max(0, policy.rescues - task.rescues)


def suggestion(code: str, letter: str, host: str) -> str:
    """What a person should do about a dead letter, by its cause."""
    text = _SUGGESTIONS.get(code, "look at the host; then: hostler deadletter retry {id}, or resolve it")
    return text.format(id=letter, host=host)
