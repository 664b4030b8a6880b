"""Builds a request's selector from arguments, labels, a file or --all; which hosts that means, the server knows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from hostler_contract.campaigns import Selector
from hostler_coordinator.cli.errors import Problem, usage

FILE_BYTES_MAX = 3 * 1024 * 1024
_SAYS_NOTHING = re.compile(r"[\s,:;]*")
_HOW = "name hosts (gpu-[001-128]), labels (-l fabric=ib-a), a file (--from-file), or say --all"


def select(hosts: list[str] | None, labels: list[str] | None, from_file: str | None, every: bool) -> Selector:
    """Build the selector; raises Problem when it selects nothing, or when part of it is blank."""
    found = select_any(hosts, labels, from_file, every)
    if found is None:
        raise usage("no host is selected, and nothing means none", flag="HOSTS", fix=_HOW)
    return found


def select_any(
    hosts: list[str] | None, labels: list[str] | None, from_file: str | None, every: bool
) -> Selector | None:
    """Build the selector, or None when nothing at all was given; raises Problem when part of it is blank."""
    names = [_meaningful(text, "HOSTS") for text in hosts or ()]
    terms = [term for text in labels or () for term in _terms(text)]
    if from_file is not None:
        names += read_hosts(from_file)
    if every and (names or terms):
        raise usage("--all and a selection contradict each other", flag="--all", fix="give one of the two")
    if not (names or terms or every):
        return None
    return Selector(hosts=tuple(names), labels=tuple(terms), all=every)


def _meaningful(text: str, flag: str) -> str:
    if _SAYS_NOTHING.fullmatch(text):
        raise usage(f"{flag} {text!r} selects nothing", flag=flag, fix=_HOW)
    return text


def _terms(text: str) -> list[str]:
    return [_meaningful(term, "-l").strip() for term in text.split(",")]


def read_hosts(name: str) -> list[str]:
    """Read one host expression per line; `#` starts a comment. A file that names no host is refused."""
    raw = _read(name)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise usage(f"file {name} is no UTF-8 text: byte {error.start}", flag="--from-file") from error
    lines = [line.split("#", 1)[0].strip() for line in text.splitlines()]
    if not (named := [line for line in lines if line]):
        raise usage(f"file {name} names no host", flag="--from-file", fix=_HOW)
    return [_meaningful(line, "--from-file") for line in named]


def read_bounded(name: str, flag: str, bytes_max: int) -> bytes:
    """Read a file, or standard input for `-`; raises Problem when it cannot be read or is too large."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(bytes_max + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise Problem(
            "NOT_FOUND" if missing else "INVALID_ARGUMENT",
            f"file {name} cannot be read: {error.strerror}",
            fields=((flag, name),),
        ) from error
    if len(raw) > bytes_max:
        raise usage(f"file {name} is larger than {bytes_max} bytes", flag=flag)
    return raw


def _read(name: str) -> bytes:
    return read_bounded(name, "--from-file", FILE_BYTES_MAX)
