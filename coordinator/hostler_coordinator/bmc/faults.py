"""Turns what a BMC or pyghmi says when something fails into a fault class; pure, retrying lives elsewhere."""

from __future__ import annotations

import ssl
import struct

from hostler_coordinator.bmc.answers import FaultClass


class BmcFaultError(Exception):
    """One operation failed. `code` is IPMI's completion code or HTTP's status, `retry_after_s` the BMC's own wish."""

    def __init__(
        self, fault: FaultClass, text: str, *, code: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(text)
        self.fault = fault
        self.text = text
        self.code = code
        self.retry_after_s = retry_after_s


# IPMI 2.0 table 5-2. Codes not named here are PROTOCOL: answered, not understood, not repeated.
_COMPLETION_CODES = {
    0xC0: FaultClass.BUSY,
    0xC1: FaultClass.NOT_SUPPORTED,
    0xC2: FaultClass.NOT_SUPPORTED,
    0xC3: FaultClass.BUSY,
    0xC4: FaultClass.BUSY,
    0xCB: FaultClass.NOT_SUPPORTED,
    0xCC: FaultClass.NOT_SUPPORTED,
    0xCE: FaultClass.NOT_READY,
    0xCF: FaultClass.BUSY,
    0xD0: FaultClass.NOT_READY,
    0xD1: FaultClass.NOT_READY,
    0xD2: FaultClass.NOT_READY,
    0xD3: FaultClass.UNREACHABLE,
    0xD4: FaultClass.AUTH,
    0xD5: FaultClass.WRONG_STATE,
    0xD6: FaultClass.NOT_SUPPORTED,
    0xFFFF: FaultClass.UNREACHABLE,  # pyghmi's own number for "no answer"
}

# pyghmi raises texts, not numbers; the first fragment that occurs decides. Order matters: "insufficient resources"
# comes in two texts, and "illegal parameter" is how a BMC refuses a name or password of the wrong length (FC-B17).
_LOGIN_TEXTS = (
    ("insufficient resources", FaultClass.NO_SLOTS),
    ("incorrect password", FaultClass.AUTH),
    ("unauthorized", FaultClass.AUTH),
    ("invalid username length", FaultClass.AUTH),
    ("invalid role", FaultClass.AUTH),
    ("illegal or unrecognized parameter", FaultClass.AUTH),
    ("invalid rakp4 integrity code", FaultClass.AUTH),
    ("invalid integrity check value", FaultClass.AUTH),
    ("too long for ipmi", FaultClass.AUTH),
    ("access denied", FaultClass.AUTH),
    ("authentication algorithm", FaultClass.CIPHER),
    ("integrity algorithm", FaultClass.CIPHER),
    ("integrity payload", FaultClass.CIPHER),
    ("confidentiality algorithm", FaultClass.CIPHER),
    ("cipher suite", FaultClass.CIPHER),
    ("invalid payload type", FaultClass.CIPHER),
    ("not supported in present state", FaultClass.WRONG_STATE),
    ("node busy", FaultClass.BUSY),
    ("session no longer connected", FaultClass.UNREACHABLE),
    ("dead session object", FaultClass.UNREACHABLE),
    ("unable to transmit", FaultClass.UNREACHABLE),
    ("timeout", FaultClass.UNREACHABLE),
)


def from_completion_code(code: int, text: str) -> BmcFaultError:
    """Fault of an IPMI command that was answered with a completion code other than 0."""
    fault = _COMPLETION_CODES.get(code, FaultClass.PROTOCOL)
    shown = "no answer to the command" if code == 0xFFFF else f"the BMC answered 0x{code:02x}: {text}"
    return BmcFaultError(fault, shown, code=None if code == 0xFFFF else code)


def from_ipmi_exception(error: Exception, *, during_login: bool) -> BmcFaultError:
    """Fault of any exception out of pyghmi's IPMI client: it raises nearly every type, often with an empty text."""
    text = str(error)
    if isinstance(error, ConnectionRefusedError):
        return BmcFaultError(FaultClass.UNREACHABLE, "the BMC's UDP port is closed (ICMP port unreachable)")
    if during_login and isinstance(error, struct.error):
        return BmcFaultError(
            FaultClass.CIPHER,
            "the BMC accepted cipher suite 17 and then answered with another digest; set it to suite 17 or to 3 alone",
        )
    lowered = text.casefold()
    for fragment, fault in _LOGIN_TEXTS:
        if fragment in lowered:
            return BmcFaultError(fault, text)
    if text in {"", "None"} or isinstance(error, OSError):
        return BmcFaultError(FaultClass.UNREACHABLE, f"no answer from the BMC ({type(error).__name__})")
    return BmcFaultError(FaultClass.PROTOCOL, f"{type(error).__name__}: {text}")


def from_http_exception(error: Exception) -> BmcFaultError:
    """Fault of an exception out of the HTTPS connection to a Redfish BMC."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BmcFaultError(
            FaultClass.IDENTITY,
            f"the BMC's certificate is not trusted ({error.verify_message}); check ca_file or the BMC",
        )
    if isinstance(error, ssl.SSLError):
        return BmcFaultError(FaultClass.CIPHER, f"TLS with the BMC failed: {error}")
    if isinstance(error, OSError):
        return BmcFaultError(FaultClass.UNREACHABLE, f"no answer from the BMC ({type(error).__name__}: {error})")
    return BmcFaultError(FaultClass.PROTOCOL, f"{type(error).__name__}: {error}")


# Fragments of MessageIds, vendors' and DMTF's. They outrank the HTTP status: vendors use 400, 403 and 503 for the same.
_MESSAGE_IDS = (
    ("rac0218", FaultClass.NO_SLOTS),
    ("sessionlimitexceeded", FaultClass.NO_SLOTS),
    ("resourcenotreadyretry", FaultClass.NOT_READY),
    ("servicetemporarilyunavailable", FaultClass.NOT_READY),
    ("resourceinstandby", FaultClass.NOT_READY),
    ("preconditionheadermissing", FaultClass.CONFLICT),
    ("accountlocked", FaultClass.AUTH),
)
_HTTP_STATUS = {
    400: FaultClass.NOT_SUPPORTED,
    401: FaultClass.AUTH,
    403: FaultClass.AUTH,
    404: FaultClass.NOT_SUPPORTED,
    405: FaultClass.NOT_SUPPORTED,
    409: FaultClass.CONFLICT,
    412: FaultClass.CONFLICT,
    428: FaultClass.CONFLICT,
    429: FaultClass.BUSY,
    500: FaultClass.BUSY,
    501: FaultClass.NOT_SUPPORTED,
    502: FaultClass.NOT_READY,
    503: FaultClass.NOT_READY,
    504: FaultClass.NOT_READY,
}


def from_http_status(status: int, message_id: str, message: str, retry_after_s: float | None) -> BmcFaultError:
    """Fault of an HTTP answer outside 2xx; `message_id` and `message` come from Redfish's extended info, else ""."""
    fault = _HTTP_STATUS.get(status, FaultClass.PROTOCOL)
    lowered = message_id.casefold()
    for fragment, named in _MESSAGE_IDS:
        if fragment in lowered:
            fault = named
            break
    detail = ": ".join(part for part in (message_id, message) if part) or "no reason given"
    return BmcFaultError(fault, f"HTTP {status}, {detail}", code=status, retry_after_s=retry_after_s)
