"""The error tree of the etcd adapter and how an answer of etcd is sorted into it; what to do about one is the
caller's.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import grpc

from hostler_coordinator.etcd.moments import monotonic


class EtcdError(Exception):
    """Anything etcd, or the way to it, would not do."""


class StoreUnavailable(EtcdError):
    """No member answered in time, and nothing was changed. ``since`` is monotonic seconds: when the silence began."""

    def __init__(self, since: float, endpoints: Sequence[str], reason: str) -> None:
        self.since = since
        self.endpoints = tuple(endpoints)
        self.reason = reason
        age_s = max(0.0, monotonic() - since)
        super().__init__(f"store unavailable for {age_s:.1f} s ({', '.join(endpoints)}): {reason}")


class OutcomeUnknown(EtcdError):
    """A write was sent and its answer never came: it may have happened. Read before repeating it."""

    def __init__(self, method: str, since: float, reason: str) -> None:
        self.method = method
        self.since = since
        self.reason = reason
        super().__init__(f"{method} may or may not have happened: {reason}; read the state again before repeating it")


class NoSpace(EtcdError):
    """A member is full: etcd refuses every write until the alarm is disarmed; reads, deletes and lease renewals
    work.
    """

    def __init__(self, members: Sequence[str]) -> None:
        self.members = tuple(members)
        where = f"on member {', '.join(members)}" if members else "on a member that could not be asked for its name"
        super().__init__(
            f"etcd refuses writes: NOSPACE alarm {where}; compact, defragment each member, then disarm the alarm"
        )


class Compacted(EtcdError):
    """The revision asked for is no longer kept. Read everything again and go on from there."""

    def __init__(self, compact_revision: int | None) -> None:
        self.compact_revision = compact_revision
        known = "" if compact_revision is None else f"; the oldest kept is {compact_revision}"
        super().__init__(f"the revision asked for has been compacted{known}")


class WatchCancelled(EtcdError):
    """etcd ended a watch for a reason that asking again would not cure. Read everything again, then watch from
    there.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"etcd cancelled the watch: {reason or 'no reason given'}")


class AuthFailed(EtcdError):
    """etcd does not know this client, or it may not do this."""


class RequestRefused(EtcdError):
    """etcd answered, and the answer is no: the request itself is at fault (no such lease, malformed)."""

    def __init__(self, method: str, code: grpc.StatusCode, details: str) -> None:
        self.method = method
        self.code = code
        self.details = details
        super().__init__(f"etcd refused {method}: {details} ({code.name.lower()})")


class RequestTooLarge(RequestRefused):
    """The request has more bytes or operations than etcd takes. Nothing was changed, and sending it again is in vain.

    `size_bytes` is the encoded request.
    """

    def __init__(self, method: str, code: grpc.StatusCode, details: str, size_bytes: int) -> None:
        super().__init__(method, code, details)
        self.size_bytes = size_bytes
        operations = _TOO_MANY_OPERATIONS in details
        self.limit = "--max-txn-ops (128 unless set)" if operations else "--max-request-bytes (1572864 unless set)"
        text = f"etcd refused {method}: the request of {size_bytes} bytes is more than it takes ({details})"
        self.args = (f"{text}; split it up, or raise {self.limit} on every member",)


class ClusterChanged(EtcdError):
    """Another cluster answers at these endpoints than before: restored from a backup, or not the same store at all."""

    def __init__(self, before: int, now: int, endpoint: str) -> None:
        self.before = before
        self.now = now
        super().__init__(
            f"{endpoint} belongs to cluster {now:x}, not to {before:x}: the store was restored or replaced; "
            "start this process again so that it reads everything anew"
        )


class Failure(enum.Enum):
    """What a failed attempt says about the request."""

    NOT_APPLIED = "not_applied"  # certainly not carried out: may be sent again, to any member
    IN_DOUBT = "in_doubt"  # may have been carried out
    TOKEN = "token"  # noqa: S105 - the login has lapsed; not carried out
    NO_SPACE = "no_space"
    COMPACTED = "compacted"
    AUTH = "auth"
    TOO_LARGE = "too_large"
    REFUSED = "refused"


_TOO_MANY_OPERATIONS = "too many operations in txn request"
# Texts are etcd's (rpctypes). Codes alone do not tell: UNAVAILABLE is said both of requests that were never sent and of
# requests that timed out inside etcd.
_BY_TEXT: tuple[tuple[str, Failure], ...] = (
    ("invalid auth token", Failure.TOKEN),
    ("user name is empty", Failure.TOKEN),
    ("database space exceeded", Failure.NO_SPACE),
    ("required revision has been compacted", Failure.COMPACTED),
    ("failed to connect", Failure.NOT_APPLIED),
    ("etcdserver: no leader", Failure.NOT_APPLIED),
    ("etcdserver: unhealthy cluster", Failure.NOT_APPLIED),  # a change of members is refused until all have been up 5 s
    ("etcdserver: too many requests", Failure.NOT_APPLIED),
    ("revision of auth store is old", Failure.NOT_APPLIED),
    ("rpc not supported for learner", Failure.NOT_APPLIED),
    ("authentication failed", Failure.AUTH),
    ("request is too large", Failure.TOO_LARGE),
    (_TOO_MANY_OPERATIONS, Failure.TOO_LARGE),
    # Above --max-request-bytes + 512 KiB a member's transport refuses, and above our own limit the client's does. (What
    # the client refuses to *receive* is another matter: there the request has been carried out.)
    ("grpc: received message larger than max", Failure.TOO_LARGE),
    ("CLIENT: Sent message larger than max", Failure.TOO_LARGE),
)
_BY_CODE = {
    grpc.StatusCode.UNAVAILABLE: Failure.IN_DOUBT,
    grpc.StatusCode.DEADLINE_EXCEEDED: Failure.IN_DOUBT,
    grpc.StatusCode.CANCELLED: Failure.IN_DOUBT,
    grpc.StatusCode.ABORTED: Failure.IN_DOUBT,
    grpc.StatusCode.INTERNAL: Failure.IN_DOUBT,
    grpc.StatusCode.UNKNOWN: Failure.IN_DOUBT,
    grpc.StatusCode.UNAUTHENTICATED: Failure.AUTH,
    grpc.StatusCode.PERMISSION_DENIED: Failure.AUTH,
}


def sort_failure(code: grpc.StatusCode, details: str) -> Failure:
    """Sort a failed answer by what it means for sending the request again."""
    for text, failure in _BY_TEXT:
        if text in details:
            return failure
    return _BY_CODE.get(code, Failure.REFUSED)
