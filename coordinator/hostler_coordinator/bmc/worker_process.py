"""The parent's side of one worker process: start it, exchange one operation with it, kill it at the deadline."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Sequence

from hostler_coordinator.bmc import wire
from hostler_coordinator.bmc.answers import BmcAnswer, BmcTarget, Confirmation, FaultClass, Verb

Confirm = Callable[[], Awaitable[Confirmation]]

WORKER_COMMAND = (sys.executable, "-m", "hostler_coordinator.bmc.worker")
CONFIRM_WAIT_S = wire.GO_WAIT_S - 0.5  # the worker must hear the word before it gives up
REAP_WAIT_S = 5.0


class WorkerProcess:
    """One worker. Not for concurrent use: the pool lends it to one call at a time."""

    def __init__(self, command: Sequence[str] = WORKER_COMMAND) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._number = 0
        self.operations = 0

    @property
    def pid(self) -> int | None:
        """Process id of the running child, None when there is none."""
        return self._process.pid if self._process is not None else None

    async def exchange(self, verb: Verb, target: BmcTarget, confirm: Confirm | None, deadline_s: float) -> BmcAnswer:
        """Carry one operation out within `deadline_s` seconds; a worker that is late, dead or talks nonsense is killed.

        The answer then has the fault WEDGED (BUSY where the worker itself failed), and `sent` tells whether an order
        may have reached the BMC.
        """
        self.operations += 1
        self._number += 1
        progress = _Progress()
        finished = False
        try:
            async with asyncio.timeout(deadline_s):
                answer = await self._converse(verb, target, confirm, progress)
            finished = True
            return answer
        except TimeoutError:
            text = f"no answer within {deadline_s:g} s, worker killed"
            return BmcAnswer(ok=False, verb=verb, fault=FaultClass.WEDGED, text=text, sent=progress.go_given)
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            # Ours, not the BMC's: it must not count as the BMC's silence.
            text = f"our worker process failed ({type(error).__name__}); a fresh one takes its place"
            return BmcAnswer(ok=False, verb=verb, fault=FaultClass.BUSY, text=text, sent=progress.go_given)
        finally:
            if not finished:
                await self.kill()

    async def kill(self) -> None:
        """Kill the child and reap it; the next exchange starts a fresh one."""
        process, self._process = self._process, None
        self.operations = 0
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REAP_WAIT_S):
                await process.wait()

    async def _converse(self, verb: Verb, target: BmcTarget, confirm: Confirm | None, progress: _Progress) -> BmcAnswer:
        process = await self._running()
        await self._send(process, wire.request_line(self._number, verb, target))
        while True:
            body = wire.parse_line(await self._line(process))
            if body["id"] != self._number:
                raise ValueError("answer to another operation")
            if body["event"] == "answer":
                return wire.answer_of(body)
            why_not = await _why_not(confirm)
            progress.go_given = not why_not
            await self._send(process, wire.go_line(self._number, why_not))

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        self.operations = 1
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            str(os.getpid()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # pyghmi prints; what matters comes as answers
            limit=wire.MAX_LINE_BYTES,
        )
        return self._process

    @staticmethod
    async def _send(process: asyncio.subprocess.Process, line: bytes) -> None:
        if process.stdin is None:
            raise EOFError
        process.stdin.write(line)
        await process.stdin.drain()

    @staticmethod
    async def _line(process: asyncio.subprocess.Process) -> bytes:
        line = b"" if process.stdout is None else await process.stdout.readline()
        if not line:
            raise EOFError
        return line


class _Progress:
    """Whether the word to send was given: from then on a lost worker may have sent the order."""

    go_given = False


async def _why_not(confirm: Confirm | None) -> str:
    """Ask the caller; "" means go. Silence is a no."""
    if confirm is None:
        return "nobody confirmed it"
    try:
        async with asyncio.timeout(CONFIRM_WAIT_S):
            word = await confirm()
    except TimeoutError:
        return f"the check before sending took longer than {CONFIRM_WAIT_S:g} s"
    except Exception as error:  # noqa: BLE001 - a check that fails for whatever reason is a no, and the walk decides on
        return f"the check before sending failed ({type(error).__name__}: {error})"
    return "" if word.ok else word.why_not or "the check before sending said no"
