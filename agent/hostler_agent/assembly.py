"""Puts one agent together from settings and adapters; every program that runs one starts here. No rules."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from hostler_agent.attachment import Attachment, AttachmentSettings
from hostler_agent.board import Board
from hostler_agent.client import ClientSettings, GrpcCoordinators, TlsFiles
from hostler_agent.config import SessionLimits, Settings
from hostler_agent.decide import Pauses, Situation
from hostler_agent.drain import HookDrain, NoDrain
from hostler_agent.endpoints import RememberedEndpoints
from hostler_agent.journal import FileJournal
from hostler_agent.logs import Logger
from hostler_agent.loop import Agent
from hostler_agent.observation import Observation, ObservationSettings
from hostler_agent.perform import Performer
from hostler_agent.ports import Checks, Clock, Coordinators, Drain, Host, Journal, Supervisor


@dataclass(frozen=True, slots=True)
class World:
    """Everything outside the core that one agent touches."""

    host: Host
    checks: Checks
    journal: Journal
    drain: Drain
    coordinators: Coordinators
    clock: Clock
    supervisor: Supervisor
    chance: random.Random


def pauses_of(settings: Settings) -> Pauses:
    """The pauses that `decide` works with."""
    return Pauses(
        started_repeat_s=settings.reboot.started_repeat_s,
        outcome_repeat_s=settings.reboot.outcome_repeat_s,
        drain_poll_s=settings.drain.poll_interval_s,
        undo_retry_s=settings.drain.undo_retry_s,
        refusal_pause_s=settings.reboot.refusal_pause_s,
        drain_timeout_default_s=settings.drain.timeout_default_s,
        intent_ttl_s=settings.reboot.intent_ttl_s,
        shutdown_timeout_default_s=settings.reboot.shutdown_timeout_default_s,
    )


def longest_pause_s(limits: SessionLimits) -> float:
    """The cap of the back-off, less the attempt that a black hole takes to its deadline: from one attempt to the next
    is at most the cap, so that the agent is back within it once the network is (FC-A22).
    """
    return max(limits.backoff_cap_s - limits.attach_timeout_s, limits.backoff_cap_s / 2.0)


def coordinators_of(settings: Settings, chance: random.Random) -> GrpcCoordinators:
    """The client side of the stream."""
    limits, tls = settings.session, settings.tls
    return GrpcCoordinators(
        settings.endpoints,
        None if settings.insecure else TlsFiles(tls.ca, tls.certificate, tls.key, tls.server_name),
        chance,
        ClientSettings(
            attach_timeout_s=limits.attach_timeout_s,
            send_timeout_s=limits.send_timeout_s,
            keepalive_interval_s=limits.keepalive_interval_s,
            ping_timeout_s=limits.ping_timeout_s,
        ),
        RememberedEndpoints(settings.journal.with_name("coordinators.json")),
    )


def drain_of(settings: Settings, hostname: str) -> Drain:
    """The drain that is configured."""
    drain = settings.drain
    if drain.kind == "exec":
        return HookDrain(drain.command, host=hostname, call_timeout_s=drain.call_timeout_s)
    return NoDrain()


def journal_of(settings: Settings) -> FileJournal:
    """The journal's file."""
    return FileJournal(Path(settings.journal))


async def assemble(world: World, settings: Settings, log: Logger) -> tuple[Agent, Board]:
    """Read the journal and the boot id, and put the agent together; nothing runs yet."""
    loaded = await world.journal.load()
    if loaded.damage:
        log.error("journal damaged", damage=loaded.damage)
    reading = await world.host.read()
    board = Board(
        Situation(
            entry=loaded.entry,
            boot_id=reading.boot_id,
            soft_reboots=reading.soft_reboots,
            userspace_start=reading.userspace_start,
            shutting_down=reading.shutting_down,
            damage=loaded.damage,
            can_drain=world.drain.configured,
        )
    )
    pauses, limits = pauses_of(settings), settings.session
    attachment = Attachment(
        board,
        world.coordinators,
        world.host,
        world.clock,
        world.chance,
        log,
        host_id=settings.host_id,
        settings=AttachmentSettings(
            heartbeat_interval_s=limits.heartbeat_interval_s,
            reply_timeout_s=limits.reply_timeout_s,
            reattach_span_s=limits.reattach_span_s,
            backoff_first_s=limits.backoff_first_s,
            backoff_cap_s=longest_pause_s(limits),
        ),
    )
    observation = Observation(
        board,
        world.host,
        world.checks,
        world.clock,
        log,
        ObservationSettings(settings.checks.busy_interval_s, settings.checks.idle_interval_s),
    )
    performer = Performer(
        board=board,
        attachment=attachment,
        host=world.host,
        journal=world.journal,
        drain=world.drain,
        clock=world.clock,
        log=log,
        pauses=pauses,
    )
    agent = Agent(
        board=board,
        attachment=attachment,
        observation=observation,
        performer=performer,
        journal=world.journal,
        clock=world.clock,
        supervisor=world.supervisor,
        log=log,
        pauses=pauses,
    )
    return agent, board
