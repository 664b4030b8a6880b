"""Every operator's call passes here: who asks, may they, is it ours or the leader's, and what status it ends with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from hostler_contract.moments import format_instant
from hostler_coordinator.pki import Identity, Role
from hostler_coordinator.refusals import BadField
from hostler_coordinator.rpc import statuses
from hostler_coordinator.rpc.channels import IMPORT_BYTES_MAX, REQUEST_BYTES_MAX
from hostler_coordinator.rpc.forward import CALLER_KEY, Forwarder, LeaderUnreachableError
from hostler_coordinator.rpc.identity import IdentityReader, UnidentifiedError, described
from hostler_coordinator.rpc.statuses import NOTICE_KEY
from hostler_coordinator.service.callers import Caller
from hostler_coordinator.service.trouble import LEADER_CHANGED, STORE

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from hostler_coordinator.rpc.services import Leadership

BYTES_MAX = {"ImportInventory": IMPORT_BYTES_MAX}
ANSWERED_ALONE = frozenset(
    {
        "GetStatus",
        "ListHosts",
        "GetHost",
        "ExplainHost",
        "ListDomains",
        "GetDomain",
        "ListHolds",
        "GetCampaign",
        "ListCampaigns",
        "ListTasks",
        "GetTask",
        "ListDeadLetters",
        "GetDeadLetter",
        "ListAudit",
    }
)
"""Read from this coordinator's own records when no leader answers: old truth, said to be so, is better than none.

Whatever changes something, or plans to, is the leader's alone.
"""
NEED_THE_STORE = frozenset({"ListAudit"})
"""Of these, what no coordinator keeps a copy of."""
STATUS = "GetStatus"
"""Answered even before the records were read."""
ALONE_RESERVE_S = 1.0
"""Left of a call's time to answer alone when the leader does not answer."""
UNCHANGED = "nothing was changed"
READS = frozenset({*ANSWERED_ALONE, "PlanCampaign", "WatchCampaign", "ExportAudit"})
"""What changes nothing anyhow, so that it need not be said."""


def _unobserved(_method: str, _seconds: float, _code: str) -> None:
    """Stand in for the metrics."""


def _unheard(_identity: str, _method: str, _why: str) -> None:
    """Stand in for the audit of refused callers."""


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """Bounds of every call, whatever the client asks for."""

    call_timeout_s: float = 60.0
    stream_timeout_s: float = 24 * 3600.0
    write_timeout_s: float = 60.0
    """A watcher that does not read for this long loses its stream."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Tells who is at the other end of a call, and turns away whom the call is not for.

    `observe(method, seconds, code)` counts every call; `refused(identity, method, why)` puts a refusal into the audit.
    """

    reader: IdentityReader
    observe: Callable[[str, float, str], None] = _unobserved
    refused: Callable[[str, str, str], None] = _unheard

    def identify(self, context: Any, method: str) -> Identity:
        """The peer; raises StatusError UNAUTHENTICATED."""
        try:
            return self.reader.read(context)
        except UnidentifiedError as error:
            self.refused("", method, str(error))
            raise statuses.unidentified(str(error)) from error

    def admit(self, context: Any, role: Role, method: str) -> Identity:
        """The peer, if it has this role; raises StatusError."""
        identity = self.identify(context, method)
        if identity.role is not role:
            raise self.turn_away(
                identity, method, "role", f"{described(identity)} may not call {method}: it is for {role}s only"
            )
        return identity

    def turn_away(self, identity: Identity, method: str, reason: str, text: str) -> statuses.StatusError:
        """The error for a peer that may not do this; it has been put into the audit."""
        self.refused(described(identity), method, text)
        return statuses.denied(reason, text)


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC: `call(caller, request)` gives an answer, or an async iterator of answers."""

    name: str
    path: str
    request_type: type[Message]
    call: Callable[[Caller, Any], Any]
    bytes_max: int
    alone: Callable[[Caller, Any], Any] | None = None
    """Answers from the records read here, without a leader; None for what only a leader may answer."""


class Edge:
    """Serves operators' calls: here when this coordinator leads, by the leader otherwise, one hop at most."""

    def __init__(
        self,
        gate: Gate,
        leadership: Leadership,
        forwarder: Forwarder,
        settings: EdgeSettings | None = None,
    ) -> None:
        self._gate = gate
        self._leadership = leadership
        self._forwarder = forwarder
        self._settings = settings or EdgeSettings()

    def handler(self, service: Any, calls: object, mirror: object = None) -> grpc.GenericRpcHandler[Any, Any]:
        """Serve a service (its protobuf descriptor) with an object that has a method in snake case for each RPC.

        `mirror` is another that answers from the records read here, for ANSWERED_ALONE.
        """
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for rpc in service.methods:
            method = Method(
                name=rpc.name,
                path=f"/{service.full_name}/{rpc.name}",
                request_type=GetMessageClass(rpc.input_type),
                call=getattr(calls, _snake(rpc.name)),
                bytes_max=BYTES_MAX.get(rpc.name, REQUEST_BYTES_MAX),
                alone=getattr(mirror, _snake(rpc.name), None) if rpc.name in ANSWERED_ALONE else None,
            )
            if rpc.server_streaming:
                handlers[rpc.name] = grpc.unary_stream_rpc_method_handler(self._streaming(method))
            else:
                handlers[rpc.name] = grpc.unary_unary_rpc_method_handler(self._unary(method))
        return grpc.method_handlers_generic_handler(service.full_name, handlers)

    def _unary(self, method: Method) -> Any:
        async def serve(raw: bytes, context: Any) -> bytes:
            limit_s = _limit(context, self._settings.call_timeout_s)
            answer: bytes = await guarded(self._gate, method.path, context, limit_s, self._answer(method, raw, context))
            return answer

        return serve

    def _streaming(self, method: Method) -> Any:
        async def serve(raw: bytes, context: Any) -> None:
            limit_s = _limit(context, self._settings.stream_timeout_s)
            await guarded(self._gate, method.path, context, limit_s, self._send_all(method, raw, context))

        return serve

    async def _answer(self, method: Method, raw: bytes, context: Any) -> bytes:
        caller, forwarded = self._caller(method, context)
        if self._leadership.is_leader():
            answer: Message = await method.call(caller, _decode(method, raw))
            return answer.SerializeToString()
        leader = None if forwarded else self._leadership.leader()
        if leader is None:
            self._refuse_changed(forwarded=forwarded)
            return await self._alone(method, raw, caller, context, self._nobody(method))
        limit_s = _limit(context, self._settings.call_timeout_s)
        if method.alone is not None:
            limit_s -= min(ALONE_RESERVE_S, limit_s / 4)
        try:
            found, notice = await self._forwarder.unary(method.path, raw, caller, leader, limit_s)
        except LeaderUnreachableError as error:
            return await self._alone(method, raw, caller, context, error)
        if notice:
            context.set_trailing_metadata(((NOTICE_KEY, notice),))
        return found

    async def _alone(
        self, method: Method, raw: bytes, caller: Caller, context: Any, instead: statuses.StatusError
    ) -> bytes:
        """Answer from the records read here, and say so in a notice; raises `instead` where a leader must answer."""
        as_of, trouble = self._leadership.as_of(), self._leadership.trouble()
        if method.alone is None:
            raise instead
        if method.name in NEED_THE_STORE and trouble.code == STORE:
            raise statuses.StatusError(statuses.in_trouble(trouble, "what was asked for lies there alone"))
        if as_of is None and method.name != STATUS:
            raise statuses.StatusError(statuses.in_trouble(trouble, "this coordinator has not read the records yet"))
        answer: Message = await method.alone(caller, _decode(method, raw))
        words = f"read from the records as of {format_instant(as_of)}" if as_of is not None else "no records were read"
        notice = statuses.in_trouble(trouble, words)
        context.set_trailing_metadata(((NOTICE_KEY, notice.SerializeToString()),))
        return answer.SerializeToString()

    async def _send_all(self, method: Method, raw: bytes, context: Any) -> None:
        caller, forwarded = self._caller(method, context)
        leader = None if forwarded else self._leadership.leader()
        if self._leadership.is_leader():
            answers = _encoded(method.call(caller, _decode(method, raw)))
        elif leader is None:
            self._refuse_changed(forwarded=forwarded)
            raise self._nobody(method)
        else:
            limit_s = _limit(context, self._settings.stream_timeout_s)
            answers = self._forwarder.stream(method.path, raw, caller, leader, limit_s)
        async for answer in answers:
            async with asyncio.timeout(self._settings.write_timeout_s):
                await context.write(answer)

    def _caller(self, method: Method, context: Any) -> tuple[Caller, bool]:
        """The operator behind a call, and whether a coordinator forwarded it."""
        metadata = dict(context.invocation_metadata() or ())
        named = metadata.get(CALLER_KEY)
        identity = self._gate.identify(context, method.path)
        if named is not None:
            if identity.role is not Role.COORDINATOR:
                text = f"{described(identity)} names another caller; only coordinators forward calls"
                raise self._gate.turn_away(identity, method.path, "forwarding", text)
            return Caller(named.decode("utf-8", "replace") if isinstance(named, bytes) else named), True
        if identity.role is not Role.OPERATOR:
            text = f"{described(identity)} may not call {method.name}: it is for operators only"
            raise self._gate.turn_away(identity, method.path, "role", text)
        return Caller(identity.name), False

    def _refuse_changed(self, *, forwarded: bool) -> None:
        """Raise for a call that came to us because we led, when we know of another who does: one hop at most."""
        leader = self._leadership.leader()
        if forwarded and leader is not None and self._leadership.trouble().code != STORE:
            text = f"another coordinator has just taken the lead: {leader[0]}; {UNCHANGED}"
            raise statuses.StatusError(statuses.unavailable(text, None, 1.0, LEADER_CHANGED, fix="ask again"))

    def _nobody(self, method: Method) -> statuses.StatusError:
        """What a call gets that only a leader may answer, while this coordinator does not lead and knows none."""
        consequence = "" if method.name in READS else UNCHANGED
        return statuses.StatusError(statuses.in_trouble(self._leadership.trouble(), consequence))


async def guarded(gate: Gate, path: str, context: Any, limit_s: float, work: Awaitable[Any]) -> Any:
    """Do the work of one call within its deadline; whatever it raises becomes the call's status, counted."""
    began = time.monotonic()
    code = "OK"
    deadline = asyncio.timeout(limit_s)
    try:
        async with deadline:
            return await work
    except asyncio.CancelledError:
        code = "CANCELLED"
        raise
    except Exception as error:  # noqa: BLE001 - the outermost loop of a call: a bug becomes INTERNAL with its traceback in the log
        overdue = isinstance(error, TimeoutError) and deadline.expired()
        status = statuses.status_of(statuses.overdue(limit_s) if overdue else error, path)
        code = statuses.code_name(status)
        await statuses.abort(context, status)
    finally:
        gate.observe(path, time.monotonic() - began, code)


def _limit(context: Any, most_s: float) -> float:
    remaining = context.time_remaining()
    return most_s if remaining is None else max(0.0, min(float(remaining), most_s))


def _decode(method: Method, raw: bytes) -> Message:
    if len(raw) > method.bytes_max:
        raise statuses.too_large(len(raw), method.bytes_max)
    try:
        return method.request_type.FromString(raw)
    except DecodeError as error:
        raise BadField("request", f"{len(raw)} bytes", "is no message of this call", "use the published API") from error


async def _encoded(answers: AsyncIterator[Message]) -> AsyncIterator[bytes]:
    async for answer in answers:
        yield answer.SerializeToString()


def _snake(name: str) -> str:
    """`PlanCampaign` -> `plan_campaign`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
