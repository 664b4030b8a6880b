"""The daemon of one host: observes, decides, performs and reports. Nothing that looks at more than one host belongs here."""

from __future__ import annotations
