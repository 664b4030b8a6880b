"""A small coordinator that answers the public API over real gRPC on loopback, with state; no part of the product."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc

from hostler_contract.pb.hostler.v1 import audit_pb2_grpc
from hostler_contract.pb.hostler.v1 import campaign_pb2_grpc as cgrpc
from hostler_contract.pb.hostler.v1 import deadletter_pb2_grpc as dgrpc
from hostler_contract.pb.hostler.v1 import fleet_pb2_grpc as fgrpc
from unit.cli.campaign_desk import CampaignDesk
from unit.cli.desks import AuditDesk, DeadLetterDesk, FleetDesk
from unit.cli.fleet_state import (
    Fleet,
    Refusal,
    info,
    make_campaign,
    make_host,
    server_clock,
)

__all__ = ["Fleet", "Refusal", "StandIn", "info", "make_campaign", "make_host", "server_clock", "start"]


@dataclass
class StandIn:
    """One listening coordinator."""

    fleet: Fleet
    endpoint: str
    server: grpc.Server

    def stop(self) -> None:
        self.server.stop(grace=None).wait(timeout=5)


def start(fleet: Fleet, credentials: grpc.ServerCredentials | None = None) -> StandIn:
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    cgrpc.add_CampaignServiceServicer_to_server(CampaignDesk(fleet), server)
    fgrpc.add_FleetServiceServicer_to_server(FleetDesk(fleet), server)
    dgrpc.add_DeadLetterServiceServicer_to_server(DeadLetterDesk(fleet), server)
    audit_pb2_grpc.add_AuditServiceServicer_to_server(AuditDesk(fleet), server)
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    return StandIn(fleet, f"127.0.0.1:{port}", server)
