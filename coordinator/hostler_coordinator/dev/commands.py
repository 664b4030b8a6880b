"""`hostler dev …` and `hostler demo`: the command lines; what they do lives in the rooms beside this one."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from hostler_coordinator.cli.errors import Problem, usage
from hostler_coordinator.cli.output import Format, dump_json, terminal_width
from hostler_coordinator.dev.control import (
    Machines,
    NotRunning,
    end_fleet,
    facts_of,
    mark_of,
    prepare,
    start_detached,
)
from hostler_coordinator.dev.operator import Operator
from hostler_coordinator.dev.premises import FolderRefused, premises
from hostler_coordinator.dev.shape import CLEAR, FAULTS, Shape
from hostler_coordinator.dev.status_screen import MEANINGS, fleet_screen
from hostler_coordinator.dev.supervise import supervise
from hostler_coordinator.hostlists import parse_patterns
from hostler_coordinator.refusals import BadField

HELP_NAMES = {"help_option_names": ["--help", "-h"]}
dev_app = typer.Typer(
    name="dev",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings=HELP_NAMES,
    help="A fleet of real processes on this machine; only the machines themselves are simulated.",
)
DirOption = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder of the fleet.")]


def _example(text: str, example: str) -> str:
    return f"{text}\n\n\b\nExample:\n  hostler {example}"


@dev_app.command(
    help=_example(
        "Stand a fleet up: etcd, coordinators, machines with agents, BMCs. Ready when DIR/ready.json exists.",
        "dev up --dir fleet --hosts 24 --fabrics 2 --detach",
    )
)
def up(  # noqa: PLR0917 - typer's options
    folder: DirOption,
    hosts: Annotated[int, typer.Option(help="How many machines.")],
    fabrics: Annotated[int | None, typer.Option(help="How many fabrics [default: 2, or 1 for one host].")] = None,
    coordinators: Annotated[int, typer.Option(help="How many coordinators.")] = 3,
    etcd_members: Annotated[int, typer.Option(help="How many etcd members: 1, 3 or 5.")] = 1,
    boot_seconds: Annotated[float, typer.Option(metavar="S", help="How long a machine takes to boot.")] = 2.0,
    hang: Annotated[
        list[str] | None, typer.Option(metavar="HOST,…", help="Agents that hang from the start; ranges are fine.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST=KIND", help=f"A fault from the start; may be given again: {', '.join(FAULTS)}."),
    ] = None,
    detach: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--detach", help="Come back when it is up; end it with dev down.")
    ] = False,
) -> None:
    """Stand a fleet up."""
    place = premises(folder)
    faults = (*((host, "hang") for host in _names(hang)), *_faults(fault))
    try:
        shape = Shape(
            hosts,
            fabrics if fabrics is not None else min(2, hosts),
            coordinators,
            etcd_members,
            boot_seconds,
            faults,
        )
    except ValueError as error:
        raise usage(str(error)) from error
    with _told():
        if detach:
            facts = start_detached(place, shape, _progress())
            sys.stderr.write(f"up: hostler --profile {facts['profile']} status\n")
            return
        prepare(place)
    reason = supervise(place, shape, _progress())
    if reason is not None:
        raise Problem("UNAVAILABLE", f"the fleet ended: {reason}", fix=f"its logs are in {place.folder}")


@dev_app.command(help=_example("End a fleet, and whatever may be left of it.", "dev down --dir fleet"))
def down(folder: DirOption) -> None:
    """End a fleet."""
    place = premises(folder)
    if mark_of(place) is None:
        sys.stderr.write(f"no fleet was ever started in {place.folder}; nothing was ended\n")
        return
    with _told():
        was_up = end_fleet(place)
    sys.stderr.write("ended\n" if was_up else f"the fleet in {place.folder} had ended already\n")


@dev_app.command(
    help=_example(
        f"Switch a fault of one host on, while the fleet runs: {', '.join(FAULTS)}; or all of its faults off: {CLEAR}.",
        "dev fault --dir fleet gpu-003 no-boot",
    )
)
def fault(
    folder: DirOption,
    host: Annotated[str, typer.Argument(metavar="HOST", help="Host name.")],
    kind: Annotated[str, typer.Argument(metavar="KIND", help="Which fault, or clear.")],
) -> None:
    """Switch a fault."""
    place = premises(folder)
    if kind not in {*FAULTS, CLEAR}:
        raise usage(f"there is no fault {kind!r}", fix=f"use one of {', '.join((*FAULTS, CLEAR))}")
    with _told():
        _known_host(facts_of(place), host)
        Machines(place).set_fault(host, kind)
    sys.stdout.write(f"{host}: {MEANINGS[kind]}\n")


@dev_app.command(help=_example("Let a machine reboot by itself.", "dev crash --dir fleet gpu-003"))
def crash(folder: DirOption, host: Annotated[str, typer.Argument(metavar="HOST", help="Host name.")]) -> None:
    """Crash a machine."""
    place = premises(folder)
    with _told():
        _known_host(facts_of(place), host)
        Machines(place).crash(host)
    sys.stdout.write(f"{host}: crashed; it boots by itself, with a new boot id\n")


@dev_app.command(
    help=_example(
        "Show who leads, the processes and the faults of a fleet; with -o json its ready.json and who leads.",
        "dev status --dir fleet -o json",
    )
)
def status(
    folder: DirOption,
    output: Annotated[Format, typer.Option("--output", "-o", help="table or json.")] = Format.TABLE,
) -> None:
    """Show the fleet."""
    if output not in {Format.TABLE, Format.JSON}:
        raise usage(f"a fleet's status is written as table or json, not {output}", flag="--output", fix="-o json")
    place = premises(folder)
    with _told():
        facts = facts_of(place)
    operator = Operator(place.profile)
    try:
        leader = operator.status().leader
    except Problem as problem:
        leader = f"unknown: {problem.message}"
    finally:
        operator.close()
    if output is Format.JSON:
        sys.stdout.write(dump_json({**facts, "leader": leader}) + "\n")
        return
    faults = {host: Machines(place).faults_of(host) for host in facts["hosts"]}
    sys.stdout.writelines(f"{line}\n" for line in fleet_screen(facts, leader, faults, terminal_width(sys.stdout)))


@dev_app.command(
    help=_example("Kill the leading coordinator with -9; it starts again after 2 s.", "dev kill-leader --dir fleet")
)
def kill_leader(folder: DirOption) -> None:
    """Kill the leader."""
    place = premises(folder)
    with _told():
        facts = facts_of(place)
    operator = Operator(place.profile)
    try:
        leader = operator.status().leader
    finally:
        operator.close()
    pid = facts["coordinators"].get(leader, {}).get("pid")
    if pid is None:
        raise Problem("UNAVAILABLE", f"no process is known for the leader {leader!r}", fix="try again in a moment")
    os.kill(pid, signal.SIGKILL)
    sys.stdout.write(f"killed {leader} (process {pid})\n")


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn what a person can do something about into the CLI's one way of saying it."""
    try:
        yield
    except (FolderRefused, NotRunning) as error:
        raise Problem("FAILED_PRECONDITION", str(error)) from error


def _known_host(facts: dict[str, Any], host: str) -> None:
    if host not in facts["hosts"]:
        names = list(facts["hosts"])
        raise Problem("NOT_FOUND", f"there is no host {host!r}; they are {names[0]} to {names[-1]}")


def _names(given: list[str] | None) -> list[str]:
    try:
        return [name for text in given or () for one in parse_patterns(text, "--hang") for name in one.names()]
    except BadField as problem:
        raise usage(f"--hang: {problem}") from problem


def _faults(given: list[str] | None) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in given or ()]
    for host, equals, kind in pairs:
        if not (host and equals and kind):
            raise usage(f"{host + equals + kind!r} is no fault", flag="--fault", fix="write HOST=KIND")
    return [(host, kind) for host, _, kind in pairs]


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _progress() -> Callable[[str], None]:
    """Progress is for people: silent unless standard error is a terminal."""
    return _say if sys.stderr.isatty() else lambda _: None


def demo(
    output: Annotated[Format, typer.Option("--output", "-o", help="table or json.")] = Format.TABLE,
    hosts: Annotated[int, typer.Option(min=8, max=200, help="How many machines.")] = 24,
    folder: Annotated[Path | None, typer.Option("--dir", metavar="DIR", help="Folder of the fleet; kept.")] = None,
    keep: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--keep", help="Leave the fleet running afterwards.")
    ] = False,
) -> None:
    """The main job on a small fleet of its own: a rolling reboot under faults, judged by the ground truth.

    One agent hangs and is rescued through its BMC, one host ends as a dead letter, the leader is killed half-way.
    Exits with 0 only if the ground truth agrees.
    """
    from hostler_coordinator.dev.demo import run_demo  # noqa: PLC0415 - `hostler dev` needs none of it

    with _told():
        raise typer.Exit(run_demo(output, hosts, folder, keep=keep))
