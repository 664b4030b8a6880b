"""`hostler-coordinator` when it is set up wrongly: one clear line, the right exit status, and never a traceback."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml
from typer.testing import CliRunner, Result

from hostler_coordinator import __main__ as program
from hostler_coordinator.config import load
from hostler_coordinator.papers import look_at
from hostler_coordinator.pki import CertFiles, Role, make_ca

NOW = datetime(2026, 12, 1, tzinfo=UTC)
LISTEN = "127.0.0.1:7443"


class Place:
    """A folder with a CA, and settings over certificates that a test may spoil."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = make_ca(folder / "pki", now=NOW)
        self.files = self.issue("c1")
        self.settings: dict[str, Any] = {
            "name": "c1",
            "region": "r1",
            "listen": LISTEN,
            "tls": self.tls(self.files),
            "etcd": {"endpoints": ["127.0.0.1:1"], "request_timeout_s": 0.3},
        }

    def issue(self, name: str, role: Role = Role.COORDINATOR, now: datetime = NOW, **more: Any) -> CertFiles:
        return self.authority.issue(name, role, now=now, **({"ips": ("127.0.0.1",)} | more))

    @staticmethod
    def tls(files: CertFiles) -> dict[str, str]:
        return {"ca": str(files.ca), "cert": str(files.cert), "key": str(files.key)}

    def write(self) -> Path:
        path = self.folder / "coordinator.yaml"
        path.write_text(yaml.safe_dump(self.settings))
        return path

    def found(self, now: datetime = NOW) -> tuple[list[str], list[str], list[str]]:
        found = look_at(load(self.write()), now.timestamp())
        return list(found.problems), list(found.doubts), list(found.warnings)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nor logs that other tests would write to where pytest listens now."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    yield
    structlog.reset_defaults()


def call(*arguments: object) -> Result:
    return CliRunner().invoke(program.app, [str(word) for word in arguments])


def said(result: Result) -> list[str]:
    """What it said to a person, without the lines of the log."""
    return [line for line in result.stderr.splitlines() if line.startswith("hostler-coordinator: ")]


# --- what is looked at -----------------------------------------------------------------------------------------------


def test_nothing_is_wrong_with_certificates_that_are_right(place: Place) -> None:
    assert place.found() == ([], [], [])


def spoil_ca(place: Place) -> str:
    place.files.ca.write_text("no certificate")
    return f"tls.ca: {place.files.ca} holds no certificate in PEM"


def spoil_cert(place: Place) -> str:
    place.files.cert.unlink()
    return f"tls.cert: {place.files.cert} cannot be read: No such file or directory"


def spoil_key(place: Place) -> str:
    place.files.key.write_text("-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n")
    return f"tls.key: {place.files.key} holds no private key in PEM"


def swap_key(place: Place) -> str:
    other = place.issue("c2")
    place.settings["tls"]["key"] = str(other.key)
    return f"tls.key: {other.key} is not the key of the certificate {place.files.cert}"


def plaintext(place: Place) -> str:
    del place.settings["tls"]
    place.settings |= {"insecure_loopback": True, "listen": "10.0.0.1:7443"}
    return "listen: without tls only an address in 127.0.0.0/8 is served, not 10.0.0.1:7443"


def no_etcd_key(place: Place) -> str:
    place.settings["etcd"]["tls"] = place.tls(place.files) | {"key": "/nowhere.key"}
    return "etcd.tls.key: /nowhere.key cannot be read: No such file or directory"


SPOILERS = [spoil_ca, spoil_cert, spoil_key, swap_key, plaintext, no_etcd_key]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_what_cannot_be_run_with_ends_with_78_and_one_line(place: Place, spoil: Callable[[Place], str]) -> None:
    words = spoil(place)
    assert place.found()[0] == [words]
    path = place.write()
    result = call("run", "--config", path)
    assert (result.exit_code, isinstance(result.exception, SystemExit)) == (78, True)
    assert said(result) == [
        f"hostler-coordinator: {path}: {words}",
        f"hostler-coordinator: next: correct it, then hostler-coordinator check-config --config {path}",
    ]
    [logged] = [json.loads(line) for line in result.stderr.splitlines() if "misconfigured" in line]
    assert (logged["level"], logged["problem"]) == ("critical", f"{path}: {words}")
    checked = call("check-config", "--config", path)
    assert (checked.exit_code, said(checked)[0]) == (78, f"hostler-coordinator: {path}: {words}")


def test_a_certificate_that_others_will_not_take_is_a_doubt_to_run_with_and_wrong_to_check(place: Place) -> None:
    files = place.issue("odd", Role.AGENT, subject="h-1", ips=("127.0.0.9",), dns=("c9.example",))
    place.settings["tls"] = place.tls(files)
    what = f"tls.cert: {files.cert}"
    problems, doubts, _ = place.found()
    assert (problems, doubts) == (
        [],
        [
            f"{what} is of agent h-1 in region r1; these settings are of coordinator c1 in region r1",
            f"{what} lacks the extended key usage serverAuth",
            f"{what} does not carry 127.0.0.1, under which others call this coordinator, but c9.example, 127.0.0.9",
        ],
    )


def test_dates_are_looked_at(place: Place) -> None:
    expired = NOW + timedelta(days=40)
    problems, doubts, _ = place.found(expired)
    assert (problems, len(doubts)) == ([], 2)
    assert "expired at 2026-12-31T00:00:00" in doubts[0]
    assert "is not valid before" in place.found(NOW - timedelta(days=1))[1][0]
    assert "expires at 2026-12-31T00:00:00" in place.found(NOW + timedelta(days=20))[2][0]


def test_another_ca_is_noticed(place: Place, tmp_path: Path) -> None:
    other = make_ca(tmp_path / "other", now=NOW)
    place.settings["tls"]["ca"] = str(other.ca_file)
    assert "is not signed by any certificate in tls.ca" in place.found()[1][0]


def test_an_address_that_nobody_can_call_is_noticed(place: Place) -> None:
    place.settings["listen"] = "0.0.0.0:7443"
    assert "others cannot reach 0.0.0.0:7443; give advertise" in place.found()[1][0]
    files = place.issue("wild", subject="c1", dns=("*.site.example",))
    place.settings |= {"advertise": "c1.site.example:7443", "tls": place.tls(files)}
    assert place.found() == ([], [], [])


# --- the commands ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("run",), ("fsck",), ("check-config",), ("restored", "--by", "alice")])
def test_settings_that_cannot_be_read_end_with_78(tmp_path: Path, command: tuple[str, ...]) -> None:
    missing = tmp_path / "none.yaml"
    result = call(*command, "--config", missing)
    assert result.exit_code == 78
    assert said(result) == [f"hostler-coordinator: {missing}: cannot be read: No such file or directory"]


def test_a_pair_in_the_middle_of_its_renewal_is_looked_at_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    right = place.files.key.read_bytes()
    place.files.key.write_bytes(place.issue("c2").key.read_bytes())
    settings = load(place.write())
    monkeypatch.setattr(time, "sleep", lambda _: place.files.key.write_bytes(right))
    assert program._found_in_the_end(settings).problems == ()


@pytest.mark.parametrize(
    "command", [("fsck", "--timeout", "2"), ("restored", "--by", "alice", "--timeout", "2"), ("check-config", "--etcd")]
)
def test_without_etcd_a_command_says_what_it_waits_for_and_gives_up(place: Place, command: tuple[str, ...]) -> None:
    del place.settings["tls"]
    place.settings["insecure_loopback"] = True
    path = place.write()
    began = time.monotonic()
    result = call(*command, "--config", path)
    assert (result.exit_code, time.monotonic() - began < 9.0) == (5, True)
    waits, gave_up, following = said(result)[-3:]
    assert waits.startswith("hostler-coordinator: waiting for etcd at 127.0.0.1:1; giving up in ")
    assert gave_up.startswith("hostler-coordinator: the store cannot be used: no etcd member answers at 127.0.0.1:1")
    assert following.endswith(f"see that etcd runs, and that etcd.endpoints and etcd.tls of {path} are right")


@pytest.mark.parametrize("setting", ["listen", "metrics_listen"])
def test_a_taken_address_is_named_and_may_be_tried_again(place: Place, setting: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        place.settings |= {"listen": "127.0.0.1:0", setting: address}
        result = call("run", "--config", place.write())
    assert result.exit_code == 1
    assert said(result)[0].startswith(f"hostler-coordinator: {setting}: cannot listen on {address}: ")


@pytest.mark.parametrize("unit", ["agent", "coordinator"])
def test_the_units_do_not_start_again_what_a_start_cannot_cure(unit: str) -> None:
    text = (Path(__file__).parents[3] / "systemd" / f"hostler-{unit}.service").read_text()
    [line] = [line for line in text.splitlines() if line.startswith("RestartPreventExitStatus=")]
    assert str(program.MISCONFIGURED) in line.partition("=")[2].split()
