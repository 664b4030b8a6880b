"""What people see of a plan, a campaign and its tasks; no call is made and no clock is read here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hostler_contract.views import Campaign, Consequence, Plan, Task
from hostler_coordinator.cli.ages import age_of, moment_of, until_of
from hostler_coordinator.cli.output import Output
from hostler_coordinator.cli.tables import Column, clean, facts, fold
from hostler_coordinator.durations import format_duration
from hostler_coordinator.phrases import because

BLOCKED_SHOWN = 20
HOSTS_SHOWN = 6

CAMPAIGN_COLUMNS = (
    Column("ID"),
    Column("OPERATION", rank=2),
    Column("STATE"),
    Column("DONE", right=True),
    Column("RUNNING", rank=3, right=True),
    Column("DEAD LETTERS", rank=3, right=True),
    Column("AGE", rank=1, right=True),
    Column("BY", rank=2),
    Column("KEY", wide=True, rank=6),
    Column("REASON", wide=True, rank=5),
    Column("WAITING FOR", rank=4, flex=True),
)


def campaign_row(campaign: Campaign) -> Sequence[object]:
    """One campaign as a row of `campaign list`."""
    counts = campaign.counts
    return (
        campaign.id,
        operation_of(campaign),
        campaign.state,
        f"{counts.succeeded}/{campaign.target_count}",
        counts.running,
        _letters_of(campaign),
        age_of(campaign.created_at, campaign.as_of),
        campaign.created_by,
        campaign.key,
        campaign.reason,
        waiting_of(campaign),
    )


def _letters_of(campaign: Campaign) -> str:
    """`0`, `2 open`, `1 of 3 open`: those that wait for a person, of all there were."""
    every, left = campaign.counts.dead_letter, campaign.dead_letters_open
    if left == every:
        return f"{every} open" if every else "0"
    return f"{left} of {every} open"


def operation_of(campaign: Campaign) -> str:
    """The operation, with the mode where it says more than the usual."""
    return f"{campaign.operation} ({campaign.mode})" if campaign.mode == "hard" else str(campaign.operation)


def counts_of(campaign: Campaign) -> str:
    """Targets by state in words; states without any are left out."""
    named = ((name.replace("_", " "), count) for name, count in campaign.counts)
    return ", ".join(f"{count} {name}" for name, count in named if count) or "none"


def waiting_of(campaign: Campaign) -> str:
    """What the campaign waits for, who holds it, since when, and what comes next, in one line."""
    if not campaign.waiting_for:
        return ""
    held = f", held by {campaign.held_by}" if campaign.held_by and campaign.held_by not in campaign.waiting_for else ""
    since = f", for {age_of(campaign.waiting_since, campaign.as_of)}" if _has_waited(campaign) else ""
    following = campaign.next_step
    if campaign.next_at is not None:
        following = f"{following} at {until_of(campaign.next_at, campaign.as_of)}".strip()
    return f"{campaign.waiting_for}{held}{since}" + (f"; next: {following}" if following else "")


def _has_waited(campaign: Campaign) -> bool:
    """False while it waits for less than a second: `for 0 s` says nothing."""
    return campaign.waiting_since is not None and round(campaign.as_of - campaign.waiting_since) > 0


def campaign_screen(campaign: Campaign, output: Output, *, with_key: bool = True) -> Iterable[str]:
    """`campaign show`."""
    width = output.width
    yield from facts(
        (
            ("campaign", campaign.id),
            ("state", because(campaign.state, campaign.state_reason)),
            ("operation", operation_of(campaign)),
            ("reason", campaign.reason),
            ("created", f"{moment_of(campaign.created_at)} by {campaign.created_by}"),
            ("key", campaign.key if with_key else ""),
            ("retries", campaign.retry_of),
            ("hosts", f"{campaign.target_count}: {counts_of(campaign)}"),
            ("wave", f"{campaign.wave} of {campaign.wave_count}" if campaign.wave_count else ""),
            ("limits", "; ".join(campaign.limits_resolved)),
            ("deadline", until_of(campaign.deadline_at, campaign.as_of)),
            ("window", _window_of(campaign)),
            ("ended", moment_of(campaign.ended_at)),
            ("done by", until_of(campaign.eta, campaign.as_of) if campaign.ended_at is None else ""),
            ("waiting for", waiting_of(campaign)),
        ),
        width=width,
    )
    yield from domains_of(campaign, output)
    yield from in_flight_of(campaign, output)
    yield from failures_of(campaign, output)


def _window_of(campaign: Campaign) -> str:
    if campaign.window_opens_at is None:
        return ""
    return f"{moment_of(campaign.window_opens_at)} to {moment_of(campaign.window_closes_at)}"


def domains_of(campaign: Campaign, output: Output) -> Iterable[str]:
    """Progress per domain."""
    if campaign.domains:
        columns = (Column("DOMAIN"), *(Column(title, right=True) for title in ("DONE", "OF", "DOWN", "LIMIT")))
        rows = [(item.domain, item.done, item.total, item.charged, item.limit) for item in campaign.domains]
        yield ""
        yield from output.table(columns, rows, empty="")


def in_flight_of(campaign: Campaign, output: Output) -> Iterable[str]:
    """Hosts being worked on, with step and age."""
    if campaign.in_flight:
        columns = (
            Column("IN FLIGHT"),
            Column("STEP"),
            Column("FOR", right=True),
            Column("ATTEMPT", rank=2, right=True),
            Column("DETAIL", rank=1, flex=True),
        )
        rows = [
            (item.host, item.step, age_of(item.since, campaign.as_of), item.attempt, item.detail)
            for item in campaign.in_flight
        ]
        yield ""
        yield from output.table(columns, rows, empty="")


def failures_of(campaign: Campaign, output: Output) -> Iterable[str]:
    """Recent failures with their causes."""
    if campaign.failures:
        columns = (Column("FAILED"), Column("AGO", rank=1, right=True), Column("CAUSE", flex=True))
        rows = [(item.host, age_of(item.at, campaign.as_of), item.cause) for item in campaign.failures]
        yield ""
        yield from output.table(columns, rows, empty="")


def plan_screen(plan: Plan, output: Output) -> Iterable[str]:
    """A plan: size, waves, peak per domain with every rounding, blocked hosts, time, what to look at."""
    width = output.width
    expected = format_duration(plan.expected_duration_s)
    takes = "takes at least" if plan.blocked else "takes about"
    yield from facts(
        (
            ("plan", plan.plan_token),
            ("hosts", f"{plan.target_count}, {len(plan.blocked) or 'none'} of them blocked now"),
            (takes, f"{expected} ({plan.expected_from})" if plan.expected_from else expected),
            ("needs", "the exact count, as it is above the size limit" if plan.needs_count else ""),
        ),
        width=width,
    )
    yield ""
    waves = [(wave.number, wave.host_count, _some(wave.hosts, wave.host_count)) for wave in plan.waves]
    columns = (Column("WAVE", right=True), Column("HOSTS", right=True), Column("FIRST", flex=True))
    yield from output.table(columns, waves, empty="no waves")
    yield ""
    yield from _planned_domains(plan, output)
    if plan.blocked:
        rows = [(item.host, item.code, item.why) for item in plan.blocked[:BLOCKED_SHOWN]]
        yield ""
        yield from output.table((Column("BLOCKED"), Column("CODE", rank=1), Column("WHY", flex=True)), rows, empty="")
        if len(plan.blocked) > BLOCKED_SHOWN:
            yield f"... and {len(plan.blocked) - BLOCKED_SHOWN} more; -o json lists them all"
    for note in plan.notes:
        yield from fold(f"note: {clean(note)}", width)


def _planned_domains(plan: Plan, output: Output) -> Iterable[str]:
    columns = (
        Column("DOMAIN"),
        Column("HOSTS", rank=3, right=True),
        Column("TARGETS", rank=2, right=True),
        Column("DOWN NOW", rank=2, right=True),
        Column("LIMIT", right=True),
        Column("FREE", rank=2, right=True),
        Column("PEAK", right=True),
        Column("LIMIT FROM", rank=4, flex=True),
    )
    rows = [
        (
            item.domain,
            item.enrolled,
            item.targets,
            item.charged_now,
            item.limit,
            item.free,
            item.peak_down,
            f"{item.limit_from}: {item.rounding}" if item.rounding else item.limit_from,
        )
        for item in plan.domains
    ]
    return output.table(columns, rows, empty="no domains")


def _some(hosts: Sequence[str], count: int) -> str:
    shown = ", ".join(hosts[:HOSTS_SHOWN])
    return f"{shown} ..." if count > min(len(hosts), HOSTS_SHOWN) else shown


def consequences_screen(consequences: Sequence[Consequence], width: int | None) -> Iterable[str]:
    """What is still going to happen after pause, resume or abort, and to which hosts."""
    for item in consequences:
        hosts = f" ({_some(item.hosts, item.host_count)})" if item.hosts else ""
        yield from fold(clean(f"{item.text}{hosts}"), width)


TASK_COLUMNS = (
    Column("HOST"),
    Column("STATE"),
    Column("STEP", rank=3),
    Column("FOR", rank=1, right=True),
    Column("ATTEMPT", rank=4, right=True),
    Column("WAVE", wide=True, rank=5, right=True),
    Column("TOKEN", wide=True, rank=5),
    Column("WHY", rank=2, flex=True),
)


def task_row(task: Task, now: float | None) -> Sequence[object]:
    """One task as a row of `task list`."""
    token = str(task.token) if task.token else ""
    why = task.waiting_for or task.reason
    return (task.host, task.state, task.step, age_of(task.since, now), task.attempt or "", task.wave, token, why)


def task_screen(task: Task, now: float | None, output: Output) -> Iterable[str]:
    """`task show`: the task, then its evidence in order."""
    yield from facts(
        (
            ("task", task.id),
            ("host", f"{task.host} ({task.host_id})"),
            ("state", f"{task.state}, for {age_of(task.since, now)}" if task.since and now else task.state),
            ("step", task.step),
            ("attempt", task.attempt or ""),
            ("wave", task.wave or ""),
            ("token", str(task.token) if task.token else ""),
            ("boot before", task.boot_before),
            ("boot after", task.boot_after),
            ("started", moment_of(task.started_at)),
            ("ended", moment_of(task.ended_at)),
            ("deadline", moment_of(task.deadline_at)),
            ("next attempt", moment_of(task.next_attempt_at)),
            ("reason", f"{task.reason} [{task.reason_code}]" if task.reason_code else task.reason),
            ("waiting for", task.waiting_for),
        ),
        width=output.width,
    )
    if task.evidence:
        rows = [(moment_of(item.at), item.kind.replace("_", " "), item.detail) for item in task.evidence]
        yield ""
        yield from output.table(
            (Column("EVIDENCE", rank=1), Column("SEEN"), Column("DETAIL", flex=True)), rows, empty=""
        )
