"""A throw-away CA for development and tests, and who a peer's certificate says it is; real enrolment is not here."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

TRUST_DOMAIN = "hostler.local"
DEFAULT_REGION = "r1"
VALID_DAYS = 30
LARGEST_CERTIFICATE_BYTES = 64 * 1024
_CLOCK_SLACK = timedelta(minutes=10)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@-]{0,126}[A-Za-z0-9])?")


class Role(StrEnum):
    """What a certificate lets its holder be."""

    AGENT = "agent"
    COORDINATOR = "coordinator"
    OPERATOR = "operator"
    ETCD = "etcd"


_PATHS = {Role.AGENT: "host", Role.COORDINATOR: "coordinator", Role.OPERATOR: "operator", Role.ETCD: "etcd"}
_ROLES = {path: role for role, path in _PATHS.items()}


class BadCertificate(Exception):
    """A certificate does not say who its holder is; the text says why."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a peer is. `name` is the host id for agents, the person or process for the others."""

    role: Role
    name: str
    region: str = DEFAULT_REGION

    @property
    def uri(self) -> str:
        """As it stands in the certificate."""
        return f"spiffe://{TRUST_DOMAIN}/region/{self.region}/{_PATHS[self.role]}/{self.name}"


@dataclass(frozen=True, slots=True)
class CertFiles:
    """Where a certificate, its key and the CA's certificate lie (PEM)."""

    cert: Path
    key: Path
    ca: Path


class CertificateAuthority:
    """Signs short-lived certificates; its key stays in `directory`."""

    def __init__(self, directory: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self.directory = directory
        self._key = key
        self._certificate = certificate

    @property
    def ca_file(self) -> Path:
        """The certificate to trust."""
        return self.directory / "ca.pem"

    def issue(
        self,
        name: str,
        role: Role,
        *,
        now: datetime,
        subject: str = "",
        region: str = DEFAULT_REGION,
        ips: Iterable[str] = (),
        dns: Iterable[str] = (),
    ) -> CertFiles:
        """Write `name.pem` and `name.key` (0600). `subject` is the host id or the person, `name` unless given.

        The common name is the subject too, because etcd authenticates by it. `now` starts the 30 days of validity.
        Raises ValueError for a name that cannot stand in a URI or a file name.
        """
        identity = Identity(role, subject or name, region)
        for part in (name, identity.name, region):
            if not _NAME.fullmatch(part):
                raise ValueError(f"{part!r} cannot name a certificate; use letters, digits and ._@-")
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(identity, key.public_key(), _alternatives(identity, ips, dns), now)
        files = CertFiles(self.directory / f"{name}.pem", self.directory / f"{name}.key", self.ca_file)
        _write(files.cert, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        _write(files.key, _private_pem(key), 0o600)
        return files

    def _signed(
        self, identity: Identity, key: ec.EllipticCurvePublicKey, names: Sequence[x509.GeneralName], now: datetime
    ) -> x509.Certificate:
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if identity.role in {Role.COORDINATOR, Role.ETCD}:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        issuer_key = self._key.public_key()
        return (
            _builder(identity.name, self._certificate.subject, key, now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def make_ca(directory: Path, *, now: datetime) -> CertificateAuthority:
    """Make a CA in `directory` (created 0700), or open the one that is there already; `now` is aware, in UTC."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    cert_file, key_file = directory / "ca.pem", directory / "ca.key"
    if cert_file.exists() and key_file.exists():
        return _opened(directory, cert_file, key_file)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hostler throw-away CA")])
    certificate = (
        _builder("hostler throw-away CA", subject, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(key_file, _private_pem(key), 0o600)
    _write(cert_file, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    return CertificateAuthority(directory, key, certificate)


def read_identity(pem: bytes) -> Identity:
    """Read who a peer is from its certificate (PEM). The TLS layer has verified the chain; this only reads.

    Raises BadCertificate unless exactly one URI names a role and a name in our trust domain.
    """
    if len(pem) > LARGEST_CERTIFICATE_BYTES:
        raise BadCertificate(f"the certificate has {len(pem)} bytes, more than {LARGEST_CERTIFICATE_BYTES}")
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except x509.ExtensionNotFound:
        raise BadCertificate("the certificate has no alternative name, so it does not say who you are") from None
    except ValueError as error:
        raise BadCertificate(f"the certificate cannot be read: {error}") from None
    ours = [uri for uri in uris if uri.startswith("spiffe://")]
    if len(ours) != 1:
        raise BadCertificate(f"the certificate has {len(ours)} spiffe:// names; exactly one says who you are")
    return parse_uri(ours[0])


def peer_identity(auth_context: Mapping[str, Iterable[bytes]]) -> Identity | None:
    """The peer of a gRPC call, from `context.auth_context()`; None without a client certificate (plaintext)."""
    for pem in auth_context.get("x509_pem_cert", ()):
        return read_identity(pem)
    return None


def parse_uri(uri: str) -> Identity:
    """Read `spiffe://hostler.local/region/R/ROLE/NAME`; raises BadCertificate."""
    parts = urlsplit(uri)
    match parts.path.split("/"):
        case ["", "region", region, kind, name] if (
            (parts.scheme, parts.netloc) == ("spiffe", TRUST_DOMAIN)
            and kind in _ROLES
            and not (parts.query or parts.fragment)
            and _NAME.fullmatch(region)
            and _NAME.fullmatch(name)
        ):
            return Identity(_ROLES[kind], name, region)
    raise BadCertificate(f"{uri[:200]!r} is no identity; it looks like spiffe://{TRUST_DOMAIN}/region/R/host/ID")


def _alternatives(identity: Identity, ips: Iterable[str], dns: Iterable[str]) -> list[x509.GeneralName]:
    return [
        x509.UniformResourceIdentifier(identity.uri),
        *(x509.DNSName(name) for name in dns),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in ips),
    ]


def _builder(
    common_name: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])]))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + timedelta(days=VALID_DAYS))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _opened(directory: Path, cert_file: Path, key_file: Path) -> CertificateAuthority:
    key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{key_file} is not an elliptic-curve key; remove the folder to get a new CA")
    return CertificateAuthority(directory, key, x509.load_pem_x509_certificate(cert_file.read_bytes()))


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace a file whole; a key is never readable by others, not even for a moment."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    fresh.replace(path)
