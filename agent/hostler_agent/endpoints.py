"""Remembers across boots which coordinators there are, so that an old configuration strands no host; only a hint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

ENDPOINTS_MAX = 32
SIZE_MAX_BYTES = 64 * 1024


class RememberedEndpoints:
    """One small file. Losing or damaging it costs nothing: the configured endpoints are always tried as well."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> tuple[str, ...]:
        """What was named last; empty when that cannot be read."""
        try:
            if self._path.stat().st_size > SIZE_MAX_BYTES:
                return ()
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ()
        if not isinstance(found, list):
            return ()
        return tuple(one for one in found if isinstance(one, str) and one)[:ENDPOINTS_MAX]

    def save(self, endpoints: Sequence[str]) -> None:
        """Replace the file, if the disk allows."""
        temporary = self._path.with_name(self._path.name + ".new")
        try:
            temporary.write_text(json.dumps(list(endpoints)) + "\n", encoding="utf-8")
            temporary.replace(self._path)
        except OSError:
            return
