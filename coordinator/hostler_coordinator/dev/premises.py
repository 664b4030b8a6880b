"""The folder of a development fleet: where each file lies, how it is written whole, and whose folder it is."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARK = "fleet.json"
_OURS = (
    "agents.json",
    "bmcs.json",
    "bmc-pids.json",
    "coordinators",
    "effects.jsonl",
    "etcd",
    "failed",
    "hosts",
    "inventory.yaml",
    "machines.fifo",
    "machines.json",
    "machines.log",
    "machines.sock",
    "bmc-park.log",
    "pki",
    "profile.yaml",
    "progress",
    "ready.json",
    "secrets",
    "shape.json",
    "supervisor.log",
    MARK,
)


class FolderRefused(RuntimeError):
    """The folder cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Premises:
    """The folder; absolute, without symbolic links in it."""

    folder: Path

    @property
    def mark(self) -> Path:
        """Who runs the fleet here: `{run, pid, started, shape}`."""
        return self.folder / MARK

    @property
    def ready(self) -> Path:
        """The description for testers; there only while the fleet is up."""
        return self.folder / "ready.json"

    @property
    def progress(self) -> Path:
        """What the supervisor is doing, one line."""
        return self.folder / "progress"

    @property
    def failed(self) -> Path:
        """Why the fleet did not come up or came to an end."""
        return self.folder / "failed"

    @property
    def profile(self) -> Path:
        """The operator's profile."""
        return self.folder / "profile.yaml"

    @property
    def effects(self) -> Path:
        """The ground truth."""
        return self.folder / "effects.jsonl"

    @property
    def agents(self) -> Path:
        """Agents' process ids by host, written by the machines."""
        return self.folder / "agents.json"

    @property
    def bmcs(self) -> Path:
        """What the BMC park is told."""
        return self.folder / "bmcs.json"

    @property
    def bmc_pids(self) -> Path:
        """BMCs' process ids by host, written by the park."""
        return self.folder / "bmc-pids.json"

    @property
    def secrets(self) -> Path:
        """One credentials file per BMC."""
        return self.folder / "secrets"

    def host(self, name: str) -> Path:
        """One machine's own folder."""
        return self.folder / "hosts" / name

    def coordinator(self, name: str, ending: str) -> Path:
        """A coordinator's settings (`yaml`) or log (`log`)."""
        return self.folder / "coordinators" / f"{name}.{ending}"

    def clear(self) -> None:
        """Make the folder fit for a new fleet: what an ended one left goes. Raises FolderRefused."""
        self.folder.mkdir(parents=True, exist_ok=True)
        found = {path.name for path in self.folder.iterdir()}
        if found - set(_OURS) and MARK not in found:
            raise FolderRefused(f"{self.folder} holds files that are not of a fleet; name an empty or new folder")
        for name in _OURS:  # the mark last: what it vouches for goes before it
            path = self.folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def premises(folder: Path) -> Premises:
    """Of a folder as a person wrote it."""
    return Premises(folder.expanduser().resolve())


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file whole: a reader sees the old or the new, and a secret is never readable by others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)


def write_json(path: Path, document: Any, mode: int = 0o644) -> None:
    """Replace a JSON file whole."""
    write_text(path, json.dumps(document, indent=1) + "\n", mode)


def read_json(path: Path) -> Any:
    """The document, or None when there is none (yet)."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
