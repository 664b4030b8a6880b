"""Resolves a reference to BMC credentials, in the worker process only; nothing here may log or pass on a secret."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_FILE_BYTES = 4096


class CredentialsRefusedError(Exception):
    """The reference cannot be used; the text names the reference and the fix, never what it points to."""


@dataclass(frozen=True)
class Credentials:
    """User name and password; neither shows in repr or in a traceback's locals by accident of printing."""

    username: str
    password: str = field(repr=False)


def resolve(reference: str) -> Credentials:
    """Read the credentials that `reference` (`file:PATH` or `env:NAME`) points to; raise CredentialsRefusedError."""
    scheme, colon, rest = reference.partition(":")
    resolver = _RESOLVERS.get(scheme)
    if not colon or not rest or resolver is None:
        known = ", ".join(f"{name}:" for name in sorted(_RESOLVERS))
        raise CredentialsRefusedError(
            f"credentials reference with scheme {scheme!r} cannot be resolved here; this worker knows {known}"
        )
    return parse(resolver(rest), reference)


def parse(text: str, reference: str) -> Credentials:
    """Read JSON `{"username": …, "password": …}` or two lines (user name, password)."""
    if text.lstrip().startswith("{"):
        try:
            username, password = _from_json(json.loads(text))
        except ValueError:  # its text would quote the document
            raise CredentialsRefusedError(f"{reference}: not valid JSON") from None
    else:
        lines = text.splitlines()
        if len(lines) != 2:
            raise CredentialsRefusedError(f"{reference}: expected JSON or exactly two lines, found {len(lines)} lines")
        username, password = lines[0].strip(), lines[1]
    if not isinstance(username, str) or not isinstance(password, str) or not username or not password:
        raise CredentialsRefusedError(f'{reference}: needs a non-empty "username" and a non-empty "password"')
    return Credentials(username, password)


def _from_json(document: object) -> tuple[object, object]:
    if not isinstance(document, dict):
        return None, None
    return document.get("username"), document.get("password")


def _from_file(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise CredentialsRefusedError(f"file:{path}: {error.strerror}") from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise CredentialsRefusedError(f"file:{path}: not a regular file")
        if facts.st_mode & 0o077:
            mode = stat.S_IMODE(facts.st_mode)
            raise CredentialsRefusedError(
                f"file:{path}: mode {mode:04o} lets others than its owner at the secret; run chmod 0600 on it"
            )
        content = os.read(descriptor, MAX_FILE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_FILE_BYTES:
        raise CredentialsRefusedError(f"file:{path}: larger than {MAX_FILE_BYTES} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise CredentialsRefusedError(f"file:{path}: not UTF-8") from None


def _from_environment(name: str, environ: Mapping[str, str] = os.environ) -> str:
    value = environ.get(name)
    if value is None:
        raise CredentialsRefusedError(f"env:{name}: not set in the environment of the power worker")
    return value


# The door for other stores: a function from the rest of the reference to the text that `parse` understands.
_RESOLVERS: dict[str, Callable[[str], str]] = {"file": _from_file, "env": _from_environment}
