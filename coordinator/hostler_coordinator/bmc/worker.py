"""The power worker: one spawned, single-threaded process that carries out one BMC operation at a time for the pool.

It reads requests and writes events as JSON lines (`wire`). It neither retries nor decides: the pool does the first, the
caller the second. It dies with its parent. Secrets are resolved here and leave only towards the BMC.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import resource
import select
import signal
import sys
import time
from typing import Any, BinaryIO

from hostler_coordinator.bmc import pyghmi_repairs, wire
from hostler_coordinator.bmc.answers import BmcAnswer, BmcTarget, Condition, FaultClass, Protocol, Verb
from hostler_coordinator.bmc.credentials import Credentials, CredentialsRefusedError, resolve
from hostler_coordinator.bmc.faults import BmcFaultError
from hostler_coordinator.bmc.sessions import BmcSession

MEMORY_LIMIT_BYTES = 1 << 30  # a malformed answer must not take the coordinator's memory with it (FC-B09)
NICENESS = 5
SEL_ENTRIES_MAX = 200
SEL_BUDGET_S = 10.0
_PR_SET_PDEATHSIG = 1


class Pipe:
    """The parent's end: lines in with a bound in time and size, lines out."""

    def __init__(self, incoming: int, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._buffer = b""

    def read_line(self, wait_s: float | None = None) -> bytes | None:
        """The next line, b"" when the parent is gone, None when nothing came within `wait_s` seconds."""
        give_up_at = None if wait_s is None else time.monotonic() + wait_s
        while b"\n" not in self._buffer:
            left_s = None if give_up_at is None else max(0.0, give_up_at - time.monotonic())
            if not select.select([self._incoming], [], [], left_s)[0]:
                return None
            chunk = os.read(self._incoming, 65536)
            if not chunk or len(self._buffer) > wire.MAX_LINE_BYTES:
                return b""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def write(self, line: bytes) -> None:
        """Send one line to the parent."""
        self._outgoing.write(line)
        self._outgoing.flush()


class OneOperation:
    """One request from login to logout."""

    def __init__(self, pipe: Pipe, number: int, verb: Verb, target: BmcTarget) -> None:
        self._pipe = pipe
        self._number = number
        self._verb = verb
        self._target = target
        self._sent = False

    def run(self) -> BmcAnswer:
        """Carry the operation out; every failure becomes an answer, its text freed of the secret."""
        credentials: Credentials | None = None
        try:
            credentials = resolve(self._target.credentials_ref)
            answer = self._with_session(credentials)
        except CredentialsRefusedError as refusal:
            answer = self._failed(FaultClass.CREDENTIALS, str(refusal))
        except BmcFaultError as fault:
            answer = dataclasses.replace(
                self._failed(fault.fault, fault.text), code=fault.code, retry_after_s=fault.retry_after_s
            )
        except MemoryError:
            answer = self._failed(FaultClass.PROTOCOL, "the BMC's answer does not fit into the worker's memory limit")
        except Exception as error:  # noqa: BLE001 - outermost: pyghmi and firmware surprise; the pool needs an answer
            answer = self._failed(FaultClass.PROTOCOL, f"{type(error).__name__}: {error}")
        return answer if credentials is None else _scrubbed(answer, credentials.password)

    def _with_session(self, credentials: Credentials) -> BmcAnswer:
        session = _login(self._target, credentials, self._verb)
        try:
            if self._verb.destructive:
                return self._order(session)
            return self._ask(session)
        finally:
            session.close()

    def _order(self, session: BmcSession) -> BmcAnswer:
        """Two phases: say that the session stands, wait for the caller's word, transmit once on this very session."""
        session.prepare(self._verb)
        self._pipe.write(wire.event_line(self._number, "logged_in"))
        why_not = self._await_go()
        if why_not:
            return BmcAnswer(ok=False, verb=self._verb, withheld=why_not, text=f"not sent: {why_not}")
        self._sent = True
        said = session.order(self._verb)
        return BmcAnswer(ok=True, verb=self._verb, sent=True, text=said or "accepted")

    def _await_go(self) -> str:
        line = self._pipe.read_line(wire.GO_WAIT_S)
        if line is None:
            return f"no word from the coordinator within {wire.GO_WAIT_S:g} s after the login"
        if not line:
            return "the coordinator has gone"
        body = wire.parse_line(line)
        if body["id"] != self._number:
            return "the coordinator answered for another operation"
        return "" if body.get("go") is True else str(body.get("why_not") or "the coordinator withheld it")

    def _ask(self, session: BmcSession) -> BmcAnswer:
        answer = BmcAnswer(ok=True, verb=self._verb)
        match self._verb:
            case Verb.STATUS:
                reading = session.reading()
                return dataclasses.replace(
                    answer,
                    state=reading.state,
                    raw_state=reading.raw_state,
                    host_state=reading.host_state,
                    boot_progress=reading.boot_progress,
                    conditions=reading.conditions,
                    machine=reading.machine,
                    text=_reading_text(reading.state.value, reading.raw_state, reading.host_state, reading.conditions),
                )
            case Verb.SERIAL:
                serials = session.serials()
                text = ", ".join(serials) or "no serial number told"
                machine = session.machine() if self._target.protocol is Protocol.REDFISH else answer.machine
                return dataclasses.replace(answer, serials=serials, machine=machine, text=text)
            case Verb.MACHINE:
                machine = session.machine()
                return dataclasses.replace(answer, machine=machine, text=machine.of_model or "no model told")
            case Verb.SEL:
                events = session.sel(SEL_ENTRIES_MAX, SEL_BUDGET_S)
                return dataclasses.replace(answer, events=events, text=f"{len(events)} entries")
            case _:
                session.locate(lit=self._verb is Verb.LOCATE_ON)
                return dataclasses.replace(answer, text="accepted")

    def _failed(self, fault: FaultClass, text: str) -> BmcAnswer:
        return BmcAnswer(ok=False, verb=self._verb, fault=fault, text=text, sent=self._sent)


def _login(target: BmcTarget, credentials: Credentials, verb: Verb) -> BmcSession:
    """Log in by the target's protocol; pyghmi is imported here, on first use, and nowhere in the parent."""
    if target.protocol is Protocol.IPMI:
        from hostler_coordinator.bmc.ipmi import IpmiSession  # noqa: PLC0415

        return IpmiSession(target, credentials, verb)
    from hostler_coordinator.bmc.redfish import RedfishSession  # noqa: PLC0415

    return RedfishSession(target, credentials)


def _reading_text(state: str, raw_state: str, host_state: str, conditions: frozenset[Condition]) -> str:
    parts = [f"power {state} ({raw_state})" if raw_state else f"power {state}"]
    if host_state:
        parts.append(f"host not running ({host_state})")
    parts += sorted(condition.value.replace("_", " ") for condition in conditions)
    return ", ".join(parts)


def _scrubbed(answer: BmcAnswer, secret: str) -> BmcAnswer:
    """The answer with the secret cut out of every text: firmware and libraries may quote what they were given."""
    if secret not in answer.text:
        return answer
    return dataclasses.replace(answer, text=answer.text.replace(secret, "•••"))


def _die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent dies; leave at once if it already has."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(0)


def _private_output() -> BinaryIO:
    """Move the pipe to the parent away from descriptor 1, where pyghmi prints."""
    private = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return private


def _serve(pipe: Pipe) -> None:
    while line := pipe.read_line():
        body: dict[str, Any] = wire.parse_line(line)
        if "verb" not in body:
            continue  # a go that came after its operation had given up waiting
        number = int(body["id"])
        operation = OneOperation(pipe, number, Verb(body["verb"]), wire.target_of(body))
        pipe.write(wire.event_line(number, "answer", operation.run()))


def main() -> None:
    """Serve until the parent closes the pipe: `python -m hostler_coordinator.bmc.worker PARENT_PID`."""
    _die_with_parent(int(sys.argv[1]))
    os.nice(NICENESS)  # dead BMCs must not take the processor from the leader
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides when we end
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold the secret
    pipe = Pipe(0, _private_output())
    pyghmi_repairs.apply()
    _serve(pipe)


if __name__ == "__main__":
    main()
