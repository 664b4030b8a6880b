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
        ({"policy": {"heartbeat_intervall_s": 3}}, "policy knows no heartbeat_intervall_s"),
        ({"policy": {"silence_s": -1}}, "may be negative"),
        ({"insecure_loopback": False}, "tls is missing"),
        ({"nmae": "x"}, "nmae"),
        ({"election_ttl_s": 0}, "election_ttl_s"),
        ({"name": "a b"}, "name"),
        ({"bmc": {"power_workers": 1000}}, "bmc.power_workers"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load(write(tmp_path / "c.yaml", **settings))


def test_what_is_no_settings_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "missing.yaml")
    (tmp_path / "list.yaml").write_text("- a\n- b\n")
    with pytest.raises(ConfigError, match="must be a mapping"):
        load(tmp_path / "list.yaml")
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
