"""The inventory files that are shipped and shown are real ones, and the page describes each field that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hostler_contract.hosts import BmcRef, HostRecord
from hostler_coordinator import inventory_rows
from hostler_coordinator.cli.app import app
from hostler_coordinator.inventory import apply, diff, parse_inventory

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/inventory.md").read_text()


def records(content: bytes, form: str = "") -> list[HostRecord]:
    return [apply(entry, None, 1.0) for entry in parse_inventory(content, form)]


def test_both_samples_say_the_same_with_every_field() -> None:
    in_yaml, in_csv = (
        records((ROOT / f"systemd/sample/inventory.{form}").read_bytes(), form) for form in ("yaml", "csv")
    )
    assert in_yaml == in_csv
    first, second = in_yaml
    assert first.bmc == BmcRef(
        protocol="redfish", address="10.0.3.1", port=443, credentials="file:/etc/hostler/bmc/r07", serial="SN-0001"
    )
    assert second.bmc == BmcRef(
        protocol="ipmi", address="10.0.3.2", port=623, credentials="file:/etc/hostler/bmc/r07", serial="SN-0002"
    )
    told = [
        change.fields
        for change in diff(
            [], parse_inventory((ROOT / "systemd/sample/inventory.yaml").read_bytes()), remove_missing=False
        )
    ]
    assert {field.partition(":")[0] for field in told[0]} >= {*inventory_rows._CHECKS, "feeds", "labels.tier"} - {
        "name",
        "id",
    }


@pytest.mark.parametrize("form", ["yaml", "csv"])
def test_what_the_page_shows_can_be_imported(form: str) -> None:
    (shown,) = re.findall(rf"```{form}\n(.*?)```", PAGE, re.DOTALL)
    (host,) = records(shown.encode(), form)
    assert (host.id, host.domains) == ("h-gpu-001", ("fabric/ib-a", "rack/r07", "feed/a1", "feed/b1", "site/fra1"))
    assert host.bmc is not None
    assert (host.bmc.protocol, host.bmc.port) == ("redfish", 443)


def test_what_the_help_shows_can_be_imported() -> None:
    told = CliRunner().invoke(app, ["host", "import", "--help"]).output
    assert "docs/inventory.md" in told
    example = told[told.index("  hosts:") : told.index("Example:")]
    assert [host.id for host in records(example.encode(), "yaml")] == ["h-gpu-001"]


def test_the_page_describes_every_field_and_no_other() -> None:
    described = set(re.findall(r"^\| `([a-z_.]+)` \|", PAGE, re.MULTILINE))
    bmc = {f"bmc.{name}" for name in inventory_rows._BMC_CHECKS}
    assert described == {*inventory_rows._CHECKS, "feeds", "labels", "bmc", *bmc}


@pytest.mark.parametrize(
    ("short", "protocol", "address", "port"),
    [
        ("ipmi://10.0.3.2", "ipmi", "10.0.3.2", 623),
        ("redfish://bmc-1.example/", "redfish", "bmc-1.example", 443),
        ("redfish://10.0.3.2:8443", "redfish", "10.0.3.2", 8443),
        ("'ipmi://[fd00::1]:6230'", "ipmi", "fd00::1", 6230),
    ],
)
def test_the_short_form_of_a_bmc(short: str, protocol: str, address: str, port: int) -> None:
    (host,) = records(f"hosts:\n- name: a\n  serial: SN9\n  bmc: {short}\n  bmc.credentials: env:BMC\n".encode())
    assert host.bmc == BmcRef(protocol=protocol, address=address, port=port, credentials="env:BMC")
