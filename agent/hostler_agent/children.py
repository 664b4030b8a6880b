"""Runs other people's programs in children that can be given up: a deadline, bounded output, the whole group killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass

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

    @property
    def words(self) -> str:
        """What the child said, errors first, in one line."""
        said = " ".join(part for part in (self.errors.strip(), self.output.strip()) if part)
        return " ".join(said.split()) or self.problem or f"exit status {self.status}"


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
            output, errors, _ = await asyncio.gather(_drain(child.stdout), _drain(child.stderr), _give(child, given))
            status = await child.wait()
    except TimeoutError:
        await _give_up(child)
        return Ended(None, problem=f"{command[0]}: no end after {deadline_s:g} s")
    except asyncio.CancelledError:
        await _give_up(child)
        raise
    return Ended(status, output.decode(errors="replace"), errors.decode(errors="replace"))


async def _drain(stream: asyncio.StreamReader | None) -> bytes:
    """Read to the end; keep only the first part, so that a child which never stops talking costs no memory."""
    kept = b""
    while stream is not None and (chunk := await stream.read(8192)):
        kept += chunk[: OUTPUT_MAX_BYTES - len(kept)]
    return kept


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
