"""The agent's settings: what is wrong in words, with the nearest name; and what check-config looks at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from hostler_agent.__main__ import main
from hostler_agent.config import ConfigError, load_settings
from hostler_agent.papers import problems
from hostler_coordinator.pki import CertFiles, Role, make_ca

NOW = datetime.now(UTC)
HOST = "h-0001"


class Place:
    """A folder with certificates and settings that a test may spoil."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = make_ca(folder / "pki", now=NOW)
        self.files = self.authority.issue(HOST, Role.AGENT, now=NOW)
        self.settings: dict[str, Any] = {
            "host_id": HOST,
            "endpoints": ["c1.site.example:7443"],
            "tls": self.tls(self.files),
            "journal": str(folder / "journal.json"),
            "reboot": {"command": ["true"]},
        }

    @staticmethod
    def tls(files: CertFiles) -> dict[str, str]:
        return {"ca": str(files.ca), "certificate": str(files.cert), "key": str(files.key)}

    def write(self) -> Path:
        path = self.folder / "agent.yaml"
        path.write_text(yaml.safe_dump(self.settings))
        return path

    def found(self, now: float = NOW.timestamp()) -> tuple[list[str], list[str]]:
        return problems(load_settings(self.write()), now)


@pytest.fixture(autouse=True)
def _logs_of_others() -> Iterator[None]:
    """The program sets its process's logs up; no other test may write where pytest listens now."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hostid": "x"}, "hostid: there is no such setting; did you mean host_id?"),
        ({"session": {"send_timeout": 1}}, "session.send_timeout: there is no such setting; did you mean"),
        ({"tls": {"cert": "x"}}, "tls.cert: there is no such setting; did you mean tls.certificate?"),
        ({"busy_interval_s": 1}, "busy_interval_s: there is no such setting; did you mean checks.busy_interval_s?"),
        ({"drain": {"kind": "exce"}}, "drain.kind: must be 'none' or 'exec', not 'exce'; did you mean exec?"),
        ({"drain": {"kind": "exec"}}, "drain: drain.kind exec needs drain.command"),
        ({"host_id": ""}, "host_id: may not be empty"),
        ({"endpoints": ["c1"]}, "endpoints: 'c1' must be HOST:PORT"),
        ({"endpoints": []}, "endpoints: may not be empty"),
        ({"metrics": {"port": "x"}}, "metrics.port: must be a whole number, not 'x'"),
    ],
)
def test_a_bad_setting_is_named_in_words(place: Place, change: dict[str, Any], words: str) -> None:
    place.settings |= change
    with pytest.raises(ConfigError) as refused:
        load_settings(place.write())
    assert words in str(refused.value)


@pytest.mark.parametrize("command", ["run", "status", "check-config"])
def test_settings_that_cannot_be_used_end_with_78_in_one_line(
    place: Place, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place.settings["regoin"] = "r1"
    path = place.write()
    assert main([command, "--config", str(path)]) == 78
    logged, said = capsys.readouterr().err.splitlines()
    assert said == f"hostler-agent: {path}: regoin: there is no such setting"
    assert json.loads(logged)["problem"] == f"{path}: regoin: there is no such setting"


def test_check_config_finds_nothing_wrong_with_what_is_right(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    path = place.write()
    assert place.found() == ([], [])
    assert main(["check-config", "--config", str(path)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["host_id"] == HOST
    assert err == f"hostler-agent: {path}: nothing is wrong\n"


def missing(place: Place) -> str:
    place.files.cert.unlink()
    return f"tls.certificate: {place.files.cert} cannot be read: No such file or directory"


def no_pem(place: Place) -> str:
    place.files.ca.write_text("no certificate")
    return f"tls.ca: {place.files.ca} is not what belongs there, in PEM"


def key_of_another(place: Place) -> str:
    other = place.authority.issue("h-2", Role.AGENT, now=NOW)
    place.settings["tls"]["key"] = str(other.key)
    return f"tls.key: {other.key} is not the key of the certificate {place.files.cert}"


def another_host(place: Place) -> str:
    place.settings["host_id"] = "h-9999"
    uri = f"spiffe://hostler.local/region/r1/host/{HOST}"
    return f"host_id: the certificate {place.files.cert} is not of host h-9999: it carries {uri}"


def another_ca(place: Place) -> str:
    place.settings["tls"]["ca"] = str(make_ca(place.folder / "other", now=NOW).ca_file)
    return f"tls.certificate: {place.files.cert} is not taken by {place.settings['tls']['ca']}: "


def expired(place: Place) -> str:
    old = place.authority.issue("old", Role.AGENT, now=datetime(2020, 1, 1, tzinfo=UTC), subject=HOST)
    place.settings["tls"] = place.tls(old)
    return f"tls.certificate: {old.cert} is not taken by {old.ca}: certificate has expired"


def no_program(place: Place) -> str:
    place.settings["drain"] = {"kind": "exec", "command": ["/nowhere/drain-hook"]}
    return "drain.command: there is no program /nowhere/drain-hook that can be run"


def no_folder(place: Place) -> str:
    place.settings["journal"] = "/nowhere/journal.json"
    return "journal: the folder /nowhere does not exist"


SPOILERS = [missing, no_pem, key_of_another, another_host, another_ca, expired, no_program, no_folder]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_check_config_names_what_is_wrong(
    place: Place, spoil: Callable[[Place], str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = spoil(place)
    path = place.write()
    assert main(["check-config", "--config", str(path)]) == 78
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(f"hostler-agent: {path}: {words}")


def test_a_certificate_that_ends_soon_is_a_warning(place: Place) -> None:
    wrong, soon = place.found(NOW.timestamp() + 20 * 86400.0)
    assert wrong == []
    assert "expires at" in soon[0]


def test_without_tls_no_certificate_is_looked_at(place: Place) -> None:
    missing(place)
    place.settings["insecure"] = True
    assert place.found() == ([], [])
