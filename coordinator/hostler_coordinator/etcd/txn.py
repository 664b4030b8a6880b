"""The words of an etcd transaction: compares, operations and their results; sending one is the client's work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hostler_coordinator.etcd.keys import prefix_end
from hostler_coordinator.etcd.pb import wire_pb2 as wire
from hostler_coordinator.etcd.values import KeyValue, Listing, key_value, listing

# etcd's default is 128 (--max-txn-ops), for each of the three lists; the house rule leaves a margin.
OPS_MAX = 100

Relation = Literal["==", "!=", "<", ">"]
_RELATIONS: dict[Relation, wire.Compare.Result] = {
    "==": wire.Compare.EQUAL,
    "!=": wire.Compare.NOT_EQUAL,
    "<": wire.Compare.LESS,
    ">": wire.Compare.GREATER,
}
Target = Literal["version", "create_revision", "mod_revision", "value", "lease"]
_TARGETS: dict[Target, wire.Compare.Target] = {
    "version": wire.Compare.VERSION,
    "create_revision": wire.Compare.CREATE,
    "mod_revision": wire.Compare.MOD,
    "value": wire.Compare.VALUE,
    "lease": wire.Compare.LEASE,
}


@dataclass(frozen=True, slots=True)
class Compare:
    """One condition. With ``range_end`` it must hold for every key of the range; over an empty range etcd compares the
    numbers of an absent key, which are all 0.
    """

    key: bytes
    target: Target
    relation: Relation
    operand: int | bytes
    range_end: bytes = b""

    def wire(self) -> wire.Compare:
        """The message to send."""
        message = wire.Compare(
            key=self.key,
            range_end=self.range_end,
            target=_TARGETS[self.target],
            result=_RELATIONS[self.relation],
        )
        setattr(message, self.target, self.operand)
        return message


def mod_revision_is(key: bytes, revision: int) -> Compare:
    """The key was last changed at ``revision`` (0: it is absent)."""
    return Compare(key, "mod_revision", "==", revision)


def create_revision_is(key: bytes, revision: int) -> Compare:
    """The key is still the one created at ``revision`` (0: it is absent); the fencing compare of a leader key."""
    return Compare(key, "create_revision", "==", revision)


def absent(key: bytes) -> Compare:
    """The key does not exist."""
    return create_revision_is(key, 0)


def present(key: bytes) -> Compare:
    """The key exists."""
    return Compare(key, "create_revision", "!=", 0)


def version_is(key: bytes, version: int) -> Compare:
    """The key has been written ``version`` times since it was created (0: it is absent)."""
    return Compare(key, "version", "==", version)


def value_is(key: bytes, value: bytes) -> Compare:
    """The key exists and holds ``value``."""
    return Compare(key, "value", "==", value)


def lease_is(key: bytes, lease: int) -> Compare:
    """The key hangs on this lease (0: on none, or it is absent)."""
    return Compare(key, "lease", "==", lease)


def prefix_empty(prefix: bytes) -> Compare:
    """No key starts with ``prefix``."""
    return Compare(prefix, "create_revision", "==", 0, prefix_end(prefix))


def prefix_unchanged_since(prefix: bytes, revision: int) -> Compare:
    """No key with ``prefix`` was created or changed after ``revision``. Deletions leave no trace and are not seen."""
    return Compare(prefix, "mod_revision", "<", revision + 1, prefix_end(prefix))


@dataclass(frozen=True, slots=True)
class Put:
    """Store ``value`` under ``key``; ``lease`` 0 keeps it until deleted."""

    key: bytes
    value: bytes
    lease: int = 0

    def wire(self) -> wire.RequestOp:
        """The message to send."""
        return wire.RequestOp(request_put=wire.PutRequest(key=self.key, value=self.value, lease=self.lease))


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete ``key``, or every key from ``key`` up to ``range_end``; ``want_before`` returns what was deleted."""

    key: bytes
    range_end: bytes = b""
    want_before: bool = False

    def wire(self) -> wire.RequestOp:
        """The message to send."""
        message = wire.DeleteRangeRequest(key=self.key, range_end=self.range_end, prev_kv=self.want_before)
        return wire.RequestOp(request_delete_range=message)


@dataclass(frozen=True, slots=True)
class Get:
    """Read ``key``, or at most ``limit`` keys (0: all) from ``key`` up to ``range_end``."""

    key: bytes
    range_end: bytes = b""
    limit: int = 0
    keys_only: bool = False

    def wire(self) -> wire.RequestOp:
        """The message to send."""
        message = wire.RangeRequest(key=self.key, range_end=self.range_end, limit=self.limit, keys_only=self.keys_only)
        return wire.RequestOp(request_range=message)


def delete_prefix(prefix: bytes) -> Delete:
    """Delete every key that starts with ``prefix``."""
    return Delete(prefix, prefix_end(prefix))


def get_prefix(prefix: bytes, limit: int = 0) -> Get:
    """Read at most ``limit`` keys (0: all) that start with ``prefix``."""
    return Get(prefix, prefix_end(prefix), limit)


Op = Put | Delete | Get


@dataclass(frozen=True, slots=True)
class Stored:
    """A put was done."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """How many keys were deleted, and what they were where that was asked for."""

    count: int
    before: tuple[KeyValue, ...] = ()


OpResult = Stored | Deleted | Listing


@dataclass(frozen=True, slots=True)
class TxnResult:
    """The answer to a transaction: one response for each operation of the branch taken.

    ``repeated`` is True when an earlier attempt of the same call may have been carried out: then ``succeeded`` False
    can mean that this very transaction has already changed what it compares. It is only ever set with
    ``idempotent=True``.
    """

    succeeded: bool
    revision: int
    responses: tuple[OpResult, ...]
    repeated: bool = False


def txn_request(compares: Sequence[Compare], success: Sequence[Op], failure: Sequence[Op]) -> wire.TxnRequest:
    """The message of a transaction.

    Raises:
        ValueError: when one of the lists is longer than ``OPS_MAX``.
    """
    for name, size in (("compares", len(compares)), ("success", len(success)), ("failure", len(failure))):
        if size > OPS_MAX:
            raise ValueError(f"a transaction takes at most {OPS_MAX} {name}, not {size}")
    return wire.TxnRequest(
        compare=[compare.wire() for compare in compares],
        success=[op.wire() for op in success],
        failure=[op.wire() for op in failure],
    )


def txn_result(message: wire.TxnResponse, *, repeated: bool) -> TxnResult:
    """The value of a wire message."""
    revision = message.header.revision
    responses = tuple(_op_result(response, revision) for response in message.responses)
    return TxnResult(message.succeeded, revision, responses, repeated)


def _op_result(message: wire.ResponseOp, revision: int) -> OpResult:
    if message.HasField("response_range"):
        return listing(message.response_range, revision)
    if message.HasField("response_delete_range"):
        deleted = message.response_delete_range
        return Deleted(deleted.deleted, tuple(key_value(kv) for kv in deleted.prev_kvs))
    return Stored()
