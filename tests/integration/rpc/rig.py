"""Coordinators' edges over real mTLS on loopback, agents as bare streams, and a proxy that can freeze a connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import grpc

from hostler_contract import views
from hostler_contract.campaigns import CampaignRequest, CampaignState
from hostler_contract.pb.hostler.v1 import agent_pb2
from hostler_contract.work import OperationKind, RebootMode
from hostler_coordinator.board import Board
from hostler_coordinator.live import RefusedOrder
from hostler_coordinator.pki import CertFiles, CertificateAuthority, Role
from hostler_coordinator.relay import RelayUplink, Router, UplinkKeeper
from hostler_coordinator.rpc.audit import AuditRpc
from hostler_coordinator.rpc.campaigns import CampaignRpc
from hostler_coordinator.rpc.channels import CLIENT_OPTIONS, Tls, dialler, server_credentials
from hostler_coordinator.rpc.deadletters import DeadLetterRpc
from hostler_coordinator.rpc.edge import Edge, Gate
from hostler_coordinator.rpc.fleet import FleetRpc
from hostler_coordinator.rpc.forward import Forwarder
from hostler_coordinator.rpc.identity import IdentityReader
from hostler_coordinator.rpc.server import Calls, RpcServer, ServerSettings
from hostler_coordinator.rpc.services import AuditCalls, CampaignCalls, DeadLetterCalls, FleetCalls
from hostler_coordinator.service.callers import Caller
from hostler_coordinator.service.trouble import Trouble, leaderless
from hostler_coordinator.sessions import LocalUplink, Sessions, SessionSettings

WAIT_S = 10.0


async def until(condition: Callable[[], object], what: str, most_s: float = WAIT_S) -> None:
    """Wait for a condition, and fail by name."""
    end = time.monotonic() + most_s
    while not condition():
        assert time.monotonic() < end, f"not within {most_s} s: {what}"
        await asyncio.sleep(0.01)


def tls_of(files: CertFiles) -> Tls:
    return Tls(files.cert.read_bytes(), files.key.read_bytes(), files.ca.read_bytes())


@dataclass
class Election:
    """Who leads, and where each coordinator is."""

    leader: str | None = None
    addresses: dict[str, str] = field(default_factory=dict)
    term: int = 1


@dataclass
class Standing:
    """The election as one coordinator sees it; `believes` overrides it, as on one that has not heard yet."""

    name: str
    election: Election
    believes: str | None = None
    store: Trouble | None = None
    read_at: float | None = 1_800_000_000.0
    forwarder: Forwarder | None = None

    def is_leader(self) -> bool:
        return self.election.leader == self.name

    def leader(self) -> tuple[str, str] | None:
        name = self.believes or self.election.leader
        return None if name is None else (name, self.election.addresses[name])

    def trouble(self) -> Trouble:
        unreachable = self.forwarder.trouble if self.forwarder is not None else None
        return self.store or unreachable or leaderless(1_800_000_000.0)

    def as_of(self) -> float | None:
        return self.read_at


def campaign(ident: str, by: str = "alice", key: str = "k") -> views.Campaign:
    return views.Campaign(
        id=ident,
        key=key,
        operation=OperationKind.REBOOT,
        mode=RebootMode.SOFT,
        state=CampaignState.RUNNING,
        created_at=1_800_000_000.0,
        created_by=by,
        target_count=3,
        as_of=1_800_000_001.0,
    )


LISTED_AT = 1_800_000_500.0


class MemoryCampaigns:
    """Campaigns in memory; `raises` is what the next call ends with."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.kept: dict[str, views.Campaign] = {}
        self.raises: Exception | None = None
        self.ends = True
        """False: a watch goes on for ever after its first answers."""
        self.asked: list[tuple[Any, ...]] = []

    def as_of(self) -> float:
        """When what is listed was true."""
        return LISTED_AT

    async def submit(
        self, caller: Caller, key: str, request: CampaignRequest, count: int, token: str, confirmed: bool
    ) -> tuple[views.Campaign, bool]:
        self.asked.append((caller, key, request, count, token, confirmed))
        again = key in self.kept
        return self.kept.setdefault(key, campaign(f"c-{len(self.kept) + 1}", by=caller.name, key=key)), again

    async def get(self, ident: str) -> views.Campaign:
        if self.raises is not None:
            raise self.raises
        return campaign(ident, by=self.where)

    async def list(
        self, page_size: int, page_token: str, states: tuple[CampaignState, ...]
    ) -> tuple[tuple[views.Campaign, ...], str]:
        self.asked.append((page_size, page_token, states))
        start = int(page_token or 0)
        page = tuple(campaign(f"c-{number}") for number in range(start, min(5, start + page_size)))
        return page, str(start + page_size) if start + page_size < 5 else ""

    async def watch(self, ident: str) -> AsyncIterator[views.Campaign]:
        for number in range(3):
            yield campaign(f"{ident}-{number}", by=self.where)
        if self.raises is not None:
            raise self.raises
        if not self.ends:
            await asyncio.Event().wait()


class MemoryFleet:
    """The one call of the fleet that these tests make."""

    def __init__(self, where: str) -> None:
        self.where = where

    async def status(self) -> views.Status:
        return views.Status(coordinator=self.where, now=1_800_000_000.0)


def _calls(campaigns: MemoryCampaigns, name: str, mirror: Calls | None = None) -> Calls:
    return Calls(
        CampaignRpc(cast("CampaignCalls", campaigns)),
        FleetRpc(cast("FleetCalls", MemoryFleet(name))),
        DeadLetterRpc(cast("DeadLetterCalls", None)),
        AuditRpc(cast("AuditCalls", None), dict),
        mirror,
    )


class Node:
    """One coordinator as far as the edge goes."""

    def __init__(
        self,
        name: str,
        authority: CertificateAuthority,
        election: Election,
        now: Any,
        region: str = "r1",
        *,
        plaintext: bool = False,
    ) -> None:
        self.name = name
        self.election = election
        self.standing = Standing(name, election)
        self.tls = tls_of(authority.issue(name, Role.COORDINATOR, now=now, ips=("127.0.0.1",)))
        self.board = Board()
        self.sessions = Sessions(SessionSettings(name), time.time)
        self.campaigns = MemoryCampaigns(name)
        self.refused: list[tuple[str, str, str]] = []
        self.observed: list[tuple[str, float, str]] = []
        self.router = Router(name, self.board, self.sessions, time.time, lambda: election.term)
        self.dial = dialler(lambda: self.tls)
        self.forwarder = self.standing.forwarder = Forwarder(self.dial, time.time)
        self.keeper = UplinkKeeper(self.sessions, LocalUplink(self.board, name, time.time), self._relay)
        gate = Gate(IdentityReader(region, plaintext), self._observe, self._refuse)
        self.mirror = MemoryCampaigns(f"{name}'s records")
        calls = _calls(self.campaigns, name, _calls(self.mirror, name))
        self.server = RpcServer(
            ServerSettings("127.0.0.1:0", plaintext=plaintext, leave_span_s=7.0),
            server_credentials(lambda: self.tls),
            gate,
            Edge(gate, self.standing, self.forwarder),
            calls,
            self.standing,
            self.router,
            sessions=self.sessions,
        )
        self.refusals: list[RefusedOrder] = []
        self.address = ""
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.address = self.election.addresses[self.name] = await self.server.start()
        self._following = asyncio.create_task(self.keeper.run())

    async def stop(self, grace_s: float = 0.0) -> None:
        if self._following is not None:
            assert not self._following.done(), self._following
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            self._following = None
        await self.server.stop("the test is over", grace_s)
        await self.forwarder.close()

    def look(self) -> None:
        """See who leads now."""
        if not self.standing.is_leader():
            self.router.end_all("no longer leads")
        else:
            self.board.clear()
        self.keeper.update(leads=self.standing.is_leader(), leader=self.standing.leader())

    def _relay(self, leader: tuple[str, str]) -> RelayUplink:
        return RelayUplink(
            self.name, leader, self.dial, self.sessions, time.time, Random(1), refusals=lambda: tuple(self.refusals)
        )

    def _observe(self, method: str, seconds: float, code: str) -> None:
        self.observed.append((method, seconds, code))

    def _refuse(self, identity: str, method: str, why: str) -> None:
        self.refused.append((identity, method, why))


def elect(name: str | None, nodes: list[Node]) -> None:
    """Make one lead, and tell all."""
    for node in nodes:
        node.election.leader = name
    nodes[0].election.term += 1
    for node in nodes:
        node.look()


class Agent:
    """A bare agent: a stream under a host's certificate, and everything it was sent."""

    def __init__(self, address: str, tls: Tls, host: str, boot_id: str = "boot-1") -> None:
        credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
        self.channel: Any = grpc.aio.secure_channel(address, credentials, options=CLIENT_OPTIONS)
        method: Any = self.channel.stream_stream(
            "/hostler.v1.AgentService/Session",
            request_serializer=agent_pb2.SessionRequest.SerializeToString,
            response_deserializer=agent_pb2.SessionResponse.FromString,
        )
        self.call: Any = method()
        self.host = host
        self.boot_id = boot_id
        self.got: list[agent_pb2.SessionResponse] = []
        self._reading: asyncio.Task[None] | None = None

    async def attach(self) -> None:
        """Say hello and wait for the welcome; raises AioRpcError when turned away."""
        hello = agent_pb2.Hello(host_id=self.host, boot_id=self.boot_id)
        await self.say(hello=hello)
        first = await self.call.read()
        assert isinstance(first, agent_pb2.SessionResponse), await self.call.details()
        self.got.append(first)
        self._reading = asyncio.create_task(self._read())

    async def say(self, **message: Any) -> None:
        await self.call.write(agent_pb2.SessionRequest(**message))

    def kinds(self) -> list[str | None]:
        return [message.WhichOneof("message") for message in self.got]

    async def leave(self) -> None:
        self.call.cancel()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
        await self.channel.close()

    async def _read(self) -> None:
        while isinstance(message := await self.call.read(), agent_pb2.SessionResponse):
            self.got.append(message)


class FreezingProxy:
    """Passes TCP on until frozen; then keeps connections open and silent, as a lost route or a stopped peer does."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.address = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def freeze(self) -> None:
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pass(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._thawed.wait()
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass
        finally:
            sink.close()


class Fleet:
    """Coordinators c1 and c2 and certificates for whoever comes."""

    def __init__(self, authority: CertificateAuthority, now: Any) -> None:
        self.authority = authority
        self.now = now
        self.election = Election()
        self.nodes = [Node(name, authority, self.election, now) for name in ("c1", "c2")]
        self._closing: list[Callable[[], Awaitable[None]]] = []

    @property
    def one(self) -> Node:
        return self.nodes[0]

    @property
    def two(self) -> Node:
        return self.nodes[1]

    def tls(self, name: str, role: Role) -> Tls:
        return tls_of(self.authority.issue(name, role, now=self.now))

    async def agent(self, address: str, host: str, certificate_for: str = "", boot_id: str = "boot-1") -> Agent:
        agent = Agent(address, self.tls(certificate_for or host, Role.AGENT), host, boot_id)
        self._closing.append(agent.leave)
        await agent.attach()
        return agent

    def channel(self, node: Node, name: str = "alice", role: Role = Role.OPERATOR) -> Any:
        channel: Any = dialler(lambda: self.tls(name, role))(node.address)
        self._closing.append(channel.close)
        return channel

    async def proxy(self, target: str) -> FreezingProxy:
        proxy = FreezingProxy(target)
        await proxy.start()
        self._closing.append(proxy.stop)
        return proxy

    async def close(self) -> None:
        for close in reversed(self._closing):
            await close()
        for node in self.nodes:
            await node.stop()


def fleet_at(directory: Path, now: Any, make_ca: Callable[..., CertificateAuthority]) -> Fleet:
    return Fleet(make_ca(directory, now=now), now)
