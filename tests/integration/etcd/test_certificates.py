"""Client certificates: the CN is the etcd user, a role holds it to its prefix, and no certificate, no service."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.etcd import AuthFailed, Election, EtcdClient, StoreUnavailable, TlsFiles, access

pytestmark = pytest.mark.integration


class Authority:
    """A throw-away CA."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-ca")])
        self._write("ca", self._sign(self.name, self.key.public_key(), is_ca=True), self.key)

    def issue(self, cn: str) -> TlsFiles:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cn)])
        self._write(cn, self._sign(subject, key.public_key(), is_ca=False), key)
        return TlsFiles(self.folder / "ca.crt", self.folder / f"{cn}.crt", self.folder / f"{cn}.key")

    def _sign(self, subject: x509.Name, public: ec.EllipticCurvePublicKey, *, is_ca: bool) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
        if not is_ca:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
            builder = builder.add_extension(names, critical=False).add_extension(usage, critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        pem = serialization.Encoding.PEM
        (self.folder / f"{name}.crt").write_bytes(certificate.public_bytes(pem))
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (self.folder / f"{name}.key").write_bytes(private)


async def test_the_cn_is_the_user_and_its_role_is_its_bound(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with EtcdCluster(tmp_path / "etcd", tls=authority.issue("server")) as cluster:
        async with EtcdClient(cluster.endpoints, authority.issue("root")) as root:
            for user in ("root", "coordinator"):
                await access.add_user(root, user)
            await access.add_role(root, "root")
            await access.add_role(root, "region", b"/hostler/")
            await access.grant_role(root, "root", "root")
            await access.grant_role(root, "coordinator", "region")
            await access.enable(root)
        async with EtcdClient(cluster.endpoints, authority.issue("coordinator")) as client:
            await client.put(b"/hostler/a", b"1")
            async with Election(client, b"/hostler/leader", b"me").lead() as leadership:
                assert leadership.alive
            with pytest.raises(AuthFailed, match="permission denied"):
                await client.put(b"/other/a", b"1")
            with pytest.raises(AuthFailed, match="permission denied"):
                await client.range(b"/")
        async with EtcdClient(cluster.endpoints, authority.issue("stranger")) as client:
            with pytest.raises(AuthFailed):
                await client.get(b"/hostler/a")
        async with EtcdClient(cluster.endpoints, deadline_s=0.5) as plain:
            with pytest.raises(StoreUnavailable):
                await plain.get(b"/hostler/a")
