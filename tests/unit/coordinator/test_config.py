"""The coordinator's settings: the sample is what the code says, and every bad line is named."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostler_coordinator.config import BmcSection, ConfigError, Settings, load
from hostler_coordinator.policy import Policy

SAMPLE = Path(__file__).parents[3] / "systemd" / "sample" / "coordinator.yaml"


def write(path: Path, **settings: Any) -> Path:
    path.write_text(yaml.safe_dump({"name": "c1", "insecure_loopback": True, "listen": "127.0.0.1:0", **settings}))
    return path


def test_the_sample_shows_every_bound_with_its_default() -> None:
    sample = yaml.safe_load(SAMPLE.read_text())
    assert sample["policy"] == {field.name: field.default for field in dataclasses.fields(Policy)}
    assert sample["bmc"] == BmcSection().model_dump()
    named = set(Settings.model_fields) - {"webhook"}
    assert set(sample) == named


def test_the_sample_is_read_as_it_is() -> None:
    settings = load(SAMPLE)
    assert settings.bounds() == Policy()
    assert settings.address == "coordinator-1.site.example:7443"
    assert settings.prefix == "/hostler/r1/"


def test_fc_b14_a_power_intent_outlives_the_wait_for_an_orderly_shutdown(tmp_path: Path) -> None:
    settings = load(write(tmp_path / "c.yaml", bmc={"soft_s": 2700}, policy={"intent_lifetime_s": 500}))
    assert settings.bounds().intent_lifetime_s == 3200.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"policy": {"heartbeat_intervall_s": 3}},
            "policy: there is no heartbeat_intervall_s; did you mean heartbeat_interval_s?",
        ),
        ({"policy": {"silence_s": -1}}, "policy: silence_s may not be negative"),
        (
            {"insecure_loopback": False},
            "the file: tls is missing: give ca, cert and key, or set insecure_loopback for 127.0.0.0/8 only",
        ),
        ({"regoin": "x"}, "regoin: there is no such setting; did you mean region?"),
        ({"bmc": {"pol_s": 1}}, "bmc.pol_s: there is no such setting; did you mean bmc.poll_s?"),
        ({"power_workers": 1}, "power_workers: there is no such setting; did you mean bmc.power_workers?"),
        ({"etcd": {"tls": {"c": "x"}}}, "etcd.tls.c: there is no such setting; did you mean etcd.tls.ca?"),
        ({"zzz": 1}, "zzz: there is no such setting"),
        ({"election_ttl_s": 0}, "election_ttl_s: must be at least 2, not 0"),
        ({"election_ttl_s": "soon"}, "election_ttl_s: must be a whole number, not 'soon'"),
        ({"name": "a b"}, "name: 'a b' does not have the form ^[A-Za-z0-9._-]+$"),
        ({"name": ""}, "name: may not be empty"),
        ({"bmc": {"power_workers": 1000}}, "bmc.power_workers: must be at most 64, not 1000"),
        ({"bmc": 3}, "bmc: must be a section with settings of its own, not 3"),
        (
            {"log_level": "inof"},
            "log_level: must be 'debug', 'info', 'warning' or 'error', not 'inof'; did you mean info?",
        ),
        ({"endpoints": "a:1"}, "endpoints: must be a list, not 'a:1'"),
        ({"listen": "7443"}, "listen: '7443' must be HOST:PORT"),
        ({"etcd": {"endpoints": ["http://a:1"]}}, "etcd.endpoints: 'http://a:1' must be HOST:PORT, without http://"),
        ({"etcd": {"endpoints": ["a:99999"]}}, "etcd.endpoints: 'a:99999' must have a port from 1 to 65535"),
        ({"metrics_listen": "::1:9464"}, "metrics_listen: '::1:9464' must be HOST:PORT"),
    ],
)
def test_a_bad_line_is_named_in_words(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(path := write(tmp_path / "c.yaml", **settings))
    said = str(refused.value).removeprefix(f"{path}: ").split("; etcd.tls.")
    assert words in {said[0], "; etcd.tls.".join(said), f"etcd.tls.{said[-1]}"}


def test_a_variable_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_COORDINATOR_ENDPOINTS", "a:1")
    with pytest.raises(ConfigError, match=r'HOSTLER_COORDINATOR_… must be JSON: .*"endpoints"'):
        load(write(tmp_path / "c.yaml"))


def test_what_is_no_settings_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "missing.yaml")
    (tmp_path / "list.yaml").write_text("- a\n- b\n")
    with pytest.raises(ConfigError, match="must be a mapping"):
        load(tmp_path / "list.yaml")
    (tmp_path / "broken.yaml").write_bytes(b"a: [\xff")
    with pytest.raises(ConfigError, match="is not YAML"):
        load(tmp_path / "broken.yaml")
    (tmp_path / "broken.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match="is not YAML"):
        load(tmp_path / "broken.yaml")


def test_the_environment_goes_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_COORDINATOR_ELECTION_TTL_S", "9")
    assert load(write(tmp_path / "c.yaml", election_ttl_s=3)).election_ttl_s == 9


def test_a_policy_override_keeps_its_type(tmp_path: Path) -> None:
    bounds = load(write(tmp_path / "c.yaml", policy={"rescues": 3, "silence_s": 4})).bounds()
    assert (bounds.rescues, bounds.silence_s) == (3, 4.0)
    assert isinstance(bounds.rescues, int)
