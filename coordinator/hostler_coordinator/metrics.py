"""Prometheus metrics of one coordinator; counts what others report, decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import Thread
    from wsgiref.simple_server import WSGIServer

    from hostler_coordinator.state import State

_FAST = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SLOW = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)


class Metrics:
    """Everything this process counts, in a registry of its own."""

    def __init__(self) -> None:
        """Make the series."""
        self.registry = CollectorRegistry()
        of = self.registry
        self.leads = Gauge("hostler_leader", "1 while this coordinator leads", registry=of)
        self.sessions = Gauge("hostler_sessions", "Agent sessions held here", registry=of)
        self.turns = Histogram("hostler_turn_seconds", "One turn of the leader", buckets=_FAST, registry=of)
        self.decisions = Counter("hostler_decisions", "Decisions by kind", ["kind"], registry=of)
        self.lost_races = Counter("hostler_lost_races", "Commits refused by a compare", registry=of)
        self.store = Histogram(
            "hostler_store_seconds", "Calls to etcd", ["method", "outcome"], buckets=_FAST, registry=of
        )
        self.bmc = Histogram("hostler_bmc_seconds", "BMC operations", ["verb", "outcome"], buckets=_SLOW, registry=of)
        self.rpc = Histogram(
            "hostler_rpc_seconds", "Calls to this server", ["method", "code"], buckets=_FAST, registry=of
        )
        self.store_down = Gauge("hostler_store_unavailable", "1 while the store refuses work", registry=of)
        self.hosts = Gauge("hostler_hosts", "Hosts enrolled", registry=of)
        self.charged = Gauge("hostler_charged_hosts", "Hosts out of service, by domain", ["domain"], registry=of)
        self.tasks = Gauge("hostler_tasks", "Tasks of campaigns that have not ended, by state", ["state"], registry=of)
        self.letters = Gauge("hostler_dead_letters_open", "Dead letters that wait for a person", registry=of)

    def turn(self, seconds: float, actions: Mapping[str, int]) -> None:
        """engine.Observer: a turn ended."""
        self.turns.observe(seconds)
        for kind, count in actions.items():
            self.decisions.labels(kind).inc(count)

    def lost_race(self) -> None:
        """engine.Observer: a commit was refused."""
        self.lost_races.inc()

    def store_call(self, method: str, seconds: float, outcome: str) -> None:
        """An etcd call ended."""
        self.store.labels(method, outcome).observe(seconds)

    def bmc_call(self, verb: str, outcome: str, seconds: float) -> None:
        """A BMC operation ended."""
        self.bmc.labels(verb, outcome).observe(seconds)

    def rpc_call(self, method: str, seconds: float, code: str) -> None:
        """A call to this server ended."""
        self.rpc.labels(method, code).observe(seconds)

    def look_at(self, state: State) -> None:
        """Renew the gauges that are read off the state."""
        self.hosts.set(len(state.hosts))
        self.letters.set(sum(1 for letter in state.dead_letters.values() if letter.state.value == "open"))
        self.tasks.clear()
        for campaign in state.open_campaigns:
            for task_state, count in state.counts(campaign).items():
                self.tasks.labels(task_state.value).inc(count)
        self.charged.clear()
        for domain in state.domains:
            self.charged.labels(domain).set(state.ledger(domain).charged)

    def serve(self, host: str, port: int) -> tuple[WSGIServer, Thread]:
        """Answer scrapes on an address of this machine."""
        return start_http_server(port, addr=host, registry=self.registry)
