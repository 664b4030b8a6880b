"""`python -m hostler_agent.simulated --dir DIR`: reads DIR/machines.json and is all those machines until ended."""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hostler_agent.config import ConfigError, Settings
from hostler_agent.simulated.machine import MachineSpec
from hostler_agent.simulated.resident import agent_settings, die_with_parent, live, preload
from hostler_agent.simulated.yard import Yard, host_folder

_SETTINGS_KEYS = ("endpoints", "tls", "insecure")
_SPEC_KEYS = ("host", "host_id", "boot_seconds", "power", "faults", "serial", "address")


def read_specs(path: Path) -> list[tuple[MachineSpec, Settings]]:
    """The machines of machines.json and the settings of their agents; raises ConfigError.

    What this program does not know (the BMC's part) is passed over.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        values = [_spec_values(one) for one in found]
        specs = TypeAdapter(list[MachineSpec]).validate_python(values)
    except (OSError, ValueError, TypeError, ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return [(spec, agent_settings(spec, host_folder(path.parent, spec.host))) for spec in specs]


def _spec_values(one: dict[str, Any]) -> dict[str, Any]:
    agent = {**one.get("agent", {}), **{key: one[key] for key in _SETTINGS_KEYS if key in one}}
    return {**{key: one[key] for key in _SPEC_KEYS if key in one}, "agent": agent}


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM; returns the exit status."""
    parser = argparse.ArgumentParser(prog="hostler_agent.simulated", description="Simulated machines, real agents.")
    parser.add_argument("--dir", type=Path, required=True, help="folder with machines.json")
    folder: Path = parser.parse_args(arguments).dir.resolve()
    die_with_parent(os.getppid())
    try:
        machines = read_specs(folder / "machines.json")
    except ConfigError as error:
        print(f"hostler_agent.simulated: {error}", file=sys.stderr)  # noqa: T201 - said to a person
        return 2
    parent_pid = os.getpid()
    settings = {spec.host: of_agent for spec, of_agent in machines}

    def child(spec: MachineSpec, boot_id: Callable[[], str], folder_of_host: Path, requests: int) -> None:
        die_with_parent(parent_pid)
        live(spec, settings[spec.host], boot_id, folder_of_host, requests)

    yard = Yard(folder, [spec for spec, _ in machines], child)
    preload()
    gc.collect()
    gc.freeze()
    yard.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
