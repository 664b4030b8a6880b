"""The coordinator's settings: one YAML file, `HOSTLER_COORDINATOR_*` over it; building parts is not here."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from hostler_contract.setting_words import in_words, nearest
from hostler_coordinator.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

PORT_MOST = 65535
Seconds = Annotated[float, Field(gt=0, le=86400.0 * 365)]


class ConfigError(Exception):
    """The settings cannot be used; the message names the file, the field and the reason."""


def check_address(text: str, port_least: int = 1) -> None:
    """Raise ValueError unless a text is HOST:PORT; an IPv6 address stands in brackets."""
    if "://" in text:
        msg = f"{text!r} must be HOST:PORT, without {text.partition('://')[0]}://"
        raise ValueError(msg)
    host, _, port = text.rpartition(":")
    bare = host.startswith("[") and host.endswith("]")
    if not host or (":" in host and not bare) or not port.isascii() or not port.isdigit():
        msg = f"{text!r} must be HOST:PORT"
        raise ValueError(msg)
    if not port_least <= int(port) <= PORT_MOST:
        msg = f"{text!r} must have a port from {port_least} to {PORT_MOST}"
        raise ValueError(msg)


class Section(BaseModel):
    """Part of the file; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tls(Section):
    """PEM files."""

    ca: Path
    cert: Path
    key: Path


class EtcdSection(Section):
    """The store."""

    endpoints: Annotated[tuple[str, ...], Field(min_length=1, max_length=32)] = ("127.0.0.1:2379",)
    tls: Tls | None = None
    request_timeout_s: Seconds = 2.0

    @field_validator("endpoints")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for endpoint in value:
            check_address(endpoint)
        return value


class BmcSection(Section):
    """Out-of-band power."""

    power_workers: Annotated[int, Field(ge=1, le=64)] = 16
    readings_workers: Annotated[int, Field(ge=1, le=64)] = 4
    slow_workers: Annotated[int, Field(ge=1, le=16)] = 4
    poll_s: Seconds = 1.0
    poll_gap_s: Annotated[float, Field(ge=0)] = 1.0
    """At least this long between two questions to one BMC."""
    operation_gap_s: Annotated[float, Field(ge=0)] = 5.0
    """At least this long between two orders to one BMC."""
    soft_s: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """Before off, ask the operating system through the BMC and wait this long; 0 skips it."""
    min_soft_s: Annotated[float, Field(ge=0, le=3600)] = 5.0
    """A host that is off sooner after that was not shut down in order: its BMC model gets no such request any more."""
    force: bool = True
    """Without it nothing is switched off that does not shut down by itself; a person is called."""
    off_limit_s: Seconds = 240.0
    on_limit_s: Seconds = 120.0
    dwell_s: Annotated[float, Field(ge=0)] = 10.0
    power_on_gap_s: Annotated[float, Field(ge=0)] = 2.0
    """Per rack and per feed."""
    destructive_per_minute: Annotated[int, Field(ge=1)] = 60


class WebhookSection(Section):
    """Where alerts go, in Alertmanager's format."""

    url: str
    timeout_s: Seconds = 5.0


class Settings(BaseSettings):
    """All of it. `policy` may override any field of Policy by its name."""

    model_config = SettingsConfigDict(
        env_prefix="HOSTLER_COORDINATOR_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9._-]+$")]
    region: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9._-]+$")] = "r1"
    listen: str = "0.0.0.0:7443"
    advertise: str = ""
    """host:port under which agents and the other coordinators reach this one; `listen` when empty."""
    endpoints: tuple[str, ...] = ()
    """host:port of every coordinator, told to agents; only this one when empty."""
    tls: Tls | None = None
    insecure_loopback: bool = False
    """Serve without TLS; refused on any address but 127.0.0.0/8."""
    etcd: EtcdSection = EtcdSection()
    election_ttl_s: Annotated[int, Field(ge=2, le=60)] = 5
    reattach_span_s: Annotated[float, Field(ge=0)] = 30.0
    policy: dict[str, float | int] = Field(default_factory=dict)
    bmc: BmcSection = BmcSection()
    webhook: WebhookSection | None = None
    metrics_listen: str = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("listen", "advertise", "metrics_listen")
    @classmethod
    def _an_address(cls, value: str) -> str:
        if value:
            check_address(value, port_least=0)
        return value

    @field_validator("endpoints")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for endpoint in value:
            check_address(endpoint)
        return value

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, value: dict[str, float | int]) -> dict[str, float | int]:
        known = {field.name for field in dataclasses.fields(Policy)}
        unknown = sorted(set(value) - known)
        if unknown:
            each = (f"there is no {name}{nearest(name, sorted(known))}" for name in unknown)
            raise ValueError(", ".join(each))
        if negative := sorted(name for name, number in value.items() if number < 0):
            msg = f"{', '.join(negative)} may not be negative"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _transport(self) -> Settings:
        if self.tls is None and not self.insecure_loopback:
            msg = "tls is missing: give ca, cert and key, or set insecure_loopback for 127.0.0.0/8 only"
            raise ValueError(msg)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  (the library names them)
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment goes over the file."""
        return (env_settings, init_settings)

    @property
    def address(self) -> str:
        """host:port under which others reach this coordinator."""
        return self.advertise or self.listen

    @property
    def prefix(self) -> str:
        """The region's prefix in etcd."""
        return f"/hostler/{self.region}/"

    def bounds(self) -> Policy:
        """The policy with this file's overrides; a power intent outlives the wait for an orderly shutdown."""
        overrides: Mapping[str, Any] = {
            field.name: int(self.policy[field.name]) if field.type == "int" else float(self.policy[field.name])
            for field in dataclasses.fields(Policy)
            if field.name in self.policy
        }
        policy = dataclasses.replace(Policy(), **overrides)
        return dataclasses.replace(policy, intent_lifetime_s=policy.intent_lifetime_s + self.bmc.soft_s)


def load(path: Path) -> Settings:
    """Read and validate. Raises ConfigError."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise ConfigError(msg) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        msg = f"{path}: is not YAML: {' '.join(str(error).split())}"
        raise ConfigError(msg) from error
    if not isinstance(raw, dict):
        msg = f"{path}: must be a mapping of settings"
        raise ConfigError(msg)
    try:
        return Settings(**raw)
    except ValidationError as error:
        msg = f"{path}: {'; '.join(in_words(error, Settings))}"
        raise ConfigError(msg) from error
    except SettingsError as error:
        msg = f"{path}: a variable {Settings.model_config['env_prefix']}… must be JSON: {error}"
        raise ConfigError(msg) from error
