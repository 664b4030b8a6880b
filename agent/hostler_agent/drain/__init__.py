"""Drains: whoever decides what runs on a host is asked to empty it; when to ask is decided in `decide`."""

from __future__ import annotations

from hostler_agent.drain.absent import NoDrain
from hostler_agent.drain.hook import HookDrain

__all__ = ["HookDrain", "NoDrain"]
