"""Hosts on their own account: boots nobody asked for, tokens ahead of the store, and hosts that died or came back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.domains import Cause, CauseKind
from hostler_contract.work import Token
from hostler_coordinator.planner.actions import ChargeDead, NoteRefusal, RaiseToken, RecordBoot, UnchargeDead
from hostler_coordinator.planner.silence import braked_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.live import Sighting
    from hostler_coordinator.planner.actions import Action
    from hostler_coordinator.planner.gates import Room
    from hostler_coordinator.planner.world import World


TOKENS_AHEAD_MOST = 1_000_000
EPOCHS_AHEAD_MOST = 1_000
"""A token further ahead of the store than these is not believed; the host's flags say so."""


def decide(world: World, room: Room) -> Iterator[Action]:
    """Actions on hosts, whatever the campaigns do."""
    yield from _refusals(world)
    names = world.state.hosts if world.fresh is None else world.fresh
    for name in names:
        host, seen = world.state.hosts.get(name), world.sightings.get(name)
        if host is None:
            continue
        if seen is not None and seen.connected:
            yield from _attached(world, host, seen)
        if not world.in_grace:
            yield from _life(world, host, room)


def _refusals(world: World) -> Iterator[Action]:
    """Orders of before that an executor refused, each once: the claim keeps the newest that is in the audit."""
    found = []
    for (host, token), order in world.refused.items():
        claim = world.state.claim(host)
        if host in world.state.hosts and claim.refused < token < claim.token:
            found.append(order)
    yield from map(NoteRefusal, sorted(found, key=lambda order: order.token))


def _attached(world: World, host: HostRecord, seen: Sighting) -> Iterator[Action]:
    claim = world.state.claim(host.id)
    ahead = seen.newest_token > claim.token and seen.newest_token > Token(epoch=world.state.epoch)
    if ahead and credible(seen.newest_token, claim.token):
        yield RaiseToken(host.id, seen.newest_token.epoch, seen.newest_token.counter)
    flags = _flags(host, seen)
    if ahead and not credible(seen.newest_token, claim.token):
        flags = (*flags, f"token: says hello with {seen.newest_token}, the store knows {claim.token}")
    if (seen.boot_id and seen.boot_id != host.boot_id and not claim.task) or flags != host.flags:
        yield RecordBoot(host.id, seen.boot_id if not claim.task else "", flags)


def credible(token: Token, known: Token) -> bool:
    """A store set back by a backup is behind by what was issued since; a token from nowhere is no reason to follow."""
    return token.epoch - known.epoch <= EPOCHS_AHEAD_MOST and token.counter - known.counter <= TOKENS_AHEAD_MOST


def _flags(host: HostRecord, seen: Sighting) -> tuple[str, ...]:
    """What differs from the inventory; the identity stays (field case A28)."""
    flags = []
    if seen.facts.hostname and seen.facts.hostname != host.name:
        flags.append(f"name: calls itself {seen.facts.hostname}")
    if seen.facts.address and host.address and seen.facts.address != host.address:
        flags.append(f"address: comes from {seen.facts.address}, inventory says {host.address}")
    if seen.facts.chassis_serial and host.serial and seen.facts.chassis_serial != host.serial:
        flags.append(f"serial: reports {seen.facts.chassis_serial}, inventory says {host.serial}")
    return tuple(flags)


def _life(world: World, host: HostRecord, room: Room) -> Iterator[Action]:
    charge = world.state.charge(host.id)
    dead = charge is not None and any(cause.kind is CauseKind.DEAD for cause in charge.causes)
    if dead and (world.heard(host.id) or host.retired is not None):
        yield UnchargeDead(host.id)
    elif not dead and _died(world, host, room):
        seen = world.sighting(host.id)
        since = max(seen.heard_at, world.leader_since)
        blocked_by = seen.condition.blocked_by
        cause = Cause(kind=CauseKind.DEAD, ref="", since=since, detail="silent", blocked_by=blocked_by)
        yield ChargeDead(host.id, cause)


def _died(world: World, host: HostRecord, room: Room) -> bool:
    if host.boot_id is None or host.retired is not None or world.state.claim(host.id).task:
        return False
    return world.silent_for(host.id) >= world.policy.dead_after_s and braked_by(world, host.id, room.brakes) is None
