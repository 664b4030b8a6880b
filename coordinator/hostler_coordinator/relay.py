"""Carries what sessions say from a coordinator that follows to the one that leads, and back; decides nothing."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import grpc
import structlog

from hostler_contract.codec import from_message, to_message
from hostler_contract.pb.hostler.v1 import agent_pb2, peer_pb2, work_pb2
from hostler_contract.work import Token
from hostler_coordinator.live import RefusedOrder
from hostler_coordinator.racing import read_within, until_either_ends

if TYPE_CHECKING:
    from hostler_coordinator.board import Board
    from hostler_coordinator.sessions import Sessions, Uplink

RELAY_METHOD = "/hostler.v1.PeerService/Relay"

REFUSED_MOST = 100
"""Refused orders that wait to be told; the oldest goes first."""
REFUSED_CHARACTERS_MAX = 500

EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]

log: Any = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Bounds of a relay; with batches of 100 a heartbeat costs the leader a few microseconds."""

    flush_after_s: float = 0.02
    batch_messages_max: int = 100
    batch_bytes_max: int = 512 * 1024
    waiting_messages_max: int = 100_000
    """More than this not yet sent: the relay starts anew, with a snapshot."""
    write_timeout_s: float = 10.0
    answer_timeout_s: float = 5.0
    """For the leader to accept the relay."""
    retry_first_s: float = 0.1
    retry_cap_s: float = 2.0


class RelayBrokenError(Exception):
    """This relay cannot go on and must start anew; the message says why."""


@dataclass(slots=True)
class _Waiting:
    """One event not yet sent, and when it was heard."""

    event: peer_pb2.RelayedFromAgent
    heard_at: float


class RelayUplink:
    """The uplink of a coordinator that follows: one stream to one leader, opened again until `run` is cancelled.

    While there is no stream nothing is queued: each stream begins with a snapshot of all sessions. `dial` opens a
    channel to an address; every try gets a fresh one. `clock` is seconds, for ages only.
    """

    def __init__(
        self,
        coordinator: str,
        leader: tuple[str, str],
        dial: Callable[[str], grpc.aio.Channel],
        sessions: Sessions,
        clock: Callable[[], float],
        chance: Random,
        settings: RelaySettings | None = None,
        *,
        refusals: Callable[[], Iterable[RefusedOrder]] = tuple,
    ) -> None:
        """refusals: orders of an earlier term of ours that were refused; told at the beginning of each stream."""
        self.connected = False
        self._coordinator = coordinator
        self._leader, self._address = leader
        self._dial = dial
        self._sessions = sessions
        self._clock = clock
        self._chance = chance
        self._settings = settings or RelaySettings()
        self._refusals = refusals
        self._refused: deque[RefusedOrder] = deque(maxlen=REFUSED_MOST)
        self._waiting: deque[_Waiting] = deque()
        self._heard: dict[str, tuple[int, float]] = {}
        self._wake = asyncio.Event()

    # -- Uplink ------------------------------------------------------------------------------------------------------

    def attached(self, host: str, session: int, hello: agent_pb2.Hello, age_s: float) -> None:
        """See sessions.Uplink."""
        if self.connected:
            self._queue(peer_pb2.RelayedFromAgent(host_id=host, session=session, attached=hello), age_s)

    def message(self, host: str, session: int, request: agent_pb2.SessionRequest, age_s: float) -> None:
        """See sessions.Uplink."""
        if self.connected:
            self._queue(peer_pb2.RelayedFromAgent(host_id=host, session=session, message=request), age_s)

    def heard(self, host: str, session: int, age_s: float) -> None:
        """See sessions.Uplink; many of these between two batches become one."""
        if self.connected:
            self._heard[host] = (session, self._clock() - age_s)
            self._wake.set()

    def detached(self, host: str, session: int, reason: str) -> None:
        """See sessions.Uplink."""
        if self.connected:
            gone = peer_pb2.Detached(reason=reason)
            self._queue(peer_pb2.RelayedFromAgent(host_id=host, session=session, detached=gone), 0.0)

    def order_refused(self, order: RefusedOrder) -> None:
        """An order of an earlier term of ours was refused where it would have acted: the leader shall write it down."""
        if self.connected:
            self._refused.append(order)
            self._wake.set()

    def _queue(self, event: peer_pb2.RelayedFromAgent, age_s: float) -> None:
        self._waiting.append(_Waiting(event, self._clock() - age_s))
        self._wake.set()

    # -- the stream --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep a relay to this leader open, with full jitter between tries; ends only by cancellation."""
        tries = 0
        told = ""
        while True:
            try:
                await self._relay_once()
                why = "the leader closed the relay"
            except grpc.aio.AioRpcError as error:
                why = f"{error.code().name}: {error.details()}"
            except (RelayBrokenError, TimeoutError) as error:
                why = str(error) or "no answer in time"
            tries = 1 if self.connected else tries + 1
            self._disconnect()
            if why != told or tries == 1:  # the same cause again and again is said once
                log.warning("relay broke", leader=self._leader, address=self._address, why=why, tries=tries)
                told = why
            cap_s = min(self._settings.retry_cap_s, self._settings.retry_first_s * 2 ** min(tries, 10))
            await asyncio.sleep(self._chance.uniform(0.0, cap_s))

    def _disconnect(self) -> None:
        self.connected = False
        self._waiting.clear()
        self._heard.clear()
        self._refused.clear()

    async def _relay_once(self) -> None:
        channel: Any = self._dial(self._address)
        try:
            call = channel.stream_stream(
                RELAY_METHOD,
                request_serializer=peer_pb2.RelayRequest.SerializeToString,
                response_deserializer=peer_pb2.RelayResponse.FromString,
            )()
            try:
                await self._talk(call)
            except asyncio.InvalidStateError as error:  # grpc.aio's word for writing to a call that has ended
                raise RelayBrokenError(f"{(await call.code()).name}: {await call.details()}") from error
            finally:
                call.cancel()  # ends the read that still waits
        finally:
            await channel.close()

    async def _talk(self, call: Any) -> None:
        async with asyncio.timeout(self._settings.answer_timeout_s):
            await call.write(peer_pb2.RelayRequest(coordinator=self._coordinator))
        accepted = await read_within(self._settings.answer_timeout_s, call.read())
        if accepted is EOF:
            raise RelayBrokenError(f"the leader did not accept the relay: {await call.details()}")
        self._disconnect()
        self.connected = True
        self._sessions.push_snapshot(self)
        for order in self._refusals():
            self.order_refused(order)
        log.info("relay open", leader=self._leader, address=self._address, sessions=len(self._sessions))
        await until_either_ends(self._send(call), reading=self._receive(call, accepted.term))

    async def _send(self, call: Any) -> None:
        """The first event after a pause goes at once, what follows close upon it in one batch; beats can wait."""
        settings = self._settings
        flushed_at = 0.0
        while True:
            await self._wake.wait()
            since_s = self._clock() - flushed_at if self._waiting else 0.0
            if since_s < settings.flush_after_s and len(self._waiting) + len(self._heard) < settings.batch_messages_max:
                await asyncio.sleep(settings.flush_after_s - max(0.0, since_s))
            self._wake.clear()
            flushed_at = self._clock()
            if refused := [_refused_message(order, self._clock()) for order in self._refused]:
                self._refused.clear()
                async with asyncio.timeout(settings.write_timeout_s):
                    await call.write(peer_pb2.RelayRequest(refused=refused))
            while batch := self._next_batch():
                async with asyncio.timeout(settings.write_timeout_s):
                    await call.write(peer_pb2.RelayRequest(messages=batch))

    def _next_batch(self) -> list[peer_pb2.RelayedFromAgent]:
        """Take what fits one message: events in order first, then hosts still heard."""
        settings = self._settings
        if len(self._waiting) > settings.waiting_messages_max:
            raise RelayBrokenError(f"{len(self._waiting)} messages wait for the leader; starting anew with a snapshot")
        now = self._clock()
        batch: list[peer_pb2.RelayedFromAgent] = []
        size = 0
        while self._waiting and len(batch) < settings.batch_messages_max and size < settings.batch_bytes_max:
            waiting = self._waiting.popleft()
            waiting.event.age_s = max(0.0, now - waiting.heard_at)
            size += waiting.event.ByteSize()
            batch.append(waiting.event)
        while not self._waiting and self._heard and len(batch) < settings.batch_messages_max:
            host, (session, heard_at) = self._heard.popitem()
            age_s = max(0.0, now - heard_at)
            batch.append(peer_pb2.RelayedFromAgent(host_id=host, session=session, heard=peer_pb2.Heard(), age_s=age_s))
        return batch

    async def _receive(self, call: Any, term: int) -> None:
        while (response := await call.read()) is not EOF:
            if response.term < term:
                raise RelayBrokenError(f"the leader fell back from term {term} to {response.term}")
            term = response.term
            for answer in response.messages:
                self._sessions.deliver(answer.host_id, answer.session, answer.message)


@dataclass(slots=True, eq=False)
class RelayLink:
    """The leader's end of one coordinator's relay; `ended` is set when its stream must close."""

    coordinator: str
    outgoing: asyncio.Queue[peer_pb2.RelayedToAgent]
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    why_ended: str = ""

    def end(self, why: str) -> None:
        """Ask the stream to close; the first reason stands."""
        if not self.ended.is_set():
            self.why_ended = why
            self.ended.set()


class Router:
    """The leader's side: relays fill the board, and what the engine sends goes to whoever holds the session.

    `clock` is the leader's clock, epoch seconds; `term` the create revision of its leader key.
    """

    def __init__(
        self,
        coordinator: str,
        board: Board,
        sessions: Sessions,
        clock: Callable[[], float],
        term: Callable[[], int],
        outgoing_messages_max: int = 10_000,
    ) -> None:
        self.term = term
        self._coordinator = coordinator
        self._board = board
        self._sessions = sessions
        self._clock = clock
        self._outgoing_messages_max = outgoing_messages_max
        self._links: dict[str, RelayLink] = {}

    def send(self, host: str, response: Any) -> bool:
        """Send a SessionResponse to a host's agent, without waiting; False when there is no way to it."""
        seen = self._board.sightings.get(host)
        if seen is None or not seen.connected:
            return False
        if seen.via == self._coordinator:
            return self._sessions.deliver(host, seen.session, response)
        link = self._links.get(seen.via)
        if link is None:
            return False
        try:
            link.outgoing.put_nowait(peer_pb2.RelayedToAgent(host_id=host, session=seen.session, message=response))
        except asyncio.QueueFull:
            link.end(f"{link.outgoing.maxsize} messages wait for this coordinator")
            return False
        return True

    def join(self, coordinator: str) -> RelayLink:
        """A coordinator opened a relay; an older one of it ends, and its snapshot will say anew what it holds."""
        older = self._links.get(coordinator)
        if older is not None:
            self.leave(older, "replaced by a newer relay of this coordinator")
        link = RelayLink(coordinator, asyncio.Queue(self._outgoing_messages_max))
        self._links[coordinator] = link
        return link

    def leave(self, link: RelayLink, why: str) -> None:
        """A relay ended: its sessions are no longer connected, as far as the leader knows."""
        link.end(why)
        if self._links.get(link.coordinator) is link:
            del self._links[link.coordinator]
            self._board.forget_via(link.coordinator, self._clock())

    def end_all(self, why: str) -> None:
        """End every relay, because this coordinator no longer leads or is leaving."""
        for link in tuple(self._links.values()):
            self.leave(link, why)

    def receive(self, link: RelayLink, request: peer_pb2.RelayRequest) -> None:
        """Put one batch on the board; what an ended relay still brings is dropped."""
        if link.ended.is_set():
            return
        board, via, now = self._board, link.coordinator, self._clock()
        for item in request.messages:
            host, session, age_s = item.host_id, item.session, max(0.0, item.age_s)
            match item.WhichOneof("event"):
                case "heard":
                    board.heard(host, via, session, age_s, now)
                case "message":
                    board.message(host, via, session, item.message, age_s, now)
                case "attached":
                    board.attached(host, via, session, item.attached, age_s, now)
                case "detached":
                    board.detached(host, via, session, item.detached.reason, now)
                case _:
                    board.unreadable += 1
        for said in request.refused:
            try:
                board.order_refused(_refused_order(said, now))
            except ValueError:  # a token that no coordinator of ours gave
                board.unreadable += 1

    @property
    def coordinators(self) -> tuple[str, ...]:
        """Coordinators whose relays are open."""
        return tuple(self._links)


def _refused_message(order: RefusedOrder, now: float) -> peer_pb2.RefusedOrder:
    return peer_pb2.RefusedOrder(
        host_id=order.host,
        task_id=order.task_id,
        token=to_message(order.token, work_pb2.Token),
        order=order.order,
        by=order.by,
        why=order.why,
        age_s=max(0.0, now - order.at),
    )


def _refused_order(said: peer_pb2.RefusedOrder, now: float) -> RefusedOrder:
    """Raises ValueError for a token out of range."""
    order, by, why = (text[:REFUSED_CHARACTERS_MAX] for text in (said.order, said.by, said.why))
    token = from_message(Token, said.token)
    return RefusedOrder(said.host_id, said.task_id, token, order, by, why, now - max(0.0, said.age_s))


class UplinkKeeper:
    """Points the sessions at whoever leads: the local board, a relay, or nobody.

    `update` says who; `run` carries it out. The board must be clear before
    `update(leads=True)`: a term begins with what it hears itself.
    """

    def __init__(self, sessions: Sessions, local: Uplink, relay_to: Callable[[tuple[str, str]], RelayUplink]) -> None:
        self.relay: RelayUplink | None = None
        self._sessions = sessions
        self._local = local
        self._relay_to = relay_to
        self._leads = False
        self._leader: tuple[str, str] | None = None
        self._changed = asyncio.Event()

    def update(self, *, leads: bool, leader: tuple[str, str] | None) -> None:
        """Say who leads: name and address, or None while nobody is known to."""
        if (leads, leader) != (self._leads, self._leader):
            self._leads, self._leader = leads, leader
            self._changed.set()

    async def run(self) -> None:
        """Follow the leader until cancelled; a bug in a relay comes out here."""
        while True:
            self._changed.clear()
            if self._leads or self._leader is None:
                self.relay = None
                self._sessions.uplink = self._local if self._leads else None
                await self._changed.wait()
            else:
                self.relay = self._relay_to(self._leader)
                self._sessions.uplink = self.relay
                await self._follow(self.relay)

    async def _follow(self, relay: RelayUplink) -> None:
        """Run a relay until somebody else leads."""
        running = asyncio.ensure_future(relay.run())
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait([running, changed], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            running.cancel()
            changed.cancel()
            await asyncio.gather(running, changed, return_exceptions=True)
