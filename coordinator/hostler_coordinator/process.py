"""One coordinator process: etcd, gRPC, BMCs, metrics, alerts and the services, built around a candidate."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from random import SystemRandom
from typing import TYPE_CHECKING

import structlog

from hostler_contract.moments import format_instant
from hostler_contract.views import BmcProbe, BmcSeen, BmcVerb
from hostler_coordinator import alarms, etcd
from hostler_coordinator.bmc.answers import Machine, Verb
from hostler_coordinator.bmc.health import HealthSettings
from hostler_coordinator.bmc.pacing import Pacing, PacingSettings
from hostler_coordinator.bmc.pool import BmcPool, PoolSettings
from hostler_coordinator.bmc.walk import CycleSettings
from hostler_coordinator.bmc_memory import facts_of
from hostler_coordinator.candidate import Candidate, CandidateSettings, Outside
from hostler_coordinator.clock import SystemClock
from hostler_coordinator.metrics import Metrics
from hostler_coordinator.notify import Alert, Notifier
from hostler_coordinator.planner.turn import Plan
from hostler_coordinator.power import bmc_target
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
from hostler_coordinator.sessions import SessionSettings

if TYPE_CHECKING:
    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.config import BmcSection, Settings, Tls

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
        self._tls = settings.tls
        self._dial = channels.dialler(self._identity if settings.tls is not None else None)
        self._forwarder = Forwarder(self._dial, self._clock.now)
        self._pool = BmcPool(_pool_settings(settings.bmc), observer=self._metrics.bmc_call)
        self._notifier = (
            Notifier(settings.webhook.url, self._clock, timeout_s=settings.webhook.timeout_s)
            if settings.webhook
            else None
        )
        self._candidate = Candidate(self._candidate_settings(), self._outside())

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve, follow and stand for election until cancelled."""
        await self._listen(server := self._server())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._candidate.run(), name="candidate")
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
        mirror = _calls(dataclasses.replace(desk, world=self._candidate.mirror, plan=Plan))
        return RpcServer(
            ServerSettings(settings.listen, plaintext=self._tls is None, leave_span_s=settings.reattach_span_s),
            channels.server_credentials(self._identity) if self._tls is not None else None,
            gate,
            Edge(gate, self._candidate, self._forwarder),
            dataclasses.replace(_calls(desk), mirror=mirror),
            self._candidate,
            self._candidate.router,
            sessions=self._candidate.sessions,
        )

    def _identity(self) -> channels.Tls:
        """Read anew before each handshake: certificates may be renewed."""
        tls = self._tls
        if tls is None:
            msg = "no certificates are configured"
            raise ValueError(msg)
        return channels.Tls(tls.cert.read_bytes(), tls.key.read_bytes(), tls.ca.read_bytes())

    async def _gauges(self) -> None:
        """Metrics and alarms, at a slow beat."""
        while True:
            await asyncio.sleep(GAUGES_EVERY_S)
            store = self._candidate.store
            self._metrics.sessions.set(len(self._candidate.sessions))
            self._metrics.store_down.set(1 if store.unavailable else 0)
            self._metrics.look_at(store.state)
            if self._notifier is not None:
                self._notifier.sync(self._alerts(), self._clock.now())

    def _alerts(self) -> dict[str, Alert]:
        found: dict[str, alarms.Alarm] = {}
        engine = self._candidate.engine
        if engine is not None and self._candidate.is_leader():
            found = alarms.alarms(engine.world(), engine.plan)
            for put in engine.aside:
                since = format_instant(put.since)
                found[f"aside/{put.what}/{put.task}"] = alarms.aside_alarm(put.what, put.task, since, put.reason)
        trouble = self._candidate.store.unavailable
        if trouble is not None:
            found[f"store/{self._settings.name}"] = alarms.store_alarm(format_instant(trouble[0]), trouble[1])
        return {key: Alert(alarm.labels, alarm.annotations) for key, alarm in found.items()}

    # -- what the parts ask ------------------------------------------------------------------------------------------

    def _candidate_settings(self) -> CandidateSettings:
        settings = self._settings
        return CandidateSettings(
            name=settings.name,
            address=settings.address,
            prefix=settings.prefix,
            election_ttl_s=settings.election_ttl_s,
            policy=self._policy,
            sessions=SessionSettings(
                coordinator=settings.name,
                endpoints=settings.endpoints or (settings.address,),
                heartbeat_interval_s=self._policy.heartbeat_interval_s,
                working_interval_s=min(2.0, self._policy.heartbeat_interval_s),
                reattach_span_s=settings.reattach_span_s,
            ),
            power=_cycle_settings(settings.bmc),
        )

    def _outside(self) -> Outside:
        bmc = self._settings.bmc
        return Outside(
            client=self._client,
            clock=self._clock,
            chance=SystemRandom(),
            dial=self._dial,
            bmc=self._pool,
            pacing=Pacing(PacingSettings(bmc.power_on_gap_s, bmc.destructive_per_minute)),
            observer=self._metrics,
            term_begins=lambda: self._metrics.leads.set(1),
            term_ended=self._term_ended,
            unreachable=lambda: self._forwarder.trouble,
        )

    def _term_ended(self) -> None:
        self._metrics.leads.set(0)
        if self._notifier is not None:
            self._notifier.forget()

    def _desk(self) -> Desk:
        candidate = self._candidate
        return Desk(
            store=candidate.store,
            world=candidate.world,
            plan=candidate.plan,
            now=self._clock.now,
            wake=candidate.news,
            policy=self._policy,
            new_id=new_id,
            probe=self._probe,
            status_parts=self._status,
            changed=candidate.changed,
            sleep=self._clock.sleep,
        )

    async def _probe(self, host: HostRecord, verb: BmcVerb) -> BmcProbe:
        answer = await self._pool.call(bmc_target(host, facts_of(self._candidate.store.state, host)), _PROBES[verb])
        return BmcProbe(
            power=answer.state.value,
            conditions=tuple(sorted(condition.value for condition in answer.conditions)),
            fault=answer.fault.value if answer.fault is not None else "",
            text=answer.text or ", ".join(answer.serials),
            at=self._clock.now(),
            bmc_seen=BmcSeen(**dataclasses.asdict(answer.machine)) if answer.machine != Machine() else None,
        )

    def _status(self) -> StatusParts:
        candidate = self._candidate
        leader, away, leaderless_since = candidate.leader(), candidate.store.unavailable, candidate.leaderless_since
        unreachable = self._forwarder.trouble if leader is not None and not candidate.is_leader() else None
        trouble = candidate.trouble() if away or unreachable or leader is None else None
        why_leaderless = "nobody can be elected without the store" if away else "one is being elected"
        return StatusParts(
            coordinator=self._settings.name,
            version=self._version,
            leader=leader[0] if leader else "",
            leader_address=leader[1] if leader else "",
            leader_since=candidate.leader_since,
            store_unavailable_since=away[0] if away else None,
            store_problem=away[1] if away else "",
            leaderless_since=leaderless_since if leader is None else unreachable.since if unreachable else None,
            leader_problem=unreachable.why if unreachable else why_leaderless if leader is None else "",
            trouble=trouble,
            as_of=candidate.as_of() if away else None,
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
