"""Figures for Prometheus on a loopback port, worked out when they are asked for; the core knows nothing of it."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from hostler_agent.board import Board
from hostler_contract.hosts import Usability


class BoardCollector(Collector):
    """Reads the board at each scrape."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterable[Metric]:
        """Yield all figures of this host."""
        situation = self._board.situation
        usability = GaugeMetricFamily("hostler_agent_usability", "1 for the present usability.", labels=["usability"])
        for one in Usability:
            usability.add_metric([one.value], float(situation.usability is one))
        yield usability
        entry = situation.entry
        yield _gauge("attached", "Whether a coordinator holds this agent's stream.", situation.attached)
        yield _gauge("task_in_hand", "Whether the journal holds a task.", entry.order is not None)
        yield _gauge("drain_mark", "Whether our drain mark stands on this host.", bool(entry.drained_for))
        yield _gauge("blockers", "Things that forbid work on this host.", len(situation.blockers))
        yield _gauge("journal_damaged", "Whether the journal was found damaged.", bool(situation.damage))


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"hostler_agent_{name}", text, value=float(value))


def serve_metrics(board: Board, address: str, port: int) -> None:
    """Serve them in a thread of their own until the process ends."""
    registry = CollectorRegistry()
    registry.register(BoardCollector(board))
    start_http_server(port, addr=address, registry=registry)
