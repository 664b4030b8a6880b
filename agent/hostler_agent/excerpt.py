"""Cuts what programs say to what a report carries, and marks it as cut; what is reported is not decided here."""

from __future__ import annotations

WORDS_MAX_CHARS = 1_000
"""Of the words of one program."""
REPORT_MAX_CHARS = 2_000
"""Of any text that goes to a coordinator: it ends the stream of an agent whose message is larger than 64 KiB."""


def excerpt(text: str, most_chars: int = WORDS_MAX_CHARS, *, left_out_bytes: int = 0) -> str:
    """The text itself, or its beginning with a mark that says how large the whole is; at most `most_chars` either way.

    left_out_bytes: what was read and not even kept.
    """
    if len(text) <= most_chars and not left_out_bytes:
        return text
    mark = f" … (cut: {len(text.encode()) + left_out_bytes} bytes in all)"
    return text[: max(0, most_chars - len(mark))] + mark
