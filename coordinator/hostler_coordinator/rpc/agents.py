"""hostler.v1.AgentService: one stream per agent, pumped to and from its session; what is said is `sessions`'."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import grpc

from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from hostler_coordinator.pki import Role
from hostler_coordinator.racing import read_within, until_either_ends
from hostler_coordinator.rpc import statuses
from hostler_coordinator.rpc.edge import guarded
from hostler_coordinator.sessions import MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from hostler_coordinator.rpc.edge import Gate
    from hostler_coordinator.sessions import Session, Sessions

SERVICE = "hostler.v1.AgentService"
PATH = f"/{SERVICE}/Session"
HELLO_TIMEOUT_S = 10.0
SESSION_S_MAX = 30 * 86400.0
"""No stream is for ever: after a month an agent attaches anew."""
FULL_RETRY_S = 5.0


class AgentRpc:
    """Serves the agents' streams; an agent speaks for the host its certificate names, and for no other."""

    def __init__(self, gate: Gate, sessions: Sessions, hello_timeout_s: float = HELLO_TIMEOUT_S) -> None:
        self._gate = gate
        self._sessions = sessions
        self._hello_timeout_s = hello_timeout_s

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        """Serve the service."""
        session = grpc.stream_stream_rpc_method_handler(
            self.session,
            request_deserializer=pb.SessionRequest.FromString,
            response_serializer=pb.SessionResponse.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"Session": session})

    async def session(self, requests: AsyncIterator[pb.SessionRequest], context: Any) -> None:
        """One agent's stream, from hello to its end."""
        await guarded(self._gate, PATH, context, SESSION_S_MAX, self._serve(requests, context))

    async def _serve(self, requests: AsyncIterator[pb.SessionRequest], context: Any) -> None:
        identity = self._gate.admit(context, Role.AGENT, PATH)
        hello = await self._hello(requests)
        if hello.host_id != identity.name:
            text = f"the certificate is for host {identity.name}, the agent says it is {hello.host_id[:100]!r}"
            raise self._gate.turn_away(identity, PATH, "certificate-mismatch", text)
        if why := self._sessions.full():
            raise statuses.StatusError(statuses.unavailable(why, None, FULL_RETRY_S, "full"))
        session = self._sessions.open(identity.name, hello)
        try:
            await until_either_ends(
                _write(context, session), session.ended.wait(), reading=self._read(requests, session)
            )
        finally:
            self._sessions.closed(session, "the stream ended")
        if session.why_ended != "the stream ended":
            status = statuses.make_status(grpc.StatusCode.ABORTED, session.why_ended, statuses.info("session-ended"))
            raise statuses.StatusError(status)

    async def _hello(self, requests: AsyncIterator[pb.SessionRequest]) -> pb.Hello:
        try:
            first = await read_within(self._hello_timeout_s, anext(requests, None))
        except TimeoutError as error:
            raise statuses.StatusError(statuses.overdue(self._hello_timeout_s)) from error
        if first is None or not first.HasField("hello"):
            text = "a session begins with a hello"
            status = statuses.make_status(grpc.StatusCode.INVALID_ARGUMENT, text, statuses.info("no-hello"))
            raise statuses.StatusError(status)
        if first.ByteSize() > MESSAGE_BYTES_MAX:
            text = f"the hello has {first.ByteSize()} bytes, more than {MESSAGE_BYTES_MAX}"
            status = statuses.make_status(grpc.StatusCode.INVALID_ARGUMENT, text, statuses.info("hello-too-large"))
            raise statuses.StatusError(status)
        return first.hello

    async def _read(self, requests: AsyncIterator[pb.SessionRequest], session: Session) -> None:
        received = self._sessions.received
        async for request in requests:
            received(session, request)


async def _write(context: Any, session: Session) -> None:
    """The stream's one writer."""
    get = session.outgoing.get
    while True:
        await context.write(await get())
