"""What went wrong, in one clear message with its exit status; where it is written to is the business of `output`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from hostler_coordinator.transport_words import HOPELESS, in_words, never_sent

T = TypeVar("T")

DONE, ENDED_BADLY, USAGE, NOT_FOUND, REFUSED, UNAVAILABLE, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 3, 4, 5, 130, 141

EXIT_OF_CODE = {
    "INVALID_ARGUMENT": USAGE,
    "OUT_OF_RANGE": USAGE,
    "NOT_FOUND": NOT_FOUND,
    "FAILED_PRECONDITION": REFUSED,
    "ALREADY_EXISTS": REFUSED,
    "ABORTED": REFUSED,
    "PERMISSION_DENIED": REFUSED,
    "UNAUTHENTICATED": REFUSED,
    "UNIMPLEMENTED": REFUSED,
    "ENDED_BADLY": ENDED_BADLY,
    "INTERRUPTED": INTERRUPTED,
}
"""Every other code means that the service could not do it now: UNAVAILABLE."""

UNANSWERED = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED"})

WORDS_OF_EXIT = {
    ENDED_BADLY: "ended badly",
    USAGE: "wrong usage",
    NOT_FOUND: "not found",
    REFUSED: "refused",
    UNAVAILABLE: "unavailable",
    INTERRUPTED: "interrupted",
}

FIX_OF_CODE = {
    "UNAUTHENTICATED": "check ca, cert and key of the profile: hostler --profile FILE ...",
    "UNIMPLEMENTED": "the coordinator is older than this hostler; use the version that `hostler status` shows",
}

# Paths of API fields and the flags they come from; the longest prefix wins.
FLAG_OF_FIELD = {
    "limits.max_down": "--max-down",
    "limits.rate": "--rate",
    "limits.waves": "--wave",
    "limits.max_failures": "--max-failures",
    "limits.attempts": "--attempts",
    "limits.deadline_s": "--deadline",
    "limits.windows": "--window",
    "limits.soak_s": "--soak",
    "limits.drain_timeout_s": "--drain-timeout",
    "selector.labels": "-l",
    "selector.hosts": "HOSTS",
    "selector.all": "--all",
    "selector": "HOSTS",
    "operation": "--operation",
    "mode": "--mode",
    "force": "--force",
    "expect_count": "--expect-count",
    "plan_token": "--plan",
    "key": "--key",
    "reason": "--reason",
    "until": "--until",
    "budget": "BUDGET",
    "content": "FILE",
    "note": "TEXT",
    "serial": "--serial",
    "ticket": "--ticket",
}


@dataclass(eq=False)
class Problem(Exception):
    """One error as a person and a script see it. `fields` are (field path or flag, what is wrong with it)."""

    code: str
    message: str
    reason: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    holder: str = ""
    since: str = ""
    fix: str = ""
    details: dict[str, str] = field(default_factory=dict)
    from_server: bool = False
    """True when a coordinator said so itself, rather than the way to it having failed."""
    in_doubt: bool = False
    """True when the request was sent, and may have been carried out although no answer came."""
    hopeless: bool = False
    """True when trying the same endpoint again is in vain: a wrong name or certificate."""
    brief: str = ""
    """What this endpoint said, where it is named beside it."""
    said: tuple[tuple[str, str], ...] = ()
    """(endpoint, what it said), when several were asked."""

    def __str__(self) -> str:
        return self.message

    @property
    def exit_status(self) -> int:
        """The process's exit status for this error."""
        return EXIT_OF_CODE.get(self.code, UNAVAILABLE)

    def as_document(self) -> dict[str, Any]:
        """The error as the one JSON document on standard output."""
        fields = [{"field": path, "message": text} for path, text in self.fields]
        known = {"code": self.code, "message": self.message, "fields": fields, "holder": self.holder, "fix": self.fix}
        extra: dict[str, Any] = {"reason": self.reason, "since": self.since, **self.details}
        extra["endpoints"] = [{"endpoint": name, "said": text} for name, text in self.said]
        return {"error": known | {name: value for name, value in extra.items() if value and name not in known}}

    def as_lines(self) -> list[str]:
        """The error for a person: what, which fields, who holds it, since when, what to do."""
        word = WORDS_OF_EXIT[self.exit_status]
        # A field whose sentence is the message itself is named in front of it, unless message or fix name it anyway.
        whole = [path for path, text in self.fields if text == self.message]
        unnamed = [path for path in whole if path not in f"{self.message} {self.fix}"]
        lines = [f"hostler: {word}: {': '.join([*unnamed, self.message])}"]
        new = [(path, text) for path, text in self.fields if path not in whole]
        lines += [f"  {path}: {text}" for path, text in new if not self._says(path, text)]
        lines += [f"  {name}: {text}" for name, text in self.said]
        named = (("held by", self.holder), ("since", self.since), ("next", self.fix))
        return lines + [f"  {name}: {value}" for name, value in named if value and value not in "\n".join(lines)]

    def _says(self, path: str, text: str) -> bool:
        """True when message and fix say this of this field already."""
        return path in self.message and text.removesuffix(f"; {self.fix}") in self.message


def usage(message: str, *, flag: str = "", fix: str = "") -> Problem:
    """Build the error for a command line that cannot be carried out as written."""
    return Problem("INVALID_ARGUMENT", message, fields=((flag, message),) if flag else (), fix=fix)


def needed(text: str, message: str, flag: str, fix: str) -> None:
    """Raise Problem when a text that is needed is blank."""
    if not text.strip():
        raise usage(message, flag=flag, fix=fix)


class Faults:
    """Gathers what is wrong with one command line, so that a person is told all of it at once."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def take(self, read: Callable[..., T], *given: Any, **more: Any) -> T | None:
        """Call a reader of arguments and return what it makes of them; None when it finds a fault, which is kept."""
        try:
            return read(*given, **more)
        except Problem as problem:
            if problem.code != "INVALID_ARGUMENT":
                raise
            self._found.append(problem)
            return None

    def done(self) -> None:
        """Raise the one Problem, or one that lists them all; nothing when there is none."""
        if not self._found:
            return
        if len(self._found) == 1:
            raise self._found[0]
        fields = [(path, _with_fix(path, text, one.fix)) for one in self._found for path, text in one.fields]
        raise Problem(
            "INVALID_ARGUMENT", f"{len(self._found)} things are wrong with this command line", fields=tuple(fields)
        )


def _with_fix(path: str, text: str, fix: str) -> str:
    text = text.removeprefix(f"{path}: ")
    return f"{text}; {fix}" if fix and fix not in text else text


def flag_of(path: str) -> str:
    """Name the flag that a field path of the API comes from, or the path itself."""
    bare = path.split("[", 1)[0].removeprefix("request.")
    while bare:
        if bare in FLAG_OF_FIELD:
            return FLAG_OF_FIELD[bare]
        bare = bare.rpartition(".")[0]
    return path


def from_rpc(error: grpc.RpcError, *, endpoint: str = "") -> Problem:
    """Read a failed call's status and its google.rpc details. An unreadable detail is left out, never raised."""
    code, text = _code_and_text(error)
    info = error_details_pb2.ErrorInfo()
    fields: list[tuple[str, str]] = []
    holders: list[str] = []
    for detail in _details(error):
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            detail.Unpack(info)
        elif detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
            text, fields = _bad_fields(detail, text)
        elif detail.Is(error_details_pb2.PreconditionFailure.DESCRIPTOR):
            more, who = _violations(detail)
            fields += more
            holders += who
    metadata = dict(info.metadata)
    if not info.reason and code in UNANSWERED:
        return _no_answer(code, text, endpoint)
    fix = metadata.pop("fix", "") or metadata.pop("next_step", "") or FIX_OF_CODE.get(code, "")
    text = text.removesuffix(f"; {fix}") if fix else text
    return Problem(
        code=code,
        message=text,
        reason=info.reason,
        fields=tuple((path, what) for path, what in fields if what != text),
        holder=metadata.pop("holder", "") or ("" if info.reason else ", ".join(dict.fromkeys(holders))),
        since=metadata.pop("since", ""),
        fix=fix,
        details=metadata,
        from_server=bool(info.reason),
        in_doubt=metadata.get("outcome", "unknown" if code == "DEADLINE_EXCEEDED" else "none") == "unknown",
        brief=text,
    )


def _no_answer(code: str, text: str, endpoint: str) -> Problem:
    """The way to a coordinator failed: in our words, and for programs in the transport's own."""
    words = in_words(text)
    return Problem(
        code=code,
        message=f"no answer from {endpoint}: {words}" if endpoint else words,
        details={"transport": text},
        in_doubt=not never_sent(text),
        hopeless=words in HOPELESS,
        brief=words,
    )


def is_unavailable(problem: Problem) -> bool:
    """True when nobody could do it, or nobody said in time whether it was done."""
    return problem.code in UNANSWERED


def notice_of(raw: bytes) -> Problem:
    """Why an answer comes from old records, as the coordinator wrote it down beside it."""
    status = status_pb2.Status.FromString(raw)
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        detail.Unpack(info)
    metadata = dict(info.metadata)
    return Problem("UNAVAILABLE", status.message, reason=info.reason, fix=metadata.get("fix", ""), from_server=True)


def _code_and_text(error: grpc.RpcError) -> tuple[str, str]:
    if isinstance(error, grpc.Call):
        code = error.code()
        return (code.name if code else "UNKNOWN"), (error.details() or (code.name if code else "unknown error"))
    return "UNKNOWN", str(error)


def _details(error: grpc.RpcError) -> list[Any]:
    if not isinstance(error, grpc.Call):
        return []
    try:
        status = rpc_status.from_call(error)
    except ValueError:  # the status in the trailers contradicts the call's own
        return []
    return list(status.details) if status is not None else []


def _bad_fields(detail: Any, text: str) -> tuple[str, list[tuple[str, str]]]:
    """The fields by the flags they come from; so named in the message too, which begins with the first one's path."""
    bad = error_details_pb2.BadRequest()
    detail.Unpack(bad)
    for item in bad.field_violations[:1]:
        if text.startswith(f"{item.field}: "):
            text = flag_of(item.field) + text.removeprefix(item.field)
    return text, [(flag_of(item.field), item.description) for item in bad.field_violations]


def _violations(detail: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """Preconditions that do not hold, with their subjects: the best guess at a holder where nobody names one."""
    failure = error_details_pb2.PreconditionFailure()
    detail.Unpack(failure)
    lines = [(item.subject or item.type, item.description) for item in failure.violations]
    return lines, [item.subject for item in failure.violations if item.subject]
