"""The gRPC edge: mTLS streams to any coordinator, converted by the contract's codec; what to say is not known here."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
from pydantic import BaseModel, ValidationError

from hostler_agent.endpoints import ENDPOINTS_MAX, RememberedEndpoints
from hostler_agent.ports import AttachError, SessionLostError
from hostler_agent.session import (
    Assignment,
    Go,
    Heartbeat,
    HeartbeatReply,
    Hello,
    Incoming,
    Outcome,
    OutcomeRecorded,
    Outgoing,
    Progress,
    Pull,
    Reattach,
    Started,
    Stop,
    Welcome,
)
from hostler_contract.codec import UnknownEnumValueError, fill_message, from_message
from hostler_contract.pb.hostler.v1 import agent_pb2
from hostler_contract.pb.hostler.v1.agent_pb2_grpc import AgentServiceStub

MESSAGE_MAX_BYTES = 1 << 20
T = TypeVar("T")
EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs lack it
Stream = Any
"""grpc.aio.StreamStreamCall[SessionRequest, SessionResponse]; the generic is not subscriptable at run time."""

FIELDS: dict[type[BaseModel], str] = {
    Hello: "hello",
    Heartbeat: "heartbeat",
    Pull: "pull",
    Started: "started",
    Progress: "progress",
    Outcome: "outcome",
}
MODELS: dict[str, type[Incoming]] = {
    "welcome": Welcome,
    "heartbeat_reply": HeartbeatReply,
    "assignment": Assignment,
    "go": Go,
    "stop": Stop,
    "reattach": Reattach,
    "outcome_recorded": OutcomeRecorded,
}


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files, read anew at each attachment so that renewed certificates are taken up."""

    ca: Path
    certificate: Path
    key: Path
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Bounds of one stream, seconds."""

    attach_timeout_s: float = 10.0
    send_timeout_s: float = 10.0
    keepalive_interval_s: float = 10.0
    ping_timeout_s: float = 5.0


class GrpcSession:
    """One stream. A lock makes it one writer at a time and keeps the order."""

    def __init__(self, channel: grpc.aio.Channel, call: Stream, welcome: Welcome, send_timeout_s: float) -> None:
        self._channel = channel
        self._call = call
        self._welcome = welcome
        self._send_timeout_s = send_timeout_s
        self._writing = asyncio.Lock()

    @property
    def welcome(self) -> Welcome:
        """The coordinator's first answer."""
        return self._welcome

    async def send(self, message: Outgoing) -> None:
        """Put it on the stream; a peer that takes nothing for too long has lost us."""
        request = to_request(message)
        try:
            async with asyncio.timeout(self._send_timeout_s), self._writing:
                await self._call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError, TimeoutError) as error:
            if _cancelled_from_outside(error):
                raise
            raise SessionLostError(describe(error)) from error

    async def receive(self) -> Incoming:
        """The next message that this version understands."""
        while True:
            response = await self._read()
            if (message := from_response(response)) is not None:
                return message

    async def close(self) -> None:
        """Give the stream up at once."""
        self._call.cancel()
        await self._channel.close(grace=None)

    async def _read(self) -> agent_pb2.SessionResponse:
        try:
            response = await left_alone(self._call.read())
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError) as error:
            if _cancelled_from_outside(error):
                raise
            raise SessionLostError(describe(error)) from error
        if response is EOF:
            code, details = await self._call.code(), await self._call.details()
            msg = f"stream ended by the coordinator ({code.name}) {details or ''}".rstrip()
            raise SessionLostError(msg)
        return response  # type: ignore[no-any-return]


class GrpcCoordinators:
    """All endpoints known: those of the configuration and those that coordinators name. Any will do.

    Every attempt builds a channel of its own, with subchannels of its own, so that nothing of a dead connection (its
    back-off, its half-open socket) outlives it (FC-A22).
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        tls: TlsFiles | None,
        chance: random.Random,
        settings: ClientSettings,
        remembered: RememberedEndpoints,
    ) -> None:
        self._configured = tuple(endpoints)
        self._remembered = remembered
        self._learned = remembered.load()
        self._tls = tls
        self._chance = chance
        self._settings = settings
        self._untried: list[str] = []

    async def attach(self, hello: Callable[[], Hello]) -> GrpcSession:
        """Try the next endpoint, in an order drawn anew each round; raises AttachError within the attach timeout."""
        endpoint = self._next_endpoint()
        channel = self._channel(endpoint)
        try:
            async with asyncio.timeout(self._settings.attach_timeout_s):
                session = await self._open(channel, hello)
        except (TimeoutError, grpc.aio.AioRpcError, SessionLostError, ValidationError, OSError) as error:
            await channel.close(grace=None)
            code, text = classify(error)
            raise AttachError(code, f"{endpoint}: {text}") from error
        except BaseException:
            await channel.close(grace=None)
            raise
        self._learn(session.welcome.endpoints)
        return session

    @asynccontextmanager
    async def loaded(self) -> AsyncIterator[None]:
        """Keep gRPC and its TLS loaded by a channel that never connects; for a start that must be quick later."""
        channel = self._channel("127.0.0.1:1")
        try:
            yield
        finally:
            await channel.close(grace=None)

    async def _open(self, channel: grpc.aio.Channel, hello: Callable[[], Hello]) -> GrpcSession:
        """Say hello and wait for the welcome."""
        call: Stream = AgentServiceStub(channel).Session()
        await call.write(to_request(hello()))
        response = await left_alone(call.read())
        if response is EOF:
            code, details = await call.code(), await call.details()
            msg = f"{code.name}: {details or 'stream ended before the welcome'}"
            raise SessionLostError(msg)
        welcome = from_response(response)
        if not isinstance(welcome, Welcome):
            msg = f"expected a welcome, got {type(welcome).__name__}"
            raise SessionLostError(msg)
        return GrpcSession(channel, call, welcome, self._settings.send_timeout_s)

    def _next_endpoint(self) -> str:
        if not self._untried:
            self._untried = list(dict.fromkeys((*self._configured, *self._learned)))
            self._chance.shuffle(self._untried)
        return self._untried.pop()

    def _learn(self, endpoints: Sequence[str]) -> None:
        named = tuple(endpoints[:ENDPOINTS_MAX])
        if named and named != self._learned:
            self._learned = named
            self._remembered.save(named)

    def _channel(self, endpoint: str) -> grpc.aio.Channel:
        options = self._options()
        if self._tls is None:
            return grpc.aio.insecure_channel(endpoint, options)
        try:
            credentials = grpc.ssl_channel_credentials(
                self._tls.ca.read_bytes(), self._tls.key.read_bytes(), self._tls.certificate.read_bytes()
            )
        except OSError as error:
            raise AttachError("certificate-unreadable", f"{error.filename}: {error.strerror}") from error
        return grpc.aio.secure_channel(endpoint, credentials, options)

    def _options(self) -> list[tuple[str, Any]]:
        settings = self._settings
        options: list[tuple[str, Any]] = [
            ("grpc.keepalive_time_ms", int(settings.keepalive_interval_s * 1000)),
            ("grpc.keepalive_timeout_ms", int(settings.ping_timeout_s * 1000)),
            # Without it a frozen peer goes unnoticed for over a minute: keepalive_timeout_ms never fires.
            ("grpc.http2.ping_timeout_ms", int(settings.ping_timeout_s * 1000)),
            ("grpc.keepalive_permit_without_calls", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_retries", 0),
            ("grpc.http2.bdp_probe", 0),  # messages are small: a ping for every one of them measures nothing
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
        ]
        if self._tls is not None and self._tls.server_name:
            options.append(("grpc.ssl_target_name_override", self._tls.server_name))
        return options


def to_request(message: Outgoing) -> agent_pb2.SessionRequest:
    """Convert; the bare heartbeat, sent thousands of times more often than the rest, by hand."""
    request = agent_pb2.SessionRequest()
    part = getattr(request, FIELDS[type(message)])
    part.SetInParent()
    if isinstance(message, Heartbeat) and message.condition is None:
        part.sequence = message.sequence
    else:
        fill_message(message, part)
    return request


def from_response(response: agent_pb2.SessionResponse) -> Incoming | None:
    """Convert; None for what a newer coordinator says and this version does not know."""
    field = response.WhichOneof("message")
    if field is None or field not in MODELS:
        return None
    part = getattr(response, field)
    if field == "heartbeat_reply":
        return HeartbeatReply.model_construct(sequence=part.sequence, next_interval_s=part.next_interval_s)
    try:
        return from_message(MODELS[field], part)
    except UnknownEnumValueError:
        return _without_unknown_enums(part) if field == "assignment" else None
    except ValidationError:
        return None


def _without_unknown_enums(part: agent_pb2.Assignment) -> Assignment:
    """An operation that this version does not know: kept with operation None, so that it is refused and not ignored."""
    known = agent_pb2.Assignment()
    known.CopyFrom(part)
    known.ClearField("operation")
    known.ClearField("mode")
    return from_message(Assignment, known)


def _cancelled_from_outside(error: BaseException) -> bool:
    """A cancelled call raises CancelledError too; only a task that was itself cancelled must stay so."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def left_alone(reading: Awaitable[T]) -> T:
    """What the read brings. When the caller is cancelled, the read goes on until its call ends.

    A cancelled read of grpc.aio (1.85) would leave its core with nowhere to put what still arrives.
    """
    read = asyncio.ensure_future(reading)
    read.add_done_callback(_seen)
    return await asyncio.shield(read)


def _seen(read: asyncio.Future[Any]) -> None:
    """Look at how it ended, so that asyncio does not warn: its call has ended, and that is all it can say."""
    if not read.cancelled():
        read.exception()


def describe(error: BaseException) -> str:
    """One line for people."""
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details() or 'no details'}"
    return str(error) or type(error).__name__


def classify(error: BaseException) -> tuple[str, str]:
    """(stable code, words). A certificate that does not fit is a condition of its own, not "agent down" (FC-A28)."""
    text = describe(error)
    if isinstance(error, TimeoutError):
        return "timeout", "no welcome in time"
    lowered = text.lower()
    if any(word in lowered for word in ("certificate", "hostname verification", "peer name", "handshake")):
        return "certificate-mismatch", text
    if "permission_denied" in lowered or "unauthenticated" in lowered or "not_found" in lowered:
        return "not-enrolled", text
    return "unreachable", text
