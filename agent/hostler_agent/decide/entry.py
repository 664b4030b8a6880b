"""The record of the agent's journal: what it promised, how far it got, which drain mark is ours; no file handling."""

from __future__ import annotations

from hostler_agent.session import Assignment, Outcome
from hostler_contract.hosts import Journal, JournalPhase
from hostler_contract.shapes import Record
from hostler_contract.work import Token


class Entry(Record):
    """What is on disk. `order` is None when there is no task; `newest_token` is kept for ever."""

    newest_token: Token = Token()
    newest_task: str = ""
    order: Assignment | None = None
    phase: JournalPhase | None = None
    boot_before: str = ""
    """Boot id before the act; another one now means that the reboot happened."""
    soft_reboots: int = -1
    """Soft reboots of user space counted when the intent was written; -1 is unknown."""
    userspace_start: str = ""
    """Stamp of the start of user space at the intent; empty is unknown."""
    drained_for: str = ""
    """Task whose drain mark stands or may stand; written before the mark is set, cleared after it is undone."""
    drain_boot: str = ""
    outcome: Outcome | None = None

    @property
    def task_id(self) -> str:
        """Task in the journal, empty when none."""
        return self.order.task_id if self.order else ""

    @property
    def token(self) -> Token:
        """Token of the task in the journal."""
        return self.order.token if self.order else Token()

    def on_wire(self, damage: str = "") -> Journal:
        """What Hello says of it."""
        return Journal(
            task_id=self.task_id, token=self.token, phase=self.phase, boot_before=self.boot_before, damage=damage
        )

    def forgotten(self) -> Entry:
        """Without its task; the newest token and a standing drain mark stay."""
        return Entry(
            newest_token=self.newest_token,
            newest_task=self.newest_task,
            drained_for=self.drained_for,
            drain_boot=self.drain_boot,
        )
