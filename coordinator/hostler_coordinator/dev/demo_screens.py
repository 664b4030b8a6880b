"""What `hostler demo` shows: events and progress while it runs, the closing screen; it decides nothing."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hostler_contract.views import Campaign
from hostler_coordinator.cli.output import Format, console, dump_json

if TYPE_CHECKING:
    from hostler_coordinator.dev.demo import Play, Verdict

PLAIN_EVERY_S = 2.0
IN_FLIGHT_SHOWN = 8


class Screen:
    """For people: standard output, live on a terminal, lines elsewhere."""

    def __init__(self, stream: IO[str]) -> None:
        """Nothing is written yet."""
        self._console: Console = console(stream)
        self._terminal = stream.isatty()
        self._began = time.monotonic()
        self._live: Live | None = None
        self._shown_at = 0.0
        self._shown = ""

    def say(self, text: str) -> None:
        """Write an event, with the seconds since the demo began."""
        self._line(Text(f"{time.monotonic() - self._began:6.1f} s  ", "dim").append(text))

    def detail(self, text: str) -> None:
        """Write what only a person at a terminal wants to see go by."""
        if self._terminal:
            self._line(Text(f"          {text}", "dim"))

    @contextlib.contextmanager
    def live(self) -> Iterator[None]:
        """While the campaign runs: a view that is drawn again and again, where there is a terminal."""
        if not self._terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=4, transient=True) as self._live:
            yield
        self._live = None

    def show(self, campaign: Campaign) -> None:
        """Bring the progress up to date."""
        if self._live is not None:
            self._live.update(_progress(campaign))
            return
        counts, now = campaign.counts, time.monotonic()
        text = f"{counts.succeeded} of {campaign.target_count} rebooted, {counts.running} under way"
        if text != self._shown and now - self._shown_at >= PLAIN_EVERY_S:
            self._shown, self._shown_at = text, now
            self.say(text)

    def close(self, play: Play, verdict: Verdict, folder: Path) -> None:
        """Explain what happened, and what the ground truth says of it."""
        self._line(Text(""))
        for line in story(play, verdict):
            self._line(Text(line))
        self._line(Text(""))
        self._line(_figures(verdict))
        for line in verdict.wrong:
            self._line(Text(f"  WRONG: {line}", "bold red"))
        self._line(
            Text("  The ground truth disagrees.", "bold red")
            if verdict.wrong
            else Text("  The ground truth agrees.", "bold green")
        )
        self._line(Text(f"  The machines' own record: {folder / 'effects.jsonl'}", "dim"))

    def _line(self, what: Text | Table) -> None:
        target = self._live.console if self._live is not None else self._console
        target.print(what)


class DocumentScreen(Screen):
    """For scripts: one JSON document on standard output; progress goes to standard error, and only to a terminal."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        super().__init__(sys.stderr)

    def show(self, campaign: Campaign) -> None:
        """Only where somebody can see it."""
        if self._terminal:
            super().show(campaign)

    def close(self, play: Play, verdict: Verdict, folder: Path) -> None:
        """The summary; what is wrong goes to standard error."""
        del play, folder
        sys.stdout.write(dump_json(verdict.summary) + "\n")
        sys.stdout.flush()
        sys.stderr.writelines(f"hostler: the ground truth disagrees: {line}\n" for line in verdict.wrong)

    def _line(self, what: Text | Table) -> None:
        if self._terminal:
            super()._line(what)


def screen_for(output: Format) -> Screen:
    """The screen of a format."""
    return DocumentScreen() if output is Format.JSON else Screen(sys.stdout)


def story(play: Play, verdict: Verdict) -> list[str]:
    """What happened, in plain words."""
    counts, summary = play.campaign.counts, verdict.summary
    reasons = {task.host: task.reason for task in play.tasks}
    return [
        "What happened",
        "",
        (
            f"Campaign {play.campaign.id} asked {play.campaign.target_count} hosts to reboot and ended "
            f"{play.campaign.state.value} after {summary['seconds']:.0f} s: {counts.succeeded} hosts proved it by a "
            f"new boot id, {counts.dead_letter} waits for a person as a dead letter."
        ),
        "",
        (
            f"The agent of {play.hung} hung before it could be asked. Silence alone is no reason to touch a machine: "
            "its BMC had to answer, and a neighbour had to be heard. Then its power was cut, seen off, and switched "
            "on again over IPMI; the new boot id was the proof."
        ),
        "",
        (
            f"{play.broken} took its reboot and never came back, and its BMC could not help it. The ladder ends there "
            f"and a person is called ({reasons.get(play.broken) or 'no reason given'}). It stays charged to its "
            "fabric: one host less may be down beside it."
        ),
        "",
        (
            f"The leader {play.killed or '(none)'} was killed half-way. Now {play.leader} leads: it took over what was "
            "journalled in etcd, judged no silence before its grace was over, and went on; nobody was asked twice."
        ),
    ]


def _figures(verdict: Verdict) -> Table:
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    table.add_column("  By the machines' own record")
    table.add_column("", justify="right")
    summary = verdict.summary
    table.add_row("  hosts rebooted twice for one task", str(summary["rebooted_twice"]))
    for fabric, most in summary["max_down"].items():
        table.add_row(f"  most hosts of {fabric} down at once", f"{most} of {summary['budget'][fabric]} allowed")
    table.add_row("  power commands carried out by BMCs", str(summary["bmc_actions"]))
    table.add_row("  hosts brought back by their BMC", ", ".join(verdict.truth.rescued) or "none")
    table.add_row("  hosts still down", ", ".join(verdict.truth.down_at_end) or "none")
    table.add_row("  changes of leader", str(summary["leader_changes"]))
    return table


def _progress(campaign: Campaign) -> Group:
    counts = campaign.counts
    done = counts.succeeded + counts.dead_letter + counts.failed + counts.skipped + counts.aborted
    line = Table.grid(padding=(0, 1))
    line.add_row(
        ProgressBar(total=max(1, campaign.target_count), completed=done, width=40),
        Text(f"{done}/{campaign.target_count}  {counts.running} under way, {counts.dead_letter} dead letters"),
    )
    flight = Table(box=None, pad_edge=False, show_header=False)
    for one in campaign.in_flight[:IN_FLIGHT_SHOWN]:
        flight.add_row(f"  {one.host}", one.step, one.detail)
    waiting = Text(f"  waiting for: {campaign.waiting_for}" if campaign.waiting_for else "", "dim")
    return Group(line, flight, waiting)
