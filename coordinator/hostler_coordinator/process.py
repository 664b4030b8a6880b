"""One coordinator process: builds the parts, follows the store, stands for election, and leads while it is elected."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import secrets
import zlib
from collections import deque
from random import SystemRandom
from typing import TYPE_CHECKING

import structlog

from hostler_contract import codec
from hostler_contract.campaigns import LeaderRecord
from hostler_contract.moments import format_instant
from hostler_contract.views import BmcProbe, BmcSeen, BmcVerb
from hostler_coordinator import alarms, etcd
from hostler_coordinator.bmc.answers import Machine, Verb
from hostler_coordinator.bmc.health import HealthSettings
from hostler_coordinator.bmc.pacing import Pacing, PacingSettings
from hostler_coordinator.bmc.pool import BmcPool, PoolSettings
from hostler_coordinator.bmc.walk import CycleSettings
from hostler_coordinator.bmc_memory import facts_of
from hostler_coordinator.board import Board
from hostler_coordinator.clock import SystemClock
from hostler_coordinator.engine import Engine
from hostler_coordinator.metrics import Metrics
from hostler_coordinator.notify import Alert, Notifier
from hostler_coordinator.planner.turn import Plan
from hostler_coordinator.planner.world import World
from hostler_coordinator.power import PowerWorker, bmc_target
from hostler_coordinator.refusals import Unavailable
from hostler_coordinator.relay import REFUSED_MOST, RelayUplink, Router, UplinkKeeper
from hostler_coordinator.rpc import channels
from hostler_coordinator.rpc.audit import AuditRpc
from hostler_coordinator.rpc.campaigns import CampaignRpc
from hostler_coordinator.rpc.deadletters import DeadLetterRpc
from hostler_coordinator.rpc.edge import Edge, Gate
from hostler_coordinator.rpc.fleet import FleetRpc
from hostler_coordinator.rpc.forward import Forwarder
from hostler_coordinator.rpc.identity import IdentityReader
from hostler_coordinator.rpc.server import Calls, RpcServer, ServerSettings
from hostler_coordinator.service.audit import AuditFilter, AuditService
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.service.deadletters import DeadLetterService
from hostler_coordinator.service.desk import Desk, StatusParts
from hostler_coordinator.service.fleet import FleetService
from hostler_coordinator.service.trouble import Trouble, leaderless, store_away
from hostler_coordinator.sessions import LocalUplink, Sessions, SessionSettings
from hostler_coordinator.store import EtcdStore

if TYPE_CHECKING:
    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.config import BmcSection, Settings, Tls
    from hostler_coordinator.live import RefusedOrder

GAUGES_EVERY_S = 2.0
_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PROBES = {
    BmcVerb.POWER_STATE: Verb.STATUS,
    BmcVerb.LOCATE_ON: Verb.LOCATE_ON,
    BmcVerb.LOCATE_OFF: Verb.LOCATE_OFF,
    BmcVerb.VERIFY_SERIAL: Verb.SERIAL,
}

log = structlog.get_logger(__name__)


def new_id() -> str:
    """Twelve random characters of a-z2-7."""
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(12))


def jitter(text: str) -> float:
    """A number in [0, 1) for a text, the same in every process."""
    return (zlib.crc32(text.encode()) & 0xFFFFFFFF) / 2**32


class CannotListenError(Exception):
    """An address that this process should answer at cannot be had."""

    def __init__(self, setting: str, address: str, why: str) -> None:
        super().__init__(f"{setting}: cannot listen on {address}: {why}")


class Coordinator:
    """All parts of one process. `run` returns only when it is cancelled, or raises what cannot be cured here."""

    def __init__(self, settings: Settings, version: str) -> None:
        """Build; nothing is opened yet but the channels to etcd."""
        self._settings = settings
        self._version = version
        self._policy = settings.bounds()
        self._clock = SystemClock()
        self._metrics = Metrics()
        self._client = etcd.EtcdClient(
            settings.etcd.endpoints,
            _etcd_tls(settings.etcd.tls),
            request_timeout_s=settings.etcd.request_timeout_s,
            observer=self._metrics.store_call,
        )
        self._pulse = asyncio.Event()
        self._store = EtcdStore(self._client, settings.prefix, self._clock, self._news)
        self._board = Board(changed=self._news, noted=self._noted)
        self._sessions = Sessions(self._session_settings(), self._clock.now, self._host_name)
        self._router = Router(settings.name, self._board, self._sessions, self._clock.now, self._term)
        self._tls = settings.tls
        self._dial = channels.dialler(self._identity if settings.tls is not None else None)
        self._forwarder = Forwarder(self._dial, self._clock.now)
        local = LocalUplink(self._board, settings.name, self._clock.now)
        self._keeper = UplinkKeeper(self._sessions, local, self._relay_to)
        self._pool = BmcPool(_pool_settings(settings.bmc), observer=self._metrics.bmc_call)
        self._pacing = Pacing(
            PacingSettings(settings.bmc.power_on_gap_s, settings.bmc.destructive_per_minute),
        )
        self._notifier = (
            Notifier(settings.webhook.url, self._clock, timeout_s=settings.webhook.timeout_s)
            if settings.webhook
            else None
        )
        self._refusals: deque[RefusedOrder] = deque(maxlen=REFUSED_MOST)
        self._engine: Engine | None = None
        self._leadership: etcd.Leadership | None = None
        self._leader: tuple[str, str] | None = None
        self._leader_since: float | None = None
        self._leaderless_since = self._clock.now()

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve, follow and stand for election until cancelled."""
        await self._listen(server := self._server())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._store.follow(), name="store")
                group.create_task(self._keeper.run(), name="uplink")
                group.create_task(self._observe(), name="observe")
                group.create_task(self._stand(), name="election")
                group.create_task(self._gauges(), name="gauges")
                if self._notifier is not None:
                    group.create_task(self._notifier.run(), name="notifier")
        finally:
            await server.stop("this coordinator stops")
            await self._forwarder.close()
            await self._pool.close()
            await self._client.close()

    async def _listen(self, server: RpcServer) -> None:
        settings = self._settings
        if settings.metrics_listen:
            host, _, port = settings.metrics_listen.rpartition(":")
            try:
                self._metrics.serve(host, int(port))
            except OSError as error:
                raise CannotListenError("metrics_listen", settings.metrics_listen, str(error.strerror)) from error
        try:
            await server.start()
        except RuntimeError as error:
            await server.stop("this coordinator cannot listen", 0.0)
            raise CannotListenError("listen", settings.listen, "it is taken, or not of this machine") from error

    def _server(self) -> RpcServer:
        settings = self._settings
        desk = self._desk()
        gate = Gate(IdentityReader(settings.region, plaintext=self._tls is None), observe=self._metrics.rpc_call)
        mirror = _calls(dataclasses.replace(desk, world=self._mirror, plan=Plan))
        return RpcServer(
            ServerSettings(settings.listen, plaintext=self._tls is None, leave_span_s=settings.reattach_span_s),
            channels.server_credentials(self._identity) if self._tls is not None else None,
            gate,
            Edge(gate, self, self._forwarder),
            dataclasses.replace(_calls(desk), mirror=mirror),
            self,
            self._router,
            sessions=self._sessions,
        )

    def _identity(self) -> channels.Tls:
        """Read anew before each handshake: certificates may be renewed."""
        tls = self._tls
        if tls is None:
            msg = "no certificates are configured"
            raise ValueError(msg)
        return channels.Tls(tls.cert.read_bytes(), tls.key.read_bytes(), tls.ca.read_bytes())

    async def _observe(self) -> None:
        """Follow who leads, to relay and forward to."""
        async for info in self._election().observe():
            if info is None:
                self._leader, self._leaderless_since = None, self._clock.now()
            else:
                record = codec.from_record(LeaderRecord, info.value, "leader")
                self._leader, self._leader_since = (record.name, record.address), record.since
            self._say_who_leads()

    def _election(self) -> etcd.Election:
        settings = self._settings
        record = LeaderRecord(name=settings.name, address=settings.address, since=self._clock.now())
        return etcd.Election(
            self._client, self._store.leader_key, codec.to_record(record), ttl_s=settings.election_ttl_s
        )

    async def _stand(self) -> None:
        """Stand for election, lead, and stand again, for ever."""
        while True:
            await self._store.loaded()
            leadership = await self._election().campaign()
            try:
                await self._lead(leadership)
            finally:
                await leadership.resign()

    async def _lead(self, leadership: etcd.Leadership) -> None:
        name = self._settings.name
        log.info("leads", name=name, term=leadership.create_revision)
        self._board.clear()
        for order in self._refusals:
            self._board.order_refused(order)
        await self._store.lead_with(leadership)
        power = PowerWorker(
            caller=self._pool,
            pacing=self._pacing,
            settings=_cycle_settings(self._settings.bmc),
            store=self._store,
            clock=self._clock,
            sightings=self._board.sightings,
            woken=self._news,
            refused=self._order_refused,
        )
        engine = Engine(
            name=name,
            store=self._store,
            clock=self._clock,
            sightings=self._board.sightings,
            refused=self._board.refused,
            courier=self._router,
            power=power,
            policy=self._policy,
            jitter=jitter,
            alive=lambda: leadership.alive,
            observer=self._metrics,
        )
        self._leadership, self._engine = leadership, engine
        self._metrics.leads.set(1)
        self._say_who_leads()
        lost = asyncio.create_task(self._wake_when(leadership.lost), name="lost")
        try:
            await engine.run()
        finally:
            over = leadership.why_over
            log.warning("leads no more", term=leadership.create_revision, cause=over.cause.value, reason=over.text)
            lost.cancel()
            self._leadership, self._engine, self._leaderless_since = None, None, self._clock.now()
            self._metrics.leads.set(0)
            await self._store.lead_with(None)
            self._say_who_leads()
            self._router.end_all("this coordinator leads no more")
            await power.close()
            if self._notifier is not None:
                self._notifier.forget()

    async def _wake_when(self, lost: asyncio.Event) -> None:
        await lost.wait()
        self._news()

    def _say_who_leads(self) -> None:
        me = (self._settings.name, self._settings.address)
        leader = self._leader
        if leader == me and not self.is_leader():
            leader = None  # our own key of a term that is over, or that has not begun here
        self._keeper.update(leads=self.is_leader(), leader=leader)

    async def _gauges(self) -> None:
        """Metrics and alarms, at a slow beat."""
        while True:
            await asyncio.sleep(GAUGES_EVERY_S)
            self._metrics.sessions.set(len(self._sessions))
            self._metrics.store_down.set(1 if self._store.unavailable else 0)
            self._metrics.look_at(self._store.state)
            if self._notifier is not None:
                self._notifier.sync(self._alerts(), self._clock.now())

    def _alerts(self) -> dict[str, Alert]:
        found: dict[str, alarms.Alarm] = {}
        if self._engine is not None and self.is_leader():
            found = alarms.alarms(self._engine.world(), self._engine.plan)
            for put in self._engine.aside:
                since = format_instant(put.since)
                found[f"aside/{put.what}/{put.task}"] = alarms.aside_alarm(put.what, put.task, since, put.reason)
        trouble = self._store.unavailable
        if trouble is not None:
            found[f"store/{self._settings.name}"] = alarms.store_alarm(format_instant(trouble[0]), trouble[1])
        return {key: Alert(alarm.labels, alarm.annotations) for key, alarm in found.items()}

    # -- rpc.services.Leadership -------------------------------------------------------------------------------------

    def is_leader(self) -> bool:
        """Does this coordinator lead?"""
        return self._leadership is not None and self._leadership.alive and self._engine is not None

    def leader(self) -> tuple[str, str] | None:
        """Name and address of the leader; None while nobody is known to lead."""
        if self.is_leader():
            return (self._settings.name, self._settings.address)
        return None if self._leader == (self._settings.name, self._settings.address) else self._leader

    def trouble(self) -> Trouble:
        """Why nothing can be decided here: no store, else a leader out of reach, else none."""
        away = self._store.unavailable
        if away is not None:
            return store_away(*away)
        unreachable = self._forwarder.trouble if self.leader() is not None else None
        return unreachable or leaderless(self._leaderless_since)

    def as_of(self) -> float | None:
        """Up to when the records here are known to be true; None before they were read."""
        return self._store.as_of

    # -- what the parts ask ------------------------------------------------------------------------------------------

    def _news(self, host: str = "") -> None:
        """Something changed, on this host where one is named: wake the engine and whoever watches."""
        if self._engine is not None:
            self._engine.wake(host)
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()

    def _noted(self, host: str) -> None:
        """Something was heard of this host that can wait for the engine's next look."""
        if self._engine is not None:
            self._engine.note(host)

    async def _changed(self, limit_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._pulse.wait()

    def _host_name(self, host: str) -> str:
        record = self._store.state.hosts.get(host)
        return record.name if record is not None else ""

    def _term(self) -> int:
        return self._leadership.create_revision if self._leadership is not None else 0

    def _relay_to(self, leader: tuple[str, str]) -> RelayUplink:
        return RelayUplink(
            self._settings.name,
            leader,
            self._dial,
            self._sessions,
            self._clock.now,
            SystemRandom(),
            refusals=lambda: tuple(self._refusals),
        )

    def _order_refused(self, order: RefusedOrder) -> None:
        """Only who leads may write: an order of an earlier term of ours goes to the leader of now, or waits for one."""
        self._refusals.append(order)
        if self.is_leader():
            self._board.order_refused(order)
        elif self._keeper.relay is not None:
            self._keeper.relay.order_refused(order)

    def _session_settings(self) -> SessionSettings:
        settings = self._settings
        return SessionSettings(
            coordinator=settings.name,
            endpoints=settings.endpoints or (settings.address,),
            heartbeat_interval_s=self._policy.heartbeat_interval_s,
            working_interval_s=min(2.0, self._policy.heartbeat_interval_s),
            reattach_span_s=settings.reattach_span_s,
        )

    def _desk(self) -> Desk:
        return Desk(
            store=self._store,
            world=self._world,
            plan=self._plan,
            now=self._clock.now,
            wake=self._news,
            policy=self._policy,
            new_id=new_id,
            probe=self._probe,
            status_parts=self._status,
            changed=self._changed,
            sleep=self._clock.sleep,
        )

    def _leading(self) -> Engine:
        if self._engine is None:
            trouble = self.trouble()
            raise Unavailable(
                trouble.text, trouble.since, trouble.retry_after_s, code=trouble.code, fix=trouble.next_step
            )
        return self._engine

    def _world(self) -> World:
        return self._leading().world()

    def _mirror(self) -> World:
        """The records as read here, without what only a leader hears; for reading alone."""
        now = self._clock.now()
        return World(
            state=self._store.state,
            sightings={},
            power={},
            now=now,
            leader="",
            leader_since=now,
            policy=self._policy,
            jitter=jitter,
            blind=True,
        )

    def _plan(self) -> Plan:
        return self._leading().plan

    async def _probe(self, host: HostRecord, verb: BmcVerb) -> BmcProbe:
        answer = await self._pool.call(bmc_target(host, facts_of(self._store.state, host)), _PROBES[verb])
        return BmcProbe(
            power=answer.state.value,
            conditions=tuple(sorted(condition.value for condition in answer.conditions)),
            fault=answer.fault.value if answer.fault is not None else "",
            text=answer.text or ", ".join(answer.serials),
            at=self._clock.now(),
            bmc_seen=BmcSeen(**dataclasses.asdict(answer.machine)) if answer.machine != Machine() else None,
        )

    def _why_leaderless(self) -> str:
        return "nobody can be elected without the store" if self._store.unavailable else "one is being elected"

    def _status(self) -> StatusParts:
        leader = self.leader()
        away = self._store.unavailable
        unreachable = self._forwarder.trouble if leader is not None and not self.is_leader() else None
        trouble = self.trouble() if away or unreachable or leader is None else None
        return StatusParts(
            coordinator=self._settings.name,
            version=self._version,
            leader=leader[0] if leader else "",
            leader_address=leader[1] if leader else "",
            leader_since=self._engine.since if self._engine is not None else self._leader_since,
            store_unavailable_since=away[0] if away else None,
            store_problem=away[1] if away else "",
            leaderless_since=self._leaderless_since if leader is None else unreachable.since if unreachable else None,
            leader_problem=unreachable.why if unreachable else self._why_leaderless() if leader is None else "",
            trouble=trouble,
            as_of=self._store.as_of if away else None,
        )


def _calls(desk: Desk) -> Calls:
    return Calls(
        campaigns=CampaignRpc(CampaignService(desk)),
        fleet=FleetRpc(FleetService(desk)),
        dead_letters=DeadLetterRpc(DeadLetterService(desk)),
        audit=AuditRpc(AuditService(desk), AuditFilter),
    )


def _etcd_tls(tls: Tls | None) -> etcd.TlsFiles | None:
    return etcd.TlsFiles(ca=tls.ca, cert=tls.cert, key=tls.key) if tls is not None else None


def _pool_settings(bmc: BmcSection) -> PoolSettings:
    return PoolSettings(
        power_workers=bmc.power_workers,
        readings_workers=bmc.readings_workers,
        slow_workers=bmc.slow_workers,
        health=HealthSettings(poll_gap_s=bmc.poll_gap_s, order_gap_s=bmc.operation_gap_s),
    )


def _cycle_settings(bmc: BmcSection) -> CycleSettings:
    return dataclasses.replace(
        CycleSettings(),
        soft_s=bmc.soft_s,
        min_soft_s=bmc.min_soft_s,
        force=bmc.force,
        off_limit_s=bmc.off_limit_s,
        on_limit_s=bmc.on_limit_s,
        dwell_s=bmc.dwell_s,
        poll_s=bmc.poll_s,
    )
