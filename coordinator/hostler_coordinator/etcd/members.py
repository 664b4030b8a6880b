"""Facts about the members of an etcd cluster, as plain values; asking for them is the client's work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hostler_coordinator.etcd.pb import wire_pb2 as wire

AlarmKind = Literal["nospace", "corrupt"]
ALARM_KINDS: dict[wire.AlarmType, AlarmKind] = {wire.NOSPACE: "nospace", wire.CORRUPT: "corrupt"}
ALARM_TYPES: dict[AlarmKind, wire.AlarmType] = {kind: number for number, kind in ALARM_KINDS.items()}


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm that is armed; it stays so until it is disarmed, even when its cause is gone."""

    member_id: int
    kind: AlarmKind


@dataclass(frozen=True, slots=True)
class Member:
    """A member as the cluster has it on its list."""

    id: int
    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    is_learner: bool


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """What one member says of itself. ``leader_id`` 0: it knows no leader now."""

    endpoint: str
    member_id: int
    cluster_id: int
    version: str
    leader_id: int
    revision: int
    raft_term: int
    raft_index: int
    db_size_bytes: int
    db_in_use_bytes: int
    errors: tuple[str, ...]

    @property
    def is_leader(self) -> bool:
        """True for the member that leads the raft cluster."""
        return self.leader_id == self.member_id


def member(message: wire.Member) -> Member:
    """The value of a wire message."""
    peer_urls, client_urls = tuple(message.peer_urls), tuple(message.client_urls)
    return Member(message.id, message.name, peer_urls, client_urls, message.is_learner)


def member_status(endpoint: str, message: wire.StatusResponse) -> MemberStatus:
    """The value of a wire message."""
    return MemberStatus(
        endpoint=endpoint,
        member_id=message.header.member_id,
        cluster_id=message.header.cluster_id,
        version=message.version,
        leader_id=message.leader,
        revision=message.header.revision,
        raft_term=message.raft_term,
        raft_index=message.raft_index,
        db_size_bytes=message.db_size,
        db_in_use_bytes=message.db_size_in_use,
        errors=tuple(message.errors),
    )
