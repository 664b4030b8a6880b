"""Who uses the host: processes that hold GPU devices open, and people logged in; ending them is the drain's part."""

from __future__ import annotations

import re
from pathlib import Path

import psutil

from hostler_agent.decide import Blocker, BlockerKind

NAMED_MAX = 5
# /dev/nvidia0 is a GPU; nvidiactl, nvidia-uvm and the rest are held by monitoring as well, and prove no work.
_GPU_DEVICE = re.compile(r"/dev/(?:nvidia\d+|kfd|accel/accel\d+)")
# Daemons that hold GPUs without any work on them.
SERVICE_PROCESSES = frozenset(
    {
        "nvidia-persistenced",
        "nvidia-persiste",
        "nv-hostengine",
        "nv-fabricmanager",
        "dcgm-exporter",
        "nvidia-smi",
        "nvsm_core",
    }
)


def gpu_processes(sysroot: Path) -> list[Blocker]:
    """One blocker that names the processes which hold a GPU, or none. A process that vanishes meanwhile is no error."""
    holders = [holder for folder in _process_folders(sysroot) if (holder := _gpu_holder(folder))]
    if not holders:
        return []
    more = f" and {len(holders) - NAMED_MAX} more" if len(holders) > NAMED_MAX else ""
    return [Blocker(BlockerKind.GPU_PROCESS, f"GPU in use by {', '.join(holders[:NAMED_MAX])}{more}")]


def _process_folders(sysroot: Path) -> list[Path]:
    try:
        return sorted(one for one in (sysroot / "proc").iterdir() if one.name.isdecimal())
    except OSError:
        return []


def _gpu_holder(folder: Path) -> str:
    try:
        name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
        if name in SERVICE_PROCESSES:
            return ""
        held = any(_GPU_DEVICE.fullmatch(str(one.readlink())) for one in (folder / "fd").iterdir())
    except OSError:
        return ""
    return f"{name} (pid {folder.name})" if held else ""


def people() -> list[Blocker]:
    """One blocker that names everybody logged in, or none."""
    sessions = {f"{user.name} on {user.terminal or '?'}" for user in psutil.users()}
    return [Blocker(BlockerKind.PERSON, f"logged in: {', '.join(sorted(sessions))}")] if sessions else []
