"""The shape of a development fleet and the files made from it: what coordinators and machines are told fits them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hostler_coordinator.config import Settings
from hostler_coordinator.dev import blueprint
from hostler_coordinator.dev.shape import Shape, coordinators_of, hosts_of
from hostler_coordinator.inventory_files import read_rows
from hostler_coordinator.inventory_rows import make_entry
from hostler_coordinator.pki import CertFiles
from hostler_coordinator.policy import Policy
from hostler_coordinator.refusals import BadField

PAPERS = CertFiles(Path("/p/a.pem"), Path("/p/a.key"), Path("/p/ca.pem"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"hosts": 0}, "--hosts is 0"),
        ({"hosts": 5000}, "--hosts is 5000"),
        ({"hosts": 2, "fabrics": 3}, "--fabrics is 3"),
        ({"hosts": 2, "coordinators": 0}, "--coordinators is 0"),
        ({"hosts": 2, "etcd_members": 2}, "--etcd-members is 2"),
        ({"hosts": 2, "boot_seconds": 0.0}, "--boot-seconds is 0"),
        ({"hosts": 2, "faults": (("gpu-003", "hang"),)}, "no host 'gpu-003'"),
        ({"hosts": 2, "faults": (("gpu-001", "melt"),)}, "no fault 'melt'"),
    ],
)
def test_what_cannot_be_stood_up_is_refused_by_its_flag(wrong: dict[str, object], says: str):
    with pytest.raises(ValueError, match=says):
        Shape(**wrong)  # type: ignore[arg-type]


def test_every_host_has_a_name_a_serial_and_an_address_of_its_own():
    hosts = hosts_of(Shape(700, 3), 77)
    for distinct in ("id", "name", "serial", "bmc_address"):
        assert len({getattr(host, distinct) for host in hosts}) == 700
    assert hosts[0].name == "gpu-001"
    assert {host.bmc_address.split(".")[3] for host in hosts} <= {str(number) for number in range(1, 251)}


def test_fabrics_are_even_and_no_rack_spans_two():
    hosts = hosts_of(Shape(50, 3), 77)
    sizes = [sum(host.fabric == fabric for host in hosts) for fabric in ("ib-a", "ib-b", "ib-c")]
    assert max(sizes) - min(sizes) <= 1
    for rack in {host.rack for host in hosts}:
        members = [host for host in hosts if host.rack == rack]
        assert len({host.fabric for host in members}) == 1
        assert len(members) <= 16


@pytest.mark.parametrize("hosts", [1, 24, 200])
def test_the_coordinators_settings_are_accepted_by_the_coordinator(hosts: int):
    shape = Shape(hosts, 1)
    everyone = coordinators_of(shape, 77)
    told = blueprint.coordinator_settings(shape, everyone[0], everyone, PAPERS, ["127.77.0.2:2379"])
    bounds = Settings(**yaml.safe_load(blueprint.as_yaml(told))).bounds()
    assert bounds.go_lifetime_s == Policy().go_lifetime_s
    assert bounds.bmc_session_timeout_s == Policy().bmc_session_timeout_s
    assert bounds.heartbeat_interval_s < bounds.silence_s < bounds.rescue_after_s < bounds.dead_after_s
    assert bounds.boot_allowance_s > shape.boot_seconds


def test_the_inventory_is_accepted_by_the_importer():
    hosts = hosts_of(Shape(40, 2), 77)
    rows, problems = read_rows(blueprint.inventory(hosts, Path("/fleet/secrets")), "yaml")
    more: list[BadField] = []
    entries = [make_entry(row, more) for row in rows]
    assert problems == more == []
    assert [entry.name for entry in entries if entry is not None] == [host.name for host in hosts]
    assert "password" not in blueprint.inventory(hosts, Path("/fleet/secrets")).decode()


def test_only_fabrics_are_left_with_the_default_budget():
    domains = blueprint.open_domains(hosts_of(Shape(40, 2), 77))
    assert domains == ["rack/r01", "rack/r02", "rack/r03", "rack/r04", "feed/feed-a", "feed/feed-b", "site/dev"]
