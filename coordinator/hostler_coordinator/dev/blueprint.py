"""The files that make a development fleet: settings, machines, inventory, profile; pure text, nothing is written here.

Bounds are scaled to machines that boot in seconds. What is law stays: a GO lives 10 s, a BMC session may live 65 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from hostler_coordinator.dev.shape import BMC_PORT, REGION, SITE, CoordinatorPlan, HostPlan, Shape
from hostler_coordinator.pki import CertFiles

LARGE_FLEET_HOSTS = 64
BMC_USERNAME = "ADMIN"


def heartbeat_interval_s(shape: Shape) -> float:
    """What coordinators ask of agents."""
    return 5.0 if shape.hosts > LARGE_FLEET_HOSTS else 1.0


def policy(shape: Shape) -> dict[str, float]:
    """Bounds for simulated machines; a large fleet on a small computer has more time before it counts as silent."""
    large = shape.hosts > LARGE_FLEET_HOSTS
    boot_allowance_s = max(4.0 * shape.boot_seconds + 8.0, 12.0)
    return {
        "heartbeat_interval_s": heartbeat_interval_s(shape),
        "silence_s": 15.0 if large else 4.0,
        "dead_after_s": 30.0 if large else 15.0,
        "leader_grace_s": 15.0 if large else 4.0,
        "rescue_after_s": 18.0 if large else 6.0,
        "pull_timeout_s": 20.0,
        "stop_timeout_s": 8.0,
        "shutdown_timeout_s": boot_allowance_s,
        "boot_allowance_s": boot_allowance_s,
        "boot_allowance_least_s": boot_allowance_s,
        "usable_timeout_s": 20.0,
        "refusal_pause_s": 2.0,
        "refusals": 10,
        "backoff_first_s": 1.0,
        "backoff_cap_s": 5.0,
        "intent_lifetime_s": 30.0,
        "blocked_alert_s": 60.0,
    }


def coordinator_settings(
    shape: Shape,
    me: CoordinatorPlan,
    everyone: Sequence[CoordinatorPlan],
    papers: CertFiles,
    etcd_endpoints: Sequence[str],
) -> dict[str, Any]:
    """The YAML of one coordinator as a mapping."""
    tls = {"ca": str(papers.ca), "cert": str(papers.cert), "key": str(papers.key)}
    return {
        "name": me.name,
        "region": REGION,
        "listen": me.address,
        "endpoints": [one.address for one in everyone],
        "tls": tls,
        "etcd": {"endpoints": list(etcd_endpoints), "tls": tls},
        "election_ttl_s": 6,
        "reattach_span_s": 1.0 + shape.hosts / 100.0,
        "policy": policy(shape),
        "bmc": {
            "power_workers": 4,
            "readings_workers": 1,
            "slow_workers": 1,
            "poll_s": 0.3,
            "poll_gap_s": 0.1,
            "operation_gap_s": 0.3,
            "off_limit_s": 8.0,
            "on_limit_s": 8.0,
            "dwell_s": 0.5,
            "power_on_gap_s": 0.1,
            "destructive_per_minute": 600,
        },
        "metrics_listen": me.metrics,
    }


def machine(shape: Shape, host: HostPlan, papers: CertFiles, endpoints: Sequence[str]) -> dict[str, Any]:
    """What the simulated machines' parent is told of one host."""
    return {
        "host": host.name,
        "host_id": host.id,
        "endpoints": list(endpoints),
        "tls": {"ca": str(papers.ca), "certificate": str(papers.cert), "key": str(papers.key)},
        "boot_seconds": shape.boot_seconds,
        "serial": host.serial,
        "agent": {
            "session": {
                "heartbeat_interval_s": 1.0,
                "reply_timeout_s": 10.0,
                "keepalive_interval_s": 2.0 + heartbeat_interval_s(shape),  # beats make pings needless
                "ping_timeout_s": 4.0,
                "reattach_span_s": 0.5 + shape.hosts / 200.0,
                "backoff_first_s": 0.2,
                "backoff_cap_s": 2.0,
            },
            "reboot": {"started_repeat_s": 1.0, "outcome_repeat_s": 2.0, "refusal_pause_s": 0.5},
            "checks": {"boot_target": "", "busy_interval_s": 0.5, "idle_interval_s": 10.0},
        },
    }


def bmc(host: HostPlan, password: str) -> dict[str, Any]:
    """What the BMC park is told of one BMC."""
    return {
        "host": host.name,
        "address": host.bmc_address,
        "port": BMC_PORT,
        "username": BMC_USERNAME,
        "password": password,
        "serial": host.serial,
    }


def inventory(hosts: Sequence[HostPlan], secrets: Path) -> bytes:
    """The inventory file that is imported over the API; `secrets` is the folder with one credentials file per BMC."""
    rows = [
        {
            "id": host.id,
            "name": host.name,
            "serial": host.serial,
            "fabric": host.fabric,
            "rack": host.rack,
            "feeds": [host.feed],
            "site": SITE,
            "model": "simulated-machine",
            "bmc": {
                "protocol": "ipmi",
                "address": host.bmc_address,
                "port": BMC_PORT,
                "credentials": f"file:{secrets / host.name}",
                "serial": host.serial,
            },
        }
        for host in hosts
    ]
    return as_yaml({"hosts": rows}).encode()


def open_domains(hosts: Sequence[HostPlan]) -> list[str]:
    """Domains whose budget is set to 100 %, so that fabrics alone limit unless an operator says otherwise."""
    racks = sorted({f"rack/{host.rack}" for host in hosts})
    feeds = sorted({f"feed/{host.feed}" for host in hosts})
    return [*racks, *feeds, f"site/{SITE}"]


def profile(everyone: Sequence[CoordinatorPlan], papers: CertFiles) -> dict[str, Any]:
    """The operator's profile file."""
    return {
        "endpoints": [one.address for one in everyone],
        "ca": str(papers.ca),
        "cert": str(papers.cert),
        "key": str(papers.key),
    }


def as_yaml(document: Mapping[str, Any]) -> str:
    """Write one document."""
    return yaml.safe_dump(dict(document), sort_keys=False)
