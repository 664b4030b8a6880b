"""Looks at the certificates, keys and addresses that a coordinator is set up with; opening a server is not here."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from hostler_contract.moments import format_instant
from hostler_coordinator.pki import BadCertificate, Role, read_identity

if TYPE_CHECKING:
    from pathlib import Path

    from hostler_coordinator.config import Settings, Tls

BYTES_MAX = 1024 * 1024
SOON_S = 14 * 86400.0


@dataclass(frozen=True, slots=True)
class Found:
    """What is wrong, each a clause that begins with the setting.

    problems: with these nothing can be served. doubts: it can be started, and others will not, or soon not, take it:
    a certificate that has expired may be renewed while it runs. warnings: what soon will be wrong.
    """

    problems: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: Found) -> Found:
        """Both."""
        return Found(self.problems + other.problems, self.doubts + other.doubts, self.warnings + other.warnings)


def look_at(settings: Settings, now: float) -> Found:
    """Check everything that `run` needs and can be seen without a connection; `now` is epoch seconds."""
    found = _listening(settings)
    if settings.tls is not None:
        found += _pair("tls", settings.tls, now) + _own(settings, settings.tls)
    return found + look_at_store(settings, now)


def look_at_store(settings: Settings, now: float) -> Found:
    """Check the files that the way to etcd needs."""
    return _pair("etcd.tls", settings.etcd.tls, now) if settings.etcd.tls is not None else Found()


def _listening(settings: Settings) -> Found:
    host = _host_of(settings.listen)
    if settings.tls is None and not _is_loopback(host):
        return Found((f"listen: without tls only an address in 127.0.0.0/8 is served, not {settings.listen}",))
    reached = _host_of(settings.address)
    if _is_ip(reached) and ipaddress.ip_address(reached).is_unspecified:
        where = "advertise" if settings.advertise else "listen"
        text = f"{where}: others cannot reach {settings.address}; give advertise the name or address of this machine"
        return Found(doubts=(text,))
    return Found()


def _pair(section: str, tls: Tls, now: float) -> Found:
    """The three files by themselves: readable, PEM, of today, and key and certificate belong together."""
    problems: list[str] = []
    ca = _certificates(f"{section}.ca", tls.ca, problems)
    chain = _certificates(f"{section}.cert", tls.cert, problems)
    key = _key(f"{section}.key", tls.key, problems)
    if chain and key is not None and _public(chain[0].public_key()) != key:
        problems.append(f"{section}.key: {tls.key} is not the key of the certificate {tls.cert}")
    doubts: list[str] = []
    warnings: list[str] = []
    for name, path, found in ((f"{section}.cert", tls.cert, chain[:1]), (f"{section}.ca", tls.ca, ca)):
        for certificate in found:
            _dates(f"{name}: {path}", certificate, now, doubts, warnings)
    return Found(tuple(problems), tuple(doubts), tuple(warnings))


def _dates(what: str, certificate: x509.Certificate, now: float, doubts: list[str], warnings: list[str]) -> None:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    moment = datetime.fromtimestamp(now, UTC)
    if moment < begins:
        doubts.append(f"{what} is not valid before {format_instant(begins.timestamp())}; is the clock right?")
    elif moment > ends:
        doubts.append(f"{what} expired at {format_instant(ends.timestamp())}; have it renewed")
    elif ends.timestamp() - now < SOON_S:
        warnings.append(f"{what} expires at {format_instant(ends.timestamp())}; have it renewed before")


def _own(settings: Settings, tls: Tls) -> Found:
    """What this coordinator's certificate must say: who it is, where it is reached, for both ends of a connection."""
    ignored: list[str] = []
    ca, chain = _certificates("", tls.ca, ignored), _certificates("", tls.cert, ignored)
    if not ca or not chain:
        return Found()
    own, what = chain[0], f"tls.cert: {tls.cert}"
    doubts = [f"{what} {text}" for text in (*_identity(settings, own), *_usages(own), *_names(settings, own))]
    if not any(_signed_by(own, issuer) for issuer in (*ca, *chain[1:])):
        doubts.append(f"{what} is not signed by any certificate in tls.ca, {tls.ca}")
    return Found(doubts=tuple(doubts))


def _identity(settings: Settings, own: x509.Certificate) -> list[str]:
    try:
        identity = read_identity(own.public_bytes(serialization.Encoding.PEM))
    except BadCertificate as error:
        return [f"does not say who this is: {error}"]
    said = (identity.role, identity.name, identity.region)
    wanted = (Role.COORDINATOR, settings.name, settings.region)
    if said == wanted:
        return []
    is_of, should = (f"{role} {name} in region {region}" for role, name, region in (said, wanted))
    return [f"is of {is_of}; these settings are of {should}"]


def _usages(own: x509.Certificate) -> list[str]:
    """A coordinator is called, and calls others."""
    try:
        usages = set(own.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return []
    names = {ExtendedKeyUsageOID.SERVER_AUTH: "serverAuth", ExtendedKeyUsageOID.CLIENT_AUTH: "clientAuth"}
    return [f"lacks the extended key usage {word}" for usage, word in names.items() if usage not in usages]


def _names(settings: Settings, own: x509.Certificate) -> list[str]:
    """Agents and other coordinators check the name or address that they call."""
    host = _host_of(settings.address)
    try:
        names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    dns = names.get_values_for_type(x509.DNSName)
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    wild = f"*.{host.partition('.')[2]}"
    if host in {*addresses} or host.lower() in {name.lower() for name in dns} or (wild in dns and not _is_ip(host)):
        return []
    has = ", ".join((*dns, *addresses)) or "none"
    return [f"does not carry {host}, under which others call this coordinator, but {has}"]


def _signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _certificates(what: str, path: Path, problems: list[str]) -> list[x509.Certificate]:
    raw = _bytes(what, path, problems)
    if raw is None:
        return []
    try:
        return x509.load_pem_x509_certificates(raw)
    except ValueError:
        problems.append(f"{what}: {path} holds no certificate in PEM")
        return []


def _key(what: str, path: Path, problems: list[str]) -> bytes | None:
    """The public half of a private key, to compare."""
    raw = _bytes(what, path, problems)
    if raw is None:
        return None
    try:
        return _public(serialization.load_pem_private_key(raw, password=None).public_key())
    except TypeError:
        problems.append(f"{what}: {path} is encrypted; store it without a passphrase, readable by this user only")
    except ValueError:
        problems.append(f"{what}: {path} holds no private key in PEM")
    return None


def _public(key: object) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    raw: bytes = key.public_bytes(serialization.Encoding.DER, form)  # type: ignore[attr-defined]  # every kind has it
    return raw


def _bytes(what: str, path: Path, problems: list[str]) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(BYTES_MAX)
    except OSError as error:
        problems.append(f"{what}: {path} cannot be read: {error.strerror}")
        return None


def _host_of(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_ip(host) and ipaddress.ip_address(host) in ipaddress.ip_network("127.0.0.0/8")
