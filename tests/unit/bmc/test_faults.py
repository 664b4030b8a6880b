"""Which fault class an error of pyghmi, a completion code or an HTTP answer belongs to."""

from __future__ import annotations

import ssl
import struct

import pytest

from hostler_coordinator.bmc import faults
from hostler_coordinator.bmc.answers import FaultClass


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Incorrect password provided", FaultClass.AUTH),
        ("Unauthorized name in RAKP2", FaultClass.AUTH),
        ("Unauthorized role or privilege level requested in RAKP2", FaultClass.AUTH),
        ("Illegal or unrecognized parameter in RAKP2", FaultClass.AUTH),
        ("Invalid RAKP4 integrity code (wrong Kg?)", FaultClass.AUTH),
        ("Invalid authentication algorithm", FaultClass.CIPHER),
        ("Invalid confidentiality algorithm", FaultClass.CIPHER),
        ("No Cipher suite match with proposed security algorithms", FaultClass.CIPHER),
        ("Insufficient resources to create new session (wait for existing sessions to timeout)", FaultClass.NO_SLOTS),
        ("Insufficient resources to create a session at the requested role", FaultClass.NO_SLOTS),
        ("Session no longer connected", FaultClass.UNREACHABLE),
        ("None", FaultClass.UNREACHABLE),
        ("", FaultClass.UNREACHABLE),
        ("something new", FaultClass.PROTOCOL),
    ],
)
def test_the_texts_of_pyghmi_are_sorted_into_classes(text: str, fault: FaultClass):
    assert faults.from_ipmi_exception(Exception(text), during_login=True).fault is fault


def test_a_struct_error_during_login_is_a_cipher_mismatch_and_later_it_is_not():
    error = struct.error("pack expected 32 items for packing (got 20)")
    assert faults.from_ipmi_exception(error, during_login=True).fault is FaultClass.CIPHER
    assert faults.from_ipmi_exception(error, during_login=False).fault is FaultClass.PROTOCOL


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (0xD5, FaultClass.WRONG_STATE),
        (0xC0, FaultClass.BUSY),
        (0xC1, FaultClass.NOT_SUPPORTED),
        (0xD2, FaultClass.NOT_READY),
        (0xD4, FaultClass.AUTH),
        (0xFFFF, FaultClass.UNREACHABLE),
        (0x99, FaultClass.PROTOCOL),
    ],
)
def test_completion_codes_keep_their_number_and_get_a_class(code: int, fault: FaultClass):
    found = faults.from_completion_code(code, "text")
    assert (found.fault, found.code) == (fault, None if code == 0xFFFF else code)


@pytest.mark.parametrize(
    ("status", "message_id", "fault"),
    [
        (503, "IDRAC.2.4.RAC0218", FaultClass.NO_SLOTS),
        (400, "Base.1.8.SessionLimitExceeded", FaultClass.NO_SLOTS),
        (503, "iLO.2.30.ResourceNotReadyRetry", FaultClass.NOT_READY),
        (428, "Ami.1.0.PreconditionHeaderMissing", FaultClass.CONFLICT),
        (412, "", FaultClass.CONFLICT),
        (409, "", FaultClass.CONFLICT),
        (401, "", FaultClass.AUTH),
        (404, "", FaultClass.NOT_SUPPORTED),
        (503, "", FaultClass.NOT_READY),
        (302, "", FaultClass.PROTOCOL),
    ],
)
def test_the_message_id_outranks_the_http_status(status: int, message_id: str, fault: FaultClass):
    found = faults.from_http_status(status, message_id, "why", 7.0)
    assert (found.fault, found.code, found.retry_after_s) == (fault, status, 7.0)
    assert message_id in found.text


def test_connection_errors_tell_a_stranger_from_a_silent_bmc():
    stranger = ssl.SSLCertVerificationError("self-signed certificate")
    stranger.verify_message = "self-signed certificate"
    assert faults.from_http_exception(stranger).fault is FaultClass.IDENTITY
    assert faults.from_http_exception(ssl.SSLError("handshake")).fault is FaultClass.CIPHER
    assert faults.from_http_exception(ConnectionRefusedError()).fault is FaultClass.UNREACHABLE
    assert faults.from_http_exception(TimeoutError()).fault is FaultClass.UNREACHABLE
