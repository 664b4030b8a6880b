"""Every cause that stands between a host and its work, the nearest to it first; in which words is `explain`'s."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hostler_contract.hosts import HostRecord
from hostler_contract.moments import format_instant
from hostler_coordinator.planner.actions import Why
from hostler_coordinator.planner.gates import hold_gates
from hostler_coordinator.planner.silence import braked_by
from hostler_coordinator.standing import host_state, is_dead, open_letter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostler_coordinator.planner.gates import Room
    from hostler_coordinator.planner.world import World

_BEHIND = {
    "dead": frozenset({"dead", "dead-letter"}),
    "held": frozenset({"held"}),
    "drained": frozenset({"drained"}),
    "silent": frozenset({"silent", "leader-grace", "mass-silence"}),
    "never-seen": frozenset({"never-seen"}),
    "retired": frozenset({"retired"}),
}
"""A host's word of state, and the codes that explain it."""


def in_order(world: World, host: HostRecord, found: Sequence[Why]) -> list[Why]:
    """What explains the host's word of state first, and nothing twice: the headline and the cause agree."""
    behind = _BEHIND.get(host_state(world, host), frozenset())
    braked = any(why.code == "mass-silence" for why in found)
    known: dict[str, Why] = {}
    for why in found:
        if not (braked and why.code == "silent"):  # nobody is charged as dead under the brake
            known.setdefault(why.text, why)
    return sorted(known.values(), key=lambda why: why.code not in behind)


def as_one(causes: Sequence[Why]) -> Why:
    """The first cause, with the others in its sentence and each one's next step in turn."""
    first, *others = causes
    if not others:
        return first
    text = "; besides, ".join(why.text for why in causes)
    steps = [_step(why) for why in causes]
    return replace(first, text=text, next_step="; then: ".join(filter(None, steps)), next_at=None)


def _step(why: Why) -> str:
    at = f" at {format_instant(round(why.next_at))}" if why.next_at is not None and why.next_step else ""
    return why.next_step + at


def persons_and_death(world: World, host: HostRecord) -> list[Why]:
    """What stands in the records of a host: retired, a dead letter or its death, its holds, a person's drain."""
    if host.retired is not None:
        return [retired(host)]
    dead = _letter(world, host) or _dead(world, host)
    drained = _drained(host)
    return [*([dead] if dead else []), *hold_gates(world, host.id), *([drained] if drained else [])]


def retired(host: HostRecord) -> Why:
    """Out of charge and denominator. Raises ValueError for a host that is not retired."""
    gone = host.retired
    if gone is None:
        msg = f"host {host.id} is not retired"
        raise ValueError(msg)
    text = f"retired under ticket {gone.ticket} by {gone.by}"
    return Why("retired", text, gone.by, gone.at, f"hostler host rebind {host.name}, when its board is back")


def _letter(world: World, host: HostRecord) -> Why | None:
    letter = open_letter(world.state, host.id)
    if letter is None:
        return None
    text = f"a person: dead letter {letter.id} ({letter.cause}): {letter.text}"
    return Why("dead-letter", text, "dead letter " + letter.id, letter.at, letter.suggestion)


def _dead(world: World, host: HostRecord) -> Why | None:
    if not is_dead(world, host):
        return None
    charge = world.state.charge(host.id)
    charged_since = charge.since if charge else world.now
    since = max(world.sighting(host.id).heard_at, 0.0) if host.id in world.sightings else charged_since
    step = "look at the host, or submit a reboot to rescue it"
    return Why("dead", "its agent: silent, and charged as dead", "", since, step)


def _drained(host: HostRecord) -> Why | None:
    mark = host.drain
    if mark is None:
        return None
    text = f"drained by {mark.owner}: {mark.reason or 'no reason given'}"
    return Why("drained", text, mark.owner, mark.at, f"hostler host undrain {host.name}")


def unheard(world: World, host: HostRecord, room: Room) -> Why | None:
    """A host at rest that is not heard, and what its silence is worth."""
    if world.heard(host.id):
        return None
    if host.boot_id is None:
        text = "its agent: none has ever attached from this host"
        return Why("never-seen", text, "", host.enrolled_at, "install and start hostler-agent")
    brake = braked_by(world, host.id, room.brakes)
    if brake is not None:
        step = "judged when the brake lets go, or a person releases it"
        return Why("mass-silence", brake.text, brake.domain, brake.since, step)
    since = max(world.sighting(host.id).heard_at, world.leader_since)
    if world.in_grace:
        text = "its agent: not heard yet by the new leader, which judges no silence before its grace ends"
        return Why("leader-grace", text, "", since, "judged after the grace", world.grace_ends_at)
    due = since + world.policy.dead_after_s
    return Why("silent", "its agent, which is silent", "", since, "is charged as dead", due)
