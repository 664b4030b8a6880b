"""`hostler-coordinator`: run one coordinator, check the stored state, mark a restore; parts are joined in `process`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import structlog
import typer

from hostler_contract import codec
from hostler_contract.campaigns import EpochRecord
from hostler_coordinator import etcd
from hostler_coordinator.clock import SystemClock
from hostler_coordinator.config import ConfigError, Settings, load
from hostler_coordinator.fsck import problems
from hostler_coordinator.store import EtcdStore, unguarded_put

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Hostler's control plane: one of any number of coordinators over one etcd.",
)
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="Settings, a YAML file.")]
LOAD_TIMEOUT_S = 30.0


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
    )


@app.command()
def run(config: ConfigOption) -> None:
    """Run one coordinator until it is told to stop.

    Example: hostler-coordinator run --config /etc/hostler/coordinator.yaml
    """
    settings = _settings(config)
    set_up_logging(settings.log_level)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    from hostler_coordinator.process import Coordinator  # noqa: PLC0415  (fsck needs none of it)

    work = asyncio.create_task(Coordinator(settings, version("hostler")).run(), name="coordinator")
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    await work


@app.command()
def fsck(config: ConfigOption) -> None:
    """Check every invariant of the stored state; exits with 1 and names what is broken.

    Example: hostler-coordinator fsck --config /etc/hostler/coordinator.yaml
    """
    found = asyncio.run(_fsck(_settings(config)))
    for line in found:
        typer.echo(line)
    typer.echo(f"{len(found)} broken invariants" if found else "every invariant holds", err=True)
    raise typer.Exit(1 if found else 0)


async def _fsck(settings: Settings) -> list[str]:
    async with _client(settings) as client:
        store = EtcdStore(client, settings.prefix, SystemClock(), lambda: None)
        following = asyncio.create_task(store.follow())
        try:
            async with asyncio.timeout(LOAD_TIMEOUT_S):
                await store.loaded()
        except TimeoutError:
            typer.echo(f"the store cannot be read: {store.unavailable}", err=True)
            raise typer.Exit(5) from None
        finally:
            following.cancel()
        return problems(store.state)


@app.command()
def restored(
    config: ConfigOption,
    by: Annotated[str, typer.Option(help="Who restored it.")],
) -> None:
    """After restoring etcd from a backup: raise the restore epoch, so that no token of before can be issued again.

    Run it while no coordinator runs. Example: hostler-coordinator restored --by alice --config FILE
    """
    epoch = asyncio.run(_raise_epoch(_settings(config), by))
    typer.echo(f"restore epoch is now {epoch}")


async def _raise_epoch(settings: Settings, by: str) -> int:
    async with _client(settings) as client:
        key = f"{settings.prefix}epoch".encode()
        leader = f"{settings.prefix}leader".encode()
        got = await client.get(key)
        known = codec.from_record(EpochRecord, got.kv.value, "epoch").epoch if got.kv is not None else 0
        record = EpochRecord(epoch=known + 1, at=SystemClock().now(), by=by)
        compares = [etcd.absent(leader), etcd.mod_revision_is(key, got.kv.mod_revision if got.kv is not None else 0)]
        result = await client.txn(compares, [unguarded_put(settings.prefix, record)])
        if not result.succeeded:
            typer.echo("a coordinator leads: stop every coordinator first, then run this again", err=True)
            raise typer.Exit(4)
        return record.epoch


@app.command("check-config")
def check_config(config: ConfigOption) -> None:
    """Read the settings and say what they come to, without starting anything.

    Example: hostler-coordinator check-config --config /etc/hostler/coordinator.yaml
    """
    typer.echo(json.dumps(_settings(config).model_dump(mode="json"), indent=2))


def _settings(path: Path) -> Settings:
    try:
        return load(path)
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def _client(settings: Settings) -> etcd.EtcdClient:
    tls = settings.etcd.tls
    files = etcd.TlsFiles(ca=tls.ca, cert=tls.cert, key=tls.key) if tls is not None else None
    return etcd.EtcdClient(settings.etcd.endpoints, files, request_timeout_s=settings.etcd.request_timeout_s)


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
