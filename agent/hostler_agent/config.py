"""The agent's settings: one YAML file, HOSTLER_AGENT_* variables over it; every bound has its unit and a default."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from hostler_contract.setting_words import in_words

ENV_PREFIX = "HOSTLER_AGENT_"


class ConfigError(Exception):
    """The configuration cannot be used; the text names file and setting."""


class Section(BaseModel):
    """Part of the file; a setting that does not exist is an error, not a typo that goes unnoticed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Tls(Section):
    """PEM files of the mutual TLS."""

    ca: Path = Path("/etc/hostler/ca.pem")
    certificate: Path = Path("/etc/hostler/agent.pem")
    key: Path = Path("/etc/hostler/agent.key")
    server_name: str = ""


class SessionLimits(Section):
    """The stream to a coordinator."""

    attach_timeout_s: float = Field(10.0, gt=0, le=120)
    send_timeout_s: float = Field(10.0, gt=0, le=120)
    heartbeat_interval_s: float = Field(10.0, gt=0, le=300)
    reply_timeout_s: float = Field(30.0, gt=0, le=600)
    keepalive_interval_s: float = Field(10.0, ge=1, le=300)
    ping_timeout_s: float = Field(5.0, ge=1, le=60)
    reattach_span_s: float = Field(5.0, ge=0, le=600)
    backoff_first_s: float = Field(0.5, gt=0, le=60)
    backoff_cap_s: float = Field(60.0, gt=0, le=600)


class DrainSettings(Section):
    """Who empties the host."""

    kind: Literal["none", "exec"] = "none"
    command: tuple[str, ...] = ()
    call_timeout_s: float = Field(30.0, gt=0, le=120)
    poll_interval_s: float = Field(5.0, gt=0, le=300)
    timeout_default_s: float = Field(900.0, gt=0)
    undo_retry_s: float = Field(5.0, gt=0, le=300)

    @model_validator(mode="after")
    def _exec_needs_command(self) -> DrainSettings:
        if self.kind == "exec" and not self.command:
            msg = "drain.kind exec needs drain.command"
            raise ValueError(msg)
        return self


class CheckSettings(Section):
    """When the host counts as usable after a boot."""

    boot_target: str = "boot-complete.target"
    commands: tuple[tuple[str, ...], ...] = Field((), max_length=32)
    deadline_s: float = Field(60.0, gt=0, le=120)
    busy_interval_s: float = Field(2.0, gt=0, le=60)
    idle_interval_s: float = Field(60.0, gt=0, le=3600)


class BlockerSettings(Section):
    """What forbids work on this host."""

    gpu_processes: bool = True
    logged_in_people: bool = True


class RebootSettings(Section):
    """The command."""

    command: tuple[str, ...] = ("systemctl", "reboot")
    soft_command: tuple[str, ...] = ("systemctl", "soft-reboot")
    command_deadline_s: float = Field(30.0, gt=0, le=120)
    shutdown_timeout_default_s: float = Field(900.0, gt=0)
    intent_ttl_s: float = Field(300.0, gt=0, le=86400)
    started_repeat_s: float = Field(2.0, gt=0, le=10)
    outcome_repeat_s: float = Field(10.0, gt=0, le=60)
    refusal_pause_s: float = Field(5.0, ge=0, le=600)


class MetricsSettings(Section):
    """Prometheus on a loopback port; 0 is off."""

    port: int = Field(0, ge=0, le=65535)
    address: str = Field("127.0.0.1", pattern=r"^127\.\d+\.\d+\.\d+$")


class Settings(BaseSettings):
    """All of it. `host_id` is the one thing without a default."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", frozen=True, extra="forbid", validate_default=True
    )

    host_id: str = Field(min_length=1, max_length=128)
    endpoints: tuple[str, ...] = Field(min_length=1, max_length=32)
    tls: Tls = Tls()
    insecure: bool = False
    journal: Path = Path("/var/lib/hostler-agent/journal.json")
    hostname: str = ""
    address: str = ""
    sysroot: Path = Path("/")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    session: SessionLimits = SessionLimits()
    drain: DrainSettings = DrainSettings()
    checks: CheckSettings = CheckSettings()
    blockers: BlockerSettings = BlockerSettings()
    reboot: RebootSettings = RebootSettings()
    metrics: MetricsSettings = MetricsSettings()

    @field_validator("endpoints")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for endpoint in value:
            host, _, port = endpoint.rpartition(":")
            if "://" in endpoint or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
                msg = f"{endpoint!r} must be HOST:PORT"
                raise ValueError(msg)
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Variables over the file; nothing is read from the working directory."""
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings


def load_settings(path: Path) -> Settings:
    """Read the file; raises ConfigError with words for people."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    return settings_from(values, str(path))


def settings_from(values: Any, where: str) -> Settings:
    """Validate; raises ConfigError naming each setting that is wrong."""
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: must be a mapping of settings, not {type(values).__name__}")
    try:
        return Settings(**values)
    except ValidationError as error:
        raise ConfigError(f"{where}: {'; '.join(in_words(error, Settings))}") from error
    except SettingsError as error:
        raise ConfigError(f"{where}: a variable {ENV_PREFIX}… must be JSON: {error}") from error
