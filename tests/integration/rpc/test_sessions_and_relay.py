"""Agents' streams and relays between two coordinators over real mTLS: who is seen where, and what breaks how."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random

import grpc
import pytest

from hostler_agent import session as messages
from hostler_agent.client import ClientSettings, GrpcCoordinators, TlsFiles
from hostler_agent.endpoints import RememberedEndpoints
from hostler_contract.pb.hostler.v1 import agent_pb2, peer_pb2, work_pb2
from hostler_contract.work import Token
from hostler_coordinator.live import RefusedOrder, ReportKind
from hostler_coordinator.pki import Role
from hostler_coordinator.relay import RELAY_METHOD
from integration.rpc.rig import Fleet, elect, until

pytestmark = pytest.mark.integration

TOKEN = work_pb2.Token(epoch=1, counter=7)


def assignment() -> agent_pb2.SessionResponse:
    return agent_pb2.SessionResponse(assignment=agent_pb2.Assignment(task_id="c/h1", token=TOKEN))


def started() -> agent_pb2.Started:
    return agent_pb2.Started(task_id="c/h1", token=TOKEN, boot_id="boot-1")


async def connected(fleet: Fleet, host: str, via: str) -> None:
    board = fleet.one.board
    await until(
        lambda: host in board.sightings and board.sightings[host].connected and board.sightings[host].via == via,
        f"{host} is seen through {via}",
    )


async def test_an_agent_of_the_follower_is_seen_and_served_by_the_leader(fleet: Fleet) -> None:
    agent = await fleet.agent(fleet.two.address, "h1")
    await connected(fleet, "h1", "c2")
    await agent.say(pull=agent_pb2.Pull())
    seen = fleet.one.board.sightings["h1"]
    await until(lambda: seen.wants_work, "the pull arrives")
    assert seen.boot_id == "boot-1"

    assert fleet.one.router.send("h1", assignment())
    await until(lambda: "assignment" in agent.kinds(), "the assignment comes back")
    await agent.say(started=started())
    await until(lambda: seen.report is not None and seen.report.kind is ReportKind.STARTED, "started arrives")


async def test_an_agent_of_the_leader_is_served_without_a_relay(fleet: Fleet) -> None:
    agent = await fleet.agent(fleet.one.address, "h1")
    await connected(fleet, "h1", "c1")
    assert fleet.one.router.send("h1", assignment())
    await until(lambda: "assignment" in agent.kinds(), "the assignment comes")
    assert not fleet.one.router.send("h-unknown", assignment())


async def test_heartbeats_are_answered_by_the_follower_and_heard_by_the_leader(fleet: Fleet) -> None:
    agent = await fleet.agent(fleet.two.address, "h1")
    await connected(fleet, "h1", "c2")
    before = fleet.one.board.sightings["h1"].heard_at
    await asyncio.sleep(0.05)
    await agent.say(heartbeat=agent_pb2.Heartbeat(sequence=9))

    await until(lambda: fleet.one.board.sightings["h1"].heard_at > before + 0.03, "the beat is heard")
    await until(lambda: agent.kinds() == ["welcome", "heartbeat_reply"], "it is answered")
    assert agent.got[1].heartbeat_reply.sequence == 9


async def test_a_new_leader_gets_everything_at_once(fleet: Fleet) -> None:
    agents = [await fleet.agent(fleet.two.address, f"h{number}") for number in range(5)]
    agents.append(await fleet.agent(fleet.one.address, "h5"))
    await connected(fleet, "h4", "c2")
    await agents[0].say(started=started())
    await until(lambda: fleet.one.board.sightings["h0"].report is not None, "the report arrives")

    elect("c2", fleet.nodes)
    board = fleet.two.board
    await until(lambda: len(board.sightings) == 6 and all(s.connected for s in board.sightings.values()), "all seen")
    assert board.sightings["h5"].via == "c1"
    report = board.sightings["h0"].report
    assert report is not None
    assert report.kind is ReportKind.STARTED
    assert [agent.kinds() for agent in agents] == [["welcome"]] * 6
    assert fleet.two.router.send("h5", assignment())
    await until(lambda: "assignment" in agents[5].kinds(), "the new leader reaches all")


async def test_sessions_live_on_without_a_leader_and_are_told_to_the_next(fleet: Fleet) -> None:
    elect(None, fleet.nodes)
    agent = await fleet.agent(fleet.two.address, "h1")
    await agent.say(heartbeat=agent_pb2.Heartbeat(sequence=1))
    await until(lambda: "heartbeat_reply" in agent.kinds(), "the beat is answered")
    await agent.say(pull=agent_pb2.Pull())
    await until(lambda: any(session.pull_at for session in fleet.two.sessions.held()), "the pull is kept")

    elect("c1", fleet.nodes)
    await connected(fleet, "h1", "c2")
    await until(lambda: fleet.one.board.sightings["h1"].wants_work, "the pull is told")


async def test_a_dead_follower_leaves_its_hosts_disconnected_but_heard(fleet: Fleet) -> None:
    await fleet.agent(fleet.two.address, "h1")
    await connected(fleet, "h1", "c2")
    seen = fleet.one.board.sightings["h1"]
    heard_at = seen.heard_at
    await fleet.two.stop()

    await until(lambda: not seen.connected, "its hosts are disconnected")
    assert seen.heard_at >= heard_at > 0
    assert fleet.one.router.coordinators == ()
    assert not fleet.one.router.send("h1", assignment())


async def test_an_agent_that_leaves_is_detached_on_the_leader(fleet: Fleet) -> None:
    agent = await fleet.agent(fleet.two.address, "h1")
    await connected(fleet, "h1", "c2")
    await agent.leave()
    await until(lambda: not fleet.one.board.sightings["h1"].connected, "it is detached")


async def test_a_half_open_session_is_replaced_at_once(fleet: Fleet) -> None:
    """FC-A09: no FIN, no RST; the host is back on another boot through another coordinator."""
    proxy = await fleet.proxy(fleet.two.address)
    old = await fleet.agent(proxy.address, "h1")
    await connected(fleet, "h1", "c2")
    proxy.freeze()

    new = await fleet.agent(fleet.two.address, "h1", boot_id="boot-2")
    await until(lambda: fleet.one.board.sightings["h1"].boot_id == "boot-2", "the new session is seen")
    assert fleet.one.router.send("h1", assignment())
    await until(lambda: "assignment" in new.kinds(), "the work goes to the new session")
    assert "assignment" not in old.kinds()
    assert len(fleet.two.sessions) == 1
    assert fleet.one.board.sightings["h1"].connected


async def test_a_half_open_session_is_replaced_through_another_coordinator(fleet: Fleet) -> None:
    proxy = await fleet.proxy(fleet.two.address)
    old = await fleet.agent(proxy.address, "h1")
    await connected(fleet, "h1", "c2")
    proxy.freeze()

    new = await fleet.agent(fleet.one.address, "h1", boot_id="boot-2")
    await connected(fleet, "h1", "c1")
    assert fleet.one.router.send("h1", assignment())
    await until(lambda: "assignment" in new.kinds(), "the work goes to the new session")
    assert "assignment" not in old.kinds()


async def test_fc_d10_an_order_refused_where_somebody_led_before_comes_to_the_leader_of_now(fleet: Fleet) -> None:
    def refused(counter: int) -> RefusedOrder:
        token = Token(epoch=1, counter=counter)
        return RefusedOrder("h1", "c/h1", token, "BMC cycle", "the power worker of c2", "overtaken", time.time() - 5.0)

    fleet.two.refusals.append(refused(1))
    elect(None, fleet.nodes)
    elect("c1", fleet.nodes)
    await until(lambda: len(fleet.one.board.refused) == 1, "what was refused before the relay was open")
    relay = fleet.two.keeper.relay
    assert relay is not None
    relay.order_refused(refused(2))
    await until(lambda: len(fleet.one.board.refused) == 2, "what is refused while it is open")
    first, second = fleet.one.board.refused.values()
    assert (first.token.counter, second.token.counter) == (1, 2)
    assert (first.order, first.by, first.why) == ("BMC cycle", "the power worker of c2", "overtaken")
    assert 4.0 < time.time() - first.at < 60.0


@pytest.mark.slow
async def test_keepalive_ends_frozen_sessions_and_relays_in_time(fleet: Fleet) -> None:
    """A peer that answers no ping is noticed in about ten seconds; gRPC's own default would be over a minute."""
    to_leader = await fleet.proxy(fleet.one.address)
    fleet.election.addresses["c1"] = to_leader.address
    elect("c1", fleet.nodes)
    await until(lambda: fleet.one.router.coordinators == ("c2",), "the relay goes through the proxy")
    to_follower = await fleet.proxy(fleet.two.address)
    await fleet.agent(to_follower.address, "h1")
    await connected(fleet, "h1", "c2")

    began = time.monotonic()
    to_leader.freeze()
    to_follower.freeze()
    relay = fleet.two.keeper.relay
    assert relay is not None
    await until(lambda: not relay.connected, "the follower notices the leader", 15.0)
    await until(lambda: fleet.one.router.coordinators == (), "the leader notices the follower", 15.0)
    await until(lambda: len(fleet.two.sessions) == 0, "the follower notices the agent", 15.0)
    assert time.monotonic() - began < 15.0

    to_leader.thaw()
    await until(lambda: relay.connected and fleet.one.router.coordinators == ("c2",), "the relay heals by itself", 15.0)


async def test_the_products_own_agent_attaches_and_is_served(fleet: Fleet, tmp_path: Path) -> None:
    files = fleet.authority.issue("h1", Role.AGENT, now=fleet.now)
    tls = TlsFiles(files.ca, files.cert, files.key)
    coordinators = GrpcCoordinators(
        [fleet.two.address], tls, Random(1), ClientSettings(), RememberedEndpoints(tmp_path / "endpoints")
    )
    session = await coordinators.attach(lambda: messages.Hello(host_id="h1", boot_id="boot-1"))
    await connected(fleet, "h1", "c2")
    assert session.welcome.coordinator == "c2"
    await session.send(messages.Pull())
    await until(lambda: fleet.one.board.sightings["h1"].wants_work, "the pull arrives")
    assert fleet.one.router.send("h1", assignment())
    received = await asyncio.wait_for(session.receive(), 10)
    assert isinstance(received, messages.Assignment)
    assert received.token == Token(epoch=1, counter=7)
    await session.close()
    await until(lambda: not fleet.one.board.sightings["h1"].connected, "it is detached")


async def test_an_agent_may_speak_for_its_own_host_only(fleet: Fleet) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await fleet.agent(fleet.two.address, "h1", certificate_for="h2")

    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert "certificate is for host h2" in (refused.value.details() or "")
    assert [(who, method) for who, method, _ in fleet.two.refused] == [("host/h2", "/hostler.v1.AgentService/Session")]
    assert len(fleet.two.sessions) == 0
    assert fleet.one.board.sightings == {}


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.COORDINATOR])
async def test_only_agents_open_sessions(fleet: Fleet, role: Role) -> None:
    call = fleet.channel(fleet.one, "c9", role).stream_stream(
        "/hostler.v1.AgentService/Session",
        request_serializer=agent_pb2.SessionRequest.SerializeToString,
        response_deserializer=agent_pb2.SessionResponse.FromString,
    )()
    assert await call.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("name", "role", "says", "code"),
    [
        ("h1", Role.AGENT, "h1", grpc.StatusCode.PERMISSION_DENIED),
        ("c9", Role.COORDINATOR, "c2", grpc.StatusCode.PERMISSION_DENIED),
    ],
)
async def test_only_a_coordinator_under_its_own_name_opens_a_relay(
    fleet: Fleet, name: str, role: Role, says: str, code: grpc.StatusCode
) -> None:
    call = fleet.channel(fleet.one, name, role).stream_stream(
        RELAY_METHOD,
        request_serializer=peer_pb2.RelayRequest.SerializeToString,
        response_deserializer=peer_pb2.RelayResponse.FromString,
    )()
    await call.write(peer_pb2.RelayRequest(coordinator=says))
    assert await call.code() is code
    assert len(fleet.one.refused) == 1


async def test_a_relay_to_one_that_does_not_lead_is_refused_by_name(fleet: Fleet) -> None:
    call = fleet.channel(fleet.two, "c9", Role.COORDINATOR).stream_stream(
        RELAY_METHOD,
        request_serializer=peer_pb2.RelayRequest.SerializeToString,
        response_deserializer=peer_pb2.RelayResponse.FromString,
    )()
    await call.write(peer_pb2.RelayRequest(coordinator="c9"))
    assert await call.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert await call.details() == "this coordinator does not lead; c1 does"


async def test_a_session_without_hello_is_refused(fleet: Fleet) -> None:
    call = fleet.channel(fleet.one, "h1", Role.AGENT).stream_stream(
        "/hostler.v1.AgentService/Session",
        request_serializer=agent_pb2.SessionRequest.SerializeToString,
        response_deserializer=agent_pb2.SessionResponse.FromString,
    )()
    await call.write(agent_pb2.SessionRequest(pull=agent_pb2.Pull()))
    assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_coordinator_that_leaves_sends_its_agents_elsewhere(fleet: Fleet) -> None:
    agent = await fleet.agent(fleet.two.address, "h1")
    await connected(fleet, "h1", "c2")
    stopping = asyncio.create_task(fleet.two.server.stop("upgrade", 5.0))
    await until(lambda: "reattach" in agent.kinds(), "the agent is asked to leave")
    assert agent.got[-1].reattach.span_s == 7.0
    assert agent.got[-1].reattach.reason == "upgrade"
    await agent.leave()
    began = time.monotonic()
    await stopping
    assert time.monotonic() - began < 4.0
