"""Says when the caller's certificate is about to expire; whether it is trusted is for TLS to judge."""

from __future__ import annotations

from cryptography import x509

from hostler_contract.moments import format_instant

WARN_BEFORE_S = 14 * 86400.0


def expiry_warning(pem: bytes, path: str, now: float) -> str:
    """One sentence when the certificate has expired or will within two weeks; empty otherwise or when unreadable."""
    try:
        ends_at = x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
    except ValueError:
        return ""
    if ends_at <= now:
        return f"certificate {path} expired at {format_instant(ends_at)[:19]}Z; have it renewed"
    if ends_at - now < WARN_BEFORE_S:
        return f"certificate {path} expires at {format_instant(ends_at)[:19]}Z; have it renewed before"
    return ""
