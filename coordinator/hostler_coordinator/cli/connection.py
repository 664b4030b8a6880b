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
from hostler_coordinator.cli.errors import Problem, from_rpc, usage
from hostler_coordinator.cli.profile import Profile, check_endpoints, is_plaintext

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

PLAINTEXT_IDENTITY = "hostler-plaintext-identity"
ATTEMPTS_MAX = 12
RETRY_PAUSE_S = 0.25
ATTEMPT_MIN_S = 1.0
STREAM_RETRIES_MAX = 20
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

    def call(self, method: Method[Q, R], request: Q, *, repeatable: bool = True) -> R:
        """Call one method and return its answer; raises Problem.

        The next endpoint is tried when one cannot be reached. A request that is not `repeatable` is sent a second time
        only if it certainly was not carried out the first time.
        """
        deadline = time.monotonic() + self.timeout_s
        problem = Problem("DEADLINE_EXCEEDED", f"no answer within {self.timeout_s:g} s")
        for attempt in range(ATTEMPTS_MAX):
            endpoint = self._endpoint()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            try:
                return self._send(endpoint, method, request, self._share(left_s))
            except grpc.RpcError as error:
                problem = from_rpc(error, endpoint=endpoint)
                if not _may_repeat(problem, repeatable=repeatable):
                    raise self._explained(problem) from error
                self._next(attempt, deadline)
        raise self._explained(problem)

    def stream(self, method: Method[Q, R], request: Q, *, resume: bool) -> Iterator[R]:
        """Yield a method's stream of answers. With `resume` a broken stream is opened again, elsewhere if need be;
        without, only while nothing has come yet. Without any answer it gives up after the time-out.
        """
        failures, received = 0, False
        deadline = time.monotonic() + self.timeout_s
        while True:
            endpoint = self._endpoint()
            try:
                for answer in self._open(endpoint, method, request):
                    failures, received = 0, True
                    yield answer
                return
            except grpc.RpcError as error:
                problem = from_rpc(error, endpoint=endpoint)
                failures += 1
                if failures == 1 and received:
                    deadline = time.monotonic() + self.timeout_s
                broken = problem.code in {"UNAVAILABLE", "DEADLINE_EXCEEDED"} and (resume or not received)
                if not broken or failures > STREAM_RETRIES_MAX or time.monotonic() >= deadline:
                    raise self._explained(problem) from error
                if failures == 1 and resume:
                    self.warn(f"{problem.message}; asking the next coordinator")
                self._next(failures - 1, deadline)

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

    def _send(self, endpoint: str, method: Method[Q, R], request: Q, timeout_s: float) -> R:
        call = self._channel(endpoint).unary_unary(
            method.path, request_serializer=_serialize, response_deserializer=method.read
        )
        answer: R = call(request, timeout=timeout_s, metadata=self._metadata())
        return answer

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

    def _next(self, attempt: int, deadline: float) -> None:
        """Turn to the next endpoint; after a whole round, pause for a moment."""
        self._turn += 1
        if (attempt + 1) % len(self.profile.endpoints) == 0:
            left_s = deadline - time.monotonic()
            time.sleep(max(0.0, min(RETRY_PAUSE_S * (attempt + 1) / len(self.profile.endpoints), left_s)))

    def _explained(self, problem: Problem) -> Problem:
        """Name every endpoint and the next step when none of them could be reached."""
        if problem.from_server or problem.code not in {"UNAVAILABLE", "DEADLINE_EXCEEDED"}:
            return problem
        if len(self.profile.endpoints) > 1:
            problem.message = f"no coordinator answers at {', '.join(self.profile.endpoints)}; {problem.message}"
        problem.fix = problem.fix or "check the profile's endpoints and certificates, and that a coordinator runs"
        return problem

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


def _may_repeat(problem: Problem, *, repeatable: bool) -> bool:
    if problem.code == "UNAVAILABLE":
        return repeatable or problem.from_server or problem.never_sent
    return problem.code == "DEADLINE_EXCEEDED" and repeatable and not problem.from_server


def _read_paper(name: str, path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(PAPER_BYTES_MAX)
    except OSError as error:
        raise usage(f"{name} file {path} cannot be read: {error.strerror}") from error
