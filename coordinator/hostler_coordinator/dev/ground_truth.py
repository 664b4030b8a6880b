"""Judges what really happened to simulated machines, from the lines that they alone wrote; coordinators are not asked.

A machine is *down* from its `down` (its operating system ended) to its next `boot`. A machine whose agent hangs is not
down: its system runs, until somebody cuts its power. Two figures are told apart: down by order (an agent's reboot, a
BMC's command), which is what budgets bind, and down at all, crashes included. An *ordered* boot is one that an agent's
reboot or a BMC's command caused. A host has one task in a campaign, so two ordered boots within the campaign are
"rebooted twice", unless a failure of the first was proved in between: there it never came to a boot at all, so it has
no `boot` line to count.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ORDERED = frozenset({"agent", "bmc"})
CAUSES = frozenset({"start", "agent", "bmc", "crash"})
BMC_ORDERS = frozenset({"power_on", "power_off", "power_reset", "soft_off"})
EFFECTS = frozenset({"boot", "soft_reboot", "down", "hang", "job_start", "job_exit"}) | BMC_ORDERS


class BadEffects(ValueError):
    """The file is not what simulated machines write; the text names the line."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One line: what happened to which host, when (monotonic seconds), by whose doing."""

    effect: str
    host: str
    cause: str
    t: float
    boot_id: str = ""
    task: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True)
class Truth:
    """What happened between two moments."""

    ordered_boots: Mapping[str, int]
    """By host; hosts without any are left out."""
    rebooted_twice: tuple[str, ...]
    max_down: Mapping[str, int]
    """By fabric: most hosts down by order at one moment."""
    max_down_at_all: Mapping[str, int]
    bmc_actions: int
    rescued: tuple[str, ...]
    """Hosts that a BMC's command brought to a boot."""
    hung: tuple[str, ...]
    down_at_end: tuple[str, ...]

    def over_budget(self, budget: Mapping[str, int]) -> tuple[str, ...]:
        """Fabrics that had more hosts down by order than their budget; one without a budget may have none."""
        return tuple(fabric for fabric, most in sorted(self.max_down.items()) if most > budget.get(fabric, 0))


def read_effects(text: str) -> list[Effect]:
    """Read the file, in the order of its lines. Raises BadEffects: a line that cannot be read is never passed over."""
    effects: list[Effect] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found = json.loads(line)
            effect = Effect(**{name: found[name] for name in Effect.__dataclass_fields__ if name in found})
            effect = Effect(**{**{n: getattr(effect, n) for n in Effect.__dataclass_fields__}, "t": float(effect.t)})
        except (ValueError, TypeError) as error:
            raise BadEffects(f"line {number}: {error}") from error
        if effect.effect not in EFFECTS or effect.cause not in CAUSES or not effect.host:
            raise BadEffects(
                f"line {number}: {effect.effect!r} by {effect.cause!r} on {effect.host!r} means nothing here"
            )
        if effects and effect.t < effects[-1].t:
            raise BadEffects(f"line {number}: its time goes back")
        effects.append(effect)
    return effects


def judge(
    effects: Sequence[Effect], fabric_of: Mapping[str, str], since: float = 0.0, until: float = float("inf")
) -> Truth:
    """Judge the lines of one campaign: from `since` to `until`, monotonic seconds.

    Lines before `since` count only for who was down already. Raises BadEffects for a host without a fabric.
    """
    for effect in effects:
        if effect.host not in fabric_of:
            raise BadEffects(f"host {effect.host!r} is of no known fabric")
    within = [effect for effect in effects if since <= effect.t <= until]
    boots = Counter(one.host for one in within if one.effect == "boot" and one.cause in ORDERED)
    seen = [effect for effect in effects if effect.t <= until]
    return Truth(
        ordered_boots=dict(boots),
        rebooted_twice=tuple(sorted(host for host, count in boots.items() if count > 1)),
        max_down=_most_down(seen, fabric_of, since, ORDERED),
        max_down_at_all=_most_down(seen, fabric_of, since, CAUSES),
        bmc_actions=sum(one.effect in BMC_ORDERS and one.cause == "bmc" for one in within),
        rescued=_hosts(one for one in within if one.effect == "boot" and one.cause == "bmc"),
        hung=_hosts(one for one in within if one.effect == "hang"),
        down_at_end=tuple(sorted(_down_after(seen))),
    )


def _most_down(
    effects: Iterable[Effect], fabric_of: Mapping[str, str], since: float, causes: frozenset[str]
) -> dict[str, int]:
    """Replay: most hosts of each fabric that were down at one moment from `since` on, brought down by one of `causes`.

    A crash while a host is down by order changes nothing: it stays down by order.
    """
    down: dict[str, set[str]] = {fabric: set() for fabric in fabric_of.values()}
    most = dict.fromkeys(sorted(down), 0)
    started = False
    for effect in effects:
        if not started and effect.t >= since:
            started = True
            most = {fabric: len(down[fabric]) for fabric in most}
        hosts = down[fabric_of[effect.host]]
        if effect.effect == "down" and effect.cause in causes:
            hosts.add(effect.host)
        elif effect.effect == "boot":
            hosts.discard(effect.host)
        if started:
            most[fabric_of[effect.host]] = max(most[fabric_of[effect.host]], len(hosts))
    return most if started else {fabric: len(down[fabric]) for fabric in most}


def _down_after(effects: Iterable[Effect]) -> set[str]:
    down: set[str] = set()
    for effect in effects:
        if effect.effect == "down":
            down.add(effect.host)
        elif effect.effect == "boot":
            down.discard(effect.host)
    return down


def _hosts(effects: Iterable[Effect]) -> tuple[str, ...]:
    return tuple(sorted({effect.host for effect in effects}))


def disagreements(
    truth: Truth, budget: Mapping[str, int], *, succeeded: Iterable[str], never_back: Iterable[str]
) -> list[str]:
    """Everything in which what the control plane says and what happened differ, in sentences; none when it is right.

    `succeeded`: hosts whose task the campaign counts so; `never_back`: hosts of which it says that they did not boot.
    """
    found = [f"{host} was rebooted {truth.ordered_boots[host]} times for one task" for host in truth.rebooted_twice]
    found += [
        f"{fabric} had {truth.max_down[fabric]} hosts down at once, its budget is {budget.get(fabric, 0)}"
        for fabric in truth.over_budget(budget)
    ]
    for host in sorted(succeeded):
        if not truth.ordered_boots.get(host):
            found.append(f"{host} counts as rebooted, and did not boot")
        elif host in truth.down_at_end:
            found.append(f"{host} counts as rebooted, and is down")
    found += [
        f"{host} counts as never come back, and booted" for host in sorted(never_back) if truth.ordered_boots.get(host)
    ]
    return found
