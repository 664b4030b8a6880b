"""From a request to a campaign: show the plan, ask, send it under one key; what a plan holds, the server says."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterable
from dataclasses import dataclass

import typer

from hostler_contract import codec
from hostler_contract.campaigns import CampaignRequest
from hostler_contract.pb.hostler.v1 import campaign_pb2 as pb
from hostler_contract.views import Campaign, Plan
from hostler_coordinator.cli import api
from hostler_coordinator.cli.campaign_screens import campaign_screen, plan_screen
from hostler_coordinator.cli.errors import Problem, usage
from hostler_coordinator.cli.run import Run, ask_count, is_interactive
from hostler_coordinator.cli.verbs import with_key_hint
from hostler_coordinator.cli.watching import follow, verdict_of
from hostler_coordinator.phrases import counted


@dataclass(frozen=True)
class Consent:
    """How the operator agrees: a flag, a count, a plan seen earlier, or an answer at the terminal."""

    yes: bool = False
    expect_count: int = 0
    plan_token: str = ""
    key: str | None = None
    wait: bool = False
    dry_run: bool = False


def plan_campaign(run: Run, request: CampaignRequest) -> Plan:
    """Ask what would happen; changes nothing."""
    asked = pb.PlanCampaignRequest(request=codec.to_message(request, pb.CampaignRequest))
    return codec.from_message(Plan, run.call(api.PLAN_CAMPAIGN, asked).plan)


def show_plan(run: Run, plan: Plan) -> None:
    """Write a plan as the command's answer."""
    run.output.show(plan, [plan.plan_token], lambda: plan_screen(plan, run.output))


def submit_campaign(run: Run, request: CampaignRequest, consent: Consent) -> None:
    """Plan, ask, submit, and with `wait` stay until the campaign has ended; writes the campaign as the answer."""
    if not (consent.dry_run or consent.yes or is_interactive()):
        raise usage("submitting asks first, and there is no terminal to ask on", flag="--yes", fix="add --yes")
    plan = _plan_if_possible(run, request, consent)
    if consent.dry_run:
        if plan is not None:
            show_plan(run, plan)
        return
    confirmed, seen = False, consent.plan_token
    if plan is not None:
        run.output.aside([*plan_screen(plan, run.output), ""])
        confirmed = _agree(run, plan, request, consent)
        seen = seen or (plan.plan_token if confirmed else "")
    key = consent.key or new_key()
    if consent.key is None:
        _tell_key(run, key)
    campaign = _send(run, request, consent, key=key, plan_token=seen, confirmed=confirmed)
    conclude(run, campaign, wait=consent.wait, key_told=consent.key is None)


def conclude(run: Run, campaign: Campaign, *, wait: bool, key_told: bool = False) -> None:
    """Write a campaign that was just begun, or with `wait` its end; raises Problem when it ended badly.

    `key_told`: its key stands above already, and is not said again.
    """
    if wait:
        campaign = follow(run, campaign.id)
    show_campaign(run, campaign, with_key=not key_told)
    if wait:
        sys.stdout.flush()
        verdict_of_shown(run, campaign)
    else:
        run.output.hint(f"follow it with: hostler campaign watch {campaign.id}")


def verdict_of_shown(run: Run, campaign: Campaign) -> None:
    """Set the exit status for a campaign that was written already: one document is all there may be."""
    try:
        verdict_of(campaign)
    except Problem as problem:
        if run.output.for_people:
            raise
        run.output.warn(problem.message)
        raise typer.Exit(problem.exit_status) from problem


def show_campaign(run: Run, campaign: Campaign, *, with_key: bool = True) -> None:
    """Write a campaign as the command's answer."""
    run.output.show(campaign, [campaign.id], lambda: campaign_screen(campaign, run.output, with_key=with_key))


def new_key() -> str:
    """Make a key that nobody else makes."""
    return f"cli-{secrets.token_hex(8)}"


def _plan_if_possible(run: Run, request: CampaignRequest, consent: Consent) -> Plan | None:
    """Plan; for a repeated key the answer is stored already, so that a plan refused today is no reason to stop."""
    try:
        return plan_campaign(run, request)
    except Problem:
        if consent.key is None or not consent.yes or consent.dry_run:
            raise
        return None


def _agree(run: Run, plan: Plan, request: CampaignRequest, consent: Consent) -> bool:
    """True when a person looked at the plan and said yes; False when a flag says so. Raises Problem otherwise."""
    if consent.yes:
        if plan.needs_count and not consent.expect_count:
            raise usage(
                f"{counted(plan.target_count, 'host')} is above the size limit, so the exact count must be stated",
                flag="--expect-count",
                fix=f"if that is what you mean, add --expect-count {plan.target_count}",
            )
        return False
    if (plan.needs_count or request.selector.all) and not consent.expect_count:
        typed = ask_count(f"Type the number of hosts ({plan.target_count}) to go on")
        if typed != str(plan.target_count):
            said = f"you typed {typed!r}" if typed else "you typed nothing"
            raise Problem("ABORTED", f"nothing was submitted: {counted(plan.target_count, 'host')}, and {said}")
        return True
    run.confirm(f"Submit this for {counted(plan.target_count, 'host')}?", yes=False, action="submit")
    return True


def _tell_key(run: Run, key: str) -> None:
    """Say the key before it is sent: it makes a second try safe, whatever happens to this one."""
    if run.output.for_people:
        run.output.line(f"key: {key}")
        sys.stdout.flush()
    else:
        run.output.hint(f"key: {key}")


def _send(
    run: Run, request: CampaignRequest, consent: Consent, *, key: str, plan_token: str, confirmed: bool
) -> Campaign:
    asked = pb.SubmitCampaignRequest(
        key=key,
        request=codec.to_message(request, pb.CampaignRequest),
        expect_count=consent.expect_count,
        plan_token=plan_token,
        confirmed=confirmed,
    )
    try:
        answer = run.call(api.SUBMIT_CAMPAIGN, asked)
    except Problem as problem:
        raise with_key_hint(problem, key) from problem
    except KeyboardInterrupt:
        raise Problem(
            "INTERRUPTED",
            f"interrupted while submitting: the campaign with key {key} may have been stored",
            fix=f"run it again with --key {key}: it will not be carried out twice",
            details={"key": key},
        ) from None
    if answer.repeated_key:
        run.output.warn(
            f"key {key} was used before for this very request; this is that campaign, nothing new was begun"
        )
    return codec.from_message(Campaign, answer.campaign)


def lines_of(*parts: Iterable[str]) -> Iterable[str]:
    """Put screens below each other."""
    for part in parts:
        yield from part
