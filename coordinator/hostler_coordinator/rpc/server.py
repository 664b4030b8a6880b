"""Puts the services on one gRPC server and takes it down gently; what they answer is decided elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from hostler_contract.pb.hostler.v1 import agent_pb2, audit_pb2, campaign_pb2, deadletter_pb2, fleet_pb2, peer_pb2
from hostler_coordinator.rpc.agents import AgentRpc
from hostler_coordinator.rpc.channels import SERVER_OPTIONS, refuse_beyond_loopback
from hostler_coordinator.rpc.peers import PeerRpc

if TYPE_CHECKING:
    from hostler_coordinator.relay import Router
    from hostler_coordinator.rpc.audit import AuditRpc
    from hostler_coordinator.rpc.campaigns import CampaignRpc
    from hostler_coordinator.rpc.deadletters import DeadLetterRpc
    from hostler_coordinator.rpc.edge import Edge, Gate
    from hostler_coordinator.rpc.fleet import FleetRpc
    from hostler_coordinator.rpc.services import Leadership
    from hostler_coordinator.sessions import Sessions

_FILES = (agent_pb2, audit_pb2, campaign_pb2, deadletter_pb2, fleet_pb2, peer_pb2)
SERVICES: dict[str, Any] = {
    service.full_name: service for file in _FILES for service in file.DESCRIPTOR.services_by_name.values()
}
"""Every service of hostler.v1 by full name."""

_health: Any = health  # its aio part is set at import, where mypy does not see it
log: Any = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Calls:
    """What operators may call."""

    campaigns: CampaignRpc
    fleet: FleetRpc
    dead_letters: DeadLetterRpc
    audit: AuditRpc
    mirror: Calls | None = None
    """The same, from the records read here, for when no leader answers."""

    def handlers(self, edge: Edge) -> list[grpc.GenericRpcHandler[Any, Any]]:
        """All of them, behind the edge."""
        served = {
            "CampaignService": "campaigns",
            "FleetService": "fleet",
            "DeadLetterService": "dead_letters",
            "AuditService": "audit",
        }
        return [
            edge.handler(SERVICES[f"hostler.v1.{name}"], getattr(self, part), getattr(self.mirror, part, None))
            for name, part in served.items()
        ]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where to listen, and the bounds of the whole server. `plaintext` is taken on a literal 127.x.y.z only."""

    address: str
    plaintext: bool = False
    rpcs_max: int = 25_000
    """Calls and streams at once; more are refused as RESOURCE_EXHAUSTED."""
    leave_span_s: float = 30.0
    """Agents of a coordinator that leaves attach elsewhere within this span."""


class RpcServer:
    """One coordinator's gRPC server. Raises ValueError for plaintext beyond loopback, RuntimeError for a taken port."""

    def __init__(
        self,
        settings: ServerSettings,
        credentials: grpc.ServerCredentials | None,
        gate: Gate,
        edge: Edge,
        calls: Calls,
        leadership: Leadership,
        router: Router,
        *,
        sessions: Sessions,
    ) -> None:
        if settings.plaintext:
            refuse_beyond_loopback(settings.address)
        elif credentials is None:
            raise ValueError("a server without certificates is refused; plaintext on 127.x.y.z must be asked for")
        self._settings = settings
        self._credentials = credentials
        self._sessions = sessions
        self._router = router
        self._health: Any = _health.aio.HealthServicer()
        self._server = grpc.aio.server(options=SERVER_OPTIONS, maximum_concurrent_rpcs=settings.rpcs_max)
        handlers = [
            *calls.handlers(edge),
            AgentRpc(gate, sessions).handler(),
            PeerRpc(gate, leadership, router).handler(),
        ]
        self._server.add_generic_rpc_handlers(tuple(handlers))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = [*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(names, self._server)

    async def start(self) -> str:
        """Listen; returns the address with the port that was taken."""
        host = self._settings.address.rpartition(":")[0]
        if self._settings.plaintext or self._credentials is None:
            port = self._server.add_insecure_port(self._settings.address)
        else:
            port = self._server.add_secure_port(self._settings.address, self._credentials)
        await self._server.start()
        for name in ("", *SERVICES):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        address = f"{host}:{port}"
        log.info("serving", address=address, plaintext=self._settings.plaintext)
        return address

    async def stop(self, reason: str, grace_s: float = 5.0) -> None:
        """Send agents elsewhere, wait at most `grace_s` for them and for calls in progress, then close."""
        await self._health.enter_graceful_shutdown()
        asked = self._sessions.reattach(self._settings.leave_span_s, reason)
        if asked:
            log.info("sending agents elsewhere", sessions=asked, span_s=self._settings.leave_span_s, reason=reason)
            await self._until(lambda: len(self._sessions) == 0, grace_s)
        self._sessions.end_all(reason)
        self._router.end_all(reason)
        await self._server.stop(grace_s)

    @staticmethod
    async def _until(condition: Callable[[], bool], most_s: float) -> None:
        step_s = 0.05
        for _ in range(max(1, round(most_s / step_s))):
            if condition():
                return
            await asyncio.sleep(step_s)
