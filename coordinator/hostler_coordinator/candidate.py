"""One coordinator's part in the whole: follows the store, stands for election, leads while it is elected, and passes on
what its sessions say while somebody else leads. How bytes come in and go out is `process`'.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from hostler_contract import codec
from hostler_contract.campaigns import LeaderRecord
from hostler_coordinator import etcd
from hostler_coordinator.board import Board
from hostler_coordinator.engine import Engine
from hostler_coordinator.planner.world import World
from hostler_coordinator.power import PowerWorker
from hostler_coordinator.refusals import Unavailable
from hostler_coordinator.relay import REFUSED_MOST, RelayUplink, Router, UplinkKeeper
from hostler_coordinator.service.trouble import leaderless, store_away
from hostler_coordinator.sessions import LocalUplink, Sessions, SessionSettings
from hostler_coordinator.store import EtcdStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    import grpc.aio

    from hostler_coordinator.bmc.pacing import Pacing
    from hostler_coordinator.bmc.walk import CycleSettings, PowerCaller
    from hostler_coordinator.engine import Observer
    from hostler_coordinator.live import RefusedOrder
    from hostler_coordinator.planner.turn import Plan
    from hostler_coordinator.policy import Policy
    from hostler_coordinator.ports import Clock
    from hostler_coordinator.service.trouble import Trouble

log = structlog.get_logger(__name__)


def jitter(text: str) -> float:
    """A number in [0, 1) for a text, the same in every process."""
    return (zlib.crc32(text.encode()) & 0xFFFFFFFF) / 2**32


@dataclass(frozen=True, slots=True)
class CandidateSettings:
    """Who it is, where it can be reached, and the bounds it keeps."""

    name: str
    address: str
    prefix: str
    election_ttl_s: int
    policy: Policy
    sessions: SessionSettings
    power: CycleSettings


@dataclass(frozen=True, slots=True)
class Outside:
    """Everything beyond the core that a candidate touches."""

    client: etcd.EtcdClient
    clock: Clock
    chance: Random
    dial: Callable[[str], grpc.aio.Channel]
    """Opens a channel to another coordinator."""
    bmc: PowerCaller
    pacing: Pacing
    observer: Observer
    term_begins: Callable[[], None]
    term_ended: Callable[[], None]
    unreachable: Callable[[], Trouble | None]
    """Why the leader cannot be reached from here, while it cannot."""


class Candidate:
    """Satisfies rpc.services.Leadership. `run` ends only when it is cancelled, or raises what cannot be cured here."""

    def __init__(self, settings: CandidateSettings, outside: Outside) -> None:
        """Build; nothing runs yet."""
        self._settings = settings
        self._outside = outside
        self._clock = outside.clock
        self._pulse = asyncio.Event()
        self._refusals: deque[RefusedOrder] = deque(maxlen=REFUSED_MOST)
        self._leadership: etcd.Leadership | None = None
        self._leader: tuple[str, str] | None = None
        self._leader_since: float | None = None
        self.engine: Engine | None = None
        """Decides while this coordinator leads; None while it does not."""
        self.leaderless_since = self._clock.now()
        self.store = EtcdStore(outside.client, settings.prefix, self._clock, self.news)
        self.sessions = Sessions(settings.sessions, self._clock.now, self._host_name)
        self._board = Board(changed=self.news, noted=self._noted)
        self.router = Router(settings.name, self._board, self.sessions, self._clock.now, self._term)
        local = LocalUplink(self._board, settings.name, self._clock.now)
        self._keeper = UplinkKeeper(self.sessions, local, self._relay_to)

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow and stand for election until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.store.follow(), name="store")
            group.create_task(self._keeper.run(), name="uplink")
            group.create_task(self._observe(), name="observe")
            group.create_task(self._stand(), name="election")

    async def _observe(self) -> None:
        """Follow who leads, to relay and forward to."""
        async for info in self._election().observe():
            if info is None:
                self._leader, self.leaderless_since = None, self._clock.now()
            else:
                record = codec.from_record(LeaderRecord, info.value, "leader")
                self._leader, self._leader_since = (record.name, record.address), record.since
            self._say_who_leads()

    def _election(self) -> etcd.Election:
        settings = self._settings
        record = LeaderRecord(name=settings.name, address=settings.address, since=self._clock.now())
        return etcd.Election(
            self._outside.client, self.store.leader_key, codec.to_record(record), ttl_s=settings.election_ttl_s
        )

    async def _stand(self) -> None:
        """Stand for election, lead, and stand again, for ever."""
        while True:
            await self.store.loaded()
            leadership = await self._election().campaign()
            try:
                await self._lead(leadership)
            finally:
                await leadership.resign()

    async def _lead(self, leadership: etcd.Leadership) -> None:
        log.info("leads", name=self._settings.name, term=leadership.create_revision)
        self._board.clear()
        for order in self._refusals:
            self._board.order_refused(order)
        await self.store.lead_with(leadership)
        power = self._power_worker()
        engine = self._new_engine(leadership, power)
        self._leadership, self.engine = leadership, engine
        self._outside.term_begins()
        self._say_who_leads()
        lost = asyncio.create_task(self._wake_when(leadership.lost), name="lost")
        try:
            await engine.run()
        finally:
            over = leadership.why_over
            log.warning("leads no more", term=leadership.create_revision, cause=over.cause.value, reason=over.text)
            lost.cancel()
            self._leadership, self.engine, self.leaderless_since = None, None, self._clock.now()
            self._outside.term_ended()
            await self.store.lead_with(None)
            self._say_who_leads()
            self.router.end_all("this coordinator leads no more")
            await power.close()

    def _power_worker(self) -> PowerWorker:
        return PowerWorker(
            caller=self._outside.bmc,
            pacing=self._outside.pacing,
            settings=self._settings.power,
            store=self.store,
            clock=self._clock,
            sightings=self._board.sightings,
            woken=self.news,
            refused=self._order_refused,
        )

    def _new_engine(self, leadership: etcd.Leadership, power: PowerWorker) -> Engine:
        return Engine(
            name=self._settings.name,
            store=self.store,
            clock=self._clock,
            sightings=self._board.sightings,
            refused=self._board.refused,
            courier=self.router,
            power=power,
            policy=self._settings.policy,
            jitter=jitter,
            alive=lambda: leadership.alive,
            observer=self._outside.observer,
        )

    async def _wake_when(self, lost: asyncio.Event) -> None:
        await lost.wait()
        self.news()

    def _say_who_leads(self) -> None:
        leader = self._leader
        if leader == self._me:
            leader = None  # we lead and need no relay; or it is our own key of a term that is over, or has not begun
        self._keeper.update(leads=self.is_leader(), leader=leader)

    # -- rpc.services.Leadership -------------------------------------------------------------------------------------

    @property
    def _me(self) -> tuple[str, str]:
        return (self._settings.name, self._settings.address)

    def is_leader(self) -> bool:
        """Does this coordinator lead?"""
        return self._leadership is not None and self._leadership.alive and self.engine is not None

    def leader(self) -> tuple[str, str] | None:
        """Name and address of the leader; None while nobody is known to lead."""
        if self.is_leader():
            return self._me
        return None if self._leader == self._me else self._leader

    @property
    def leader_since(self) -> float | None:
        """Since when the leader leads, epoch seconds, as far as is known here."""
        return self.engine.since if self.engine is not None else self._leader_since

    def trouble(self) -> Trouble:
        """Why nothing can be decided here: no store, else a leader out of reach, else none."""
        away = self.store.unavailable
        if away is not None:
            return store_away(*away)
        unreachable = self._outside.unreachable() if self.leader() is not None else None
        return unreachable or leaderless(self.leaderless_since)

    def as_of(self) -> float | None:
        """Up to when the records here are known to be true; None before they were read."""
        return self.store.as_of

    # -- what services ask -------------------------------------------------------------------------------------------

    def world(self) -> World:
        """What the leader knows. Raises Unavailable when this coordinator does not lead."""
        return self._leading().world()

    def plan(self) -> Plan:
        """What the leader last decided, and why. Raises Unavailable when this coordinator does not lead."""
        return self._leading().plan

    def mirror(self) -> World:
        """The records as read here, without what only a leader hears; for reading alone."""
        now = self._clock.now()
        return World(
            state=self.store.state,
            sightings={},
            power={},
            now=now,
            leader="",
            leader_since=now,
            policy=self._settings.policy,
            jitter=jitter,
            blind=True,
        )

    def news(self, host: str = "") -> None:
        """Something changed, on this host where one is named: wake the engine and whoever watches."""
        if self.engine is not None:
            self.engine.wake(host)
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()

    async def changed(self, limit_s: float) -> None:
        """Return at the next news, or after `limit_s`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._pulse.wait()

    def _leading(self) -> Engine:
        if self.engine is None:
            trouble = self.trouble()
            raise Unavailable(
                trouble.text, trouble.since, trouble.retry_after_s, code=trouble.code, fix=trouble.next_step
            )
        return self.engine

    # -- what the parts ask ------------------------------------------------------------------------------------------

    def _noted(self, host: str) -> None:
        """Something was heard of this host that can wait for the engine's next look."""
        if self.engine is not None:
            self.engine.note(host)

    def _host_name(self, host: str) -> str:
        record = self.store.state.hosts.get(host)
        return record.name if record is not None else ""

    def _term(self) -> int:
        return self._leadership.create_revision if self._leadership is not None else 0

    def _relay_to(self, leader: tuple[str, str]) -> RelayUplink:
        return RelayUplink(
            self._settings.name,
            leader,
            self._outside.dial,
            self.sessions,
            self._clock.now,
            self._outside.chance,
            refusals=lambda: tuple(self._refusals),
        )

    def _order_refused(self, order: RefusedOrder) -> None:
        """Only who leads may write: an order of an earlier term of ours goes to the leader of now, or waits for one."""
        self._refusals.append(order)
        if self.is_leader():
            self._board.order_refused(order)
        elif self._keeper.relay is not None:
            self._keeper.relay.order_refused(order)
