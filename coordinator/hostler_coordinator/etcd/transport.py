"""Requests to whichever etcd member answers: deadlines, rotation, jittered back-off, and what may be sent twice. What
the requests mean is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Generic

import grpc
import grpc.aio

from hostler_coordinator.etcd.connection import (
    Connection,
    Metadata,
    Stream,
    TlsFiles,
    cancelled_from_outside,
    client_credentials,
)
from hostler_coordinator.etcd.errors import (
    AuthFailed,
    ClusterChanged,
    Compacted,
    EtcdError,
    Failure,
    NoSpace,
    OutcomeUnknown,
    RequestRefused,
    RequestTooLarge,
    StoreUnavailable,
    sort_failure,
)
from hostler_coordinator.etcd.methods import ALARM_LIST, AUTHENTICATE, Method, Request, Response
from hostler_coordinator.etcd.moments import monotonic
from hostler_coordinator.etcd.pb import wire_pb2 as wire

__all__ = ["Dial", "Login", "Observer", "TlsFiles", "Transport"]

Observer = Callable[[str, float, str], None]
"""Called after every attempt with the method's name, its seconds, and "ok" or the outcome's name."""

Dial = Callable[[str, grpc.ChannelCredentials | None], Connection]
"""Opens a connection to one member."""

BACKOFF_FIRST_S = 0.02
BACKOFF_MAX_S = 0.5
_FULL_WAIT = 0.9  # an attempt that got this share of the request time-out and no answer counts as the member's silence


@dataclass(frozen=True, slots=True)
class Login:
    """An etcd user with a password. Prefer a client certificate: its CN is the user, and nothing lapses."""

    name: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.name!r})"


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt without an answer to use."""

    failure: Failure
    code: grpc.StatusCode
    details: str


@dataclass(frozen=True, slots=True)
class Answer(Generic[Response]):
    """An answer; ``repeated`` when an earlier attempt may have been carried out too."""

    message: Response
    repeated: bool


class Transport:
    """All of a client's connections and the rule which of them is used: the current one until it fails, then the
    next.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        tls: TlsFiles | None,
        login: Login | None,
        request_timeout_s: float,
        deadline_s: float,
        observer: Observer | None,
        *,
        dial: Dial,
        chance: random.Random,
    ) -> None:
        if not endpoints:
            raise ValueError("name at least one etcd endpoint (host:port)")
        self.endpoints = tuple(endpoints)
        self.request_timeout_s = request_timeout_s
        self.deadline_s = deadline_s
        self.unavailable_since: float | None = None
        self._tls = tls
        self._login = login
        self._observer = observer
        self._dial = dial
        self._random = chance
        self._connections: list[Connection] = []
        self._current = 0
        self._token: str | None = None
        self._cluster_id = 0
        self._closed = False

    # --- connections --------------------------------------------------------------------------------------------------

    @property
    def current(self) -> Connection:
        """The connection in use."""
        return self._open()[self._current]

    def _open(self) -> list[Connection]:
        """Opened at first use, because a channel belongs to the event loop that runs then."""
        if self._closed:
            raise EtcdError("this etcd client has been closed")
        if not self._connections:
            credentials = client_credentials(self._tls) if self._tls else None
            self._connections = [self._dial(endpoint, credentials) for endpoint in self.endpoints]
        return self._connections

    def connection(self, endpoint: str) -> Connection:
        """The connection to one member (ValueError for an unknown endpoint)."""
        return self._open()[self.endpoints.index(endpoint)]

    def move_on(self, seen: Connection) -> None:
        """Use the next member, unless somebody has moved on from ``seen`` already."""
        if self.current is seen:
            self._current = (self._current + 1) % len(self._connections)

    async def close(self) -> None:
        """Close every connection; calls in progress fail."""
        connections, self._connections = self._connections, []
        self._closed = True
        await asyncio.gather(*(connection.close() for connection in connections))

    async def back_off(self, attempt: int) -> None:
        """Wait before attempt number ``attempt`` (from 1). The jitter is applied after the cap, or everybody would come
        back in the same instant once the cap is reached.
        """
        cap_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(attempt, 10))
        await asyncio.sleep(self._random.uniform(0.0, cap_s))

    def observe(self, method: str, seconds: float, outcome: str) -> None:
        """Tell the observer, if there is one."""
        if self._observer is not None:
            self._observer(method, seconds, outcome)

    # --- unary calls --------------------------------------------------------------------------------------------------

    async def call(
        self,
        method: Method[Request, Response],
        request: Request,
        *,
        idempotent: bool = False,
        deadline_s: float | None = None,
    ) -> Response:
        """Send a request until it is answered; see ``call_noting``."""
        return (await self.call_noting(method, request, idempotent=idempotent, deadline_s=deadline_s)).message

    async def call_noting(
        self,
        method: Method[Request, Response],
        request: Request,
        *,
        idempotent: bool = False,
        deadline_s: float | None = None,
    ) -> Answer[Response]:
        """Send a request until it is answered. A write is sent again only when it certainly was not carried out, or
        when the caller says that carrying it out twice is harmless.

        Raises:
            OutcomeUnknown: the write may have been carried out.
            StoreUnavailable: no answer before the deadline, and nothing was changed.
            EtcdError: etcd's refusal, by its kind.
        """
        started = monotonic()
        end = started + (self.deadline_s if deadline_s is None else deadline_s)
        in_doubt = False
        attempt = 0
        while True:
            attempt += 1
            connection = self.current
            timeout_s = max(0.001, min(self.request_timeout_s, end - monotonic()))
            result = await self._attempt(connection, method, request, timeout_s)
            if not isinstance(result, Failed):
                return Answer(result, in_doubt)
            if result.failure is Failure.IN_DOUBT:
                in_doubt = in_doubt or method.writes
                if in_doubt and not idempotent:
                    raise OutcomeUnknown(method.name, self._since(started), result.details)
            elif not self._may_repeat(result):
                raise await self._error(method, request, result)
            await self.back_off(attempt)
            if monotonic() >= end:
                if in_doubt:
                    raise OutcomeUnknown(method.name, self._since(started), result.details)
                raise StoreUnavailable(self._since(started), self.endpoints, result.details)

    async def call_member(
        self, endpoint: str, method: Method[Request, Response], request: Request, timeout_s: float
    ) -> Response:
        """Ask one particular member, once.

        Raises:
            StoreUnavailable: it did not answer in time.
            EtcdError: it refused.
        """
        started = monotonic()
        result = await self._attempt(self.connection(endpoint), method, request, timeout_s, of_one_member=True)
        if not isinstance(result, Failed):
            return result
        if result.failure in {Failure.IN_DOUBT, Failure.NOT_APPLIED}:
            if method.writes and result.failure is Failure.IN_DOUBT:
                raise OutcomeUnknown(method.name, started, result.details)
            raise StoreUnavailable(started, (endpoint,), result.details)
        raise await self._error(method, request, result)

    async def _attempt(
        self,
        connection: Connection,
        method: Method[Request, Response],
        request: Request,
        timeout_s: float,
        *,
        of_one_member: bool = False,
    ) -> Response | Failed:
        started = monotonic()
        try:
            metadata = await self._metadata(connection, timeout_s)
            response = await connection.unary(method, request, timeout_s, metadata)
        except grpc.aio.AioRpcError as error:
            details = error.details() or "no details"
            failed = Failed(sort_failure(error.code(), details), error.code(), f"{connection.endpoint}: {details}")
        except asyncio.CancelledError:
            if cancelled_from_outside():
                raise
            failed = Failed(Failure.IN_DOUBT, grpc.StatusCode.CANCELLED, f"{connection.endpoint}: channel closed")
        else:
            self._note_success(connection, response, of_one_member=of_one_member)
            self.observe(method.name, monotonic() - started, "ok")
            return response
        took_s = monotonic() - started
        too_large = failed.failure is Failure.TOO_LARGE
        self.observe(method.name, took_s, failed.failure.value if too_large else failed.code.name.lower())
        if not of_one_member:
            self._note_failure(connection, failed, started, timed_out=took_s >= _FULL_WAIT * self.request_timeout_s)
        return failed

    def _note_success(self, connection: Connection, response: Response, *, of_one_member: bool) -> None:
        connection.answered()
        if not of_one_member:
            self.unavailable_since = None
        self.check_cluster(response.header.cluster_id if hasattr(response, "header") else 0, connection.endpoint)

    def _note_failure(self, connection: Connection, failed: Failed, started: float, *, timed_out: bool) -> None:
        if failed.failure not in {Failure.IN_DOUBT, Failure.NOT_APPLIED}:
            connection.answered()
            return
        if self.unavailable_since is None:
            self.unavailable_since = started
        if failed.code is grpc.StatusCode.DEADLINE_EXCEEDED and timed_out:
            connection.fell_silent()
        if not self._closed:
            self.move_on(connection)

    def _since(self, started: float) -> float:
        return started if self.unavailable_since is None else self.unavailable_since

    def _may_repeat(self, result: Failed) -> bool:
        if result.failure is Failure.TOKEN and self._login is not None:
            self._token = None
            return True
        return result.failure is Failure.NOT_APPLIED

    async def _error(self, method: Method[Request, Response], request: Request, result: Failed) -> EtcdError:
        if result.failure is Failure.NO_SPACE:
            return NoSpace(await self._full_members())
        if result.failure is Failure.COMPACTED:
            return Compacted(None)
        if result.failure in {Failure.AUTH, Failure.TOKEN}:
            return AuthFailed(f"{method.name}: {result.details}")
        if result.failure is Failure.TOO_LARGE:
            return RequestTooLarge(method.name, result.code, result.details, request.ByteSize())
        return RequestRefused(method.name, result.code, result.details)

    async def _full_members(self) -> tuple[str, ...]:
        """Who raised the alarm, for the message; one attempt, as the write has failed anyway."""
        request = wire.AlarmRequest(action=wire.AlarmRequest.GET)
        answer = await self._attempt(self.current, ALARM_LIST, request, self.request_timeout_s)
        if isinstance(answer, Failed):
            return ()
        return tuple(sorted(f"{alarm.member_id:x}" for alarm in answer.alarms if alarm.alarm == wire.NOSPACE))

    def check_cluster(self, cluster_id: int, endpoint: str) -> None:
        """Refuse to go on when another cluster answers than before: nothing read so far need be true of it."""
        if cluster_id and self._cluster_id and cluster_id != self._cluster_id:
            raise ClusterChanged(self._cluster_id, cluster_id, endpoint)
        self._cluster_id = self._cluster_id or cluster_id

    # --- login and streams --------------------------------------------------------------------------------------------

    def forget_token(self) -> bool:
        """Log in anew at the next request; False when this client has no login that could be renewed."""
        self._token = None
        return self._login is not None

    async def _metadata(self, connection: Connection, timeout_s: float) -> Metadata:
        """A member cut off from the others must say so rather than keep us waiting; and who we are, if by password."""
        has_leader = (("hasleader", "true"),)
        if self._login is None:
            return has_leader
        if self._token is None:
            request = wire.AuthenticateRequest(name=self._login.name, password=self._login.password)
            self._token = (await connection.unary(AUTHENTICATE, request, timeout_s, has_leader)).token
        return (*has_leader, ("token", self._token))

    @contextlib.asynccontextmanager
    async def stream(
        self, connection: Connection, method: Method[Request, Response]
    ) -> AsyncIterator[Stream[Request, Response]]:
        """A stream on one connection.

        Raises:
            grpc.aio.AioRpcError: when the login it needs fails.
        """
        metadata = await self._metadata(connection, self.request_timeout_s)
        async with connection.stream(method, metadata) as stream:
            yield stream
