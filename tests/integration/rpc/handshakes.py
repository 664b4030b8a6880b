"""A server with our credentials under a storm of TLS handshakes; a program of its own, as gRPC may take it down.

`python handshakes.py SECONDS`: renews its certificate half-way and prints the serial numbers that clients were shown.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import grpc
from cryptography import x509

from hostler_coordinator import pki
from hostler_coordinator.rpc.channels import Tls, server_credentials

CLIENTS = 40


async def storm(duration_s: float) -> None:
    folder = Path(tempfile.mkdtemp())
    authority = pki.make_ca(folder, now=datetime.now(UTC))
    papers = [authority.issue(name, pki.Role.COORDINATOR, now=datetime.now(UTC), ips=["127.0.0.1"]) for name in "ab"]
    served = [Tls(one.cert.read_bytes(), one.key.read_bytes(), one.ca.read_bytes()) for one in papers]
    began = time.monotonic()
    server = grpc.aio.server()
    credentials = server_credentials(lambda: served[time.monotonic() - began > duration_s / 2])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.check_hostname = False
    context.load_cert_chain(papers[0].cert, papers[0].key)
    context.set_alpn_protocols(["h2"])
    shown: list[int] = []

    async def client() -> None:
        while time.monotonic() < began + duration_s:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            shown.append(
                x509.load_der_x509_certificate(
                    writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                ).serial_number
            )
            writer.transport.abort()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    await server.stop(None)
    known = [x509.load_pem_x509_certificate(one.certificate).serial_number for one in served]
    order = [known.index(serial) for serial in shown]
    print(len(order), order[0], order[-1])


if __name__ == "__main__":
    asyncio.run(storm(float(sys.argv[1])))
