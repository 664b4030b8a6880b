"""What the planner may say: decisions on tasks, hosts and campaigns as plain values; `enact` carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hostler_contract.campaigns import CampaignState
    from hostler_contract.domains import Cause
    from hostler_contract.hosts import BmcFacts, BmcModel
    from hostler_contract.work import Evidence, PowerVerb, TaskState
    from hostler_coordinator.lifecycle import Event
    from hostler_coordinator.live import PowerStep, RefusedOrder


@dataclass(frozen=True, slots=True)
class Why:
    """Why something is not happening: a stable code, one sentence, who holds it, since when, what comes next."""

    code: str
    text: str
    held_by: str = ""
    since: float | None = None
    next_step: str = ""
    next_at: float | None = None


@dataclass(frozen=True, slots=True)
class Reserve:
    """Charge the host in all its domains, issue the next token, record the boot id before the act."""

    campaign: str
    host: str
    wave: int
    boot_before: str | None
    deadline_at: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Move:
    """Send a task through the lifecycle table by one event, with what goes with it.

    code/reason say why (empty keeps the former), evidence is appended. The optional fields are written only when set.
    """

    campaign: str
    host: str
    event: Event
    code: str = ""
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    boot_before: str | None = None
    boot_after: str | None = None
    soft_reboots_before: int | None = None
    deadline_at: float | None = None
    next_attempt_at: float | None = None
    stop_to: TaskState | None = None
    refused: bool = False
    suggestion: str = ""
    keep_charged: bool = False
    """A dead letter whose host is not known to be up stays charged."""


@dataclass(frozen=True, slots=True)
class Rescue:
    """Write a power intent with the next token."""

    campaign: str
    host: str
    verb: PowerVerb
    why: str
    counts_as_rescue: bool = True


@dataclass(frozen=True, slots=True)
class NotePower:
    """Write down what a power walk has seen and done so far, and what it learned of the BMC and its model."""

    campaign: str
    host: str
    why: str
    steps: tuple[PowerStep, ...]
    bmc: BmcFacts | None = None
    model: BmcModel | None = None


@dataclass(frozen=True, slots=True)
class NoteRefusal:
    """Put an overtaken order that was refused where it would have acted into the audit."""

    order: RefusedOrder


@dataclass(frozen=True, slots=True)
class ChargeDead:
    """A host died without work of ours: charge it."""

    host: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class UnchargeDead:
    """A host that was charged as dead is heard again."""

    host: str


@dataclass(frozen=True, slots=True)
class RecordBoot:
    """A host reports a boot id that is not the stored one, or another name or address."""

    host: str
    boot_id: str
    flags: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RaiseToken:
    """A host says hello with a token newer than the store's: the store was set back."""

    host: str
    epoch: int
    counter: int


@dataclass(frozen=True, slots=True)
class MoveCampaign:
    """Give a campaign another state."""

    campaign: str
    state: CampaignState
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Keep an old campaign as one record with its summary: its tasks and targets go, a batch at a time."""

    campaign: str
    tasks: tuple[str, ...]
    """Hosts whose task records go now."""
    chunks: tuple[int, ...]
    """Chunks of targets that go now; only with the last tasks."""


Action = (
    Reserve
    | Move
    | Rescue
    | NotePower
    | NoteRefusal
    | ChargeDead
    | UnchargeDead
    | RecordBoot
    | RaiseToken
    | MoveCampaign
    | Forget
)


def hosts_of(actions: Iterable[Action]) -> frozenset[str]:
    """The hosts that these actions are about."""
    return frozenset(action.host for action in actions if not isinstance(action, NoteRefusal | MoveCampaign | Forget))
