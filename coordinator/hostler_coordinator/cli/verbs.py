"""Turns a function into a command: the flags that every command has, its example, its errors and exit status."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from hostler_coordinator.cli.ages import seconds_of
from hostler_coordinator.cli.connection import Connection
from hostler_coordinator.cli.errors import CLOSED_PIPE, Problem, is_unavailable, usage
from hostler_coordinator.cli.output import Format, Output, drop_closed_pipe
from hostler_coordinator.cli.profile import Profile, load_profile, split_endpoints
from hostler_coordinator.cli.run import Command, Run

DEFAULT_TIMEOUT_S = 10.0

OutputFlag = Annotated[
    Format | None,
    typer.Option(
        "--output", "-o", help="Format of the answer [default: table, or HOSTLER_OUTPUT].", show_default=False
    ),
]
ProfileFlag = Annotated[
    str | None,
    typer.Option("--profile", metavar="FILE", help="Profile file [default: HOSTLER_PROFILE or the one in ~/.config]."),
]
EndpointFlag = Annotated[
    list[str] | None,
    typer.Option("--endpoint", metavar="HOST:PORT", help="Coordinator; may be given again, the next is tried in turn."),
]
TimeoutFlag = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="TIME", help="How long an answer may take, every endpoint included [default: 10s]."
    ),
]
LoopbackFlag = Annotated[
    bool, typer.Option("--insecure-loopback", help="Allow plaintext, to 127.0.0.0/8 only.", show_default=False)
]
SHARED = {
    "output": OutputFlag,
    "profile": ProfileFlag,
    "endpoint": EndpointFlag,
    "timeout": TimeoutFlag,
    "insecure_loopback": LoopbackFlag,
}


@dataclass(frozen=True)
class SharedFlags:
    """Flags that every command has, as given before the noun or after the verb; the latter win."""

    output: Format | None = None
    profile: str | None = None
    endpoint: tuple[str, ...] = ()
    timeout: str | None = None
    insecure_loopback: bool = False

    def over(self, earlier: SharedFlags) -> SharedFlags:
        """Lay these over the ones given before the noun."""
        return SharedFlags(
            output=self.output or earlier.output,
            profile=self.profile or earlier.profile,
            endpoint=self.endpoint or earlier.endpoint,
            timeout=self.timeout or earlier.timeout,
            insecure_loopback=self.insecure_loopback or earlier.insecure_loopback,
        )

    def open(self) -> Run:
        """Read the profile and get a command ready; nothing is connected yet."""
        output = Output(self.output or _format_from_environment())
        profile = load_profile(self.profile, os.environ, output.warn)
        timeout = self.timeout or os.environ.get("HOSTLER_TIMEOUT", "")
        timeout_s = seconds_of(timeout, "--timeout") if timeout else DEFAULT_TIMEOUT_S
        return Run(Connection(self._laid_over(profile), timeout_s, output.warn), output)

    def _laid_over(self, profile: Profile) -> Profile:
        endpoints = tuple(part for text in self.endpoint for part in split_endpoints(text))
        return profile.model_copy(
            update={
                "endpoints": endpoints or profile.endpoints,
                "insecure_loopback": self.insecure_loopback or profile.insecure_loopback,
            }
        )


def _format_from_environment() -> Format:
    word = os.environ.get("HOSTLER_OUTPUT", "") or Format.TABLE.value
    try:
        return Format(word)
    except ValueError as error:
        raise usage(f"HOSTLER_OUTPUT is {word!r}", fix=f"use one of {', '.join(Format)}") from error


def noun(name: str, text: str) -> typer.Typer:
    """Build the group of one noun's verbs."""
    return typer.Typer(name=name, help=text, no_args_is_help=True, rich_markup_mode=None)


def verb(app: typer.Typer, name: str, *example: str) -> Callable[[Command], Command]:
    """Register a function whose first parameter is the Run as `name`; its docstring is the help."""

    def register(function: Command) -> Command:
        app.command(name, help=_help(function, example))(_command(function))
        return function

    return register


def _help(function: Command, example: tuple[str, ...]) -> str:
    lines = "\n".join(f"  {line}" for line in example)
    return f"{inspect.getdoc(function)}\n\n\b\nExample:\n{lines}"


def _command(function: Command) -> Callable[..., None]:
    """Wrap a function: own parameters first, then the flags of every command; the Run is made here."""
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

    def command(ctx: typer.Context, **given: Any) -> None:
        mine = {name: given.pop(name) for name in SHARED}
        flags = SharedFlags(**(mine | {"endpoint": tuple(mine["endpoint"] or ())}))
        run = flags.over(ctx.obj if isinstance(ctx.obj, SharedFlags) else SharedFlags()).open()
        try:
            function(run, **given)
            sys.stdout.flush()
        except BrokenPipeError as error:
            drop_closed_pipe()
            raise typer.Exit(CLOSED_PIPE) from error
        except KeyboardInterrupt as error:
            raise Problem("INTERRUPTED", "interrupted; what the coordinator was told before goes on") from error
        finally:
            run.connection.close()

    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_default_of(name), annotation=annotation)
        for name, annotation in SHARED.items()
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    parameters = [context, *own, *shared]
    described: Any = command
    described.__name__ = function.__name__
    described.__signature__ = inspect.Signature(parameters)
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _default_of(name: str) -> object:
    return False if name == "insecure_loopback" else None


def root_flags(
    ctx: typer.Context,
    output: OutputFlag = None,
    profile: ProfileFlag = None,
    endpoint: EndpointFlag = None,
    timeout: TimeoutFlag = None,
    insecure_loopback: LoopbackFlag = False,
) -> None:
    """Keep a fleet of bare-metal GPU hosts in service: campaigns, hosts, budgets, dead letters.

    Exit status: 0 done, 1 the work ended badly, 2 wrong usage, 3 not found, 4 refused, 5 unavailable or deadline,
    130 interrupted (what was started goes on).
    """
    ctx.obj = SharedFlags(output, profile, tuple(endpoint or ()), timeout, insecure_loopback)


def with_key_hint(problem: Problem, key: str) -> Problem:
    """Say how to ask again safely after an answer got lost, or nobody could do it."""
    if not is_unavailable(problem):
        return problem
    again = f"run it again with --key {key}: it will not be carried out twice"
    details = problem.details | {"key": key}
    if not problem.in_doubt:
        fix = f"{problem.fix}; then {again}" if problem.fix else again
        return replace(problem, fix=fix, details=details)
    return replace(
        problem, message=f"{problem.message}; it may have been stored all the same", fix=again, details=details
    )
