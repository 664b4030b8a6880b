"""What the shells need from outside, as small protocols with domain verbs; adapters implement them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostler_contract.campaigns import AuditRecord
    from hostler_contract.work import PowerIntent, Token
    from hostler_coordinator.draft import Change
    from hostler_coordinator.live import PowerReport
    from hostler_coordinator.state import State


@dataclass(frozen=True, slots=True)
class Committed:
    """The change happened, at this revision; the state has it."""

    revision: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The change did not happen: something it relied on has changed, or we no longer lead. Look again."""

    deposed: bool


class StoreUnavailableError(Exception):
    """The store cannot be reached, or refuses writes; nothing may be decided. `since` is epoch seconds.

    `in_doubt`: a write was sent and its answer never came, so that it may have happened.
    """

    def __init__(self, reason: str, since: float, *, in_doubt: bool = False) -> None:
        """Say what is wrong and since when."""
        super().__init__(reason)
        self.reason = reason
        self.since = since
        self.in_doubt = in_doubt


class Store(Protocol):
    """The durable state. `state` follows the store; commits of this process are in it when `commit` returns."""

    @property
    def state(self) -> State:
        """Everything known, at one revision."""
        ...

    async def commit(self, change: Change) -> Committed | Lost:
        """One guarded transaction; an unknown outcome is looked up before returning.

        Raises StoreUnavailableError, and Refused (`change-too-large`) where the store answers but cannot take it.
        """
        ...

    async def still_newest(self, host: str, token: Token) -> bool:
        """Read from the store itself whether we lead and this token is the newest of its host (law 3)."""
        ...

    async def audit(self, after: str, limit: int, before: str = "") -> Sequence[AuditRecord]:
        """Audit entries after an id and before another, oldest first; an empty `before` bounds nothing."""
        ...


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> float:
        """Epoch seconds, UTC; never goes back within one process."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class PowerDesk(Protocol):
    """Carries out power intents that are durable already; reports come to the callback given at its making."""

    def begin(self, task_id: str, host: str, intent: PowerIntent) -> None:
        """Start the walk; a second call for the same token does nothing."""
        ...

    def reports(self) -> dict[str, PowerReport]:
        """Newest report by task id."""
        ...


class Courier(Protocol):
    """Brings messages to agents."""

    def send(self, host: str, response: object) -> bool:
        """Queue a SessionResponse; False when the host has no session."""
        ...
