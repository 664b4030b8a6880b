"""The command line of `hostler-agent`, with help that looks like that of Hostler's other programs; it runs nothing."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable
from pathlib import Path

PROGRAM = "hostler-agent"
DEFAULT_CONFIG = Path("/etc/hostler/agent.yaml")
HELP_COLUMN = 32
COMMANDS = (
    ("run", "Run until told to stop."),
    ("status", "Show journal, boot and usability as JSON."),
    ("check-config", "Look at the settings, and at every file and program they name; starts nothing."),
)


class HouseHelp(argparse.HelpFormatter):
    """Options, then commands, under headings; no list in braces, no lower-case sentences."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=HELP_COLUMN)

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        """Write `Usage:`."""
        del prefix
        super().add_usage(usage, actions, groups, "Usage: ")

    def start_section(self, heading: str | None) -> None:
        """Begin a heading with a capital."""
        super().start_section(heading.capitalize() if heading else heading)

    def _format_text(self, text: str) -> str:
        return (
            "\n".join(
                textwrap.fill(line, self._width, initial_indent="  ", subsequent_indent="  ")
                for line in text.splitlines()
            )
            + "\n\n"
        )

    def _format_action(self, action: argparse.Action) -> str:
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the one way to tell the list of commands
            return "".join(self._format_action(each) for each in action._get_subactions())  # noqa: SLF001
        return super()._format_action(action)


def parser() -> argparse.ArgumentParser:
    """Build the parser; `command` and `config` are what it finds."""
    root = _parser(f"{PROGRAM} [OPTIONS] COMMAND [ARGS]...", "Looks after the host it runs on.")
    commands = root.add_subparsers(dest="command", required=True, title="commands", metavar="COMMAND", prog=PROGRAM)
    for name, text in COMMANDS:
        example = f"Example:\n  {PROGRAM} {name} --config {DEFAULT_CONFIG}"
        command = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=example,
            usage=f"{PROGRAM} {name} [OPTIONS]",
            formatter_class=HouseHelp,
            add_help=False,
        )
        command.add_argument("-c", "--config", metavar="FILE", type=Path, default=DEFAULT_CONFIG, help=_CONFIG)
        _add_help(command)
    return root


_CONFIG = "Settings, a YAML file. [default: %(default)s]"


def _parser(usage: str, text: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM, usage=usage, description=text, formatter_class=HouseHelp, add_help=False
    )
    _add_help(made)
    return made


def _add_help(to: argparse.ArgumentParser) -> None:
    to.add_argument("-h", "--help", action="help", help="Show this message and exit.")
