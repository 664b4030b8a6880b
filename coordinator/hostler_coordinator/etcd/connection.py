"""One channel to one etcd member, and the streams open on it. Which member to talk to is the transport's choice."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

import grpc
import grpc.aio

from hostler_coordinator.etcd.methods import Method, Request, Response
from hostler_coordinator.racing import read_within

Metadata = tuple[tuple[str, str], ...]

MESSAGE_MAX_BYTES = 16 * 1024 * 1024
REBUILD_AFTER_DEADLINES = 2
_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # missing from the stubs
_CLOSE_GRACE_S = 5.0

# Measured: with keepalive_timeout_ms alone grpcio 1.85 takes keepalive_time + 60 s to drop a frozen peer, because only
# the transport's ping time-out counts. etcd answers pings less than 5 s apart with GOAWAY, so 6 s is the floor.
CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", 6000),
    ("grpc.keepalive_timeout_ms", 2000),
    ("grpc.http2.ping_timeout_ms", 2000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
    ("grpc.max_send_message_length", MESSAGE_MAX_BYTES),
    # A pool of its own: a rebuilt channel must not be handed the old one's stuck connection.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the CA that signed the other side, and this side's certificate (its CN is the etcd user) and key."""

    ca: Path
    cert: Path
    key: Path


def client_credentials(tls: TlsFiles) -> grpc.ChannelCredentials:
    """Read the files and make credentials of them (OSError when one cannot be read)."""
    return grpc.ssl_channel_credentials(tls.ca.read_bytes(), tls.key.read_bytes(), tls.cert.read_bytes())


class StreamBroken(Exception):
    """A stream ended, by whatever cause; what was sent on it last may or may not have arrived."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self.code = code
        self.details = details
        super().__init__(f"{code.name.lower()}: {details}")


class Stream(Generic[Request, Response]):
    """An open bidirectional stream; every way in which it can end comes out as StreamBroken."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def send(self, request: Request, timeout_s: float) -> None:
        """Send one message, waiting at most ``timeout_s`` for room in the transport."""
        with _breaks():
            async with asyncio.timeout(timeout_s):  # not wait_for: in Python 3.11 that can swallow a cancellation
                await self._call.write(request)

    async def receive(self, timeout_s: float | None) -> Response:
        """The next message; None waits for as long as the stream lives (pings end it when the member freezes).

        After a time-out or a cancellation the read is left to end with its call: cancel the stream then.
        """
        with _breaks():
            message = await read_within(timeout_s, self._call.read())
        if message is _EOF:
            raise await self._ended()
        response: Response = message
        return response

    async def _ended(self) -> StreamBroken:
        with _breaks():
            return StreamBroken(await self._call.code(), await self._call.details() or "the member ended the stream")

    def cancel(self) -> None:
        """End it; whoever waits on it gets StreamBroken."""
        self._call.cancel()


@contextlib.contextmanager
def _breaks() -> Any:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise StreamBroken(error.code(), error.details() or "") from error
    except TimeoutError as error:
        raise StreamBroken(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer in time") from error
    except asyncio.InvalidStateError as error:
        raise StreamBroken(grpc.StatusCode.CANCELLED, "the stream had ended") from error
    except asyncio.CancelledError as error:
        if cancelled_from_outside():
            raise
        raise StreamBroken(grpc.StatusCode.CANCELLED, "the stream was given up") from error


def cancelled_from_outside() -> bool:
    """True when the running task itself is being cancelled; grpc.aio raises CancelledError for a cancelled *call*
    too.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Connection:
    """A channel to one member. It is rebuilt after repeated deadlines, because a channel can stay stuck after the
    network has healed.
    """

    def __init__(self, endpoint: str, credentials: grpc.ChannelCredentials | None) -> None:
        self.endpoint = endpoint
        self._credentials = credentials
        self._channel = self._open()
        self._deadlines_in_a_row = 0
        self._streams: set[Any] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def _open(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self.endpoint, CHANNEL_OPTIONS)
        return grpc.aio.secure_channel(self.endpoint, self._credentials, CHANNEL_OPTIONS)

    async def unary(
        self, method: Method[Request, Response], request: Request, timeout_s: float, metadata: Metadata
    ) -> Response:
        """One request, one answer.

        A caller that is cancelled cancels the call. That is safe (measured with memcheck): grpc keeps the memory of a
        batch until its core has called back.

        Raises:
            grpc.aio.AioRpcError: as grpc raises it.
        """
        multi = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        response: Response = await multi(request, timeout=timeout_s, metadata=metadata)
        return response

    @contextlib.asynccontextmanager
    async def stream(self, method: Method[Request, Response], metadata: Metadata) -> Any:
        """An open stream, cancelled on the way out."""
        multi: Any = self._channel.stream_stream(  # the stubs know only the form with a request iterator
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        stream: Stream[Request, Response] = Stream(multi(metadata=metadata))
        self._streams.add(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)
            stream.cancel()

    def answered(self) -> None:
        """The member gave an answer."""
        self._deadlines_in_a_row = 0

    def fell_silent(self) -> None:
        """The member let a full request time-out pass: its streams move on, and the channel is rebuilt if it goes
        on.
        """
        for stream in tuple(self._streams):
            stream.cancel()
        self._deadlines_in_a_row += 1
        if self._deadlines_in_a_row >= REBUILD_AFTER_DEADLINES:
            self._deadlines_in_a_row = 0
            old, self._channel = self._channel, self._open()
            task = asyncio.get_running_loop().create_task(old.close(_CLOSE_GRACE_S))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close at once."""
        await self._channel.close(None)
        for task in tuple(self._closing):
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
