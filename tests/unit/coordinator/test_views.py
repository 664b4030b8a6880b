"""Views from records and sightings: states, verdicts, counts, steps and bounds, for every kind of host and task."""

from __future__ import annotations

from typing import Any

import pytest

from hostler_contract.campaigns import (
    AuditRecord,
    CampaignRecord,
    CampaignRequest,
    CampaignState,
    ResolvedLimits,
    Targets,
)
from hostler_contract.domains import Cause, CauseKind
from hostler_contract.hosts import DrainMark, Hold, HostFacts, Retirement, Usability
from hostler_contract.work import (
    Evidence,
    EvidenceKind,
    PowerIntent,
    PowerVerb,
    TaskRecord,
    TaskState,
    Token,
    Verdict,
)
from hostler_coordinator import ledger, views
from hostler_coordinator.draft import Draft
from hostler_coordinator.live import ReportKind, TaskReport
from hostler_coordinator.pages import make_token, natural, page, page_size, read_token, scope_of
from hostler_coordinator.planner.gates import Room
from hostler_coordinator.planner.turn import Plan
from hostler_coordinator.refusals import BadField
from hostler_coordinator.standing import STATES, host_state, host_verdict
from service_office import NOON, Office


@pytest.fixture
def office() -> Office:
    return Office()


def campaign(office: Office, *names: str, **more: Any) -> CampaignRecord:
    """A stored campaign over these hosts."""
    fields: dict[str, Any] = {
        "id": "c-1",
        "key": "k",
        "caller": "alice",
        "digest": "d",
        "request": CampaignRequest(),
        "limits": ResolvedLimits(),
        "state": CampaignState.RUNNING,
        "state_since": NOON - 60.0,
        "created_at": NOON - 60.0,
        "target_count": len(names),
        "chunk_count": 1,
    }
    record = CampaignRecord.model_validate(fields | more)
    office.store.seed(record, Targets(campaign=record.id, chunk=0, hosts=tuple(f"h-{name}" for name in names)))
    return record


def task(office: Office, name: str, state: TaskState, **more: Any) -> TaskRecord:
    """A stored task, with the claim that goes with a state in which it holds its host."""
    fields = {"campaign": "c-1", "host": f"h-{name}", "state": state, "since": NOON - 30.0, "token": Token(counter=3)}
    record = TaskRecord.model_validate(fields | more)
    office.store.seed(record)
    claim = office.state.claim(record.host)
    office.store.seed(claim.model_copy(update={"token": Token(counter=3), "task": record.id}))
    return record


async def charge(office: Office, name: str, kind: CauseKind, ref: str = "") -> None:
    draft = Draft(office.state)
    ledger.add_cause(draft, office.host(name), Cause(kind=kind, ref=ref, since=NOON - 5.0))
    await office.store.commit(draft.change())


# -- hosts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "silent_s", "state", "verdict"),
    [
        ({}, None, "up", Verdict.OK),
        ({}, 60.0, "silent", Verdict.SUSPECT),
        ({}, 5.0, "silent", Verdict.UNKNOWN),
        ({"drain": DrainMark(owner="a", reason="", at=NOON)}, None, "drained", Verdict.OK),
        ({"drain": DrainMark(owner="a", reason="", at=NOON)}, 60.0, "drained", Verdict.SUSPECT),
        ({"retired": Retirement(ticket="T", by="a", at=NOON)}, 60.0, "retired", Verdict.SUSPECT),
    ],
)
def test_state_and_verdict_of_a_host_at_rest(
    office: Office, fields: dict[str, Any], silent_s: float | None, state: str, verdict: Verdict
):
    office.enrol("gpu-1", **fields)
    if silent_s is not None:
        office.silence("gpu-1", silent_s)
    world, host = office.world(), office.host("gpu-1")
    assert (host_state(world, host), host_verdict(world, host)) == (state, verdict)
    assert state in STATES


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (TaskState.RESERVED, "silent"),
        (TaskState.ACTING, "rebooting"),
        (TaskState.POWER_CYCLING, "rebooting"),
        (TaskState.POWER_CYCLED, "rebooting"),
        (TaskState.PROVING, "rebooting"),
        (TaskState.STOPPING, "silent"),
    ],
)
def test_a_host_that_was_let_go_is_rebooting_and_its_silence_is_expected(office: Office, state: TaskState, word: str):
    office.enrol("gpu-1")
    office.silence("gpu-1", 60.0)
    campaign(office, "gpu-1")
    task(office, "gpu-1", state)
    world, host = office.world(), office.host("gpu-1")
    assert host_state(world, host) == word
    expected = Verdict.UNKNOWN if word == "rebooting" else Verdict.SUSPECT
    assert host_verdict(world, host) is expected


async def test_dead_goes_before_held_and_drained_and_held_before_drained(office: Office):
    office.enrol("gpu-1", drain=DrainMark(owner="a", reason="", at=NOON))
    office.store.seed(Hold(id="1", host="h-gpu-1", reason="r", owner="b", at=NOON))
    assert host_state(office.world(), office.host("gpu-1")) == "held"
    office.silence("gpu-1", 300.0)
    await charge(office, "gpu-1", CauseKind.DEAD)
    assert host_state(office.world(), office.host("gpu-1")) == "dead"
    assert host_verdict(office.world(), office.host("gpu-1")) is Verdict.DEAD


@pytest.mark.parametrize("usability", [Usability.STARTING, Usability.UNUSABLE, Usability.UNKNOWN])
def test_unknown_health_is_never_folded_into_another(office: Office, usability: Usability):
    office.enrol("gpu-1")
    office.hear("gpu-1", usability=usability)
    assert host_verdict(office.world(), office.host("gpu-1")) is Verdict.UNKNOWN


async def test_a_host_view_has_what_is_heard_only_while_it_is_heard(office: Office):
    office.enrol("gpu-1", flags=("name: calls itself gpu-9",))
    office.hear("gpu-1").facts = HostFacts(kernel="6.1", cpu_count=128)
    await charge(office, "gpu-1", CauseKind.DRAIN, "alice")
    view = views.host(office.world(), office.host("gpu-1"))
    assert view.facts is not None
    assert view.facts.cpu_count == 128
    assert view.last_heard_at == NOON
    assert view.charged_to == ("fabric/ib-a", "site/site")
    assert view.flags == ("name: calls itself gpu-9",)
    assert view.token is None
    office.silence("gpu-1", 60.0)
    view = views.host(office.world(), office.host("gpu-1"))
    assert view.facts is None
    assert view.condition is None
    assert view.last_heard_at == NOON - 60.0


# -- campaigns -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "field"),
    [
        (CampaignState.PENDING, "pending"),
        (CampaignState.RUNNING, "pending"),
        (CampaignState.PAUSED, "pending"),
        (CampaignState.ABORTING, "pending"),
        (CampaignState.SUCCEEDED, "skipped"),
        (CampaignState.INCOMPLETE, "skipped"),
        (CampaignState.FAILED, "skipped"),
        (CampaignState.ABORTED, "aborted"),
    ],
)
def test_targets_without_a_record_count_as_what_became_of_them(office: Office, state: CampaignState, field: str):
    names = [host.name for host in office.fleet(4)]
    record = campaign(office, *names, state=state)
    task(office, "gpu-001", TaskState.SUCCEEDED)
    counts = views.counts(office.world(), record)
    assert getattr(counts, field) == 3
    assert counts.succeeded == 1
    assert sum(counts.model_dump().values()) == 4


def test_every_recorded_state_is_counted_once(office: Office):
    names = [host.name for host in office.fleet(len(TaskState))]
    record = campaign(office, *names)
    for name, state in zip(names, TaskState, strict=True):
        task(office, name, state)
    counts = views.counts(office.world(), record)
    assert counts.model_dump() == {
        "pending": 2,  # pending and backing off
        "running": 6,
        "succeeded": 1,
        "failed": 1,
        "dead_letter": 1,
        "skipped": 1,
        "aborted": 1,
    }


def test_a_campaign_whose_tasks_are_kept_no_longer_is_counted_from_its_summary(office: Office):
    names = [host.name for host in office.fleet(9)]
    summary = {"succeeded": 6, "dead_letter": 2}
    record = campaign(office, *names, state=CampaignState.INCOMPLETE, summary=summary, ended_at=NOON)
    task(office, "gpu-001", TaskState.SUCCEEDED)  # not deleted yet
    view = views.campaign(office.world(), Plan(), record)
    assert (view.counts.succeeded, view.counts.dead_letter, view.counts.skipped) == (6, 2, 1)
    assert sum(view.counts.model_dump().values()) == 9


def test_what_is_shown_is_bounded_and_the_newest_failures_and_oldest_hosts_come_first(office: Office):
    names = [host.name for host in office.fleet(80)]
    record = campaign(office, *names)
    for number, name in enumerate(names[:60]):
        task(office, name, TaskState.ACTING, since=NOON - number)
    for number, name in enumerate(names[60:75]):
        task(office, name, TaskState.DEAD_LETTER, ended_at=NOON - number, code="no-boot", reason="gone")
    view = views.campaign(office.world(), Plan(), record)
    assert len(view.in_flight) == 50
    assert view.in_flight[0].host == "gpu-060"
    assert [failure.host for failure in view.failures] == [f"gpu-{number:03d}" for number in range(61, 71)]
    assert view.failures[0].cause == "no-boot: gone"
    brief = views.campaign(office.world(), Plan(), record, whole=False)
    assert (brief.domains, brief.in_flight, brief.failures) == ((), (), ())
    assert brief.counts == view.counts


@pytest.mark.parametrize(
    ("state", "report", "step"),
    [
        (TaskState.RESERVED, None, "waiting for its agent"),
        (TaskState.RESERVED, ReportKind.DRAINING, "draining"),
        (TaskState.RESERVED, ReportKind.STARTED, "ready, waiting for the GO"),
        (TaskState.ACTING, None, "shutting down"),
        (TaskState.PROVING, None, "post-boot checks"),
        (TaskState.POWER_CYCLING, None, "power cycling"),
        (TaskState.POWER_CYCLED, None, "booting"),
        (TaskState.BACKING_OFF, None, "waiting for its next attempt"),
        (TaskState.DEAD_LETTER, None, "dead letter"),
    ],
)
def test_steps_in_words(office: Office, state: TaskState, report: ReportKind | None, step: str):
    office.enrol("gpu-1")
    campaign(office, "gpu-1")
    record = task(office, "gpu-1", state)
    if report is not None:
        said = TaskReport(task_id=record.id, token=Token(counter=3), kind=report, at=NOON)
        office.sightings["h-gpu-1"].report = said
    assert views.step(office.world(), record) == step


def test_a_report_under_an_older_token_is_not_the_step_of_this_task(office: Office):
    office.enrol("gpu-1")
    campaign(office, "gpu-1")
    record = task(office, "gpu-1", TaskState.RESERVED)
    old = TaskReport(task_id=record.id, token=Token(counter=2), kind=ReportKind.DRAINING, at=NOON)
    office.sightings["h-gpu-1"].report = old
    assert views.step(office.world(), record) == "waiting for its agent"


def test_fc_d12_switching_off_shows_its_goal(office: Office):
    office.enrol("gpu-1")
    campaign(office, "gpu-1")
    intent = PowerIntent(verb=PowerVerb.OFF, token=Token(counter=3), at=NOON, expires_at=NOON, leader="l", why="w")
    record = task(office, "gpu-1", TaskState.POWER_CYCLING, power=intent)
    assert views.step(office.world(), record) == "shutting down (goal off)"


def test_tasks_show_their_wave_evidence_and_the_end_of_those_that_never_moved(office: Office):
    names = [host.name for host in office.fleet(4)]
    record = campaign(office, *names, limits=ResolvedLimits(wave_sizes=(1, 2, 1)), state=CampaignState.FAILED)
    proof = Evidence(kind=EvidenceKind.BOOT_CHANGED, at=NOON, detail="a -> b")
    task(office, "gpu-001", TaskState.SUCCEEDED, evidence=(proof,), boot_before="a", boot_after="b", ended_at=NOON)
    world = office.world()
    told = [views.task(world, record, f"h-{name}", Room.of(world)) for name in names]
    assert [one.wave for one in told] == [1, 2, 2, 3]
    assert told[0].evidence == (proof,)
    assert (told[0].boot_before, told[0].boot_after, told[0].waiting_for) == ("a", "b", "")
    assert [one.state for one in told[1:]] == [TaskState.SKIPPED] * 3


# -- domains and the rest --------------------------------------------------------------------------------------------


async def test_holders_are_bounded_oldest_first_and_each_says_its_cause(office: Office):
    for number in range(60):
        office.enrol(f"n{number:02d}")
        await charge(office, f"n{number:02d}", CauseKind.DEAD)
    office.enrol("x")
    campaign(office, "x")
    task(office, "x", TaskState.PROVING)
    await charge(office, "x", CauseKind.TASK, "c-1/h-x")
    await charge(office, "x", CauseKind.DEAD_LETTER, "c-0.h-x")
    view = views.domain(office.world(), {}, "fabric/ib-a")
    assert (view.charged, len(view.holders)) == (61, 50)
    assert view.holders[0].cause == "dead"
    [last] = [charged for charged in office.state.charges.values() if charged.host == "h-x"]
    office.store.seed(last.model_copy(update={"since": NOON - 900.0}))
    holder = views.domain(office.world(), {}, "fabric/ib-a").holders[0]
    assert (holder.host, holder.cause) == ("x", "campaign c-1, task proving; dead letter c-0.h-x")


def test_an_audit_entry_keeps_every_field():
    record = AuditRecord(
        id="1", at=NOON, actor="a", action="x", host="h", campaign="c", reason="r", result="refused", detail="d"
    )
    view = views.audit_entry(record)
    assert view.model_dump() == {
        "id": "1",
        "at": NOON,
        "actor": "a",
        "action": "x",
        "host": "h",
        "campaign_id": "c",
        "reason": "r",
        "result": "refused",
        "detail": "d",
        "host_id": "h",
    }


def test_fc_d08_every_instant_of_a_view_is_written_with_its_offset(office: Office):
    names = [host.name for host in office.fleet(1)]
    record = campaign(office, *names)
    text = views.campaign(office.world(), Plan(), record).model_dump_json()
    assert '"as_of":"2027-01-15T08:00:00.000000Z"' in text


# -- pages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["x", "%%%", "a" * 2_000, make_token(scope_of("other"), "k"), "Zm9v"])
def test_tokens_of_elsewhere_are_refused(token: str):
    with pytest.raises(BadField) as bad:
        read_token(token, scope_of("this"))
    assert bad.value.field == "page_token"


def test_tokens_come_back_as_they_were_whatever_the_key_holds():
    scope = scope_of("hosts", "fabric=ib-a", ["up"])
    for key in ("gpu-1", "a.b.c", "ünïcode\0x", ""):
        assert read_token(make_token(scope, key), scope) == key


@pytest.mark.parametrize(("asked", "size"), [(0, 100), (1, 1), (500, 500)])
def test_page_sizes_in_bounds(asked: int, size: int):
    assert page_size(asked) == size


@pytest.mark.parametrize("asked", [-1, 501, 10_000])
def test_page_sizes_out_of_bounds(asked: int):
    with pytest.raises(BadField, match="page_size"):
        page_size(asked)


def test_names_sort_naturally():
    names = ["gpu-10", "gpu-9", "gpu-010", "b2", "a10", "a9", "gpu"]
    assert sorted(names, key=natural) == ["a9", "a10", "b2", "gpu", "gpu-9", "gpu-010", "gpu-10"]


def test_things_that_come_and_go_between_pages_neither_repeat_nor_hide_others(office: Office):
    hosts = {name: office.enrol(name) for name in ("a", "b", "c", "d", "e")}
    world = office.world()

    def turn(token: str, *names: str) -> tuple[list[str], str]:
        shown, following = page(
            [hosts[name] for name in names],
            key=lambda host: host.name,
            make=lambda host: views.host(world, host),
            size=2,
            token=token,
            scope="s",
        )
        return [view.name for view in shown], following

    first, token = turn("", "a", "b", "d", "e")
    second, token = turn(token, "a", "c", "d", "e")
    third, token = turn(token, "a", "c", "e")
    assert (first, second, third, token) == (["a", "b"], ["c", "d"], ["e"], "")
