"""`hostler demo` and `hostler dev`: handed over to the room that stands a fleet up, loaded when called."""

from __future__ import annotations

import importlib
from typing import Any

import typer

from hostler_coordinator.cli.errors import Problem
from hostler_coordinator.cli.verbs import SharedFlags

ROOM = "hostler_coordinator.dev.commands"
PASSED_ON = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}


def register(app: typer.Typer) -> None:
    """Add both commands to the root; everything after their name belongs to them."""
    app.command("demo", help=_help("The main job on a small fleet of its own, judged by the ground truth.", "demo"))(
        _demo
    )
    app.command(
        "dev", help=_help("A fleet of processes on this machine: dev up, dev down, dev fault.", "dev up --help")
    )(_dev)
    for info in app.registered_commands[-2:]:
        info.context_settings = PASSED_ON


def _help(text: str, example: str) -> str:
    return f"{text}\n\n\b\nExample:\n  hostler {example}"


def _demo(ctx: typer.Context) -> None:
    demo = typer.Typer(add_completion=False, rich_markup_mode=None)
    demo.command(context_settings={"help_option_names": ["--help", "-h"]})(_load().demo)
    flags = ctx.obj
    format_asked = ["-o", flags.output.value] if isinstance(flags, SharedFlags) and flags.output else []
    _hand_over(demo, [*format_asked, *ctx.args], "hostler demo")


def _dev(ctx: typer.Context) -> None:
    _hand_over(_load().dev_app, list(ctx.args), "hostler dev")


def _load() -> Any:
    try:
        return importlib.import_module(ROOM)
    except ModuleNotFoundError as error:
        raise Problem(
            "FAILED_PRECONDITION",
            f"this stands up a whole fleet, and the Python module {error.name} is not installed",
            fix="pip install 'hostler[dev]'",
        ) from error


def _hand_over(app: typer.Typer, arguments: list[str], name: str) -> None:
    result = app(args=arguments, prog_name=name, standalone_mode=False)
    if isinstance(result, int) and result:
        raise typer.Exit(result)
