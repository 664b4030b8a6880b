"""The JSON lines between the pool and its worker processes; only references to secrets cross, never a secret.

To the worker:   {"id", "verb", "target", "two_phase"}, later for a two-phase verb {"id", "go", "why_not"}
From the worker: {"id", "event": "logged_in"}, then {"id", "event": "answer", "answer"}
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from hostler_coordinator.bmc.answers import (
    BmcAnswer,
    BmcTarget,
    Condition,
    FaultClass,
    Machine,
    PowerState,
    Protocol,
    Verb,
)

MAX_LINE_BYTES = 1 << 20
GO_WAIT_S = 5.0


def request_line(number: int, verb: Verb, target: BmcTarget) -> bytes:
    """The line that starts one operation."""
    plain = dataclasses.asdict(target) | {"protocol": target.protocol.value}
    return _line({"id": number, "verb": verb.value, "target": plain, "two_phase": verb.destructive})


def go_line(number: int, why_not: str) -> bytes:
    """The caller's word after `logged_in`: go when `why_not` is empty."""
    return _line({"id": number, "go": not why_not, "why_not": why_not})


def event_line(number: int, event: str, answer: BmcAnswer | None = None) -> bytes:
    """A line of the worker."""
    body: dict[str, Any] = {"id": number, "event": event}
    if answer is not None:
        body["answer"] = _answer_to_plain(answer)
    return _line(body)


def parse_line(line: bytes) -> dict[str, Any]:
    """Read one line; ValueError when it is not a JSON object with an integer `id`."""
    body = json.loads(line)
    if isinstance(body, dict) and isinstance(body.get("id"), int):
        return body
    raise ValueError("expected a JSON object with an integer id")


def target_of(body: dict[str, Any]) -> BmcTarget:
    """The target of a request line; KeyError, TypeError or ValueError when it is not one."""
    plain = body["target"]
    return BmcTarget(**(plain | {"protocol": Protocol(plain["protocol"]), "known": Machine(**plain["known"])}))


def answer_of(body: dict[str, Any]) -> BmcAnswer:
    """The answer of an `answer` line; KeyError, TypeError or ValueError when it is not one."""
    plain = dict(body["answer"])
    plain["verb"] = Verb(plain["verb"])
    plain["state"] = PowerState(plain["state"])
    plain["fault"] = FaultClass(plain["fault"]) if plain["fault"] else None
    plain["conditions"] = frozenset(Condition(name) for name in plain["conditions"])
    plain["serials"] = tuple(plain["serials"])
    plain["events"] = tuple(plain["events"])
    plain["machine"] = Machine(**plain.get("machine", {}))
    return BmcAnswer(**plain)


def _answer_to_plain(answer: BmcAnswer) -> dict[str, Any]:
    return dataclasses.asdict(answer) | {
        "verb": answer.verb.value,
        "state": answer.state.value,
        "fault": answer.fault.value if answer.fault else None,
        "conditions": sorted(condition.value for condition in answer.conditions),
    }


def _line(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"
