"""The program `hostler-agent`: reads the configuration, builds the adapters and runs; no rules of work live here."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from pathlib import Path

from hostler_agent import papers
from hostler_agent.assembly import World, assemble, coordinators_of, drain_of, journal_of
from hostler_agent.checks import PostBootChecks
from hostler_agent.clock import BootClock
from hostler_agent.command_line import parser
from hostler_agent.config import ConfigError, Settings, load_settings
from hostler_agent.host import Machine
from hostler_agent.logs import configure_logs
from hostler_agent.metrics import serve_metrics
from hostler_agent.notify import SystemdNotifier

MISCONFIGURED = 78
"""EX_CONFIG of sysexits(3): the unit does not start it again by itself."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    asked = parser().parse_args(arguments)
    try:
        settings = load_settings(asked.config)
    except ConfigError as error:
        configure_logs("info", host="").critical("misconfigured", problem=str(error))
        _say(str(error))
        return MISCONFIGURED
    if asked.command == "check-config":
        return _check(settings, asked.config)
    if asked.command == "status":
        print(json.dumps(asyncio.run(_status(settings)), indent=2))  # noqa: T201 - its answer
        return 0
    return asyncio.run(_run(settings))


def _check(settings: Settings, where: Path) -> int:
    """Look at every file and program that the settings name; starts nothing."""
    wrong, soon = papers.problems(settings, time.time())
    for line in soon:
        _say(f"warning: {line}")
    for line in wrong:
        _say(f"{where}: {line}")
    if wrong:
        return MISCONFIGURED
    print(settings.model_dump_json(indent=2))  # noqa: T201 - its answer
    _say(f"{where}: nothing is wrong")
    return 0


def _say(text: str) -> None:
    print(f"hostler-agent: {text}", file=sys.stderr)  # noqa: T201 - what this program says to a person


def _machine(settings: Settings) -> Machine:
    return Machine(
        sysroot=settings.sysroot,
        reboot_command=settings.reboot.command,
        soft_reboot_command=settings.reboot.soft_command,
        command_deadline_s=settings.reboot.command_deadline_s,
        gpu_processes_block=settings.blockers.gpu_processes,
        people_block=settings.blockers.logged_in_people,
        hostname=settings.hostname,
        address=settings.address,
    )


def _checks(settings: Settings) -> PostBootChecks:
    checks = settings.checks
    return PostBootChecks(boot_target=checks.boot_target, commands=checks.commands, deadline_s=checks.deadline_s)


async def _run(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; the journal needs no goodbye."""
    host, notifier, chance = _machine(settings), SystemdNotifier(), random.Random()  # noqa: S311 - jitter, no secret
    log = configure_logs(settings.log_level, host=settings.hostname or settings.host_id)
    world = World(
        host=host,
        checks=_checks(settings),
        journal=journal_of(settings),
        drain=drain_of(settings, settings.hostname),
        coordinators=coordinators_of(settings, chance),
        clock=BootClock(),
        supervisor=notifier,
        chance=chance,
    )
    agent, board = await assemble(world, settings, log)
    if settings.metrics.port:
        serve_metrics(board, settings.metrics.address, settings.metrics.port)
    running = asyncio.ensure_future(agent.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        notifier.stopping()
        log.info("stopped")
    return 0


async def _status(settings: Settings) -> dict[str, object]:
    """What the agent of this host would find; nothing is changed, also no damaged journal is put aside."""
    host = _machine(settings)
    reading, verdict = await host.read(), await _checks(settings).run()
    try:
        journal = json.loads(settings.journal.read_text(encoding="utf-8"))
    except OSError as error:
        journal = {"unreadable": str(error.strerror)}
    except ValueError as error:
        journal = {"damaged": str(error)}
    return {
        "host_id": settings.host_id,
        "boot_id": reading.boot_id or None,
        "soft_reboots": reading.soft_reboots if reading.soft_reboots >= 0 else None,
        "shutting_down": reading.shutting_down,
        "usability": verdict.usability.value,
        "usability_reason": verdict.reason,
        "blockers": [one.who for one in await host.blockers()],
        "journal": journal,
    }


if __name__ == "__main__":
    sys.exit(main())
