"""Turns what went wrong into a gRPC status with details that a program can read; decides nothing else."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import grpc
import structlog
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from hostler_contract.moments import format_instant
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import AlreadyDifferent, BadField, BadFields, NotFound, Refused, Unavailable
from hostler_coordinator.service.trouble import store_away

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from hostler_coordinator.service.trouble import Trouble

DOMAIN = "hostler"
DETAILS_KEY = "grpc-status-details-bin"
NOTICE_KEY = "hostler-notice-bin"
"""Trailing metadata of an answer that was read from old records: a google.rpc.Status that says why and from when."""
VIOLATIONS_MAX = 20
"""Trailing metadata is limited to 8 KiB by default: a file with 500 bad lines names the first ones, and the count."""
TEXT_CHARACTERS_MAX = 1500
FIELD_TEXT_CHARACTERS_MAX = 150
FIX_CHARACTERS_MAX = 500

log: Any = structlog.get_logger(__name__)


class StatusError(Exception):
    """A status that the edge itself has decided on, or that the leader answered with."""

    def __init__(self, status: Any) -> None:
        super().__init__(status.message)
        self.status = status


def make_status(code: grpc.StatusCode, text: str, *details: Message) -> Any:
    """A google.rpc.Status with its details packed."""
    number: int = code.value[0]
    status = status_pb2.Status(code=number, message=text[:TEXT_CHARACTERS_MAX])
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def denied(reason: str, text: str) -> StatusError:
    """The caller is known and may not do this."""
    return StatusError(make_status(grpc.StatusCode.PERMISSION_DENIED, text, info(reason)))


def unidentified(text: str) -> StatusError:
    """The caller's certificate does not say who it is."""
    return StatusError(make_status(grpc.StatusCode.UNAUTHENTICATED, text, info("certificate")))


def too_large(size: int, limit: int) -> StatusError:
    """The request is larger than this RPC takes."""
    text = f"the request has {size} bytes; this call takes at most {limit}"
    about = info("request-too-large", limit_bytes=str(limit), fix="split it up")
    return StatusError(make_status(grpc.StatusCode.RESOURCE_EXHAUSTED, text, about))


def overdue(limit_s: float) -> StatusError:
    """The call was given up; what it asked for may still have happened."""
    text = f"not finished within {limit_s:.0f} s; it may still have been done"
    about = info("deadline", outcome="unknown", fix="look, or ask again with the same key")
    return StatusError(make_status(grpc.StatusCode.DEADLINE_EXCEEDED, text, about))


def status_of(error: BaseException, method: str = "") -> Any:
    """The google.rpc.Status for whatever a call raised; a bug becomes INTERNAL with an id that stands in the log."""
    match error:
        case StatusError():
            return error.status
        case BadField():
            return _bad_fields(str(error), (error,))
        case BadFields():
            return _bad_fields(str(error), error.problems)
        case NotFound():
            detail = error_details_pb2.ResourceInfo(
                resource_type=error.kind, resource_name=error.name[:FIELD_TEXT_CHARACTERS_MAX], description=error.hint
            )
            return make_status(
                grpc.StatusCode.NOT_FOUND, str(error), info("not-found", kind=error.kind, fix=error.hint), detail
            )
        case Refused():
            return _refused(error)
        case AlreadyDifferent():
            return make_status(grpc.StatusCode.ALREADY_EXISTS, str(error), info("key-reused", fix=error.fix))
        case Unavailable():
            return unavailable(
                error.reason, error.since, error.retry_after_s, error.code, fix=error.fix, in_doubt=error.in_doubt
            )
        case StoreUnavailableError():
            return in_trouble(store_away(error.since, error.reason), "", in_doubt=error.in_doubt)
        case _:
            return _bug(error, method)


def in_trouble(trouble: Trouble, consequence: str, *, in_doubt: bool = False) -> Any:
    """The status of a call that nobody can answer while this lasts; `consequence` is a clause, or empty."""
    text = f"{trouble.text}; {consequence}" if consequence else trouble.text
    return unavailable(
        text, trouble.since, trouble.retry_after_s, trouble.code, fix=trouble.next_step, in_doubt=in_doubt
    )


def unavailable(
    text: str,
    since: float | None,
    retry_after_s: float,
    code: str = "unavailable",
    *,
    fix: str = "",
    in_doubt: bool = False,
) -> Any:
    """Cannot be done now; when to try again stands in RetryInfo, what to do meanwhile in `fix`.

    `text` names the time itself; `since` says it to programs. The metadata's `outcome` is `unknown` where the call may
    have done its work all the same, else `none`.
    """
    metadata = {"fix": fix, "outcome": "unknown" if in_doubt else "none"}
    metadata |= {} if since is None else {"since": format_instant(since)}
    retry = error_details_pb2.RetryInfo(retry_delay=Duration(nanos=0))
    retry.retry_delay.FromMilliseconds(round(retry_after_s * 1000))
    return make_status(grpc.StatusCode.UNAVAILABLE, text, info(code, **metadata), retry)


def info(reason: str, **metadata: str) -> Message:
    """The ErrorInfo that every status of ours carries; `reason` is a stable code."""
    most = {"fix": FIX_CHARACTERS_MAX}
    short = {key: value[: most.get(key, FIELD_TEXT_CHARACTERS_MAX)] for key, value in metadata.items() if value}
    message: Message = error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=short)
    return message


def _bad_fields(text: str, problems: tuple[BadField, ...]) -> Any:
    request = error_details_pb2.BadRequest()
    for problem in problems[:VIOLATIONS_MAX]:
        what = f"{problem.reason}; {problem.fix}"
        request.field_violations.add(
            field=problem.field[:FIELD_TEXT_CHARACTERS_MAX], description=what[:FIELD_TEXT_CHARACTERS_MAX]
        )
    more = len(problems) - VIOLATIONS_MAX
    if more > 0:
        shown = "\n".join(str(problem)[: 2 * FIELD_TEXT_CHARACTERS_MAX] for problem in problems[:VIOLATIONS_MAX])
        text = f"{shown[: TEXT_CHARACTERS_MAX - 40]}\nand {more} more"
    fix = problems[0].fix if len(problems) == 1 else ""
    about = info("bad-field", count=str(len(problems)), fix=fix)
    return make_status(grpc.StatusCode.INVALID_ARGUMENT, text, about, request)


def _refused(error: Refused) -> Any:
    since = "" if error.since is None else format_instant(error.since)
    held = f" (held by {error.holder}{f' since {since}' if since else ''})" if error.holder else ""
    text = f"{error.subject}: {error.reason}{held or (f' (since {since})' if since else '')}"
    text += f"; {error.fix}" if error.fix else ""
    failure = error_details_pb2.PreconditionFailure()
    failure.violations.add(type=error.code, subject=error.subject, description=f"{error.reason}{held}"[:500])
    about = info(error.code, subject=error.subject, holder=error.holder, since=since, fix=error.fix)
    return make_status(grpc.StatusCode.FAILED_PRECONDITION, text, about, failure)


def _bug(error: BaseException, method: str) -> Any:
    number = secrets.token_hex(4)
    log.error("internal error", id=number, method=method, exc_info=error)
    text = f"internal error {number}: a defect of the coordinator; its log says more under this id"
    return make_status(grpc.StatusCode.INTERNAL, text, info("internal", id=number))


def code_name(status: Any) -> str:
    """`NOT_FOUND` for a status, as metrics write it."""
    return _CODES[status.code].name


async def abort(context: Any, status: Any) -> None:
    """End a call with this status."""
    await context.abort(_CODES[status.code], status.message, ((DETAILS_KEY, status.SerializeToString()),))


_CODES = {code.value[0]: code for code in grpc.StatusCode}
