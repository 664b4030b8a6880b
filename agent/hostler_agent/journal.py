"""The journal on disk: one JSON file, replaced whole and fsynced; what is written in it is decided elsewhere."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

from hostler_agent.decide import Entry
from hostler_agent.ports import JournalRefusedError, Loaded

DAMAGED_KEPT_MAX = 8
SIZE_MAX_BYTES = 1 << 20
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


class FileJournal:
    """One file. Saving writes a neighbour, fsyncs it, renames it over and fsyncs the folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._temporary = path.with_name(path.name + ".new")

    async def load(self) -> Loaded:
        """Read the entry. An unreadable file is renamed to `.damaged-<n>`; a missing one is an empty journal."""
        return self._read()

    async def save(self, entry: Entry) -> None:
        """Make the entry durable, or raise JournalRefusedError and leave the old one intact.

        The disk may hang: it is written in a thread, so that the session and the watchdog go on.
        """
        raw = entry.model_dump_json().encode()
        await asyncio.to_thread(self._write, raw)

    def _read(self) -> Loaded:
        self._temporary.unlink(missing_ok=True)
        try:
            with self.path.open("rb") as file:
                raw = file.read(SIZE_MAX_BYTES + 1)
        except FileNotFoundError:
            return Loaded(Entry())
        except OSError as error:
            return Loaded(Entry(), f"{self.path} cannot be read: {error.strerror}")
        try:
            return Loaded(Entry.model_validate_json(raw))
        except ValueError:
            return Loaded(Entry(), self._put_aside(len(raw)))

    def _put_aside(self, size_bytes: int) -> str:
        """Keep the broken file for people; the oldest numbers stay, the last one is overwritten."""
        names = [self.path.with_name(f"{self.path.name}.damaged-{n}") for n in range(1, DAMAGED_KEPT_MAX + 1)]
        aside = next((name for name in names if not name.exists()), names[-1])
        try:
            self.path.replace(aside)
        except OSError as error:
            return f"journal unreadable ({size_bytes} bytes) and could not be put aside: {error.strerror}"
        return f"journal unreadable ({size_bytes} bytes), kept as {aside.name}"

    def _write(self, raw: bytes) -> None:
        try:
            self._replace(raw)
        except OSError as error:
            self._drop_temporary()
            raise _refusal(error) from error

    def _replace(self, raw: bytes) -> None:
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, raw)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._temporary.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _drop_temporary(self) -> None:
        try:
            self._temporary.unlink(missing_ok=True)
        except OSError:
            return  # a read-only disk; the next start tries again


def _write_all(descriptor: int, raw: bytes) -> None:
    left = memoryview(raw)
    while left:
        left = left[os.write(descriptor, left) :]


def _refusal(error: OSError) -> JournalRefusedError:
    if error.errno in _NO_SPACE:
        return JournalRefusedError("journal-no-space", "cannot persist intent: no space")
    if error.errno in _READ_ONLY:
        return JournalRefusedError("journal-read-only", f"cannot persist intent: {error.strerror}")
    return JournalRefusedError("journal-failed", f"cannot persist intent: {error.strerror}")
