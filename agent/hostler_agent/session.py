"""What agent and coordinator say to each other, as frozen values named as on the wire; transport is in `client`."""

from __future__ import annotations

from enum import StrEnum

from hostler_contract.hosts import Condition, HostFacts, Journal
from hostler_contract.shapes import Value
from hostler_contract.work import OperationKind, RebootMode, Token


class Step(StrEnum):
    """How far the work on this host has got."""

    ACCEPTED = "accepted"
    DRAINING = "draining"
    DRAINED = "drained"
    CHECKING = "checking"
    ACTING = "acting"
    POST_BOOT = "post_boot"


class OutcomeKind(StrEnum):
    """How an attempt ended, as the agent sees it."""

    REFUSED = "refused"
    FAILED = "failed"
    STOPPED = "stopped"
    DONE = "done"


class Assignment(Value):
    """One task for this host. `operation` is None when this version does not know its number."""

    task_id: str
    token: Token = Token()
    operation: OperationKind | None = None
    mode: RebootMode | None = None
    campaign_id: str = ""
    actor: str = ""
    reason: str = ""
    boot_before: str = ""
    drain_timeout_s: float = 0.0
    soak_s: float = 0.0
    force: bool = False
    shutdown_timeout_s: float = 0.0


class Go(Value):
    """The leader's permission to act, for one boot and a few seconds."""

    task_id: str
    token: Token = Token()
    expires_in_s: float = 0.0
    boot_id: str = ""


class Stop(Value):
    """Take the work back before the point of no return."""

    task_id: str
    token: Token = Token()
    reason: str = ""


class Reattach(Value):
    """Leave this coordinator; attach elsewhere within the span."""

    span_s: float = 0.0
    reason: str = ""


class OutcomeRecorded(Value):
    """The outcome is durable; the journal may forget the task."""

    task_id: str
    token: Token = Token()


class Welcome(Value):
    """First answer on a stream."""

    coordinator: str = ""
    host_name: str = ""
    heartbeat_interval_s: float = 0.0
    reattach_span_s: float = 0.0
    endpoints: tuple[str, ...] = ()


class HeartbeatReply(Value):
    """Answers one heartbeat; 0 leaves the interval as it is."""

    sequence: int = 0
    next_interval_s: float = 0.0


class Hello(Value):
    """First message of a stream."""

    host_id: str
    facts: HostFacts = HostFacts()
    boot_id: str = ""
    newest_token: Token = Token()
    journal: Journal = Journal()
    condition: Condition = Condition()


class Heartbeat(Value):
    """Sign of life; carries the condition only when it changed."""

    sequence: int
    condition: Condition | None = None


class Pull(Value):
    """Asks for at most one assignment."""


class Started(Value):
    """The intent is on disk; nothing happens before GO."""

    task_id: str
    token: Token
    boot_id: str


class Progress(Value):
    """A step was reached."""

    task_id: str
    token: Token
    step: Step
    detail: str = ""


class Outcome(Value):
    """How the attempt ended; repeated until it is recorded."""

    task_id: str
    token: Token
    kind: OutcomeKind
    code: str = ""
    text: str = ""
    boot_id: str = ""
    permanent: bool = False


Order = Assignment | Go | Stop | OutcomeRecorded
"""What changes the work; the rest of what is received only concerns the stream."""
Incoming = Order | Reattach | Welcome | HeartbeatReply
Outgoing = Hello | Heartbeat | Pull | Started | Progress | Outcome
