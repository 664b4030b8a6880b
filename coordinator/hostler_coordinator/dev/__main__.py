"""`python -m hostler_coordinator.dev --dir DIR`: the supervisor of a detached fleet, whose shape lies in DIR."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hostler_coordinator.dev.premises import premises, read_json
from hostler_coordinator.dev.shape import Shape
from hostler_coordinator.dev.supervise import supervise


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM; returns the exit status."""
    parser = argparse.ArgumentParser(prog="hostler_coordinator.dev", description="Supervisor of a detached fleet.")
    parser.add_argument("--dir", type=Path, required=True, help="folder with shape.json")
    parser.add_argument("--bound-to", type=int, help="end with this parent, however it ends")
    given = parser.parse_args(arguments)
    place = premises(given.dir)
    found = read_json(place.folder / "shape.json")
    shape = Shape(**{**found, "faults": tuple((host, kind) for host, kind in found["faults"])})
    reason = supervise(place, shape, lambda line: print(line, flush=True), bound_to=given.bound_to)
    if reason is not None:
        print(f"the fleet ended: {reason}", flush=True)
    return 0 if reason is None else 1


if __name__ == "__main__":
    sys.exit(main())
