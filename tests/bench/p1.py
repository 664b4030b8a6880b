"""P1: a rolling reboot as a share of the ideal, ⌈N/K⌉·D ÷ wall from submit to end, checked by the ground truth.

Everything is on this machine at once: etcd, three coordinators, one agent process and one BMC per host. Every grant and
completion is durable in etcd and fenced. Peers come with a later version.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

FIGURE = {
    "contender": "hostler",
    "figure": "efficiency",
    "unit": "ideal / wall",
    "durable": True,
    "fenced": True,
}
FABRICS = 2
TIMEOUT_S = 900.0


def shape(*, small: bool) -> dict[str, Any]:
    """Hosts, most down at once over both fabrics, and seconds a boot takes."""
    return {"n": 20, "k": 4, "d_s": 1.0} if small else {"n": 200, "k": 20, "d_s": 2.0}


def run(size: dict[str, Any]) -> float:
    """One campaign on a fresh fleet; raises RuntimeError when it does not end well, or went over its limits."""
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as folder:
        fleet = Path(folder) / "fleet"
        hosts, down = str(size["n"]), size["k"] // FABRICS
        arguments = ["--hosts", hosts, "--fabrics", str(FABRICS), "--boot-seconds", str(size["d_s"]), "--detach"]
        _hostler("dev", "up", "--dir", str(fleet), *arguments)
        try:
            return _campaign(fleet, size, down)
        finally:
            _hostler("dev", "down", "--dir", str(fleet))


def _campaign(fleet: Path, size: dict[str, Any], down: int) -> float:
    limits = ["--max-down", f"fabric={down}", "--reason", "bench", "--yes", "--expect-count", str(size["n"])]
    profile = str(fleet / "profile.yaml")
    answer = _hostler("--profile", profile, "campaign", "submit", "--all", *limits, "--wait", "-o", "json")
    campaign = json.loads(answer)
    if campaign["state"] != "succeeded":
        message = f"the campaign ended {campaign['state']}: {campaign['state_reason']}"
        raise RuntimeError(message)
    check(fleet / "effects.jsonl", size, down)
    began, ended = (datetime.fromisoformat(campaign[name]) for name in ("created_at", "ended_at"))
    ideal_s: float = math.ceil(size["n"] / size["k"]) * float(size["d_s"])
    return ideal_s / (ended - began).total_seconds()


def check(effects: Path, size: dict[str, Any], down: int) -> None:
    """By the machines' own account: every host once, never more down than allowed."""
    boots: dict[str, int] = {}
    now, most = 0, 0
    for line in effects.read_text().splitlines():
        effect = json.loads(line)
        if effect["cause"] == "start":
            continue
        if effect["effect"] == "boot":
            boots[effect["host"]] = boots.get(effect["host"], 0) + 1
            now -= 1
        elif effect["effect"] == "down":
            now += 1
            most = max(most, now)
    if len(boots) != size["n"] or max(boots.values()) != 1 or most > down * FABRICS:
        message = f"{len(boots)} hosts booted, at most {max(boots.values())} times, {most} down at once"
        raise RuntimeError(message)


def _hostler(*arguments: str) -> str:
    command = [sys.executable, "-m", "hostler_coordinator.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        message = f"hostler {' '.join(arguments[:4])}: {done.stderr.strip() or done.stdout.strip()}"
        raise RuntimeError(message)
    return done.stdout
