"""What the agent's core needs from the world, in the words of the job; the adapters are chosen in `__main__`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hostler_agent.decide import ActState, Blocker, Entry
from hostler_agent.session import Assignment, Hello, Incoming, Outgoing, Welcome
from hostler_contract.hosts import HostFacts, Usability


@dataclass(frozen=True, slots=True)
class Reading:
    """What the machine says of its boot. Empty and -1 are unknown."""

    boot_id: str = ""
    soft_reboots: int = -1
    userspace_start: str = ""
    shutting_down: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the post-boot checks say, and why it is not more."""

    usability: Usability
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ActResult:
    """What the command said; that it was accepted proves nothing (law 1)."""

    state: ActState
    text: str = ""


@dataclass(frozen=True, slots=True)
class DrainLook:
    """`owner` is whose mark stands: ours, a person's, or empty for none."""

    empty: bool
    owner: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The journal as found. `damage` says what was wrong with it and where it was put."""

    entry: Entry
    damage: str = ""


class JournalRefusedError(Exception):
    """The entry could not be made durable; what was durable before still is. `code` is stable."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class DrainError(Exception):
    """The drain's owner did not do as asked, or did not answer in time."""


class AttachError(Exception):
    """No coordinator took us in. `code` is stable (`unreachable`, `certificate-mismatch`, `not-enrolled`, …)."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class SessionLostError(Exception):
    """The stream ended."""


class Clock(Protocol):
    """The agent's own clock: seconds that go on while this process or the machine sleeps."""

    def now(self) -> float:
        """Seconds since some fixed moment."""

    async def sleep(self, duration_s: float) -> None:
        """Return after that many seconds."""


class Host(Protocol):
    """The one machine this agent runs on."""

    async def read(self) -> Reading:
        """Boot id and what else tells boots apart; never raises for what cannot be read."""

    async def facts(self) -> HostFacts:
        """Who and what the machine is."""

    async def blockers(self) -> tuple[Blocker, ...]:
        """What forbids work now."""

    async def reboot(self, order: Assignment) -> ActResult:
        """Tell people who asked, then give the command of the order's operation: all of the host, or user space."""


class Checks(Protocol):
    """Post-boot checks."""

    async def run(self) -> Verdict:
        """Whether the host is usable now; bounded."""


class Journal(Protocol):
    """The agent's memory across kills and boots."""

    async def load(self) -> Loaded:
        """Read it; a damaged one is put aside, never an error."""

    async def save(self, entry: Entry) -> None:
        """Make it durable, all or nothing; raises JournalRefusedError."""


class Drain(Protocol):
    """Whoever decides what runs on this host. All calls are bounded and raise DrainError."""

    @property
    def configured(self) -> bool:
        """False: there is nobody to ask, and a busy host is left alone."""

    async def mark(self, owner: str) -> DrainLook:
        """Let nothing new start. Repeating is harmless; a mark that somebody else set is left as it is."""

    async def look(self, owner: str) -> DrainLook:
        """Whether the host is empty by now."""

    async def undo(self, owner: str) -> None:
        """Take back the mark of `owner`, and only that; nothing to take back is fine."""


class Session(Protocol):
    """One stream to one coordinator."""

    @property
    def welcome(self) -> Welcome:
        """The coordinator's first answer."""

    async def send(self, message: Outgoing) -> None:
        """Put it on the stream, in order; raises SessionLostError."""

    async def receive(self) -> Incoming:
        """The next message; raises SessionLostError."""

    async def close(self) -> None:
        """Give the stream up."""


class Coordinators(Protocol):
    """All coordinators of the region; any of them will do."""

    async def attach(self, hello: Callable[[], Hello]) -> Session:
        """Try one that has not just failed; bounded; raises AttachError."""


class Supervisor(Protocol):
    """Who started this process and watches over it (systemd)."""

    def ready(self) -> None:
        """The agent runs and is looking after its host."""

    def status(self, text: str) -> None:
        """One line for people."""

    def alive(self) -> None:
        """Feed the watchdog."""
