"""How a relay batches, what it keeps and drops, and how the leader routes; the wire is tried in integration/rpc."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from hostler_contract.pb.hostler.v1 import agent_pb2, peer_pb2, work_pb2
from hostler_contract.work import Token
from hostler_coordinator.board import Board
from hostler_coordinator.relay import RelayBrokenError, RelaySettings, RelayUplink, Router, UplinkKeeper
from hostler_coordinator.sessions import LocalUplink, Sessions, SessionSettings

NOW = 1_800_000_000.0


class HandClock:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.at = NOW

    def __call__(self) -> float:
        return self.at


def no_dialling(address: str) -> Any:
    raise AssertionError(f"dialled {address}")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sessions(clock: HandClock) -> Sessions:
    return Sessions(SessionSettings("c2"), clock)


@pytest.fixture
def uplink(sessions: Sessions, clock: HandClock) -> RelayUplink:
    settings = RelaySettings(batch_messages_max=3, batch_bytes_max=2000, waiting_messages_max=10)
    relay = RelayUplink("c2", ("c1", "127.0.0.1:1"), no_dialling, sessions, clock, Random(1), settings)
    relay.connected = True
    return relay


def hello(host: str = "h1", boot_id: str = "b") -> agent_pb2.Hello:
    return agent_pb2.Hello(host_id=host, boot_id=boot_id)


def pull() -> agent_pb2.SessionRequest:
    return agent_pb2.SessionRequest(pull=agent_pb2.Pull())


def go() -> agent_pb2.SessionResponse:
    return agent_pb2.SessionResponse(go=agent_pb2.Go(task_id="c/h1"))


def kinds(batch: list[peer_pb2.RelayedFromAgent]) -> list[str | None]:
    return [item.WhichOneof("event") for item in batch]


def test_events_keep_their_order_and_beats_come_last_once_each(uplink: RelayUplink, clock: HandClock) -> None:
    uplink.heard("h1", 1, 0.0)
    uplink.attached("h2", 1, hello("h2"), 5.0)
    uplink.heard("h1", 1, 0.0)
    uplink.message("h2", 1, pull(), 0.0)
    clock.at += 0.5

    batch = uplink._next_batch()
    assert kinds(batch) == ["attached", "message", "heard"]
    assert [item.age_s for item in batch] == pytest.approx([5.5, 0.5, 0.5])
    assert uplink._next_batch() == []


def test_batches_are_bounded_by_number_and_by_bytes(uplink: RelayUplink) -> None:
    for number in range(4):
        uplink.message(f"h{number}", 1, pull(), 0.0)
    assert [len(uplink._next_batch()) for _ in range(3)] == [3, 1, 0]

    for _ in range(2):
        uplink.attached("h1", 1, hello(boot_id="x" * 2500), 0.0)
    assert [len(uplink._next_batch()) for _ in range(3)] == [1, 1, 0]


def test_a_leader_that_takes_nothing_makes_the_relay_start_anew(uplink: RelayUplink) -> None:
    for _ in range(11):
        uplink.message("h1", 1, pull(), 0.0)
    with pytest.raises(RelayBrokenError, match="starting anew"):
        uplink._next_batch()


def test_without_a_stream_nothing_is_kept(uplink: RelayUplink) -> None:
    uplink.connected = False
    uplink.attached("h1", 1, hello(), 0.0)
    uplink.message("h1", 1, pull(), 0.0)
    uplink.heard("h1", 1, 0.0)
    uplink.detached("h1", 1, "gone")
    assert uplink._next_batch() == []


class ScriptedStream:
    """What a leader answers, in order; then the end of the stream."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)

    async def read(self) -> object:
        return self._answers.pop(0)


async def test_a_leader_of_an_older_term_is_not_obeyed(uplink: RelayUplink, sessions: Sessions) -> None:
    session = sessions.open("h1", hello())
    order = peer_pb2.RelayedToAgent(host_id="h1", session=session.number, message=go())
    stream = ScriptedStream(
        peer_pb2.RelayResponse(term=8, messages=[order]), peer_pb2.RelayResponse(term=7, messages=[order])
    )
    with pytest.raises(RelayBrokenError, match="fell back"):
        await uplink._receive(stream, 8)
    assert session.outgoing.qsize() == 2  # the welcome and one GO


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def router(board: Board, clock: HandClock) -> Router:
    return Router("c1", board, Sessions(SessionSettings("c1"), clock), clock, lambda: 1, outgoing_messages_max=2)


def attached(host: str = "h1", session: int = 1) -> peer_pb2.RelayRequest:
    event = peer_pb2.RelayedFromAgent(host_id=host, session=session, attached=hello(host))
    return peer_pb2.RelayRequest(messages=[event])


def test_the_newest_relay_of_a_coordinator_replaces_the_older(router: Router, board: Board) -> None:
    older = router.join("c2")
    router.receive(older, attached())
    newer = router.join("c2")
    assert older.ended.is_set()
    assert not board.sightings["h1"].connected

    router.receive(older, attached(session=99))
    assert not board.sightings["h1"].connected
    router.receive(newer, attached())
    router.leave(older, "its stream is gone at last")
    assert board.sightings["h1"].connected
    assert router.coordinators == ("c2",)


def test_a_coordinator_that_does_not_read_loses_its_relay(router: Router, board: Board) -> None:
    link = router.join("c2")
    router.receive(link, attached())
    assert [router.send("h1", go()) for _ in range(3)] == [True, True, False]
    assert link.ended.is_set()


def test_one_odd_event_does_not_spoil_a_batch(router: Router, board: Board) -> None:
    link = router.join("c2")
    batch = attached()
    batch.messages.insert(0, peer_pb2.RelayedFromAgent(host_id="h9"))
    router.receive(link, batch)
    assert board.sightings["h1"].connected
    assert board.unreadable == 1


def test_detached_and_heard_arrive(router: Router, board: Board, clock: HandClock) -> None:
    link = router.join("c2")
    router.receive(link, attached())
    clock.at += 10
    heard = peer_pb2.RelayedFromAgent(host_id="h1", session=1, heard=peer_pb2.Heard(), age_s=1.0)
    router.receive(link, peer_pb2.RelayRequest(messages=[heard]))
    assert board.sightings["h1"].heard_at == NOW + 9
    gone = peer_pb2.RelayedFromAgent(host_id="h1", session=1, detached=peer_pb2.Detached(reason="left"))
    router.receive(link, peer_pb2.RelayRequest(messages=[gone]))
    assert not board.sightings["h1"].connected


def test_fc_d10_refused_orders_arrive_dated_by_the_leaders_clock_and_bounded(
    router: Router, board: Board, clock: HandClock
) -> None:
    link = router.join("c2")
    token = work_pb2.Token(epoch=1, counter=7)
    said = peer_pb2.RefusedOrder(
        host_id="h1", task_id="c/h1", token=token, order="BMC cycle", by="c2", why="x" * 9000, age_s=3
    )
    router.receive(link, peer_pb2.RelayRequest(refused=[said, said]))
    (order,) = board.refused.values()
    assert (order.host, order.task_id, order.token) == ("h1", "c/h1", Token(epoch=1, counter=7))
    assert (order.order, order.by, order.at, len(order.why)) == ("BMC cycle", "c2", NOW - 3, 500)
    odd = peer_pb2.RefusedOrder(host_id="h1", token=work_pb2.Token(epoch=-1))
    router.receive(link, peer_pb2.RelayRequest(refused=[odd]))
    assert (len(board.refused), board.unreadable) == (1, 1)
    board.clear()
    assert board.refused == {}


def test_a_deposed_leader_lets_every_relay_go(router: Router) -> None:
    links = [router.join(name) for name in ("c2", "c3")]
    router.end_all("no longer leads")
    assert [link.why_ended for link in links] == ["no longer leads"] * 2
    assert router.coordinators == ()


async def settled(condition: Callable[[], bool]) -> None:
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("did not settle")


async def test_the_keeper_points_the_sessions_at_whoever_leads(sessions: Sessions, clock: HandClock) -> None:
    relays: list[RelayUplink] = []

    class Quiet(RelayUplink):
        """A relay whose leader never answers."""

        async def run(self) -> None:
            await asyncio.Event().wait()

    def relay_to(leader: tuple[str, str]) -> RelayUplink:
        relays.append(Quiet("c2", leader, no_dialling, sessions, clock, Random(1)))
        return relays[-1]

    board = Board()
    local = LocalUplink(board, "c2", clock)
    sessions.open("h1", hello())
    keeper = UplinkKeeper(sessions, local, relay_to)
    running = asyncio.create_task(keeper.run())

    keeper.update(leads=False, leader=("c1", "a:1"))
    await settled(lambda: sessions.uplink is keeper.relay is not None)
    keeper.update(leads=False, leader=("c3", "a:3"))
    await settled(lambda: len(relays) == 2 and sessions.uplink is relays[1])
    keeper.update(leads=True, leader=("c2", "a:2"))
    await settled(lambda: sessions.uplink is local)
    assert board.sightings["h1"].connected
    keeper.update(leads=False, leader=None)
    await settled(lambda: sessions.uplink is None)
    running.cancel()
