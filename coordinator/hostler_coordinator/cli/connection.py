"""Calls over mutual TLS to whichever coordinator answers, within one deadline; what calls mean is not known here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from hostler_coordinator.cli.api import Method
from hostler_coordinator.cli.certificates import expiry_warning
from hostler_coordinator.cli.errors import Problem, from_rpc, is_unavailable, notice_of, usage
from hostler_coordinator.cli.patience import STORE_AWAY, Patience
from hostler_coordinator.cli.profile import Profile, check_endpoints, is_plaintext

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

PLAINTEXT_IDENTITY = "hostler-plaintext-identity"
NOTICE_KEY = "hostler-notice-bin"
ATTEMPT_MIN_S = 1.0
LEAST_S = 0.05
"""With less time than this left no attempt is worth making."""
RECEIVED_BYTES_MAX = 8 * 1024 * 1024
PAPER_BYTES_MAX = 1024 * 1024

# Without ping_timeout_ms a frozen peer goes unnoticed for over a minute. Coordinators take pings this often.
CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", 8_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.ping_timeout_ms", 4_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", RECEIVED_BYTES_MAX),
    ("grpc.enable_retries", 0),
    # The first bounds a handshake with a frozen peer, the others how long a refused connection is not tried again.
    ("grpc.min_reconnect_backoff_ms", 4_000),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass
class Connection:
    """Several endpoints, one of them in use. Not for use by several threads."""

    profile: Profile
    timeout_s: float
    warn: Callable[[str], None]
    _channels: dict[str, grpc.Channel] = field(default_factory=dict)
    _turn: int = 0
    _credentials: grpc.ChannelCredentials | None = None
    _checked: bool = False
    _told: set[str] = field(default_factory=set)

    def call(self, method: Method[Q, R], request: Q, *, repeatable: bool | None = None) -> R:
        """Call one method and return its answer; raises Problem.

        While no coordinator can do it now, every endpoint is tried in turn until the time-out. A request that is not
        `repeatable` (as the method says, unless told; a dry run always is) is sent a second time only if it certainly
        was not carried out the first time. An answer from old records is taken at once when the store is away, and
        else when no leader has answered within the time.
        """
        if repeatable is None:
            repeatable = method.repeatable or bool(getattr(request, "dry_run", False))
        patience = Patience(self.timeout_s, self.profile.endpoints, self.warn, repeatable)
        old: tuple[R, Problem] | None = None
        cause: grpc.RpcError | None
        while True:
            endpoint = self._endpoint()
            try:
                answer, notice = self._send(endpoint, method, request, self._share(patience.left_s))
            except grpc.RpcError as error:
                problem, cause = from_rpc(error, endpoint=endpoint), error
                if not is_unavailable(problem):
                    raise problem from error
            else:
                if notice is None or method.tells_itself:
                    return answer
                old, problem, cause = (answer, notice), notice, None
                if notice.reason == STORE_AWAY:
                    break
            if not patience.failed(endpoint, problem):
                break
            self._turn += 1
            patience.waits(problem)
            if patience.left_s <= LEAST_S:
                break
        if old is None:
            raise patience.given_up(problem) from cause
        self._tell(old[1])
        return old[0]

    def stream(self, method: Method[Q, R], request: Q, *, resume: bool) -> Iterator[R]:
        """Yield a method's stream of answers. With `resume` a broken stream is opened again, elsewhere if need be;
        without, only while nothing has come yet. Without any answer it gives up after the time-out.
        """
        received = False
        patience = self._watching()
        while True:
            endpoint = self._endpoint()
            try:
                for answer in self._open(endpoint, method, request):
                    received = True
                    patience = self._watching()
                    yield answer
                return
            except grpc.RpcError as error:
                problem = from_rpc(error, endpoint=endpoint)
                if patience.is_fresh and received:
                    patience.restart()
                first = patience.is_fresh
                again = patience.failed(endpoint, problem)
                if not again or (received and not resume):
                    raise patience.given_up(problem) from error
                if first and resume:
                    self.warn(f"{problem.message}; asking the next coordinator")
                self._turn += 1
                patience.waits(problem)

    def _watching(self) -> Patience:
        """A watch outlives a store that is away for a while: it changes nothing, and people leave it running."""
        return Patience(self.timeout_s, self.profile.endpoints, self.warn, True, self.timeout_s)

    def _tell(self, notice: Problem) -> None:
        """Say once that what is shown is old."""
        text = f"{notice.message}; next: {notice.fix}" if notice.fix else notice.message
        if text not in self._told:
            self._told.add(text)
            self.warn(text)

    def close(self) -> None:
        """Close every channel."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    def _open(self, endpoint: str, method: Method[Q, R], request: Q) -> Iterator[R]:
        channel = self._channel(endpoint)
        open_stream = channel.unary_stream(
            method.path, request_serializer=_serialize, response_deserializer=method.read
        )
        answers: Any = open_stream(request, metadata=self._metadata())
        return iter(answers)

    def _send(self, endpoint: str, method: Method[Q, R], request: Q, timeout_s: float) -> tuple[R, Problem | None]:
        """The answer, and the notice with it when it was read from old records."""
        call = self._channel(endpoint).unary_unary(
            method.path, request_serializer=_serialize, response_deserializer=method.read
        )
        answer, done = call.with_call(request, timeout=timeout_s, metadata=self._metadata())
        raw = next((value for key, value in done.trailing_metadata() or () if key == NOTICE_KEY), None)
        return answer, notice_of(raw) if isinstance(raw, bytes) else None

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        """Over TLS the certificate says who calls; plaintext on loopback has only the caller's word."""
        if self.profile.caller and is_plaintext(self.profile):
            return ((PLAINTEXT_IDENTITY, f"operator/{self.profile.caller}"),)
        return ()

    def _endpoint(self) -> str:
        if not self._checked:
            check_endpoints(self.profile)
            self._checked = True
        return self.profile.endpoints[self._turn % len(self.profile.endpoints)]

    def _share(self, left_s: float) -> float:
        """One endpoint's share of what is left, so that a frozen one does not use up the time of the others."""
        if len(self.profile.endpoints) == 1:
            return left_s
        return min(left_s, max(left_s / 2, ATTEMPT_MIN_S))

    def _channel(self, endpoint: str) -> grpc.Channel:
        if endpoint not in self._channels:
            self._channels[endpoint] = self._new_channel(endpoint)
        return self._channels[endpoint]

    def _new_channel(self, endpoint: str) -> grpc.Channel:
        options: list[tuple[str, int | str]] = list(CHANNEL_OPTIONS)
        if is_plaintext(self.profile):
            return grpc.insecure_channel(endpoint, options=options)
        if self.profile.server_name:
            options.append(("grpc.ssl_target_name_override", self.profile.server_name))
        if self._credentials is None:
            self._credentials = self._load_credentials()
        return grpc.secure_channel(endpoint, self._credentials, options=options)

    def _load_credentials(self) -> grpc.ChannelCredentials:
        ca, cert, key = (_read_paper(name, getattr(self.profile, name)) for name in ("ca", "cert", "key"))
        if warning := expiry_warning(cert, self.profile.cert, time.time()):
            self.warn(warning)
        return grpc.ssl_channel_credentials(root_certificates=ca, private_key=key, certificate_chain=cert)


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _read_paper(name: str, path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(PAPER_BYTES_MAX)
    except OSError as error:
        raise usage(f"{name} file {path} cannot be read: {error.strerror}") from error
