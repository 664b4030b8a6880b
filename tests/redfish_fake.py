"""A small Redfish BMC over TLS whose ways are switched per vendor case; it checks log-ins and keeps what it got."""

from __future__ import annotations

import base64
import datetime as dt
import http.server
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USERNAME, PASSWORD = "ADMIN", "s3cret"
SESSIONS = "/redfish/v1/SessionService/Sessions"
SYSTEM = "/redfish/v1/Systems/System_0"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
RESET_TYPES = ["On", "ForceOff", "ForceRestart", "GracefulShutdown", "PushPowerButton", "Nmi"]


@dataclass(frozen=True)
class Answer:
    """One HTTP answer."""

    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def error(status: int, message_id: str, message: str = "", **headers: str) -> Answer:
    """A Redfish error with extended info."""
    info = [{"MessageId": message_id, "Message": message, "Severity": "Critical"}]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"error": {"@Message.ExtendedInfo": info}}, named)


def system(**changes: Any) -> dict[str, Any]:
    """A host's system resource."""
    return {
        "UUID": "11111111-2222-3333-4444-555555555555",
        "SerialNumber": "SN1",
        "PowerState": "On",
        "Status": {"State": "Enabled"},
        "LocationIndicatorActive": False,
        "Actions": {"#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": RESET_TYPES}},
    } | changes


Rule = Callable[[str, str, dict[str, Any], dict[str, str]], Answer | None]


class FakeRedfish:
    """Serve on 127.0.0.1 while the context is open. `rule(method, path, body, headers)` may answer first."""

    def __init__(self, folder: Path) -> None:
        self.resources: dict[str, dict[str, Any]] = {
            "/redfish/v1/": {
                "Systems": {"@odata.id": "/redfish/v1/Systems"},
                "SessionService": {"@odata.id": "/redfish/v1/SessionService"},
                "Links": {"Sessions": {"@odata.id": SESSIONS}},
            },
            "/redfish/v1/Systems": {"Members": [{"@odata.id": SYSTEM}]},
            SYSTEM: system(),
            SESSIONS: {"Members": []},
        }
        self.rule: Rule = lambda *_: None
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        self.open_sessions: set[str] = set()
        self.most_sessions = 0
        self.reset_types: list[str] = []
        self.ca_file = write_certificate(folder)
        self._lock = threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()

    def answer(self, method: str, path: str, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        """What this BMC says to one request."""
        with self._lock:
            self.requests.append((method, path, body))
            ruled = self.rule(method, path, body, headers)
            if ruled is not None:
                return ruled
            if path == SESSIONS and method == "POST":
                return self._log_in(body)
            if path != "/redfish/v1/" and not self._known(headers):
                return error(401, "Base.1.0.InsufficientPrivilege")
            return self._serve(method, path, body)

    def _log_in(self, body: dict[str, Any]) -> Answer:
        if (body.get("UserName"), body.get("Password")) != (USERNAME, PASSWORD):
            return error(401, "Base.1.0.NoValidSession", f"bad password {body.get('Password')}")
        token = f"token-{len(self.requests)}"
        self.open_sessions.add(token)
        self.most_sessions = max(self.most_sessions, len(self.open_sessions))
        location = f"https://127.0.0.1:{self.port}{SESSIONS}/{token}"
        return Answer(201, {}, {"X-Auth-Token": token, "Location": location})

    def _known(self, headers: dict[str, str]) -> bool:
        basic = "Basic " + base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        return headers.get("x-auth-token") in self.open_sessions or headers.get("authorization") == basic

    def _serve(self, method: str, path: str, body: dict[str, Any]) -> Answer:
        if method == "DELETE" and path.startswith(f"{SESSIONS}/"):
            self.open_sessions.discard(path.rsplit("/", 1)[-1])
            return Answer(204)
        if method == "POST" and path == RESET:
            return self._reset(str(body.get("ResetType")))
        if path not in self.resources:
            return error(404, "Base.1.0.ResourceMissingAtURI")
        if method == "PATCH":
            self.resources[path] |= body
        return Answer(200, self.resources[path])

    def _reset(self, reset_type: str) -> Answer:
        self.reset_types.append(reset_type)
        if reset_type not in RESET_TYPES:
            return error(400, "Base.1.0.ActionParameterNotSupported")
        power = {"On": "On", "ForceOff": "Off", "GracefulShutdown": "Off"}.get(reset_type)
        if power:
            self.resources[SYSTEM]["PowerState"] = power
        return Answer(204)

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def _any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                headers = {name.casefold(): value for name, value in self.headers.items()}
                answer = fake.answer(self.command, self.path, body, headers)
                raw = json.dumps(answer.body).encode() if answer.status != 204 else b""
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PATCH = do_DELETE = _any  # noqa: N815 - the names that http.server looks for

            def log_message(self, *_: Any) -> None:
                """Say nothing on stderr."""

        return Handler


def write_certificate(folder: Path) -> str:
    """Write cert.pem and key.pem for 127.0.0.1, self-signed; return the certificate's path."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bmc")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "key.pem").write_bytes(private)
    return str(folder / "cert.pem")
