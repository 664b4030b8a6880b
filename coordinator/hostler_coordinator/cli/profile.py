"""Which coordinators to speak to and with which papers: profile file, environment, flags; nothing connects here."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from hostler_coordinator.cli.errors import Problem, usage

PROFILE_BYTES_MAX = 65536
ENDPOINTS_MAX = 32
DEFAULT_PROFILE = "~/.config/hostler/profile.yaml"
PAPERS = ("ca", "cert", "key")
ENVIRONMENT = {
    "HOSTLER_PROFILE": "the profile file",
    "HOSTLER_ENDPOINTS": "coordinators as host:port, separated by commas",
    "HOSTLER_CA": "file with the certificates that coordinators are checked against",
    "HOSTLER_CERT": "file with the caller's certificate",
    "HOSTLER_KEY": "file with the key of that certificate",
    "HOSTLER_CALLER": "who the caller is, where plaintext on loopback names nobody",
    "HOSTLER_TIMEOUT": "how long a command may take to get its answer, such as 10s",
    "HOSTLER_OUTPUT": "output format: table, wide, json, yaml or name",
    "HOSTLER_INSECURE_LOOPBACK": "1 to allow plaintext to 127.0.0.0/8",
    "NO_COLOR": "anything to switch colours off",
}


class Profile(BaseModel):
    """The profile file. Paths may be relative to the file's own folder."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    endpoints: tuple[str, ...] = ()
    ca: str = ""
    cert: str = ""
    key: str = ""
    caller: str = ""
    server_name: str = ""
    """Name that the coordinators' certificates carry, where it is not the address."""
    insecure_loopback: bool = False

    @field_validator("endpoints", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return split_endpoints(value) if isinstance(value, str) else value


def split_endpoints(text: str) -> tuple[str, ...]:
    """Split `a:1, b:2`, leaving out empty parts."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def load_profile(flag: str | None, environ: Mapping[str, str], warn: Callable[[str], None]) -> Profile:
    """Read the profile file and lay the environment over it. A file that was asked for must exist."""
    asked = flag or environ.get("HOSTLER_PROFILE", "")
    path = Path(asked or DEFAULT_PROFILE).expanduser()
    found = _read(path, warn) if asked or path.is_file() else {}
    found |= {
        name: environ[f"HOSTLER_{name.upper()}"]
        for name in ("endpoints", *PAPERS, "caller")
        if environ.get(f"HOSTLER_{name.upper()}")
    }
    if environ.get("HOSTLER_INSECURE_LOOPBACK", "0") not in {"", "0", "false", "no"}:
        found["insecure_loopback"] = True
    try:
        return Profile.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise usage(f"profile {path}: {where}: {first['msg']}") from error


def _read(path: Path, warn: Callable[[str], None]) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(PROFILE_BYTES_MAX + 1)
    except OSError as error:
        raise usage(f"profile {path} cannot be read: {error.strerror}", fix="name another with --profile") from error
    if len(raw) > PROFILE_BYTES_MAX:
        raise usage(f"profile {path} is larger than {PROFILE_BYTES_MAX} bytes")
    try:
        values = yaml.safe_load(raw) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise usage(f"profile {path} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise usage(f"profile {path} must be a mapping with endpoints, ca, cert, key and caller")
    for name in sorted(str(key) for key in values if key not in Profile.model_fields):
        warn(f"profile {path}: {name!r} means nothing here and is passed over")
    papers = {name: str(path.parent / str(values[name])) for name in PAPERS if values.get(name)}
    return {str(name): value for name, value in (values | papers).items()}


def check_endpoints(profile: Profile) -> None:
    """Refuse a profile that cannot be connected with: no endpoint, not host:port, half a certificate, plaintext."""
    if not profile.endpoints:
        raise usage(
            "no coordinator is named",
            fix="give --endpoint HOST:PORT, HOSTLER_ENDPOINTS, or a profile file with `endpoints:`",
        )
    if len(profile.endpoints) > ENDPOINTS_MAX:
        raise usage(f"{len(profile.endpoints)} endpoints are named; at most {ENDPOINTS_MAX} are tried")
    for endpoint in profile.endpoints:
        host, colon, port = endpoint.rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise usage(f"endpoint {endpoint!r} is not HOST:PORT", flag="--endpoint")
    if not is_plaintext(profile):
        missing = [name for name in PAPERS if not getattr(profile, name)]
        if missing:
            raise usage(f"mutual TLS needs ca, cert and key; missing: {', '.join(missing)}")
        return
    if not profile.insecure_loopback:
        raise Problem(
            "UNAUTHENTICATED",
            "the profile names no certificates, and plaintext is refused",
            fix="give ca, cert and key; on this machine alone, --insecure-loopback",
        )
    if remote := [endpoint for endpoint in profile.endpoints if not is_loopback(endpoint)]:
        raise Problem(
            "UNAUTHENTICATED",
            f"plaintext is allowed to 127.0.0.0/8 only, not to {remote[0]}",
            fix="give ca, cert and key",
        )


def is_plaintext(profile: Profile) -> bool:
    """True when no certificate at all is named."""
    return not any(getattr(profile, name) for name in PAPERS)


def is_loopback(endpoint: str) -> bool:
    """True for an address in 127.0.0.0/8. Names are not resolved: a name may point anywhere tomorrow."""
    try:
        return ipaddress.IPv4Address(endpoint.rpartition(":")[0]) in ipaddress.IPv4Network("127.0.0.0/8")
    except ValueError:
        return False


def process_environment() -> Mapping[str, str]:
    """The environment of this process."""
    return os.environ
