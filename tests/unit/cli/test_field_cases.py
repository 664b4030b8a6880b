"""Field cases D at the command line: what people and scripts see in the situations that went wrong elsewhere."""

from __future__ import annotations

import ipaddress
import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hostler_contract.campaigns import CampaignState
from hostler_contract.views import AuditEntry, BmcSeen, HostWhy
from hostler_coordinator.cli.certificates import expiry_warning
from hostler_coordinator.cli.tables import Column, lay_out
from unit.cli import stand_in
from unit.cli.conftest import Cli, child


@pytest.mark.parametrize("hosts", [[], [""], [","], [" : "], ["-l", ""], ["-l", " "], ["-l", ","], ["gpu-001", ""]])
def test_fc_d01_an_empty_selector_selects_nothing(cli: Cli, fleet: stand_in.Fleet, hosts: list[str]) -> None:
    done = cli("campaign", "submit", *hosts, "--yes", "-o", "json")
    assert (done.status, done.json()["error"]["code"], fleet.asked) == (2, "INVALID_ARGUMENT", [])


def test_fc_d01_an_empty_file_of_hosts_is_refused(cli: Cli, fleet: stand_in.Fleet, tmp_path: Path) -> None:
    for text in ("", "\n\n", "# none yet\n"):
        (tmp_path / "hosts").write_text(text)
        done = cli("campaign", "submit", "--from-file", str(tmp_path / "hosts"), "--yes")
        assert (done.status, fleet.asked) == (2, [])
        assert "names no host" in done.err


def test_fc_d01_all_hosts_needs_its_own_word_alone(cli: Cli, fleet: stand_in.Fleet) -> None:
    assert cli("campaign", "submit", "--all", "gpu-001", "--yes").status == 2
    assert cli("campaign", "submit", "--all", "--yes").status == 0
    assert fleet.submitted[0].request.selector.all is True
    assert cli("host", "drain", "--all", "--reason", "x").status == 2
    assert [host.drained_by for host in fleet.hosts.values()] == [""] * 8


@pytest.fixture
def large(fleet: stand_in.Fleet) -> None:
    for number in range(9, 809):
        host = stand_in.make_host(number, labels={"fabric": "ib-x"}, fabric="ib-x")
        fleet.hosts[host.name] = host


def test_fc_d02_a_script_above_the_size_limit_must_state_the_exact_count(
    large: None, cli: Cli, fleet: stand_in.Fleet
) -> None:
    submit = ("campaign", "submit", "--operation", "reboot", "-l", "fabric=ib-x")
    unasked = cli(*submit)
    assert (unasked.status, fleet.submitted) == (2, [])
    uncounted = cli(*submit, "--yes")
    assert (uncounted.status, fleet.submitted) == (2, [])
    assert "--expect-count 800" in uncounted.err
    miscounted = cli(*submit, "--yes", "--expect-count", "799")
    assert (miscounted.status, fleet.submitted) == (4, [])
    assert cli(*submit, "--yes", "--expect-count", "800").status == 0
    assert list(fleet.submitted[0].request.limits.max_down) == []


def _authority(folder: Path, days: float) -> dict[str, str]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "alice")])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert, paper = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    paper.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return {"ca": str(cert), "cert": str(cert), "key": str(paper)}


def test_fc_d06_json_stays_json_beside_a_warning_about_the_certificate(
    bare_cli: Cli, fleet: stand_in.Fleet, tmp_path: Path
) -> None:
    papers = _authority(tmp_path, days=3)
    cert, key = (Path(papers[name]).read_bytes() for name in ("cert", "key"))
    credentials = grpc.ssl_server_credentials([(key, cert)], root_certificates=cert, require_client_auth=True)
    server = stand_in.start(fleet, credentials)
    profile = tmp_path / "profile.yaml"
    profile.write_text(f"endpoints: [{server.endpoint}]\nca: cert.pem\ncert: cert.pem\nkey: key.pem\ncolour: red\n")
    try:
        done = bare_cli("--profile", str(profile), "status", "-o", "json")
    finally:
        server.stop()
    assert (done.status, done.json()["coordinator"]) == (0, "c1")
    assert "warning: certificate" in done.err
    assert "'colour'" in done.err


def test_fc_d06_errors_are_one_json_object_with_a_code(cli: Cli, bare_cli: Cli) -> None:
    unknown = cli("campaign", "show", "c-404", "-o", "json")
    assert (unknown.status, unknown.json()["error"]["code"], unknown.err) == (3, "NOT_FOUND", "")
    down = bare_cli("--endpoint", "127.0.0.1:1", "--insecure-loopback", "--timeout", "1s", "status", "-o", "json")
    assert (down.status, down.json()["error"]["code"]) == (5, "UNAVAILABLE")
    for wrong in (("status", "--nonsense", "-o", "json"), ("-o", "json", "campaign"), ("-ojson", "host", "show")):
        done = cli(*wrong)
        error = done.json()["error"]
        assert (done.status, error["code"], sorted(error)) == (
            2,
            "INVALID_ARGUMENT",
            ["code", "fields", "fix", "holder", "message"],
        )


def test_fc_d06_json_is_whole_on_a_narrow_terminal_and_in_ascii(
    coordinator: stand_in.StandIn, fleet: stand_in.Fleet
) -> None:
    fleet.hosts["gpu-001"] = stand_in.make_host(1, note="Lüfter ersetzt → läuft 🚂")
    environment = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "40"}
    process = child(coordinator, "host", "show", "gpu-001", "-o", "json", environment=environment)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out.decode("ascii"))["note"] == "Lüfter ersetzt → läuft 🚂"
    process = child(coordinator, "host", "show", "gpu-001", environment=environment)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, b"")
    assert rb"L\xfcfter" in out


def test_fc_d06_a_closed_pipe_leaves_no_traceback(coordinator: stand_in.StandIn, fleet: stand_in.Fleet) -> None:
    for number in range(9, 3000):
        fleet.hosts[f"gpu-{number:03d}"] = stand_in.make_host(number)
    for arguments in (("host", "list", "-o", "json"), ("host", "list"), ("status", "-o", "json")):
        reader, writer = os.pipe()
        os.close(reader)
        process = child(coordinator, *arguments, stdout=writer)
        os.close(writer)
        _, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (141, b"")


def test_fc_d06_a_table_fits_40_columns() -> None:
    columns = (Column("NAME"), Column("STATE"), Column("FABRIC", rank=2), Column("NOTE", rank=1, flex=True))
    rows = [
        ("gpu-001", "up", "infiniband-a-long", "the fan was replaced and now it runs again"),
        ("gpu-2", "dead", "b", ""),
    ]
    lines = lay_out(columns, rows, wide=False, width=40)
    assert max(map(len, lines)) <= 40
    assert lines[0].index("STATE") == lines[1].index("up")
    assert "FABRIC" not in lines[0]
    assert any(line.startswith("    fabric: infiniband-a-long") for line in lines)


def test_fc_d07_lists_follow_every_page_and_exports_stream(cli: Cli, fleet: stand_in.Fleet) -> None:
    parts = {f"gpu{n}": f"GPU-{n:08x}-9c1b-4d2e-8f00-0123456789ab" for n in range(8)}
    parts |= {f"nic{n}": f"mlx5_{n} 0c42a1030065{n:04x}" for n in range(10)}
    for number in range(9, 20_001):
        host = stand_in.make_host(number).model_copy(update={"labels": parts})
        fleet.hosts[host.name] = host
    found = cli("host", "list", "-o", "json").json()
    assert (len(found), found[-1]["labels"]) == (20_000, parts)
    at = stand_in.server_clock()
    entry = AuditEntry(id="a", at=at, actor="alice", action="host.note", reason="x" * 200)
    fleet.audit = [entry.model_copy(update={"id": f"a-{number}"}) for number in range(20_000)]
    lines = cli("audit", "export", "-o", "json").out.splitlines()
    assert (len(lines), json.loads(lines[-1])["id"]) == (20_000, "a-19999")


def test_fc_d07_an_export_that_breaks_off_ends_in_an_error_not_in_silence(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.audit = [AuditEntry(id="a", at=1.0, actor="alice", action="host.note")]
    fleet.fails["ExportAudit"] = [stand_in.Refusal(grpc.StatusCode.UNAVAILABLE, "going away")]
    done = cli("audit", "export", "-o", "json")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert (done.status, lines[0]["id"], lines[1]["error"]["code"]) == (5, "a", "UNAVAILABLE")


def test_fc_d08_a_moment_without_an_offset_is_refused(cli: Cli, fleet: stand_in.Fleet) -> None:
    for typed in ("2026-07-01 22:00", "2026-07-01T22:00", "2026-07-01"):
        done = cli("hold", "add", "gpu-001", "--reason", "x", "--until", typed)
        assert (done.status, fleet.holds) == (2, {})
        assert "no offset" in done.err
    done = cli("hold", "add", "gpu-001", "--reason", "x", "--until", "2026-07-01T22:00-05:00", "-o", "json")
    assert done.json()[0]["until"] == "2026-07-02T03:00:00.000000Z"


def test_fc_d08_every_moment_shown_carries_its_offset(cli: Cli, fleet: stand_in.Fleet, monkeypatch: Any) -> None:
    monkeypatch.setenv("TZ", "America/Chicago")
    time.tzset()
    fleet.put(stand_in.make_campaign("c-1", created_at=0.0, deadline_at=4e9))
    try:
        shown = cli("campaign", "show", "c-1").out
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "1970-01-01 00:00:00Z" in shown
    assert "2096-10-02 07:06:40Z" in shown


def test_fc_d09_ages_count_from_the_servers_clock_and_are_never_negative(
    cli: Cli, fleet: stand_in.Fleet, monkeypatch: Any
) -> None:
    now = stand_in.server_clock()
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    fleet.put(stand_in.make_campaign("c-1", created_at=now - 10, as_of=now))
    fleet.put(stand_in.make_campaign("c-2", created_at=now + 3, as_of=now))
    fleet.whys["gpu-001"] = HostWhy(
        host="gpu-001", host_id="h-1", state="up", waiting_for="a free slot", since=now - 10, as_of=now
    )
    listed = cli("campaign", "list").out.splitlines()
    assert "10 s" in listed[1]
    assert " 0 s" in listed[2]
    assert "-" not in listed[2].split("0 s")[0].replace("c-2", "")
    assert "for 10 s" in cli("host", "why", "gpu-001").out
    heard = cli("host", "list").out.splitlines()[1]
    assert any(f"{age} s" in heard for age in range(3, 12))
    held = cli("hold", "add", "gpu-001", "--reason", "x", "--until", "4h", "-o", "json").json()[0]
    assert abs(datetime.fromisoformat(held["until"]).timestamp() - now - 4 * 3600) < 30


def test_fc_b06_and_b18_the_chosen_system_and_what_its_model_does_wrong_are_shown(
    cli: Cli, fleet: stand_in.Fleet
) -> None:
    seen = BmcSeen(
        system="/redfish/v1/Systems/System_0",
        system_uuid="U-1",
        chosen_by="the UUID",
        manufacturer="Dell",
        model="R750",
        at=1_800_000_000.0,
        graceful="gpu-003: graceful not honoured: off 0.4 s after a soft off",
    )
    fleet.hosts["gpu-001"] = stand_in.make_host(1, system_uuid="U-1", bmc_seen=seen)
    shown = " ".join(cli("host", "show", "gpu-001").out.split())
    assert "/redfish/v1/Systems/System_0, UUID U-1 (chosen by the UUID, 2027-01-15 08:00:00Z)" in shown
    assert "Dell R750" in shown
    assert "not sent to this model: gpu-003: graceful not honoured" in shown
    document = cli("host", "show", "gpu-001", "-o", "json").json()
    assert document["bmc_seen"] == seen.model_dump(mode="json")


def test_fc_d12_a_host_shutting_down_is_never_shown_as_on(cli: Cli, fleet: stand_in.Fleet) -> None:
    """The goal comes from the server; the command line shows it as given and works out no power state of its own."""
    now = stand_in.server_clock()
    shown = []
    for waiting in ("shutting down (goal off)", "shutting down (goal off)", "off"):
        fleet.whys["gpu-001"] = HostWhy(
            host="gpu-001", host_id="h-1", state="rebooting", waiting_for=waiting, since=now, as_of=now
        )
        shown.append(cli("host", "why", "gpu-001").out)
    assert ["shutting down (goal off)" in line for line in shown] == [True, True, False]
    assert ": off" in shown[2]
    fleet.on_submit = lambda fleet, campaign: fleet.put(
        campaign.model_copy(update={"state": CampaignState.SUCCEEDED, "as_of": campaign.as_of + 1})
    )
    done = cli("host", "power", "off", "gpu-001", "--yes", "--wait", "-o", "json")
    assert (done.status, done.json()["operation"]) == (0, "power_off")


def test_fc_a07_a_soft_reboot_is_submitted_as_an_operation_of_its_own(cli: Cli, fleet: stand_in.Fleet) -> None:
    asked = ("campaign", "submit", "gpu-001", "--operation", "soft-reboot", "--reason", "new glibc", "--yes")
    done = cli(*asked, "-o", "json")
    assert (done.status, done.json()["operation"], done.json()["mode"]) == (0, "soft_reboot", "soft")


def test_a_certificate_is_warned_about_in_time(tmp_path: Path) -> None:
    pem = Path(_authority(tmp_path, days=3)["cert"]).read_bytes()
    assert "expires at" in expiry_warning(pem, "cert.pem", time.time())
    assert "expired at" in expiry_warning(pem, "cert.pem", time.time() + 4 * 86400)
    assert expiry_warning(pem, "cert.pem", time.time() - 20 * 86400) == ""
    assert expiry_warning(b"no certificate", "cert.pem", time.time()) == ""
