"""How etcd spells key ranges; what the keys mean is their owners' affair."""

from __future__ import annotations


def prefix_end(prefix: bytes) -> bytes:
    r"""The end of the range that holds exactly the keys starting with ``prefix``; ``b"\0"`` means to the last key."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b"\0"
