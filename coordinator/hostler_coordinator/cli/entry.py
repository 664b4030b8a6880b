"""The outermost loop of a command: streams, errors, interrupts and closed pipes become one exit status here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer
from pydantic import ValidationError

from hostler_contract.codec import UnknownEnumValueError
from hostler_coordinator.cli.app import app
from hostler_coordinator.cli.errors import CLOSED_PIPE, DONE, USAGE, Problem, usage
from hostler_coordinator.cli.output import Format, Output, drop_closed_pipe, make_streams_lenient

# Whatever typer raises for a wrong command line; older versions call its root otherwise.
WrongUsage = next(kind for kind in reversed(typer.BadParameter.__mro__) if hasattr(kind, "format_message"))


def carry_out(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line and return its exit status; writes the error where the format wants it."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    make_streams_lenient()
    output = Output(asked_format(given, os.environ.get("HOSTLER_OUTPUT", "")))
    try:
        status = _guarded(given, output)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_closed_pipe()
        return CLOSED_PIPE
    return status


def _guarded(given: list[str], output: Output) -> int:
    try:
        result = app(args=given, prog_name="hostler", standalone_mode=False)
        return result if isinstance(result, int) else DONE
    except Problem as problem:
        return output.fail(problem)
    except (KeyboardInterrupt, typer.Abort):
        return output.fail(Problem("INTERRUPTED", "interrupted; what the coordinator was told before goes on"))
    except (ValidationError, UnknownEnumValueError) as error:
        return output.fail(_strange_answer(error))
    except Exception as error:  # the outermost loop: a wrong command line is told apart, everything else is a bug
        if not isinstance(error, WrongUsage):
            raise
        return _wrong_usage(error, output)


def _wrong_usage(error: Exception, output: Output) -> int:
    """Say what is wrong with the command line; a noun without a verb gets its help."""
    command = getattr(getattr(error, "ctx", None), "command_path", "hostler")
    text = str(getattr(error, "format_message", error.__str__)()).strip().replace(": Value error, ", ": ")
    if text.startswith("Usage:"):
        if output.for_people:
            sys.stderr.write(f"{text}\n")
            return USAGE
        text = "a verb is missing"
    return output.fail(usage(text, fix=f"{command} --help"))


def _strange_answer(error: Exception) -> Problem:
    first = str(error).splitlines()[0]
    return Problem(
        "INTERNAL",
        f"the coordinator's answer cannot be read: {first}",
        fix="use the hostler that `hostler status` names",
    )


def asked_format(arguments: Sequence[str], from_environment: str) -> Format:
    """Find the format in a command line that may be wrong in other ways; the last one given counts."""
    found = from_environment
    for index, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument in {"-o", "--output"}:
            found = arguments[index + 1] if index + 1 < len(arguments) else found
        elif argument.startswith("--output="):
            found = argument.removeprefix("--output=")
        elif argument.startswith("-o") and not argument.startswith("--"):
            found = argument[2:].removeprefix("=")
    return Format(found) if found in set(Format) else Format.TABLE
