"""hostler.v1.PeerService: the leader's end of other coordinators' relays; routing itself lives in `relay`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import grpc

from hostler_contract.pb.hostler.v1 import peer_pb2 as pb
from hostler_coordinator.pki import Role
from hostler_coordinator.racing import read_within, until_either_ends
from hostler_coordinator.rpc import statuses
from hostler_coordinator.rpc.edge import guarded

if TYPE_CHECKING:
    from hostler_coordinator.relay import RelayLink, Router
    from hostler_coordinator.rpc.edge import Gate
    from hostler_coordinator.rpc.services import Leadership

SERVICE = "hostler.v1.PeerService"
PATH = f"/{SERVICE}/Relay"
FIRST_TIMEOUT_S = 10.0
RELAY_S_MAX = 30 * 86400.0
BATCH_MESSAGES_MAX = 100


class PeerRpc:
    """Takes relays while this coordinator leads."""

    def __init__(self, gate: Gate, leadership: Leadership, router: Router) -> None:
        self._gate = gate
        self._leadership = leadership
        self._router = router

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        """Serve the service."""
        relay = grpc.stream_stream_rpc_method_handler(
            self.relay,
            request_deserializer=pb.RelayRequest.FromString,
            response_serializer=pb.RelayResponse.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"Relay": relay})

    async def relay(self, requests: AsyncIterator[pb.RelayRequest], context: Any) -> None:
        """One coordinator's relay, until it or our leadership ends."""
        await guarded(self._gate, PATH, context, RELAY_S_MAX, self._serve(requests, context))

    async def _serve(self, requests: AsyncIterator[pb.RelayRequest], context: Any) -> None:
        identity = self._gate.admit(context, Role.COORDINATOR, PATH)
        try:
            first = await read_within(FIRST_TIMEOUT_S, anext(requests, None))
        except TimeoutError as error:
            raise statuses.StatusError(statuses.overdue(FIRST_TIMEOUT_S)) from error
        if first is None or first.coordinator != identity.name:
            text = f"the certificate is for coordinator {identity.name}; the relay's first message must say so"
            raise self._gate.turn_away(identity, PATH, "certificate-mismatch", text)
        if not self._leadership.is_leader():
            leader = self._leadership.leader()
            text = "this coordinator does not lead" + (f"; {leader[0]} does" if leader else "; nobody is known to")
            status = statuses.make_status(grpc.StatusCode.FAILED_PRECONDITION, text, statuses.info("not-leader"))
            raise statuses.StatusError(status)
        link = self._router.join(identity.name)
        why = "the relay's stream broke"
        try:
            await context.write(pb.RelayResponse(term=self._router.term()))
            self._router.receive(link, first)
            await until_either_ends(self._write(context, link), link.ended.wait(), reading=self._read(requests, link))
        finally:
            ours = link.why_ended
            self._router.leave(link, why)
        if ours:
            status = statuses.make_status(grpc.StatusCode.ABORTED, ours, statuses.info("relay-ended"))
            raise statuses.StatusError(status)

    async def _read(self, requests: AsyncIterator[pb.RelayRequest], link: RelayLink) -> None:
        async for request in requests:
            self._router.receive(link, request)

    async def _write(self, context: Any, link: RelayLink) -> None:
        while True:
            batch = [await link.outgoing.get()]
            while len(batch) < BATCH_MESSAGES_MAX and not link.outgoing.empty():
                batch.append(link.outgoing.get_nowait())
            await context.write(pb.RelayResponse(messages=batch, term=self._router.term()))
