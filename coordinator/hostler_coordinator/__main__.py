"""`hostler-coordinator`: run one coordinator, check the stored state, mark a restore; parts are joined in `process`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar

import structlog
import typer

from hostler_contract import codec
from hostler_contract.campaigns import EpochRecord
from hostler_coordinator import etcd, papers
from hostler_coordinator.clock import SystemClock
from hostler_coordinator.config import ConfigError, Settings, load
from hostler_coordinator.fsck import problems
from hostler_coordinator.store import EtcdStore, unguarded_put
from hostler_coordinator.transport_words import in_words

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Hostler's control plane: one of any number of coordinators over one etcd.",
)
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="Settings, a YAML file.")]
STORE_TIMEOUT_S = 15.0
CHECK_TIMEOUT_S = 5.0
SAY_AFTER_S = 1.5
RENEWAL_LOOKS = 3
RENEWAL_PAUSE_S = 1.0
TimeoutOption = Annotated[
    float, typer.Option("--timeout", min=1.0, max=600.0, help="Give up after this many seconds without etcd.")
]
REFUSED, UNAVAILABLE, MISCONFIGURED = 4, 5, 78
"""Exit statuses. 78 is EX_CONFIG of sysexits(3): the unit does not start it again by itself."""

T = TypeVar("T")

log: Any = structlog.get_logger(__name__)


def set_up_logging(level: str) -> None:
    """JSON lines on standard error; campaign, task, host and token are keys of their own."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


@app.command()
def run(config: ConfigOption) -> None:
    """Run one coordinator until it is told to stop.

    Ends with 78 for settings or certificates that it cannot run with: starting it again does not help.

    Example: hostler-coordinator run --config /etc/hostler/coordinator.yaml
    """
    set_up_logging("info")
    settings = _settings(config)
    set_up_logging(settings.log_level)
    found = _found_in_the_end(settings)
    for doubt in (*found.doubts, *found.warnings):
        log.warning("settings in doubt", problem=doubt)
    if found.problems:
        raise _misconfigured(config, found.problems)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_run(settings))


def _found_in_the_end(settings: Settings) -> papers.Found:
    """Looked at more than once: certificate and key are two files, and may be in the middle of a renewal."""
    found = papers.look_at(settings, SystemClock().now())
    for _ in range(RENEWAL_LOOKS):
        if not found.problems:
            break
        time.sleep(RENEWAL_PAUSE_S)
        found = papers.look_at(settings, SystemClock().now())
    return found


async def _run(settings: Settings) -> None:
    from hostler_coordinator.process import CannotListenError, Coordinator  # noqa: PLC0415  (fsck needs none of it)

    work = asyncio.create_task(Coordinator(settings, version("hostler")).run(), name="coordinator")
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    try:
        await work
    except CannotListenError as error:  # starting it again may help: whoever has the address may go
        log.critical("cannot listen", problem=str(error))
        _say(str(error))
        raise typer.Exit(1) from None


@app.command()
def fsck(config: ConfigOption, timeout_s: TimeoutOption = STORE_TIMEOUT_S) -> None:
    """Check every invariant of the stored state; exits with 1 and names what is broken, with 5 when it cannot be read.

    Example: hostler-coordinator fsck --config /etc/hostler/coordinator.yaml
    """
    set_up_logging("critical")
    settings = _store_settings(config)
    found = asyncio.run(_fsck(settings, timeout_s, config))
    for line in found:
        typer.echo(line)
    typer.echo(f"{len(found)} broken invariants" if found else "every invariant holds", err=True)
    raise typer.Exit(1 if found else 0)


async def _fsck(settings: Settings, timeout_s: float, config: Path) -> list[str]:
    async with _client(settings) as client:
        store = EtcdStore(client, settings.prefix, SystemClock(), lambda: None)
        following = asyncio.create_task(store.follow())
        try:
            await _waited(store.loaded(), timeout_s, settings, config, lambda: store.unavailable)
        finally:
            following.cancel()
        return problems(store.state)


@app.command()
def restored(
    config: ConfigOption,
    by: Annotated[str, typer.Option(help="Who restored it.")],
    timeout_s: TimeoutOption = STORE_TIMEOUT_S,
) -> None:
    """After restoring etcd from a backup: raise the restore epoch, so that no token of before can be issued again.

    Run it while no coordinator runs. Example: hostler-coordinator restored --by alice --config FILE
    """
    set_up_logging("critical")
    settings = _store_settings(config)
    epoch = asyncio.run(_raise_epoch(settings, by, timeout_s, config))
    typer.echo(f"restore epoch is now {epoch}")


async def _raise_epoch(settings: Settings, by: str, timeout_s: float, config: Path) -> int:
    async with _client(settings) as client:
        key = f"{settings.prefix}epoch".encode()
        leader = f"{settings.prefix}leader".encode()
        got = await _waited(client.get(key, deadline_s=timeout_s), timeout_s, settings, config)
        known = codec.from_record(EpochRecord, got.kv.value, "epoch").epoch if got.kv is not None else 0
        record = EpochRecord(epoch=known + 1, at=SystemClock().now(), by=by)
        compares = [etcd.absent(leader), etcd.mod_revision_is(key, got.kv.mod_revision if got.kv is not None else 0)]
        writing = client.txn(compares, [unguarded_put(settings.prefix, record)], deadline_s=timeout_s)
        result = await _waited(writing, timeout_s, settings, config)
        if not result.succeeded:
            typer.echo("a coordinator leads: stop every coordinator first, then run this again", err=True)
            raise typer.Exit(REFUSED)
        return record.epoch


@app.command("check-config")
def check_config(
    config: ConfigOption,
    *,
    with_etcd: Annotated[bool, typer.Option("--etcd", help="Connect to etcd as well.")] = False,
) -> None:
    """Read the settings, look at every certificate and key they name, and say what they come to.

    Starts nothing. Ends with 78 and a line for each thing that is wrong: a file that is missing or cannot be read, a
    key of another certificate, one that has expired or is of somebody else, an address that others cannot reach.

    Example: hostler-coordinator check-config --etcd --config /etc/hostler/coordinator.yaml
    """
    set_up_logging("critical")
    settings = _settings(config)
    typer.echo(json.dumps(settings.model_dump(mode="json"), indent=2))
    found = papers.look_at(settings, SystemClock().now())
    for line in found.warnings:
        _say(f"warning: {line}")
    for line in (*found.problems, *found.doubts):
        _say(f"{config}: {line}")
    if found.problems or found.doubts:
        raise typer.Exit(MISCONFIGURED)
    if with_etcd:
        asyncio.run(_ask_store(settings, config))
    _say(f"{config}: nothing is wrong" + (", and etcd answers" if with_etcd else ""))


async def _ask_store(settings: Settings, config: Path) -> None:
    async with _client(settings) as client:
        asking = client.get(f"{settings.prefix}leader".encode(), deadline_s=CHECK_TIMEOUT_S)
        await _waited(asking, CHECK_TIMEOUT_S, settings, config)


async def _waited(
    work: Awaitable[T],
    timeout_s: float,
    settings: Settings,
    config: Path,
    trouble: Callable[[], tuple[float, str] | None] = lambda: None,
) -> T:
    """The store's answer; says what is waited for, and gives up with the reason and the next step."""
    doing = asyncio.ensure_future(work)
    members = ", ".join(settings.etcd.endpoints)
    reason = f"no etcd member answers at {members}"
    try:
        done, _ = await asyncio.wait({doing}, timeout=min(SAY_AFTER_S, timeout_s))
        if not done and timeout_s > SAY_AFTER_S:
            _say(f"waiting for etcd at {members}; giving up in {timeout_s - SAY_AFTER_S:.0f} s")
            done, _ = await asyncio.wait({doing}, timeout=timeout_s - SAY_AFTER_S)
        if done:
            return doing.result()
        known = trouble()
        reason = known[1] if known is not None else reason
    except (etcd.StoreUnavailable, etcd.OutcomeUnknown) as error:
        reason = f"{reason} ({in_words(error.reason)})"
    except etcd.EtcdError as error:
        reason = str(error)
    finally:
        doing.cancel()
    _say(f"the store cannot be used: {reason}; gave up after {timeout_s:g} s at most")
    _say(f"next: see that etcd runs, and that etcd.endpoints and etcd.tls of {config} are right")
    raise typer.Exit(UNAVAILABLE)


def _settings(path: Path) -> Settings:
    try:
        return load(path)
    except ConfigError as error:
        log.critical("misconfigured", problem=str(error))
        _say(str(error))
        raise typer.Exit(MISCONFIGURED) from None


def _store_settings(path: Path) -> Settings:
    """The settings, once the files that the way to etcd needs are there."""
    settings = _settings(path)
    found = papers.look_at_store(settings, SystemClock().now())
    if found.problems:
        raise _misconfigured(path, found.problems)
    return settings


def _misconfigured(path: Path, problems_found: Sequence[str]) -> typer.Exit:
    text = f"{path}: {'; '.join(problems_found)}"
    log.critical("misconfigured", problem=text)
    _say(text)
    _say(f"next: correct it, then hostler-coordinator check-config --config {path}")
    return typer.Exit(MISCONFIGURED)


def _say(text: str) -> None:
    typer.echo(f"hostler-coordinator: {text}", err=True)


def _client(settings: Settings) -> etcd.EtcdClient:
    tls = settings.etcd.tls
    files = etcd.TlsFiles(ca=tls.ca, cert=tls.cert, key=tls.key) if tls is not None else None
    return etcd.EtcdClient(settings.etcd.endpoints, files, request_timeout_s=settings.etcd.request_timeout_s)


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
