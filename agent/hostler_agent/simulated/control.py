"""The lines that simulated machines are told what to do with; carrying them out is the machines' business."""

from __future__ import annotations

from dataclasses import dataclass

from hostler_agent.simulated.machine import CLEAR, Fault

POWER_VERBS = frozenset({"on", "off", "reset", "soft"})


@dataclass(frozen=True, slots=True)
class Line:
    """`verb` is power, fault, crash, reboot or soft-reboot; `arguments` fit it."""

    host: str
    verb: str
    arguments: tuple[str, ...] = ()


def parse_line(text: str) -> Line | None:
    """Read `HOST power on`, `HOST fault KIND`, `HOST crash`, `HOST [soft-]reboot BOOT TASK TOKEN`; else None."""
    match text.split():
        case [host, "power", verb] if verb in POWER_VERBS:
            return Line(host, "power", (verb,))
        case [host, "fault", kind] if kind == CLEAR or kind in set(Fault):
            return Line(host, "fault", (kind,))
        case [host, "crash"]:
            return Line(host, "crash")
        case [host, "reboot" | "soft-reboot" as verb, boot_id, task, token]:
            return Line(host, verb, (boot_id, task, token))
        case _:
            return None


class LineBuffer:
    """Puts lines together that arrive in pieces; a line longer than the bound is thrown away."""

    LINE_MAX_BYTES = 4096

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that are complete by now."""
        *whole, rest = (self._rest + data).split(b"\n")
        self._rest = rest if len(rest) <= self.LINE_MAX_BYTES else b""
        return [line.decode(errors="replace") for line in whole]
