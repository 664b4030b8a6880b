"""Runs the command line as `python -m hostler_coordinator.cli`; nothing else belongs here."""

from __future__ import annotations

import sys

from hostler_coordinator.cli import main

if __name__ == "__main__":
    sys.exit(main())
