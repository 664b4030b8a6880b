"""Writes answers in the format that was asked for, and keeps everything else off standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from shutil import get_terminal_size
from typing import IO, Any

import yaml
from pydantic import BaseModel
from rich.console import Console

from hostler_coordinator.cli.errors import Problem
from hostler_coordinator.cli.tables import Column, lay_out

WIDTH_MIN = 20
UNWRAPPED_COLUMNS = 100_000
"""Of a stream that is no terminal: whoever reads it finds each sentence on one line."""


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Document = BaseModel | dict[str, Any] | Sequence[BaseModel]


def plain(document: Document) -> Any:
    """Turn an answer into what JSON and YAML are written from: field names of the contract, instants with Z."""
    if isinstance(document, BaseModel):
        return document.model_dump(mode="json")
    if isinstance(document, dict):
        return {name: plain(value) if isinstance(value, BaseModel) else value for name, value in document.items()}
    return [item.model_dump(mode="json") for item in document]


@dataclass(frozen=True)
class Output:
    """Standard output and standard error of one command."""

    format: Format = Format.TABLE

    @property
    def for_people(self) -> bool:
        """True for table and wide."""
        return self.format in {Format.TABLE, Format.WIDE}

    @property
    def is_wide(self) -> bool:
        """True for wide."""
        return self.format is Format.WIDE

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None when standard output is none, where lines are never cut or wrapped."""
        return terminal_width(sys.stdout)

    def show(self, document: Document, names: Sequence[str], screen: Callable[[], Iterable[str]]) -> None:
        """Write one answer: as a document, as names, or as the lines that `screen` makes."""
        if self.format is Format.JSON:
            self.line(dump_json(plain(document)))
        elif self.format is Format.YAML:
            sys.stdout.write(dump_yaml(plain(document)))
        elif self.format is Format.NAME:
            self.lines(names)
        else:
            self.lines(screen())

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]], *, empty: str) -> Iterable[str]:
        """Lay out a table for `show`; what a narrow terminal has no room for goes below its row."""
        listed = list(rows)
        return lay_out(columns, listed, wide=self.is_wide, width=self.width) if listed else [empty]

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines to standard output."""
        for line in lines:
            self.line(line)

    def line(self, text: str) -> None:
        """Write one line to standard output."""
        sys.stdout.write(text + "\n")

    def record(self, document: BaseModel) -> None:
        """Write one document of a stream and let it go at once: JSON on one line, YAML after `---`."""
        if self.format is Format.YAML:
            sys.stdout.write("---\n" + dump_yaml(plain(document)))
        else:
            self.line(dump_json(plain(document)))
        sys.stdout.flush()

    def aside(self, lines: Iterable[str]) -> None:
        """Write what belongs to the conversation: standard output for people, else standard error of a terminal."""
        if self.for_people:
            self.lines(lines)
        elif sys.stderr.isatty():
            sys.stderr.writelines(f"{line}\n" for line in lines)

    def hint(self, text: str) -> None:
        """Write a hint to standard error, if a person can see it there."""
        if sys.stderr.isatty():
            sys.stderr.write(f"{text}\n")

    def warn(self, text: str) -> None:
        """Write a warning to standard error."""
        sys.stdout.flush()
        sys.stderr.write(f"hostler: warning: {text}\n")

    def fail(self, problem: Problem) -> int:
        """Write an error where the format wants it and return the exit status."""
        if self.format is Format.JSON:
            self.line(dump_json(problem.as_document()))
        else:
            sys.stdout.flush()
            sys.stderr.writelines(f"{line}\n" for line in problem.as_lines())
        return problem.exit_status


def dump_json(value: Any) -> str:
    """One line of JSON, in ASCII where standard output is not UTF-8."""
    return json.dumps(value, ensure_ascii=not is_utf8(sys.stdout), separators=(", ", ": "))


def dump_yaml(value: Any) -> str:
    """YAML with each text on one line, in ASCII where standard output is not UTF-8."""
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=is_utf8(sys.stdout), width=UNWRAPPED_COLUMNS)
    return text


def is_utf8(stream: IO[str]) -> bool:
    """True when the stream takes every character."""
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8"


def terminal_width(stream: IO[str]) -> int | None:
    """Columns of the terminal behind a stream, at least 20; None when it is no terminal."""
    return max(WIDTH_MIN, get_terminal_size().columns) if stream.isatty() else None


def console(stream: IO[str]) -> Console:
    """A rich console on a stream, without markup: texts come from hosts and people. Wraps on a terminal only."""
    width = None if stream.isatty() else UNWRAPPED_COLUMNS
    return Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False, width=width)


def make_streams_lenient() -> None:
    """Let a character that the terminal's encoding lacks be written as an escape, never raise."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def drop_closed_pipe() -> None:
    """After the reader has gone: send what is still buffered nowhere, so that the interpreter's exit stays silent."""
    sink = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(sink, stream.fileno())
    os.close(sink)
