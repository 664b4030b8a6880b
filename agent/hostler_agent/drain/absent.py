"""No drain: nobody to ask, so a busy host is left alone; there is nothing to mark or undo here."""

from __future__ import annotations

from hostler_agent.ports import DrainLook


class NoDrain:
    """A host on which nothing is scheduled."""

    @property
    def configured(self) -> bool:
        """No."""
        return False

    async def mark(self, owner: str) -> DrainLook:
        """Nothing to mark: not ours, and empty as far as anybody can say."""
        del owner
        return DrainLook(empty=True)

    async def look(self, owner: str) -> DrainLook:
        """Nothing to look at."""
        del owner
        return DrainLook(empty=True)

    async def undo(self, owner: str) -> None:
        """Nothing to undo."""
        del owner
