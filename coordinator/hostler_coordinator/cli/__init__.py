"""The operator's command line: an ordinary client of the public API; nothing here knows the coordinator's inside."""

from __future__ import annotations

import os
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line (of the process, unless given) and return its exit status."""
    # Before gRPC is imported: what its core notes of a handshake is for nobody who waits for an answer.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from hostler_coordinator.cli.entry import carry_out  # noqa: PLC0415 - the package's face stays quick to import

    return carry_out(arguments)
