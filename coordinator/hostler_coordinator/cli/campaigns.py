"""The verbs of campaigns; how one is submitted, watched and drawn lives in the rooms beside this one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from hostler_contract import codec
from hostler_contract.campaigns import ENDED, CampaignRequest, CampaignState, Limits, Selector
from hostler_contract.pb.hostler.v1 import campaign_pb2 as pb
from hostler_contract.views import Campaign, Consequence
from hostler_contract.work import OperationKind, RebootMode
from hostler_coordinator.cli import api, flags
from hostler_coordinator.cli.ages import seconds_of
from hostler_coordinator.cli.campaign_screens import (
    CAMPAIGN_COLUMNS,
    campaign_row,
    campaign_screen,
    consequences_screen,
)
from hostler_coordinator.cli.errors import Faults, needed
from hostler_coordinator.cli.output import Format
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.selecting import select
from hostler_coordinator.cli.submitting import (
    Consent,
    lines_of,
    plan_campaign,
    show_campaign,
    show_plan,
    submit_campaign,
    verdict_of_shown,
)
from hostler_coordinator.cli.verbs import noun, verb
from hostler_coordinator.cli.watching import changes, follow, interrupted, verdict_of

app = noun("campaign", "Work over many hosts: plan it, submit it, follow it, stop it.")


class Operation(StrEnum):
    """What is done to each host."""

    REBOOT = "reboot"
    POWER_ON = "power-on"
    POWER_OFF = "power-off"
    SOFT_REBOOT = "soft-reboot"


OperationFlag = Annotated[
    Operation, typer.Option("--operation", help="What is done to each host; soft-reboot restarts its user space only.")
]
ModeFlag = Annotated[
    RebootMode, typer.Option("--mode", help="soft asks the operating system, hard goes straight to the BMC.")
]
MaxDown = Annotated[
    list[str] | None,
    typer.Option(
        "--max-down", metavar="LIMIT", help="At most so many down: fabric=3, rack=1, total=5%; may be repeated."
    ),
]
Rate = Annotated[
    str, typer.Option("--rate", metavar="N/UNIT", help="Starts per time, such as 10/min.", show_default=False)
]
Wave = Annotated[
    str,
    typer.Option(
        "--wave", metavar="SIZES", help="Sizes of waves, such as 1,5,20%; the last repeats.", show_default=False
    ),
]
MaxFailures = Annotated[
    list[str] | None,
    typer.Option(
        "--max-failures", metavar="LIMIT", help="Pause at so many failures: 3, 2% or fabric=1; may be repeated."
    ),
]
Deadline = Annotated[
    str | None, typer.Option("--deadline", metavar="TIME", help="End the campaign after this long, such as 6h.")
]
Window = Annotated[
    list[str] | None,
    typer.Option(
        "--window",
        metavar="WHEN",
        help='Start only then: "Sun 02:00-04:00 Europe/Berlin", zone included; may be repeated.',
    ),
]
Attempts = Annotated[
    int,
    typer.Option(
        "--attempts", metavar="N", min=0, max=100, help="Attempts per host before the BMC is used.", show_default=False
    ),
]
Soak = Annotated[str | None, typer.Option("--soak", metavar="TIME", help="How long a host must stay usable to count.")]
DrainTimeout = Annotated[
    str | None, typer.Option("--drain-timeout", metavar="TIME", help="How long draining one host may take.")
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Override running jobs and logged-in people; needs --reason.", show_default=False),
]


def build_request(
    selector: Selector, *, operation: Operation, mode: RebootMode, limits: Limits, reason: str, force: bool
) -> CampaignRequest:
    """Put the request together; raises Problem for force without a reason."""
    check_force(force=force, reason=reason)
    kind = OperationKind(operation.value.replace("-", "_"))
    return CampaignRequest(operation=kind, mode=mode, selector=selector, limits=limits, reason=reason, force=force)


def check_force(*, force: bool, reason: str) -> None:
    """Raise Problem for force without a reason."""
    if force:
        needed(reason, "--force overrides running jobs and needs a reason", "--reason", "add --reason TEXT")


def build_limits(
    faults: Faults,
    *,
    max_down: list[str] | None = None,
    rate: str = "",
    wave: str = "",
    max_failures: list[str] | None = None,
    deadline: str | None = None,
    window: list[str] | None = None,
    attempts: int = 0,
    soak: str | None = None,
    drain_timeout: str | None = None,
) -> Limits:
    """Put the limits together as typed; only lengths of time are read here, and their faults are kept."""
    return Limits(
        max_down=tuple(max_down or ()),
        rate=rate,
        waves=wave,
        max_failures=tuple(max_failures or ()),
        attempts=attempts,
        deadline_s=_length(faults, deadline, "--deadline"),
        windows=tuple(window or ()),
        soak_s=_length(faults, soak, "--soak", allow_zero=True),
        drain_timeout_s=_length(faults, drain_timeout, "--drain-timeout"),
    )


def _length(faults: Faults, text: str | None, flag: str, *, allow_zero: bool = False) -> float:
    read = faults.take(seconds_of, text, flag, allow_zero=allow_zero) if text is not None else None
    return read or 0.0


@verb(
    app,
    "plan",
    'hostler campaign plan "gpu-[001-128]" --max-down fabric=3',
    "hostler campaign plan -l fabric=ib-a --wave 1,5,20% -o json",
)
def plan_verb(
    run: Run,
    *,
    hosts: flags.Hosts = None,
    label: flags.Labels = None,
    from_file: flags.FromFile = None,
    every: flags.All = False,
    operation: OperationFlag = Operation.REBOOT,
    mode: ModeFlag = RebootMode.SOFT,
    max_down: MaxDown = None,
    rate: Rate = "",
    wave: Wave = "",
    max_failures: MaxFailures = None,
    deadline: Deadline = None,
    window: Window = None,
    attempts: Attempts = 0,
    soak: Soak = None,
    drain_timeout: DrainTimeout = None,
    reason: flags.Reason = "",
    force: Force = False,
) -> None:
    """Show what a campaign would do, and change nothing.

    The plan's token can be given to `campaign submit --plan`, which is refused once the plan is out of date.
    """
    faults = Faults()
    limits = build_limits(
        faults,
        max_down=max_down,
        rate=rate,
        wave=wave,
        max_failures=max_failures,
        deadline=deadline,
        window=window,
        attempts=attempts,
        soak=soak,
        drain_timeout=drain_timeout,
    )
    selector = faults.take(select, hosts, label, from_file, every) or Selector()
    faults.take(check_force, force=force, reason=reason)
    faults.done()
    request = build_request(selector, operation=operation, mode=mode, limits=limits, reason=reason, force=force)
    show_plan(run, plan_campaign(run, request))


@verb(
    app,
    "submit",
    'hostler campaign submit "gpu-[001-128]" --max-down fabric=3 --reason "kernel 6.8" --wait',
    "hostler campaign submit -l fabric=ib-a --yes --expect-count 800 --key kernel-6.8 -o json",
)
def submit_verb(
    run: Run,
    *,
    hosts: flags.Hosts = None,
    label: flags.Labels = None,
    from_file: flags.FromFile = None,
    every: flags.All = False,
    operation: OperationFlag = Operation.REBOOT,
    mode: ModeFlag = RebootMode.SOFT,
    max_down: MaxDown = None,
    rate: Rate = "",
    wave: Wave = "",
    max_failures: MaxFailures = None,
    deadline: Deadline = None,
    window: Window = None,
    attempts: Attempts = 0,
    soak: Soak = None,
    drain_timeout: DrainTimeout = None,
    reason: flags.Reason = "",
    force: Force = False,
    expect_count: Annotated[
        int | None, typer.Option("--expect-count", metavar="N", min=1, help="The exact number of hosts.")
    ] = None,
    plan: Annotated[
        str, typer.Option("--plan", metavar="TOKEN", help="Token of a plan that must still hold.", show_default=False)
    ] = "",
    key: flags.Key = None,
    yes: flags.Yes = False,
    wait: flags.Wait = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Show the plan, ask, and begin the campaign.

    Without a terminal --yes is needed, and above the size limit --expect-count. A limit that is not given is the
    domain's own budget, or one; never unlimited. Ctrl-C leaves a campaign running.
    """
    faults = Faults()
    limits = build_limits(
        faults,
        max_down=max_down,
        rate=rate,
        wave=wave,
        max_failures=max_failures,
        deadline=deadline,
        window=window,
        attempts=attempts,
        soak=soak,
        drain_timeout=drain_timeout,
    )
    if key is not None:
        faults.take(needed, key, "an empty key protects nothing", "--key", "give one, or leave it out")
    selector = faults.take(select, hosts, label, from_file, every) or Selector()
    faults.take(check_force, force=force, reason=reason)
    faults.done()
    request = build_request(selector, operation=operation, mode=mode, limits=limits, reason=reason, force=force)
    submit_campaign(run, request, Consent(yes, expect_count or 0, plan, key, wait, dry_run))


@verb(app, "list", "hostler campaign list --state running --state paused", "hostler campaign list -o name")
def list_verb(
    run: Run,
    *,
    state: Annotated[
        list[CampaignState] | None, typer.Option("--state", help="Only campaigns in this state; may be repeated.")
    ] = None,
) -> None:
    """List campaigns, newest first as the server gives them."""
    names = [f"CAMPAIGN_STATE_{item.name}" for item in state or ()]
    request = pb.ListCampaignsRequest(states=names)
    found = list(run.pages(api.LIST_CAMPAIGNS, request, "campaigns", Campaign))
    rows = [campaign_row(item) for item in found] if run.output.for_people else []
    run.output.show(
        found, [item.id for item in found], lambda: run.output.table(CAMPAIGN_COLUMNS, rows, empty="no campaigns")
    )


@verb(app, "show", "hostler campaign show c-7f3a", "hostler campaign show c-7f3a -o json | jq .counts")
def show_verb(run: Run, campaign: flags.CampaignId) -> None:
    """Show one campaign: state, counts, what it waits for, hosts in flight, failures."""
    answer = run.call(api.GET_CAMPAIGN, pb.GetCampaignRequest(id=campaign))
    show_campaign(run, codec.from_message(Campaign, answer.campaign))


@verb(app, "watch", "hostler campaign watch c-7f3a", "hostler campaign watch c-7f3a -o json | jq -c .counts")
def watch_verb(run: Run, campaign: flags.CampaignId) -> None:
    """Follow a campaign until it ends; leaving it leaves the campaign running.

    A live view on a terminal, one line per change elsewhere, one JSON document per line with -o json. Exit status 1
    when it ended in any other way than succeeded.
    """
    if run.output.for_people:
        verdict_of(follow(run, campaign))
        return
    try:
        last = _record_changes(run, campaign)
    except KeyboardInterrupt:
        raise interrupted(campaign) from None
    if last is not None:
        verdict_of_shown(run, last)


def _record_changes(run: Run, campaign_id: str) -> Campaign | None:
    """Write every change as a document, or its state with -o name; return the last one."""
    last: Campaign | None = None
    for last in changes(run, campaign_id):
        if run.output.format is Format.NAME:
            run.output.line(f"{last.id} {last.state}")
            sys.stdout.flush()
        else:
            run.output.record(last)
    return last


def _steer(
    run: Run,
    method: api.Method[Any, Any],
    request: Any,
    *,
    wait_until: Callable[[Campaign], bool] | None,
) -> Campaign:
    """Pause, resume or abort; write the campaign with what is still going to happen, or wait and write its end."""
    answer = run.call(method, request)
    campaign = codec.from_message(Campaign, answer.campaign)
    consequences = [codec.from_message(Consequence, item) for item in answer.consequences]
    if wait_until is not None and not request.dry_run:
        run.output.aside(consequences_screen(consequences, run.output.width))
        if not wait_until(campaign):
            campaign = follow(run, campaign.id, until=wait_until)
    _show_steered(run, campaign, consequences, dry_run=request.dry_run)
    return campaign


def _show_steered(run: Run, campaign: Campaign, consequences: Sequence[Consequence], *, dry_run: bool) -> None:
    document = campaign.model_dump(mode="json")
    document |= {"consequences": [item.model_dump(mode="json") for item in consequences], "dry_run": dry_run}
    width = run.output.width
    head = ["dry run: nothing was changed"] if dry_run else []
    run.output.show(
        document,
        [campaign.id],
        lambda: lines_of(head, consequences_screen(consequences, width), [""], campaign_screen(campaign, run.output)),
    )


@verb(app, "pause", 'hostler campaign pause c-7f3a --reason "link flaps on ib-a"')
def pause_verb(
    run: Run,
    *,
    campaign: flags.CampaignId,
    reason: flags.Reason = "",
    wait: flags.Wait = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Start no more hosts, and say what becomes of those in flight.

    With --wait, stay until no host is in flight.
    """
    request = pb.PauseCampaignRequest(id=campaign, reason=reason, dry_run=dry_run)
    _steer(run, api.PAUSE_CAMPAIGN, request, wait_until=_is_quiet if wait else None)


def _is_quiet(campaign: Campaign) -> bool:
    return campaign.state in ENDED or (campaign.state is CampaignState.PAUSED and campaign.counts.running == 0)


@verb(app, "resume", "hostler campaign resume c-7f3a --wait")
def resume_verb(
    run: Run,
    *,
    campaign: flags.CampaignId,
    reason: flags.Reason = "",
    wait: flags.Wait = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Let a paused campaign go on; its failure limit counts anew."""
    request = pb.ResumeCampaignRequest(id=campaign, reason=reason, dry_run=dry_run)
    ended = _steer(run, api.RESUME_CAMPAIGN, request, wait_until=_has_ended if wait else None)
    if wait and not dry_run:
        verdict_of_shown(run, ended)


def _has_ended(campaign: Campaign) -> bool:
    return campaign.state in ENDED


@verb(app, "abort", 'hostler campaign abort c-7f3a --reason "wrong kernel"', "hostler campaign abort c-7f3a --dry-run")
def abort_verb(
    run: Run,
    *,
    campaign: flags.CampaignId,
    reason: flags.Reason = "",
    wait: flags.Wait = False,
    dry_run: flags.DryRun = False,
) -> None:
    """End a campaign for good: withdraw what waits, carry what cannot be stopped to a safe end.

    The answer lists both. With --wait, stay until the last host is safe.
    """
    request = pb.AbortCampaignRequest(id=campaign, reason=reason, dry_run=dry_run)
    _steer(run, api.ABORT_CAMPAIGN, request, wait_until=_has_ended if wait else None)
