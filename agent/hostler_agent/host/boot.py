"""Which boot this is: the kernel's boot id, and the manager's count of soft reboots; a boot id is never guessed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hostler_agent.children import run_child

BOOT_ID_PATH = "proc/sys/kernel/random/boot_id"
_BOOT_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PROPERTIES = "SoftRebootsCount,UserspaceTimestampMonotonic,SystemState"


@dataclass(frozen=True, slots=True)
class ManagerState:
    """What the service manager says; -1 and empty are unknown."""

    soft_reboots: int = -1
    userspace_start: str = ""
    shutting_down: bool = False


def boot_id(sysroot: Path) -> str:
    """The kernel's boot id, or empty when it cannot be read or is none: unknown, never "changed"."""
    try:
        text = (sysroot / BOOT_ID_PATH).read_text(encoding="ascii").strip().lower()
    except (OSError, UnicodeDecodeError):
        return ""
    return text if _BOOT_ID.fullmatch(text) else ""


async def manager_state(deadline_s: float) -> ManagerState:
    """Ask systemd. A host without it, or one too old to count soft reboots, has these unknown."""
    ended = await run_child(["systemctl", "show", f"--property={_PROPERTIES}"], deadline_s=deadline_s)
    return parse_manager_state(ended.output) if ended.status == 0 else ManagerState()


def parse_manager_state(text: str) -> ManagerState:
    """Read `Name=value` lines; SoftRebootsCount exists from systemd 256 on, SystemState is "stopping" in a shutdown."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    count = values.get("SoftRebootsCount", "")
    stamp = values.get("UserspaceTimestampMonotonic", "")
    return ManagerState(
        soft_reboots=int(count) if count.isdecimal() else -1,
        userspace_start=stamp if stamp.isdecimal() and stamp != "0" else "",
        shutting_down=values.get("SystemState") == "stopping",
    )
