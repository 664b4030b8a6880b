"""The throw-away CA: certificates that TLS accepts, identities read back, keys that stay private."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from hostler_coordinator.pki import (
    BadCertificate,
    CertificateAuthority,
    Identity,
    Role,
    make_ca,
    parse_uri,
    peer_identity,
    read_identity,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def ca(tmp_path: Path) -> CertificateAuthority:
    return make_ca(tmp_path / "pki", now=NOW)


@pytest.mark.parametrize(
    ("role", "subject", "uri"),
    [
        (Role.AGENT, "h123", "spiffe://hostler.local/region/r1/host/h123"),
        (Role.COORDINATOR, "c1", "spiffe://hostler.local/region/r1/coordinator/c1"),
        (Role.OPERATOR, "kim@example", "spiffe://hostler.local/region/r1/operator/kim@example"),
        (Role.ETCD, "etcd1", "spiffe://hostler.local/region/r1/etcd/etcd1"),
    ],
)
def test_identities_are_read_back(ca: CertificateAuthority, role: Role, subject: str, uri: str) -> None:
    files = ca.issue("x", role, subject=subject, now=NOW)
    identity = read_identity(files.cert.read_bytes())
    assert (identity, identity.uri) == (Identity(role, subject), uri)
    assert peer_identity({"x509_pem_cert": [files.cert.read_bytes()]}) == identity
    common_names = x509.load_pem_x509_certificate(files.cert.read_bytes()).subject.rfc4514_string()
    assert common_names == f"CN={subject}"


def test_keys_are_private_and_the_ca_is_opened_again(ca: CertificateAuthority) -> None:
    files = ca.issue("a", Role.AGENT, now=NOW)
    again = make_ca(ca.directory, now=NOW).issue("b", Role.AGENT, now=NOW)
    assert {path.stat().st_mode & 0o777 for path in (files.key, again.key, ca.directory / "ca.key")} == {0o600}
    assert files.ca.read_bytes() == again.ca.read_bytes()


def test_a_strict_verifier_accepts_server_and_client(ca: CertificateAuthority) -> None:
    store = Store([x509.load_pem_x509_certificate(ca.ca_file.read_bytes())])
    server = ca.issue("c1", Role.COORDINATOR, now=NOW, ips=("127.0.0.1",), dns=("localhost",))
    leaf = x509.load_pem_x509_certificate(server.cert.read_bytes())
    verifier = PolicyBuilder().store(store).time(NOW).build_server_verifier(x509.DNSName("localhost"))
    assert len(verifier.verify(leaf, [])) == 2
    agent = x509.load_pem_x509_certificate(ca.issue("h1", Role.AGENT, now=NOW).cert.read_bytes())
    assert PolicyBuilder().store(store).time(NOW).build_client_verifier().verify(agent, []).chain[0] == agent
    context = ssl.create_default_context(cafile=str(ca.ca_file))
    context.load_cert_chain(server.cert, server.key)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "x" * 200, "ü"])
def test_names_that_cannot_stand_in_a_certificate(ca: CertificateAuthority, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name"):
        ca.issue("good", Role.AGENT, subject=name or "/", now=NOW)


@pytest.mark.parametrize(
    "uri",
    [
        "spiffe://elsewhere.local/region/r1/host/h1",
        "spiffe://hostler.local/region/r1/root/h1",
        "spiffe://hostler.local/region/r1/host/",
        "spiffe://hostler.local/region/r1/host/h1/x",
        "spiffe://hostler.local/region/r1/host/h1?role=operator",
        "spiffe://hostler.local/region/r1/host/h%2F1",
        "https://hostler.local/region/r1/host/h1",
    ],
)
def test_uris_that_are_no_identity(uri: str) -> None:
    with pytest.raises(BadCertificate, match="is no identity"):
        parse_uri(uri)


def test_certificates_that_say_nothing(ca: CertificateAuthority) -> None:
    with pytest.raises(BadCertificate, match="no alternative name"):
        read_identity(ca.ca_file.read_bytes())
    with pytest.raises(BadCertificate, match="cannot be read"):
        read_identity(b"rubbish")
    with pytest.raises(BadCertificate, match="more than 65536"):
        read_identity(b"x" * 100_000)
    assert peer_identity({}) is None
