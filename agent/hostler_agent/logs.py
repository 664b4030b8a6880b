"""Structured logs, one JSON object a line on standard error for journald; which words are logged is up to the rooms."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

Logger = Any
"""A structlog logger; its own type says no more than Any."""


def configure_logs(level: str, *, host: str) -> Logger:
    """Set structlog up once per process, and return a logger bound to the host."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    return structlog.get_logger().bind(host=host)
