"""Cuts long answers into pages in a stable order, with tokens that fit one question; what is listed is not its own."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from hostler_coordinator.refusals import BadField

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hostler_contract.shapes import Value

T = TypeVar("T")
V = TypeVar("V", bound="Value")

DEFAULT_SIZE = 100
LARGEST_SIZE = 500
ANSWER_BYTES = 900_000
"""An answer stays below 1 MiB; JSON is the larger of its two forms, so its length is the bound."""
LONGEST_TOKEN = 1_000


def page_size(asked: int) -> int:
    """The size of a page: 0 means 100; raises BadField outside 1..500."""
    if asked == 0:
        return DEFAULT_SIZE
    if not 1 <= asked <= LARGEST_SIZE:
        raise BadField("page_size", asked, f"is not between 1 and {LARGEST_SIZE}", "leave it out for 100 a page")
    return asked


def scope_of(*question: object) -> str:
    """A short digest of what is asked, so that a token of another list, or of other filters, is refused."""
    return hashlib.sha256(repr(question).encode()).hexdigest()[:12]


def make_token(scope: str, last: str) -> str:
    """A token that continues after the key `last`."""
    return base64.urlsafe_b64encode(f"{scope}.{last}".encode()).decode().rstrip("=")


def read_token(token: str, scope: str) -> str:
    """The key after which a page begins; "" for the first page. Raises BadField for a token not made for this list."""
    if not token:
        return ""
    fix = "take the token of the answer before, and ask with the same filters; or start without a token"
    if len(token) > LONGEST_TOKEN:
        raise BadField("page_token", token, "is no token of this list", fix)
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except (binascii.Error, ValueError):
        raise BadField("page_token", token, "is no token of this list", fix) from None
    given, dot, last = text.partition(".")
    if not dot or given != scope:
        raise BadField("page_token", token, "belongs to another list or other filters", fix)
    return last


@lru_cache(maxsize=131_072)
def natural(name: str) -> str:
    """A key by which gpu-9 comes before gpu-10; the name itself tells apart what differs in padding only."""
    return re.sub("[0-9]+", _sized, name) + "\0" + name


def _sized(found: re.Match[str]) -> str:
    digits = found[0].lstrip("0")
    return f"{len(digits):03d}{digits}"


def page(
    items: Iterable[T], *, key: Callable[[T], str], make: Callable[[T], V], size: int, token: str, scope: str
) -> tuple[tuple[V, ...], str]:
    """One page of views and the token of the next ("" at the end). Keys are unique and order the list ascending.

    Things that come and go between pages neither repeat nor hide the others. Raises BadField.
    """
    most = page_size(size)
    after = read_token(token, scope)
    keyed = sorted(((key(item), item) for item in items), key=lambda pair: pair[0])
    left = [(name, item) for name, item in keyed if not after or name > after]
    views: list[V] = []
    byte_count = 0
    last = ""
    for name, item in left[:most]:
        view = make(item)
        byte_count += len(view.model_dump_json())
        if views and byte_count > ANSWER_BYTES:
            break
        views.append(view)
        last = name
    return tuple(views), make_token(scope, last) if len(views) < len(left) else ""
