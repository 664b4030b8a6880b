"""The real machine: its boot, its facts, what forbids work on it, and the reboot command; no decision is taken here."""

from __future__ import annotations

from hostler_agent.host.machine import Machine

__all__ = ["Machine"]
