"""The journal on disk: two slots in one file, written in turn and synced; what is written in it is decided elsewhere.

Each slot is a line of fixed length, `{"number", "crc32", "entry"}` and spaces. The newest whole one holds; a save goes
over the older one, so that a write cut short at any byte leaves what was. The file keeps its size and its place: a save
waits for its own bytes, and not for the file system's bookkeeping as replacing a file would.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import zlib
from pathlib import Path

from hostler_agent.decide import Entry
from hostler_agent.ports import JournalRefusedError, Loaded

DAMAGED_KEPT_MAX = 8
SLOT_BYTES = 16 * 1024
SLOTS = 2
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


class FileJournal:
    """One file with one writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._temporary = path.with_name(path.name + ".new")
        self._number: int | None = None
        """Of the newest whole entry; None until the file was looked at."""

    async def load(self) -> Loaded:
        """Read the entry. An unreadable file is renamed to `.damaged-<n>`; a missing one is an empty journal."""
        return self._read()

    async def save(self, entry: Entry) -> None:
        """Make the entry durable, or raise JournalRefusedError and leave the old one intact.

        The disk may hang: it is written in a thread, so that the session and the watchdog go on.
        """
        await asyncio.to_thread(self._save, entry)

    def _read(self) -> Loaded:
        self._number = 0
        try:
            self._temporary.unlink(missing_ok=True)
            with self.path.open("rb") as file:
                raw = file.read(SLOTS * SLOT_BYTES + 1)
        except FileNotFoundError:
            return Loaded(Entry())
        except OSError as error:
            return Loaded(Entry(), f"{self.path} cannot be read: {error.strerror}")
        try:
            self._number, entry = decode(raw)
        except ValueError:
            return Loaded(Entry(), self._put_aside(len(raw)))
        return Loaded(entry)

    def _put_aside(self, size_bytes: int) -> str:
        """Keep the broken file for people; the oldest numbers stay, the last one is overwritten."""
        names = [self.path.with_name(f"{self.path.name}.damaged-{n}") for n in range(1, DAMAGED_KEPT_MAX + 1)]
        aside = next((name for name in names if not name.exists()), names[-1])
        try:
            self.path.replace(aside)
        except OSError as error:
            return f"journal unreadable ({size_bytes} bytes) and could not be put aside: {error.strerror}"
        return f"journal unreadable ({size_bytes} bytes), kept as {aside.name}"

    def _save(self, entry: Entry) -> None:
        if self._number is None:
            self._read()
        number = (self._number or 0) + 1
        slot = encode(number, entry)
        try:
            if entry.order is not None and entry.outcome is None:
                self._refuse_full_disk()
            if self._has_its_size():
                self._overwrite(number, slot)
            else:
                self._create(number, slot)
        except OSError as error:
            raise _refusal(error) from error
        self._number = number

    def _refuse_full_disk(self) -> None:
        """Work is not begun on a full disk, though the journal has its place: such a host may not come up again."""
        space = os.statvfs(self.path.parent)
        if (space.f_bfree if os.geteuid() == 0 else space.f_bavail) == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _has_its_size(self) -> bool:
        try:
            return self.path.stat().st_size == SLOTS * SLOT_BYTES
        except FileNotFoundError:
            return False

    def _overwrite(self, number: int, slot: bytes) -> None:
        """Write over the older slot; when that fails, wipe it, as it may be whole though nobody was told so."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            _write_all(descriptor, slot, number % SLOTS * SLOT_BYTES)
            os.fdatasync(descriptor)
        except OSError:
            _wipe(descriptor, number % SLOTS * SLOT_BYTES)
            raise
        finally:
            os.close(descriptor)

    def _create(self, number: int, slot: bytes) -> None:
        """A new file, whole before it has its name, and its name durable before it counts."""
        slots = [_blank()] * SLOTS
        slots[number % SLOTS] = slot
        try:
            self._write_temporary(b"".join(slots))
            self._temporary.replace(self.path)
        except OSError:
            _drop(self._temporary)
            raise
        try:
            _sync_folder(self.path.parent)
        except OSError:
            _drop(self.path)
            raise

    def _write_temporary(self, raw: bytes) -> None:
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, raw, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def encode(number: int, entry: Entry) -> bytes:
    """One slot; raises JournalRefusedError when the entry is too large for it."""
    text = entry.model_dump_json()
    line = f'{{"number":{number},"crc32":{_crc32(number, text)},"entry":{text}}}'.encode()
    if len(line) >= SLOT_BYTES:
        raise JournalRefusedError("journal-too-large", f"cannot persist intent: {len(line)} bytes are too many")
    return line.ljust(SLOT_BYTES - 1) + b"\n"


def decode(raw: bytes) -> tuple[int, Entry]:
    """Number and entry of the newest whole slot; ValueError when there is none, or when it cannot be understood."""
    if len(raw) != SLOTS * SLOT_BYTES:
        raise ValueError("another length")
    whole = [found for at in range(SLOTS) if (found := _whole(raw[at * SLOT_BYTES : (at + 1) * SLOT_BYTES], at))]
    if not whole:
        raise ValueError("no whole entry")
    number, text = max(whole)
    return number, Entry.model_validate_json(text)


def _whole(slot: bytes, at: int) -> tuple[int, str] | None:
    """The number and the text of a slot that was written to its end; None for a torn or blank one."""
    try:
        line = slot.decode()
        head = json.loads(line)
        number, crc32 = int(head["number"]), int(head["crc32"])
        text = line[line.index('"entry":') + len('"entry":') : line.rindex("}")]
    except (ValueError, KeyError, TypeError):
        return None
    return (number, text) if number % SLOTS == at and _crc32(number, text) == crc32 else None


def _crc32(number: int, text: str) -> int:
    """Over both, as a cut can fall between the new number and the old text."""
    return zlib.crc32(f"{number} {text}".encode())


def _blank() -> bytes:
    return b"\n".rjust(SLOT_BYTES)


def _wipe(descriptor: int, offset: int) -> None:
    try:
        _write_all(descriptor, _blank(), offset)
        os.fdatasync(descriptor)
    except OSError:
        return  # the disk is gone; what the leader was told, a refusal, stands


def _drop(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # a disk that refuses this, too; the next start looks again


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_all(descriptor: int, raw: bytes, offset: int) -> None:
    left = memoryview(raw)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


def _refusal(error: OSError) -> JournalRefusedError:
    if error.errno in _NO_SPACE:
        return JournalRefusedError("journal-no-space", "cannot persist intent: no space")
    if error.errno in _READ_ONLY:
        return JournalRefusedError("journal-read-only", f"cannot persist intent: {error.strerror}")
    return JournalRefusedError("journal-failed", f"cannot persist intent: {error.strerror}")
