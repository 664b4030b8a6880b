"""The journal through full, read-only and torn disks: what was durable stays, and a broken file is no crash."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler_agent import journal
from hostler_agent.decide import Entry
from hostler_agent.journal import SLOT_BYTES, FileJournal, encode
from hostler_agent.ports import JournalRefusedError
from hostler_contract.hosts import JournalPhase
from hostler_contract.work import Token
from unit.agent.situations import entry, order

INTENT = entry(JournalPhase.INTENT)


async def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    kept = FileJournal(tmp_path / "journal.json")
    assert (await kept.load()).entry == Entry()
    await kept.save(INTENT)
    loaded = await FileJournal(tmp_path / "journal.json").load()
    assert (loaded.entry, loaded.damage) == (INTENT, "")
    assert names_in(tmp_path) == ["journal.json"]


async def test_a_new_file_is_synced_before_it_is_renamed_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        seen.append(f"{name} {(tmp_path / 'journal.json').exists()}")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    await FileJournal(tmp_path / "journal.json").save(INTENT)
    assert seen == ["journal.json.new False", f"{tmp_path.name} True"]


async def test_later_entries_are_written_in_place_in_turn_and_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.json"
    kept, seen = FileJournal(path), list[tuple[int, bool]]()
    fdatasync = os.fdatasync

    def watched(descriptor: int) -> None:
        seen.append((os.fstat(descriptor).st_ino, b"c-9" in path.read_bytes()))
        fdatasync(descriptor)

    await kept.save(INTENT)
    inode = path.stat().st_ino
    monkeypatch.setattr(os, "fdatasync", watched)
    await kept.save(entry(order=order(campaign_id="c-9")))
    assert seen == [(inode, True)]
    slots = path.read_bytes().splitlines()
    assert [(len(slot), json.loads(slot)["number"]) for slot in slots] == [(SLOT_BYTES - 1, 2), (SLOT_BYTES - 1, 1)]
    await FileJournal(path).save(Entry())
    assert [json.loads(slot)["number"] for slot in path.read_bytes().splitlines()] == [2, 3]


async def test_fc_a25_a_file_cut_at_any_byte_is_put_aside(tmp_path: Path) -> None:
    whole = encode(2, INTENT) + encode(1, Entry())
    for length in [*range(900), *range(SLOT_BYTES - 2, SLOT_BYTES + 900), len(whole) - 1]:
        folder = tmp_path / str(length)
        folder.mkdir()
        (folder / "journal.json").write_bytes(whole[:length])
        loaded = await FileJournal(folder / "journal.json").load()
        assert loaded.entry == Entry()
        assert loaded.damage == f"journal unreadable ({length} bytes), kept as journal.json.damaged-1"
        assert (folder / "journal.json.damaged-1").read_bytes() == whole[:length]


async def test_fc_a25_a_save_cut_at_any_byte_leaves_what_was(tmp_path: Path) -> None:
    path, accepted = tmp_path / "journal.json", entry(JournalPhase.ACCEPTED)
    old, new = encode(2, Entry()), encode(4, INTENT)
    used = len(new.rstrip())
    for length in range(used + 1):
        path.write_bytes(new[:length] + old[length:] + encode(3, accepted))
        loaded = await FileJournal(path).load()
        assert loaded.damage == ""
        assert loaded.entry == (INTENT if length == used else accepted)


async def test_a_newest_entry_that_cannot_be_understood_is_damage_and_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    text = INTENT.model_dump_json().replace('"intent"', '"dancing"')
    path.write_bytes(slot_of(2, text) + encode(1, entry(JournalPhase.ACCEPTED)))
    loaded = await FileJournal(path).load()
    assert loaded.entry == Entry()
    assert loaded.damage


async def test_an_entry_that_is_too_large_is_refused(tmp_path: Path) -> None:
    kept = FileJournal(tmp_path / "journal.json")
    await kept.save(INTENT)
    with pytest.raises(JournalRefusedError, match="bytes are too many") as refusal:
        await kept.save(entry(order=order(reason="x" * SLOT_BYTES)))
    assert refusal.value.code == "journal-too-large"
    assert (await kept.load()).entry == INTENT


async def test_damaged_files_are_numbered_and_bounded(tmp_path: Path) -> None:
    kept = FileJournal(tmp_path / "journal.json")
    for number in range(journal.DAMAGED_KEPT_MAX + 3):
        (tmp_path / "journal.json").write_text(f"broken {number}")
        assert (await kept.load()).damage
    names = names_in(tmp_path)
    assert len(names) == journal.DAMAGED_KEPT_MAX
    assert (tmp_path / "journal.json.damaged-1").read_text() == "broken 0"


@pytest.mark.parametrize("content", [b"\0" * 100, b"[]", b"null", b"{", b"\xff\xfe", b'{"phase": "dancing"}'], ids=repr)
async def test_what_is_no_journal_is_put_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal.json").write_bytes(content)
    assert (await FileJournal(tmp_path / "journal.json").load()).damage


async def test_a_journal_of_a_newer_version_is_read_past_its_new_fields(tmp_path: Path) -> None:
    text = INTENT.model_dump_json().replace("{", '{"colour": "blue",', 1)
    (tmp_path / "journal.json").write_bytes(encode(0, Entry()) + slot_of(1, text))
    assert (await FileJournal(tmp_path / "journal.json").load()).entry == INTENT


async def test_the_rest_of_a_save_that_was_cut_short_does_no_harm(tmp_path: Path) -> None:
    kept = FileJournal(tmp_path / "journal.json")
    await kept.save(INTENT)
    (tmp_path / "journal.json.new").write_text('{"half')
    assert (await kept.load()).entry == INTENT
    assert not (tmp_path / "journal.json.new").exists()


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 64 KiB; skipped only where nothing may be mounted."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tiny", str(folder)], check=False)
    if done.returncode != 0:
        pytest.skip("no right to mount; the file size limit below covers the rule")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def slot_of(number: int, text: str) -> bytes:
    """A whole slot with any text for an entry."""
    crc32 = zlib.crc32(f"{number} {text}".encode())
    return f'{{"number":{number},"crc32":{crc32},"entry":{text}}}'.encode().ljust(SLOT_BYTES - 1) + b"\n"


def fill(ballast: Path) -> None:
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(descriptor, b"x" * 1024):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    finally:
        os.close(descriptor)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_fc_a25_a_full_disk_refuses_and_keeps_what_was(tiny: Path) -> None:
    kept = FileJournal(tiny / "journal.json")
    before = entry(JournalPhase.ACCEPTED)
    await kept.save(before)
    ballast = tiny / "ballast"
    fill(ballast)
    with pytest.raises(JournalRefusedError, match="cannot persist intent: no space") as refusal:
        await kept.save(INTENT)
    assert refusal.value.code == "journal-no-space"
    assert (await kept.load()).entry == before
    ballast.unlink()
    await kept.save(INTENT)
    assert (await kept.load()).entry == INTENT


LIMITED = """
import asyncio, resource, signal, sys
from pathlib import Path
from hostler_agent.journal import FileJournal
from hostler_agent.ports import JournalRefusedError
from unit.agent.situations import entry
from hostler_contract.hosts import JournalPhase
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    asyncio.run(FileJournal(Path(sys.argv[1])).save(entry(JournalPhase.INTENT)))
except JournalRefusedError as error:
    print(error.code, error.text, sep="|")
"""


def test_fc_a25_a_write_that_ends_half_way_leaves_no_half(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    before = entry(JournalPhase.ACCEPTED)
    asyncio.run(FileJournal(path).save(before))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "journal-no-space|cannot persist intent: no space"
    assert asyncio.run(FileJournal(path).load()).entry == before
    assert names_in(tmp_path) == ["journal.json"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "journal-no-space"),
        (errno.EDQUOT, "journal-no-space"),
        (errno.EROFS, "journal-read-only"),
        (errno.EIO, "journal-failed"),
    ],
)
async def test_a_sync_that_fails_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    kept = FileJournal(tmp_path / "journal.json")
    before = entry(order=order(token=Token(epoch=1, counter=6)))
    await kept.save(before)

    def failing(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(JournalRefusedError) as refusal:
        await kept.save(INTENT)
    assert refusal.value.code == code
    monkeypatch.undo()
    assert (await kept.load()).entry == before
