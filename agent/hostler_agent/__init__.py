"""The daemon of one host: observes, decides, performs, reports. What weighs hosts against each other is elsewhere."""

from __future__ import annotations
