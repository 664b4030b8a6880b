"""Follows a campaign until it ends: a live view on a terminal, a line per change elsewhere, documents for scripts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from threading import Lock

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hostler_contract import codec
from hostler_contract.campaigns import ENDED, CampaignState
from hostler_contract.pb.hostler.v1 import campaign_pb2 as pb
from hostler_contract.views import Campaign
from hostler_coordinator.cli import api
from hostler_coordinator.cli.ages import age_of, until_of
from hostler_coordinator.cli.campaign_screens import counts_of, operation_of, waiting_of
from hostler_coordinator.cli.errors import Problem
from hostler_coordinator.cli.output import console
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.tables import clean
from hostler_coordinator.phrases import because

REFRESH_PER_S = 4
IN_FLIGHT_SHOWN = 12
FAILURES_SHOWN = 5
STYLES = {
    CampaignState.SUCCEEDED: "green",
    CampaignState.INCOMPLETE: "yellow",
    CampaignState.FAILED: "red",
    CampaignState.ABORTED: "red",
    CampaignState.PAUSED: "yellow",
}


def changes(run: Run, campaign_id: str) -> Iterator[Campaign]:
    """Yield the campaign at once and whenever it changes, until it ends; a broken stream is opened again."""
    request = pb.WatchCampaignRequest(id=campaign_id)
    last: Campaign | None = None
    for answer in run.connection.stream(api.WATCH_CAMPAIGN, request, resume=True):
        campaign = codec.from_message(Campaign, answer.campaign)
        if last is not None and campaign.as_of < last.as_of:
            continue  # a coordinator that lags behind the one that answered before
        last = campaign
        yield campaign
        if campaign.state in ENDED:
            return
    if last is None or last.state not in ENDED:
        raise Problem("UNAVAILABLE", f"the watch of campaign {campaign_id} ended before the campaign did")


def follow(run: Run, campaign_id: str, *, until: Callable[[Campaign], bool] | None = None) -> Campaign:
    """Show a campaign to a person until it has ended (or `until` holds) and return its last state.

    On Ctrl-C the campaign goes on: raises Problem INTERRUPTED saying so.
    """
    try:
        # What is no document goes to standard error, and only to a terminal.
        aside = sys.stderr if sys.stderr.isatty() else None
        stream = sys.stdout if run.output.for_people else aside
        if stream is not None and stream.isatty():
            return _live(console(stream), changes(run, campaign_id), until)
        return _lines(changes(run, campaign_id), run.output.line if stream else None, until)
    except KeyboardInterrupt:
        raise interrupted(campaign_id) from None


def interrupted(campaign_id: str) -> Problem:
    """The error for leaving a campaign that goes on."""
    return Problem(
        "INTERRUPTED",
        f"campaign {campaign_id} goes on without you",
        fix=f"hostler campaign watch {campaign_id}; to stop it: hostler campaign abort {campaign_id}",
        details={"campaign": campaign_id},
    )


def verdict_of(campaign: Campaign) -> None:
    """Raise Problem when a campaign ended in any other way than succeeded."""
    if campaign.state is CampaignState.SUCCEEDED:
        return
    letters = campaign.counts.dead_letter
    raise Problem(
        "ENDED_BADLY",
        f"campaign {campaign.id} ended {because(campaign.state, campaign.state_reason)} ({counts_of(campaign)})",
        fix=f"hostler deadletter list --campaign {campaign.id}" if letters else f"hostler campaign show {campaign.id}",
    )


def _lines(
    stream: Iterator[Campaign], write: Callable[[str], None] | None, until: Callable[[Campaign], bool] | None
) -> Campaign:
    """One line per change that a person would notice."""
    before = ""
    last: Campaign | None = None
    for campaign in stream:
        last = campaign
        line = summary(campaign)
        if write is not None and line != before:
            write(f"{_clock(campaign)} {line}")
            sys.stdout.flush()
            before = line
        if until is not None and until(campaign):
            break
    if last is None:
        raise Problem("UNAVAILABLE", "the campaign was not shown even once")
    return last


def _clock(campaign: Campaign) -> str:
    return time.strftime("%H:%M:%SZ", time.gmtime(campaign.as_of))


def summary(campaign: Campaign) -> str:
    """A campaign in one line, without anything that changes by itself."""
    hosts = ", ".join(f"{item.host} {item.step}" for item in campaign.in_flight[:IN_FLIGHT_SHOWN])
    more = len(campaign.in_flight) - IN_FLIGHT_SHOWN
    hosts += f" and {more} more" if more > 0 else ""
    parts = [f"{campaign.id} {campaign.state}: {counts_of(campaign)}"]
    parts += [f"in flight: {hosts}"] if hosts else []
    parts += [f"waiting for: {campaign.waiting_for}"] if campaign.waiting_for else []
    parts += [f"failed: {item.host} ({item.cause})" for item in campaign.failures[:1]]
    return clean("; ".join(parts))


class _View:
    """The newest campaign and when it came, so that ages move on between two changes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._campaign: Campaign | None = None
        self._received = 0.0

    def put(self, campaign: Campaign) -> None:
        with self._lock:
            self._campaign, self._received = campaign, time.monotonic()

    def render(self) -> RenderableType:
        with self._lock:
            if self._campaign is None:
                return Text("waiting for the first answer")
            return screen(self._campaign, self._campaign.as_of + time.monotonic() - self._received)


def _live(screen_console: Console, stream: Iterator[Campaign], until: Callable[[Campaign], bool] | None) -> Campaign:
    view = _View()
    last: Campaign | None = None
    with Live(console=screen_console, get_renderable=view.render, refresh_per_second=REFRESH_PER_S):
        for campaign in stream:
            last = campaign
            view.put(campaign)
            if until is not None and until(campaign):
                break
    if last is None:
        raise Problem("UNAVAILABLE", "the campaign was not shown even once")
    return last


def screen(campaign: Campaign, now: float) -> RenderableType:
    """Draw the live view; ages are counted to `now` on the server's clock."""
    head = Text.assemble(
        (f"{campaign.id} ", "bold"),
        f"{operation_of(campaign)} ",
        (str(campaign.state), STYLES.get(campaign.state, "cyan")),
        f"  {counts_of(campaign)}",
    )
    parts: list[RenderableType] = [head]
    if campaign.eta is not None and campaign.state not in ENDED:
        parts.append(Text(f"done by {until_of(campaign.eta, now)}", style="dim"))
    if campaign.domains:
        parts.append(_bars(campaign))
    if campaign.in_flight:
        parts.append(_in_flight(campaign, now))
    if campaign.failures:
        parts.append(_failures(campaign, now))
    if campaign.waiting_for:
        parts.append(Text(f"waiting for {clean(waiting_of(campaign))}", style="yellow"))
    return Group(*parts)


def _bars(campaign: Campaign) -> Table:
    """A bar per fabric; per whatever domain there is where no fabric is named."""
    fabrics = [item for item in campaign.domains if item.domain.startswith("fabric/")] or list(campaign.domains)
    grid = Table.grid(padding=(0, 1))
    for item in fabrics:
        grid.add_row(
            Text(clean(item.domain)),
            ProgressBar(total=max(item.total, 1), completed=item.done, width=20),
            Text(f"{item.done}/{item.total}"),
            Text(f"down {item.charged} of {item.limit}", style="dim"),
        )
    return grid


def _in_flight(campaign: Campaign, now: float) -> Table:
    grid = Table.grid(padding=(0, 2))
    for item in campaign.in_flight[:IN_FLIGHT_SHOWN]:
        attempt = f"attempt {item.attempt}" if item.attempt > 1 else ""
        grid.add_row(
            Text(f"  {clean(item.host)}"),
            Text(clean(item.step), style="cyan"),
            Text(age_of(item.since, now)),
            Text(attempt),
            Text(clean(item.detail), style="dim"),
        )
    if len(campaign.in_flight) > IN_FLIGHT_SHOWN:
        grid.add_row(Text(f"  and {len(campaign.in_flight) - IN_FLIGHT_SHOWN} more"))
    return grid


def _failures(campaign: Campaign, now: float) -> Table:
    grid = Table.grid(padding=(0, 2))
    for item in campaign.failures[:FAILURES_SHOWN]:
        grid.add_row(
            Text(f"  {clean(item.host)}", style="red"), Text(f"{age_of(item.at, now)} ago"), Text(clean(item.cause))
        )
    return grid
