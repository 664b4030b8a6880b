"""HTTPS exchange with a Redfish BMC over pyghmi's connection class: time-outs, trust, session, ETags; no Redfish model.

pyghmi's connection has a fixed 60 s time-out and knows only the system's trust store; both are replaced here.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import io
import json
import socket
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyghmi.util import webclient

from hostler_coordinator.bmc import faults
from hostler_coordinator.bmc.answers import BmcTarget, FaultClass
from hostler_coordinator.bmc.credentials import Credentials
from hostler_coordinator.bmc.faults import BmcFaultError

TIMEOUT_S = 10.0
BODY_MAX_BYTES = 4 << 20
RETRY_AFTER_MAX_S = 600.0


@dataclass(frozen=True)
class Reply:
    """Status, headers (lower case) and the JSON object of one answer; {} where the body was none."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]


class Http:
    """Requests to one BMC with one login. Every method raises BmcFaultError, except `log_out`."""

    def __init__(self, target: BmcTarget) -> None:
        try:
            self._connection = _Connection(target, _trust(target))
        except OSError as error:
            raise BmcFaultError(FaultClass.IDENTITY, f"ca_file {target.ca_file}: {error.strerror or error}") from None
        self._session_path = ""
        for name, value in (
            ("Accept", "application/json"),
            ("Accept-Encoding", "gzip"),
            ("OData-Version", "4.0"),
            ("User-Agent", "hostler"),
        ):
            self._connection.set_header(name, value)

    def log_in(self, credentials: Credentials, collection: str | None) -> None:
        """Open a session; where there is no such service or no free slot, use basic authentication (FC-B04)."""
        if collection is None:
            self._basic(credentials)
            return
        body = {"UserName": credentials.username, "Password": credentials.password}
        reply = self._exchange("POST", collection, body)
        token = reply.headers.get("x-auth-token")
        if reply.status in {200, 201} and token:
            self._connection.set_header("X-Auth-Token", token)
            self._session_path = _path(reply.headers.get("location") or str(reply.body.get("@odata.id") or ""))
            return
        fault = _fault(reply)
        if fault.fault in {FaultClass.AUTH, FaultClass.NOT_READY, FaultClass.BUSY}:
            raise fault
        self._basic(credentials)
        if fault.fault is FaultClass.NO_SLOTS:
            self._try_basic(collection, fault)

    def log_out(self) -> None:
        """Delete our session, whatever the answer (some BMCs answer 401)."""
        path, self._session_path = self._session_path, ""
        if path:
            with contextlib.suppress(BmcFaultError):
                self._exchange("DELETE", path)

    def get(self, path: str) -> dict[str, Any]:
        """GET a resource."""
        return self._good(self._exchange("GET", path)).body

    def post(self, path: str, body: dict[str, Any]) -> None:
        """POST once."""
        self._good(self._exchange("POST", path, body))

    def patch(self, path: str, body: dict[str, Any]) -> None:
        """PATCH with If-Match where the resource has an ETag; once more when it changed in between (412, FC-B08)."""
        reply = self._patch_once(path, body)
        if reply.status in {412, 428}:
            reply = self._patch_once(path, body)
        self._good(reply)

    def _patch_once(self, path: str, body: dict[str, Any]) -> Reply:
        etag = self._good(self._exchange("GET", path)).headers.get("etag")
        return self._exchange("PATCH", path, body, {"If-Match": etag} if etag else None)

    def _basic(self, credentials: Credentials) -> None:
        self._connection.set_basic_credentials(credentials.username, credentials.password)

    def _try_basic(self, collection: str, slots: BmcFaultError) -> None:
        """All slots taken: either basic authentication is let in, or the answer is "no slots", not "wrong password"."""
        if self._exchange("GET", collection).status in {401, 403}:
            raise BmcFaultError(FaultClass.NO_SLOTS, f"BMC sessions exhausted: {slots.text}", code=slots.code)

    @staticmethod
    def _good(reply: Reply) -> Reply:
        if 200 <= reply.status < 300:
            return reply
        raise _fault(reply)

    def _exchange(
        self, method: str, path: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = self._connection.dupe()
        sent_headers = dict(connection.stdheaders) | (headers or {})
        encoded = None
        if body is not None:
            sent_headers["Content-Type"] = "application/json"
            encoded = json.dumps(body)
        try:
            connection.request(method, _path(path), encoded, headers=sent_headers)
            response = connection.getresponse()
            raw = response.read(BODY_MAX_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise faults.from_http_exception(error) from None
        finally:
            connection.close()
        reply_headers = {name.casefold(): value for name, value in response.getheaders()}
        return Reply(response.status, reply_headers, _document(raw, reply_headers))


class _Connection(webclient.SecureHTTPConnection):  # type: ignore[misc] # pyghmi ships no types
    """pyghmi's connection with our own time-out and our own idea of whom to trust."""

    def __init__(self, target: BmcTarget, trust: ssl.SSLContext) -> None:
        super().__init__(target.address, target.port, timeout=TIMEOUT_S)
        self._target = target
        self._trust = trust

    def dupe(self, timeout: float | None = None) -> _Connection:
        """A fresh connection with the same headers and cookies; the time-out is always ours."""
        del timeout
        copy = _Connection(self._target, self._trust)
        copy.cookies = self.cookies
        copy.stdheaders = dict(self.stdheaders)
        return copy

    def connect(self) -> None:
        """Connect within the time-out and check the BMC's certificate as the inventory says."""
        plain = socket.create_connection((self._target.address, self._target.port), timeout=TIMEOUT_S)
        try:
            self.sock = self._trust.wrap_socket(plain, server_hostname=self._target.address)
        except BaseException:
            plain.close()
            raise


def _trust(target: BmcTarget) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=target.ca_file)
    if not target.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _path(location: str) -> str:
    """The path of a link; BMCs give session locations with and without their own address."""
    parts = urlsplit(location)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _document(raw: bytes, headers: dict[str, str]) -> dict[str, Any]:
    if len(raw) > BODY_MAX_BYTES:
        raise BmcFaultError(FaultClass.PROTOCOL, f"the BMC's answer is larger than {BODY_MAX_BYTES} bytes")
    if headers.get("content-encoding") == "gzip":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                raw = packed.read(BODY_MAX_BYTES)
        except (OSError, EOFError):
            pass  # some firmware says gzip and sends plain text
    try:
        document = json.loads(raw) if raw else {}
    except ValueError:  # pages of HTML come with errors; the status says enough
        return {}
    return document if isinstance(document, dict) else {}


def _fault(reply: Reply) -> BmcFaultError:
    message_id, message = "", ""
    error = reply.body.get("error")
    if isinstance(error, dict):
        message_id, message = str(error.get("code") or ""), str(error.get("message") or "")
        extended = error.get("@Message.ExtendedInfo")
        first = extended[0] if isinstance(extended, list) and extended else extended
        if isinstance(first, dict):
            message_id = str(first.get("MessageId") or message_id)
            message = str(first.get("Message") or message)
    return faults.from_http_status(reply.status, message_id, message[:300], _retry_after_s(reply))


def _retry_after_s(reply: Reply) -> float | None:
    """Seconds of Retry-After; the date form is ignored, because BMC clocks are wrong as often as right."""
    value = reply.headers.get("retry-after", "")
    return min(float(value), RETRY_AFTER_MAX_S) if value.isdecimal() else None
