"""The verbs of dead letters: tasks that wait for a person, with their cause, and what a person does about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from hostler_contract import codec
from hostler_contract.pb.hostler.v1 import deadletter_pb2 as pb
from hostler_contract.pb.hostler.v1 import fleet_pb2
from hostler_contract.views import Campaign, DeadLetter, HostWhy
from hostler_contract.work import DeadLetterState, ResolutionKind
from hostler_coordinator.cli import api, flags
from hostler_coordinator.cli.ages import age_of, moment_of
from hostler_coordinator.cli.errors import Problem, needed, usage
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.submitting import conclude, lines_of, new_key, show_campaign
from hostler_coordinator.cli.tables import Column, facts
from hostler_coordinator.cli.verbs import noun, verb, with_key_hint

app = noun("deadletter", "Tasks that exhausted every step and wait for a person.")

COLUMNS = (
    Column("ID"),
    Column("HOST"),
    Column("STATE", rank=2),
    Column("CAUSE"),
    Column("AGE", rank=1, right=True),
    Column("CAMPAIGN", wide=True, rank=4),
    Column("ATTEMPTS", wide=True, rank=4, right=True),
    Column("NEXT STEP", rank=3, flex=True),
)

LetterId = Annotated[str, typer.Argument(metavar="ID", help="Id of the dead letter.")]


@verb(app, "list", "hostler deadletter list", "hostler deadletter list --campaign c-7f3a --state resolved -o json")
def list_verb(
    run: Run,
    state: Annotated[
        list[DeadLetterState] | None,
        typer.Option("--state", help="Only those in this state [default: open]; may be repeated."),
    ] = None,
    campaign: Annotated[
        str, typer.Option("--campaign", metavar="CAMPAIGN", help="Only those of one campaign.", show_default=False)
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Also what was dealt with.", show_default=False)] = False,
) -> None:
    """List dead letters that are open."""
    wanted = state or ([] if every else [DeadLetterState.OPEN])
    names = [f"DEAD_LETTER_STATE_{item.name}" for item in wanted]
    request = pb.ListDeadLettersRequest(states=names, campaign_id=campaign)
    found = list(run.pages(api.LIST_DEAD_LETTERS, request, "dead_letters", DeadLetter))
    now = run.list_clock()
    rows = [_row(item, now) for item in found]
    run.output.show(
        found, [item.id for item in found], lambda: run.output.table(COLUMNS, rows, empty="no dead letters")
    )


def _row(letter: DeadLetter, now: float | None) -> Sequence[object]:
    return (
        letter.id,
        letter.host,
        letter.state,
        letter.cause,
        age_of(letter.at, now),
        letter.campaign_id,
        letter.attempts,
        letter.suggestion,
    )


@verb(app, "show", "hostler deadletter show c-7f3a.h-12")
def show_verb(run: Run, letter: LetterId) -> None:
    """Show one dead letter: cause, what was seen, the suggested next step."""
    found = codec.from_message(
        DeadLetter, run.call(api.GET_DEAD_LETTER, pb.GetDeadLetterRequest(id=letter)).dead_letter
    )
    _show(run, found, [])


def _show(run: Run, letter: DeadLetter, head: Sequence[str]) -> None:
    now = run.list_clock()
    run.output.show(letter, [letter.id], lambda: lines_of(head, _screen(run, letter, now)))


def _screen(run: Run, letter: DeadLetter, now: float | None) -> Iterable[str]:
    resolution = letter.resolution
    resolved = (
        f"{resolution.kind} {resolution.ticket} by {resolution.by} at {moment_of(resolution.at)}: {resolution.reason}"
        if resolution
        else ""
    )
    yield from facts(
        (
            ("dead letter", letter.id),
            ("host", f"{letter.host} ({letter.host_id})"),
            ("campaign", letter.campaign_id),
            ("state", letter.state),
            ("age", age_of(letter.at, now)),
            ("cause", f"{letter.text} [{letter.cause}]"),
            ("attempts", letter.attempts),
            ("next step", letter.suggestion),
            ("retried by", letter.retried_by),
            ("resolved", resolved),
        ),
        width=run.output.width,
    )
    if letter.evidence:
        rows = [(moment_of(item.at), item.kind.replace("_", " "), item.detail) for item in letter.evidence]
        yield ""
        yield from run.output.table((Column("AT", rank=1), Column("SEEN"), Column("DETAIL", flex=True)), rows, empty="")


@verb(app, "retry", 'hostler deadletter retry c-7f3a.h-12 --reason "BMC password corrected" --wait')
def retry_verb(
    run: Run,
    *,
    letters: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the dead letters.")],
    reason: flags.Reason = "",
    key: flags.Key = None,
    wait: flags.Wait = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Try their hosts again: opens one campaign linked to the first."""
    if not all(letter.strip(" ,:") for letter in letters):
        raise usage("a blank id names no dead letter", flag="ID", fix="hostler deadletter list -o name")
    retry(run, letters, reason=reason, key=key, wait=wait, dry_run=dry_run)


def retry(run: Run, ids: Sequence[str], *, reason: str, key: str | None, wait: bool, dry_run: bool) -> None:
    """Open a linked campaign over the hosts of these dead letters and write it, or with `wait` its end."""
    chosen = key or new_key()
    if key is None and not dry_run:
        run.output.aside([f"key: {chosen}"])
    request = pb.RetryDeadLettersRequest(ids=ids, reason=reason, key=chosen, dry_run=dry_run)
    try:
        answer = run.call(api.RETRY_DEAD_LETTERS, request)
    except Problem as problem:
        raise with_key_hint(problem, chosen) from problem
    campaign = codec.from_message(Campaign, answer.campaign)
    if dry_run:
        run.output.aside(["dry run: nothing was changed"])
        show_campaign(run, campaign)
        return
    conclude(run, campaign, wait=wait)


@verb(
    app,
    "resolve",
    "hostler deadletter resolve c-7f3a.h-12 --as rma --ticket RMA-1187",
    'hostler deadletter resolve c-7f3a.h-12 --as fixed --reason "reseated the riser"',
)
def resolve_verb(
    run: Run,
    *,
    letter: LetterId,
    kind: Annotated[ResolutionKind, typer.Option("--as", help="What became of the host.")],
    ticket: Annotated[str, typer.Option("--ticket", metavar="TICKET", help="The ticket.", show_default=False)] = "",
    reason: flags.Reason = "",
    force: Annotated[
        bool,
        typer.Option("--force", help="Call a host fixed that is not back; needs --reason.", show_default=False),
    ] = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Say what became of the host; ends its charge unless the host is still dead.

    A host is fixed when it is heard again. Resolving once more with another kind or ticket corrects the first; the
    audit keeps both.
    """
    if force:
        needed(reason, "--force calls a host fixed that is not back", "--reason", "add --reason TEXT")
    named = f"RESOLUTION_KIND_{kind.name}"
    request = pb.ResolveDeadLetterRequest(
        id=letter, kind=named, ticket=ticket, reason=reason, force=force, dry_run=dry_run
    )
    found = codec.from_message(DeadLetter, run.call(api.RESOLVE_DEAD_LETTER, request).dead_letter)
    _show(run, found, [f"would resolve {found.id} as {kind}" if dry_run else f"resolved {found.id} as {kind}"])
    if kind is ResolutionKind.FIXED and force:
        _warn_unless_back(run, found.host)


NOT_BACK = frozenset({"dead", "silent", "unknown"})


def _warn_unless_back(run: Run, host: str) -> None:
    """A host that was fixed is heard again; one that is not has lost the letter that called a person for it."""
    try:
        why = codec.from_message(HostWhy, run.call(api.EXPLAIN_HOST, fleet_pb2.ExplainHostRequest(host=host)).why)
    except Problem:
        return  # the letter is resolved; what is asked besides may fail
    if why.state in NOT_BACK:
        then = f"; next: {why.next_step}" if why.next_step else ""
        run.output.warn(f"{host} is {why.state} all the same, and nobody is called for it any more{then}")
