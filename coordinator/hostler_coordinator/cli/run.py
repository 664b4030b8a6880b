"""What one command has at hand: its connection, its output, the server's clock; the commands themselves live apart."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from google.protobuf.message import Message
from pydantic import BaseModel

from hostler_contract import codec
from hostler_contract.views import Status
from hostler_coordinator.cli import api
from hostler_coordinator.cli.connection import Connection
from hostler_coordinator.cli.errors import Problem, usage
from hostler_coordinator.cli.output import Output

M = TypeVar("M", bound=BaseModel)
Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

PAGE_SIZE = 500
PAGES_MAX = 100_000
ASKED_MOST = 5


@dataclass
class Run:
    """One command being carried out."""

    connection: Connection
    output: Output

    def call(self, method: api.Method[Q, R], request: Q) -> R:
        """Call one method; raises Problem."""
        return self.connection.call(method, request)

    def pages(self, method: api.Method[Q, R], request: Any, field: str, view: type[M]) -> Iterator[M]:
        """Yield the items of every page of a list, one page in memory at a time."""
        request.page_size = PAGE_SIZE
        for _ in range(PAGES_MAX):
            answer: Any = self.call(method, request)
            for item in getattr(answer, field):
                yield codec.from_message(view, item)
            if not answer.next_page_token:
                return
            if answer.next_page_token == request.page_token:
                raise Problem("INTERNAL", f"{method.name} gives the same page again and again")
            request.page_token = answer.next_page_token
        raise Problem("INTERNAL", f"{method.name} does not end after {PAGES_MAX} pages")

    def status(self) -> Status:
        """Ask how the control plane is."""
        return codec.from_message(Status, self.call(api.GET_STATUS, api.GET_STATUS.request()))

    def server_now(self) -> float | None:
        """Read the server's clock, for ages; None when it does not answer."""
        try:
            return self.status().now
        except Problem:
            return None

    def list_clock(self) -> float | None:
        """Read the server's clock where ages will be shown; other formats show the moments themselves."""
        return self.server_now() if self.output.for_people else None

    def confirm(self, question: str, *, yes: bool, action: str) -> None:
        """Ask a person. Without a terminal `--yes` must have been given; raises Problem otherwise."""
        if yes:
            return
        if not is_interactive():
            raise usage(f"{action} asks first, and there is no terminal to ask on", flag="--yes", fix="add --yes")
        sys.stdout.flush()
        if not ask(question):
            raise Problem("ABORTED", f"{action}: not done, as you said no")


def ask(question: str) -> bool:
    """Ask a yes-or-no question; what is neither is asked again, some times. Enter alone means no."""
    for _ in range(ASKED_MOST):
        answer = _typed(f"{question} [y/N]").lower()
        if answer in {"y", "yes", "", "n", "no"}:
            return answer in {"y", "yes"}
        sys.stderr.write(f"{answer!r} is neither yes nor no: type y to go on, or n to leave it\n")
    return False


def ask_count(question: str) -> str:
    """Ask for a number and return it as typed; what is none is asked again, some times. Enter alone is no number."""
    answer = ""
    for _ in range(ASKED_MOST):
        answer = _typed(question)
        if not answer or answer.isdecimal():
            return answer
        sys.stderr.write(f"{answer!r} is no number: type the number, or nothing to leave it\n")
    return answer


def _typed(question: str) -> str:
    return str(typer.prompt(question, default="", show_default=False, err=True)).strip()


def is_interactive() -> bool:
    """True when a person can be asked: questions go to standard error."""
    return sys.stdin.isatty() and sys.stderr.isatty()


Command = Callable[..., None]
