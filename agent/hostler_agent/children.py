"""Runs other people's programs in children that can be given up: a deadline, bounded output, the whole group killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from hostler_agent.excerpt import excerpt

OUTPUT_MAX_BYTES = 64 * 1024
REAP_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended. `status` is None when it was given up or never ran; `problem` says why, empty otherwise.

    A negative status is death by that signal.
    """

    status: int | None
    output: str = ""
    errors: str = ""
    problem: str = ""
    started: bool = True
    left_out_bytes: int = 0
    """What it said beyond the part that is kept."""

    @property
    def words(self) -> str:
        """What the child said, errors first, in one line; marked as cut where that is too much to report."""
        said = " ".join(part for part in (self.errors.strip(), self.output.strip()) if part)
        line = " ".join(said.split())
        return excerpt(line, left_out_bytes=self.left_out_bytes) or self.problem or f"exit status {self.status}"


async def run_child(command: Sequence[str], *, deadline_s: float, given: bytes = b"") -> Ended:
    """Run to the end or to the deadline, then kill its process group. Never raises for what the child does."""
    try:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=OUTPUT_MAX_BYTES,
        )
    except FileNotFoundError:
        return Ended(127, problem=f"{command[0]}: not found", started=False)
    except PermissionError:
        return Ended(126, problem=f"{command[0]}: not executable", started=False)
    except OSError as error:
        return Ended(None, problem=f"{command[0]}: {error.strerror}", started=False)
    try:
        async with asyncio.timeout(deadline_s):
            said, told, _ = await asyncio.gather(_drain(child.stdout), _drain(child.stderr), _give(child, given))
            status = await child.wait()
    except TimeoutError:
        await _give_up(child)
        return Ended(None, problem=f"{command[0]}: no end after {deadline_s:g} s")
    except asyncio.CancelledError:
        await _give_up(child)
        raise
    (output, more), (errors, more_errors) = said, told
    return Ended(
        status,
        output.decode(errors="replace"),
        errors.decode(errors="replace"),
        left_out_bytes=more + more_errors,
    )


async def _drain(stream: asyncio.StreamReader | None) -> tuple[bytes, int]:
    """Read to the end; keep only the first part, so that a child which never stops talking costs no memory.

    Returns what is kept, and how many bytes are not.
    """
    kept, left_out_bytes = bytearray(), 0
    while stream is not None and (chunk := await stream.read(8192)):
        room = OUTPUT_MAX_BYTES - len(kept)
        kept += chunk[:room]
        left_out_bytes += len(chunk) - len(chunk[:room])
    return bytes(kept), left_out_bytes


async def _give(child: asyncio.subprocess.Process, given: bytes) -> None:
    if child.stdin is None:
        return
    try:
        child.stdin.write(given)
        await child.stdin.drain()
        child.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # the child did not want it


async def _give_up(child: asyncio.subprocess.Process) -> None:
    """Kill the group. A child in state D cannot be reaped now: it is left to init's patience, not ours."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    try:
        async with asyncio.timeout(REAP_TIMEOUT_S):
            await child.wait()
    except TimeoutError:
        return
