"""Looks at what an agent is set up with before it runs: certificates, programs, folders; it connects to nobody."""

from __future__ import annotations

import os
import shutil
import ssl
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from hostler_agent.config import Settings, Tls

SOON_S = 14 * 86400.0
STEPS_MAX = 20
_REASONS = {
    "KEY_VALUES_MISMATCH": "tls.key: {key} is not the key of the certificate {certificate}",
    "BAD_DECRYPT": "tls.key: {key} is encrypted; store it without a passphrase, readable by root only",
}


def problems(settings: Settings, now: float) -> tuple[list[str], list[str]]:
    """What is wrong and what soon will be, each a clause that begins with the setting; `now` is epoch seconds."""
    wrong, soon = ([], []) if settings.insecure else _certificates(settings, settings.tls, now)
    programs = [("reboot.command", settings.reboot.command), ("drain.command", settings.drain.command)]
    programs += [(f"checks.commands[{number}]", one) for number, one in enumerate(settings.checks.commands)]
    wrong += [text for name, words in programs if words and (text := _program(name, words[0]))]
    folder = settings.journal.parent
    if not folder.is_dir():
        wrong.append(f"journal: the folder {folder} does not exist")
    elif not os.access(folder, os.W_OK):
        wrong.append(f"journal: the folder {folder} cannot be written")
    return wrong, soon


def _program(name: str, word: str) -> str:
    return "" if shutil.which(word) else f"{name}: there is no program {word} that can be run"


def _certificates(settings: Settings, tls: Tls, now: float) -> tuple[list[str], list[str]]:
    """Readable, of each other, signed by the CA, of today, and of this host, as a coordinator would look at it."""
    named = (("tls.ca", tls.ca), ("tls.certificate", tls.certificate), ("tls.key", tls.key))
    unreadable = [text for name, path in named if (text := _unreadable(name, path))]
    if unreadable:
        return unreadable, []
    try:
        said = _shown_to_a_coordinator(tls)
    except ssl.SSLCertVerificationError as error:
        return [f"tls.certificate: {tls.certificate} is not taken by {tls.ca}: {error.verify_message}"], []
    except (ssl.SSLError, OSError, EOFError) as error:
        return [_reason(tls, error)], []
    uris = [name for kind, name in said.get("subjectAltName", ()) if kind == "URI"]
    wrong = []
    if not any(uri.startswith("spiffe://") and uri.endswith(f"/host/{settings.host_id}") for uri in uris):
        has = ", ".join(uris) or "no URI"
        wrong.append(f"host_id: the certificate {tls.certificate} is not of host {settings.host_id}: it carries {has}")
    ends_at = ssl.cert_time_to_seconds(said["notAfter"])
    soon = []
    if ends_at - now < SOON_S:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends_at))
        soon.append(f"tls.certificate: {tls.certificate} expires at {when}; have it renewed before")
    return wrong, soon


def _unreadable(name: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        return f"{name}: {path} cannot be read: {error.strerror}"
    return ""


def _reason(tls: Tls, error: Exception) -> str:
    word = getattr(error, "reason", "") or ""
    known = next((text for sign, text in _REASONS.items() if sign in word), "")
    if known:
        return known.format(key=tls.key, certificate=tls.certificate)
    for name, path, begins in (
        ("tls.ca", tls.ca, b"-----BEGIN CERTIFICATE"),
        ("tls.certificate", tls.certificate, b"-----BEGIN CERTIFICATE"),
        ("tls.key", tls.key, b"PRIVATE KEY-----"),
    ):
        if begins not in path.read_bytes():
            return f"{name}: {path} is not what belongs there, in PEM"
    return f"tls: {tls.ca}, {tls.certificate} and {tls.key} cannot be used together: {word or error}"


def _shown_to_a_coordinator(tls: Tls) -> Any:
    """Shake hands with ourselves in memory: what a coordinator would read, once it has verified it."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(tls.ca)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    for context in (server, client):
        context.load_cert_chain(tls.certificate, tls.key, password=_no_passphrase)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for step in range(STEPS_MAX):
        try:
            ends[step % 2].do_handshake()
        except ssl.SSLWantReadError:
            continue
        if step % 2:
            return ends[1].getpeercert()
    raise EOFError("the handshake does not end")


def _no_passphrase() -> str:
    """Without this OpenSSL would ask on the terminal."""
    return ""
