"""Says in plain words why a connection failed, from what gRPC says of it; what to do about it is its readers'."""

from __future__ import annotations

NOT_CONNECTED = "failed to connect to all addresses"
"""How gRPC begins when there was no connection to send anything on."""

CLOSED = "it closed the connection"
# gRPC's words are not an interface: they are looked for, the most telling first, and what is not known is left out.
_WORDS: tuple[tuple[str, str], ...] = (
    ("hostname verification", "its certificate is for another name"),
    ("certificate_verify_failed", "its certificate is not signed by our CA, or is not valid now"),
    ("certificate verify failed", "its certificate is not signed by our CA, or is not valid now"),
    ("wrong_version_number", "it does not speak TLS"),
    ("ssl_error", "TLS could not be agreed on"),
    ("ping timeout", "it stopped answering"),
    ("keepalive", "it stopped answering"),
    ("deadline exceeded", "it did not answer in time"),
    ("timed out", "it did not answer in time"),
    ("timeout", "it did not answer in time"),
    ("fd shutdown", "it did not answer in time"),
    ("endpoint closing", "it did not answer in time"),
    ("tls handshake", "TLS could not be agreed on"),
    ("handshake", "TLS could not be agreed on"),
    ("tsi", "TLS could not be agreed on"),
    ("domain name not found", "its name is not known"),
    ("dns resolution failed", "its name is not known"),
    ("name resolution", "its name is not known"),
    ("connection refused", "it refuses the connection: nothing listens there"),
    ("no route to host", "there is no route to it"),
    ("network is unreachable", "there is no route to it"),
    ("connection reset", "it broke the connection off"),
    ("broken pipe", "it broke the connection off"),
    ("socket closed", CLOSED),
    ("end of tcp stream", CLOSED),
    ("goaway", CLOSED),
)
_RAW = ("ipv4:", "ipv6:", "unknown:", NOT_CONNECTED)
"""Signs of a text that is for nobody's eyes; what has none of them was written by whoever answered."""
UNKNOWN = "the connection failed"
HOPELESS = frozenset(
    {
        "its certificate is for another name",
        "its certificate is not signed by our CA, or is not valid now",
        "it does not speak TLS",
        "its name is not known",
    }
)
"""Words for what trying again does not cure."""


def in_words(details: str) -> str:
    """A clause about the other side, such as `it refuses the connection: nothing listens there`."""
    low = details.lower()
    strange = not details or any(sign in low for sign in _RAW)
    words = next((words for sign, words in _WORDS if sign in low), UNKNOWN if strange else details)
    turned_away = words == CLOSED and never_sent(details)
    return f"{words} at once: perhaps it does not take our certificate" if turned_away else words


def never_sent(details: str) -> bool:
    """True when there was no connection, so that a request certainly did not arrive."""
    return details.startswith(NOT_CONNECTED)
