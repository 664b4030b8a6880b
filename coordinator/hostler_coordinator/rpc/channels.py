"""Transport settings of both ends: TLS, keep-alive, sizes; each with the reason for its figure."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable
from dataclasses import dataclass

import grpc

REQUEST_BYTES_MAX = 1024 * 1024
"""What an ordinary call takes."""
IMPORT_BYTES_MAX = 8 * 1024 * 1024
"""What an inventory takes: about 40,000 hosts."""
RECEIVE_BYTES_MAX = IMPORT_BYTES_MAX + 64 * 1024
"""Where the transport itself stops reading a message."""

_ANSWER_BYTES_MAX = 4 * 1024 * 1024

# grpcio's keepalive_timeout_ms never fires in 1.85; only the ping time-out counts, and its default is a minute.
_SERVER_KEEPALIVE_MS = 6_000  # above the heartbeat interval: a healthy agent's beats make pings needless
_SERVER_PING_TIMEOUT_MS = 4_000
_CLIENT_KEEPALIVE_MS = 4_000
_CLIENT_PING_TIMEOUT_MS = 4_000
_LEAST_PING_INTERVAL_MS = 500  # peers may ping this often without being sent away for it (too_many_pings)
_STREAMS_PER_CONNECTION_MAX = 25_000  # a proxy may carry a whole hall's agents over one connection

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", RECEIVE_BYTES_MAX),
    ("grpc.max_send_message_length", _ANSWER_BYTES_MAX),
    ("grpc.keepalive_time_ms", _SERVER_KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", _SERVER_PING_TIMEOUT_MS),
    ("grpc.http2.ping_timeout_ms", _SERVER_PING_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", _LEAST_PING_INTERVAL_MS),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_concurrent_streams", _STREAMS_PER_CONNECTION_MAX),
    ("grpc.so_reuseport", 0),  # a second coordinator on the same port must fail, not share it
)
CLIENT_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", RECEIVE_BYTES_MAX),
    ("grpc.max_send_message_length", RECEIVE_BYTES_MAX),
    ("grpc.keepalive_time_ms", _CLIENT_KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", _CLIENT_PING_TIMEOUT_MS),
    ("grpc.http2.ping_timeout_ms", _CLIENT_PING_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),  # coordinators talk to each other, whatever the environment says
    ("grpc.use_local_subchannel_pool", 1),  # a fresh channel means a fresh connection
)


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM of one identity, and of the authority that all peers' certificates come from."""

    certificate: bytes
    key: bytes
    authority: bytes

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """As a server wants it."""
        return grpc.ssl_server_certificate_configuration([(self.key, self.certificate)], self.authority)


class Renewal:
    """Hands gRPC a configuration when the certificate is another than the one served; called in gRPC's threads.

    A new configuration for every handshake would end the process: gRPC's core (1.85) swaps it without a lock, and two
    handshakes that swap at the same time use freed memory. So there is a swap for a renewal only, by one of them.
    """

    def __init__(self, current: Callable[[], Tls]) -> None:
        self._current = current
        self._swapping = threading.Lock()
        self.served = current()

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        """Return None to keep what is served. What `current` raises leaves the old certificate in place, too."""
        if not self._swapping.acquire(blocking=False):
            return None
        try:
            newest = self._current()
            if newest == self.served:
                return None
            self.served = newest
            return newest.configuration()
        finally:
            self._swapping.release()


def server_credentials(current: Callable[[], Tls]) -> grpc.ServerCredentials:
    """Mutual TLS. `current` is asked before each handshake, in a thread of gRPC's: certificates may be renewed.

    It must be quick; what it raises leaves the old certificate in place.
    """
    renewal = Renewal(current)
    return grpc.dynamic_ssl_server_credentials(
        renewal.served.configuration(),
        renewal,  # type: ignore[arg-type]  # the stubs forget that None keeps what is served
        require_client_authentication=True,
    )


def dialler(current: Callable[[], Tls] | None) -> Callable[[str], grpc.aio.Channel]:
    """A function that opens a channel to an address with the newest certificate; None dials in plaintext (loopback)."""

    def dial(address: str) -> grpc.aio.Channel:
        if current is None:
            refuse_beyond_loopback(address)
            return grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS)
        tls = current()
        credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
        return grpc.aio.secure_channel(address, credentials, options=CLIENT_OPTIONS)

    return dial


def refuse_beyond_loopback(address: str) -> None:
    """Raise ValueError unless the address is a literal one in 127.0.0.0/8: plaintext goes nowhere else."""
    host = address.rpartition(":")[0]
    try:
        inside = ipaddress.ip_address(host) in ipaddress.ip_network("127.0.0.0/8")
    except ValueError:
        inside = False
    if not inside:
        raise ValueError(f"plaintext gRPC on {address!r} is refused: only a literal 127.x.y.z may go without TLS")
