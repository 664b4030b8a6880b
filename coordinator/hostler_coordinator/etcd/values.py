"""What a read or a watch hands out: plain frozen values; the wire's own message types stay inside the adapter."""

from __future__ import annotations

from dataclasses import dataclass

from hostler_coordinator.etcd.pb import wire_pb2 as wire


@dataclass(frozen=True, slots=True)
class KeyValue:
    """One key as stored. ``lease`` is 0 for a key that outlives every session."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    version: int
    lease: int


@dataclass(frozen=True, slots=True)
class Got:
    """A key (None: absent) as of ``revision``, the store's revision when it was read."""

    revision: int
    kv: KeyValue | None


@dataclass(frozen=True, slots=True)
class Listing:
    """Keys of a range in key order, all as of one ``revision``; ``count`` is how many the range holds in all."""

    revision: int
    kvs: tuple[KeyValue, ...]
    count: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One change. A deletion (``deleted``) has a ``kv`` with only its key and the revision of the deletion."""

    deleted: bool
    kv: KeyValue
    before: KeyValue | None = None


def key_value(message: wire.KeyValue) -> KeyValue:
    """The value of a wire message."""
    return KeyValue(
        key=message.key,
        value=message.value,
        create_revision=message.create_revision,
        mod_revision=message.mod_revision,
        version=message.version,
        lease=message.lease,
    )


def event(message: wire.Event) -> Event:
    """The value of a wire message."""
    return Event(
        deleted=message.type == wire.Event.DELETE,
        kv=key_value(message.kv),
        before=key_value(message.prev_kv) if message.HasField("prev_kv") else None,
    )


def listing(message: wire.RangeResponse, revision: int) -> Listing:
    """The value of a wire message, read at ``revision``."""
    return Listing(revision, tuple(key_value(kv) for kv in message.kvs), message.count, message.more)
