"""Verbs of hosts, domains, tasks, dead letters, holds, audit and the brake."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler_contract.views import (
    AuditEntry,
    ChargeHolder,
    DeadLetter,
    Domain,
    HostCause,
    HostWhy,
    InventoryChange,
    Task,
)
from hostler_contract.work import DeadLetterState, Evidence, EvidenceKind, TaskState
from hostler_coordinator.cli.new_domains import named, told
from unit.cli import stand_in
from unit.cli.conftest import Cli


def test_why_is_one_sentence_with_holder_since_and_next(cli: Cli, fleet: stand_in.Fleet) -> None:
    now = stand_in.server_clock()
    fleet.whys["gpu-003"] = HostWhy(
        host="gpu-003",
        host_id="h-3",
        state="up",
        waiting_for="waiting for a free slot on fabric/ib-a",
        code="budget-full",
        held_by="gpu-001 of campaign c-2",
        since=now - 250,
        next_step="starts when a slot is free",
        next_at=now + 600,
        charged_to=("fabric/ib-a",),
        as_of=now,
    )
    line = cli("host", "why", "gpu-003").out
    assert line.startswith(
        "gpu-003 is up: waiting for a free slot on fabric/ib-a, held by gpu-001 of campaign c-2, for 4 min"
    )
    assert line.count("\n") == 1
    assert "next: starts when a slot is free at " in line
    why = cli("host", "why", "gpu-003", "-o", "json").json()
    wanted = {
        "host",
        "state",
        "verdict",
        "boot_id",
        "waiting_for",
        "held_by",
        "since",
        "next_step",
        "next_at",
        "charged_to",
    }
    assert wanted <= set(why)
    assert (why["charged_to"], why["since"][-1]) == (["fabric/ib-a"], "Z")
    assert "budget-full" in cli("host", "why", "gpu-003", "-o", "wide").out


def test_why_tells_every_cause_in_a_sentence_of_its_own(cli: Cli, fleet: stand_in.Fleet) -> None:
    now = stand_in.server_clock()
    held = HostCause(code="held", text="held by eve (hands off): BIOS", held_by="eve", since=now - 60)
    paused = HostCause(
        code="campaign-paused",
        text="campaign c-2 is paused by alice: lunch",
        held_by="c-2",
        since=now - 7,
        next_step="hostler campaign resume c-2",
    )
    fleet.whys["gpu-003"] = HostWhy(
        host="gpu-003",
        host_id="h-3",
        state="held",
        waiting_for=f"{held.text}; besides, {paused.text}",
        as_of=now,
        causes=(held.model_copy(update={"next_step": "hostler hold remove 1", "next_at": now + 3600}), paused),
    )
    first, second = cli("host", "why", "gpu-003").out.splitlines()
    assert first.startswith("gpu-003 is held by eve (hands off): BIOS, for 1 min; next: hostler hold remove 1 at 2")
    assert second == "besides: campaign c-2 is paused by alice: lunch, for 7 s; next: hostler campaign resume c-2."
    document = cli("host", "why", "gpu-003", "-o", "json").json()
    assert [cause["code"] for cause in document["causes"]] == ["held", "campaign-paused"]


def test_every_noun_without_that_thing_ends_with_3(cli: Cli) -> None:
    for command in (
        ("host", "show", "x"),
        ("host", "why", "x"),
        ("campaign", "show", "x"),
        ("campaign", "watch", "x"),
        ("task", "show", "c-1", "x"),
        ("domain", "show", "rack/x"),
        ("deadletter", "show", "x"),
        ("hold", "remove", "x"),
        ("host", "power", "status", "x"),
    ):
        assert cli(*command).status == 3, command


def test_lists_select_and_name(cli: Cli) -> None:
    assert cli("host", "list", "-l", "fabric=ib-a", "-o", "name").out.split() == [
        "gpu-001",
        "gpu-003",
        "gpu-005",
        "gpu-007",
    ]
    table = cli("host", "list").out.splitlines()
    assert (len(table), table[0].split()[:3]) == (9, ["NAME", "STATE", "VERDICT"])
    assert "BOOT ID" in cli("host", "list", "-o", "wide").out


def test_drain_and_undrain_with_rehearsal(cli: Cli, fleet: stand_in.Fleet) -> None:
    rehearsed = cli("host", "drain", "gpu-001", "--dry-run", "-o", "json").json()
    assert rehearsed == {"hosts": ["gpu-001"], "dry_run": True, "over_budget": [], "refused": False}
    assert fleet.hosts["gpu-001"].drained_by == ""
    assert cli("host", "drain", "gpu-001", "--reason", "fan").out == "drained 1: gpu-001\n"
    assert fleet.hosts["gpu-001"].drained_by == "alice"
    assert cli("host", "undrain", "gpu-001").status == 0
    assert fleet.hosts["gpu-001"].drained_by == ""


def test_a_drain_over_a_budget_is_shown_refused_and_forced_with_a_reason(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.over_budget = ["fabric/ib-a would have 2 of 1 (default) out of service (1 now: gpu-002: drained by bob)"]
    shown = cli("host", "drain", "gpu-001", "--dry-run")
    assert shown.out.startswith(
        "would refuse to drain 1: gpu-001; it needs --force with --reason\nover budget: fabric/"
    )
    assert cli("host", "drain", "gpu-001", "--reason", "leak").status == 4
    assert cli("host", "drain", "gpu-001", "--force").status == 2
    done = cli("host", "drain", "gpu-001", "--force", "--reason", "leak")
    assert (done.status, done.out.splitlines()[0]) == (0, "drained 1: gpu-001")
    assert "over budget: fabric/ib-a would have 2 of 1" in done.out
    assert fleet.hosts["gpu-001"].drained_by == "alice"


def test_an_import_that_removes_many_needs_their_number_whoever_says_yes(
    cli: Cli, fleet: stand_in.Fleet, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("hosts: []\n")
    fleet.removals = 3
    shown = cli("host", "import", str(file), "--remove-missing", "--dry-run")
    assert "0 added, 1 changed, 3 removed, 7 unchanged" in shown.out
    assert "removes 3 of 8 hosts: needs --expect-removed 3" in shown.out
    done = cli("host", "import", str(file), "--remove-missing", "--yes")
    assert (done.status, "--expect-removed 3" in done.err) == (2, True)
    assert cli("host", "import", str(file), "--remove-missing", "--yes", "--expect-removed", "3").status == 0
    sent = [request for name, request in fleet.asked if name == "ImportInventory"]
    assert [(request.dry_run, request.expect_removed) for request in sent][-1] == (False, 3)


def test_retiring_says_what_follows_and_status_what_is_out_of_service(cli: Cli) -> None:
    done = cli("host", "retire", "gpu-001", "--ticket", "RMA-1")
    assert done.out.startswith("retired gpu-001 under RMA-1: it is skipped as retired in c-9")
    assert "heard, 2 out of service, 1 of them dead: hostler host list --state dead" in cli("status").out


def test_reasons_reach_what_is_audited(cli: Cli, fleet: stand_in.Fleet) -> None:
    assert cli("host", "note", "gpu-001", "see 4711", "--reason", "night shift").status == 0
    assert fleet.hosts["gpu-001"].note == "see 4711"
    assert cli("host", "note", "gpu-001", "other", "--dry-run").status == 0
    assert fleet.hosts["gpu-001"].note == "see 4711"
    assert cli("host", "power", "status", "gpu-001", "--reason", "silent").status == 0
    told = [(name, request.reason) for name, request in fleet.asked if name in {"NoteHost", "ProbeBmc"}]
    assert told == [("NoteHost", "night shift"), ("NoteHost", ""), ("ProbeBmc", "silent")]


@pytest.mark.parametrize(
    ("arguments", "operation", "mode"),
    [
        (("reboot", "gpu-001"), 1, 1),
        (("reboot", "gpu-001", "--mode", "hard"), 1, 2),
        (("power", "on", "gpu-001"), 2, 1),
        (("power", "gpu-001", "off"), 3, 1),
    ],
)
def test_power_and_reboot_are_campaigns_of_one(
    cli: Cli, fleet: stand_in.Fleet, arguments: tuple[str, ...], operation: int, mode: int
) -> None:
    assert cli("host", *arguments).status == 2
    assert cli("host", *arguments, "--yes", "-o", "json").status == 0
    request = fleet.submitted[0].request
    assert (list(request.selector.hosts), request.operation, request.mode) == (["gpu-001"], operation, mode)


def test_looking_at_a_bmc_changes_nothing(cli: Cli, fleet: stand_in.Fleet) -> None:
    assert cli("host", "power", "status", "gpu-001", "-o", "json").json()["power"] == "on"
    assert cli("host", "power", "verify-serial", "gpu-001").status == 0
    assert cli("host", "locate", "gpu-001", "--off").status == 0
    assert cli("host", "locate", "gpu-001", "--dry-run").out.startswith("would switch")
    assert [request.verb for name, request in fleet.asked if name == "ProbeBmc"] == [1, 4, 3]
    assert cli("host", "power", "kick", "gpu-001").status == 2


def test_papers_note_retire_rebind_remove(cli: Cli, fleet: stand_in.Fleet) -> None:
    assert cli("host", "note", "gpu-001", "loose", "--dry-run", "-o", "json").json()["note"] == "loose"
    assert fleet.hosts["gpu-001"].note == ""
    assert cli("host", "note", "gpu-001", "loose").status == 0
    assert fleet.hosts["gpu-001"].note == "loose"
    assert cli("host", "retire", "gpu-001").status == 2
    assert cli("host", "retire", "gpu-001", "--rma", "R-1").status == 0
    assert fleet.hosts["gpu-001"].state == "retired"
    done = cli("host", "rebind", "gpu-002", "--serial", "S2", "--bmc", "redfish://10.0.0.9", "--credentials", "file:x")
    sent = next(request for name, request in fleet.asked if name == "RebindHost")
    assert (done.status, sent.bmc.protocol, sent.bmc.port, sent.bmc.serial) == (0, "redfish", 443, "S2")
    for bad in ("10.0.0.9", "ipmi://root:secret@10.0.0.9", "ipmi://10.0.0.9:x"):
        assert cli("host", "rebind", "gpu-002", "--serial", "S2", "--bmc", bad).status == 2
    assert cli("host", "remove", "gpu-003").status == 2
    assert cli("host", "remove", "gpu-003", "--dry-run").out.startswith("would remove")
    assert "gpu-003" in fleet.hosts
    assert cli("host", "remove", "gpu-003", "--yes").status == 0
    assert "gpu-003" not in fleet.hosts


def test_import_shows_the_difference_and_asks(cli: Cli, fleet: stand_in.Fleet, tmp_path: Path) -> None:
    file = tmp_path / "fleet.csv"
    file.write_text("name,rack\ngpu-001,r2\n")
    assert cli("host", "import", str(tmp_path / "none")).status == 3
    shown = cli("host", "import", str(file), "--dry-run")
    assert "rack: r1 -> r2" in shown.out
    assert "7 unchanged" in shown.out
    assert cli("host", "import", str(file)).status == 2
    assert all(request.dry_run for name, request in fleet.asked if name == "ImportInventory")
    assert cli("host", "import", str(file), "--yes", "-o", "json").json()["applied"] is True
    assert fleet.asked[-1][1].format == "csv"


def test_domains_show_their_holders(cli: Cli, fleet: stand_in.Fleet) -> None:
    since = stand_in.server_clock() - 60
    holder = ChargeHolder(host="gpu-001", cause="drained by bob", since=since)
    fleet.domains["fabric/ib-a"] = Domain(
        name="fabric/ib-a", kind="fabric", enrolled=61, charged=1, limit=3, limit_from="budget", holders=(holder,)
    )
    fleet.domains["rack/r01"] = Domain(
        name="rack/r01", kind="rack", enrolled=8, charged=0, limit=1, limit_from="default"
    )
    assert cli("fabric", "list", "-o", "name").out.split() == ["fabric/ib-a"]
    assert len(cli("domain", "list", "-o", "json").json()) == 2
    assert "drained by bob" in cli("fabric", "show", "ib-a").out
    assert "the limit went from 3 to 5" in cli("domain", "set-budget", "fabric/ib-a", "5").out
    assert cli("domain", "list", "--kind", "planet").status == 2


@pytest.fixture
def letter(fleet: stand_in.Fleet) -> DeadLetter:
    now = stand_in.server_clock()
    seen = Evidence(kind=EvidenceKind.ATTEMPT_FAILED, at=now - 5, detail="BMC refused the password")
    made = DeadLetter(
        id="c-9.h-1",
        campaign_id="c-9",
        host_id="h-1",
        host="gpu-001",
        at=now,
        cause="bmc-auth",
        text="the BMC refuses the password",
        suggestion="correct the credentials, then retry",
        evidence=(seen,),
        state=DeadLetterState.OPEN,
    )
    fleet.letters[made.id] = made
    fleet.put(stand_in.make_campaign("c-9", state="incomplete"))
    for name, state in (("gpu-001", TaskState.DEAD_LETTER), ("gpu-002", TaskState.SUCCEEDED)):
        number = name[-1]
        fleet.tasks[f"c-9/{name}"] = Task(
            id=f"c-9/{name}",
            campaign_id="c-9",
            host_id=f"h-{number}",
            host=name,
            state=state,
            since=now - 20,
            evidence=(seen,),
        )
    return made


def test_dead_letters_are_shown_retried_and_resolved(cli: Cli, fleet: stand_in.Fleet, letter: DeadLetter) -> None:
    assert letter.id in cli("deadletter", "list").out
    shown = cli("deadletter", "show", letter.id).out
    assert "the BMC refuses the password [bmc-auth]" in shown
    assert "attempt failed" in shown
    retried = cli("deadletter", "retry", letter.id, "--key", "again", "-o", "json").json()
    assert (retried["retry_of"], retried["key"]) == ("c-9", "again")
    before = len(fleet.campaigns)
    assert cli("deadletter", "retry", letter.id, "--dry-run").status == 0
    assert len(fleet.campaigns) == before
    assert cli("deadletter", "resolve", letter.id, "--as", "rma", "--ticket", "R-1").status == 0
    assert fleet.letters[letter.id].state is DeadLetterState.RESOLVED
    assert cli("deadletter", "list").out == "no dead letters\n"


def test_a_host_called_fixed_by_force_that_is_not_back_is_warned_of(
    cli: Cli, fleet: stand_in.Fleet, letter: DeadLetter
) -> None:
    assert cli("deadletter", "resolve", letter.id, "--as", "fixed", "--force").status == 2
    why = HostWhy(host=letter.host, host_id="h-1", state="dead", next_step="look at the host", as_of=1.0)
    fleet.whys[letter.host] = why
    forced = ("deadletter", "resolve", letter.id, "--as", "fixed", "--force", "--reason", "reseated")
    done = cli(*forced, "--dry-run")
    assert (done.status, "dead all the same" in done.err) == (0, True)
    assert next(asked for name, asked in fleet.asked if name == "ResolveDeadLetter").force
    fleet.whys[letter.host] = why.model_copy(update={"state": "up"})
    done = cli(*forced)
    assert (done.status, "all the same" in done.err) == (0, False)


def test_another_try_of_a_closed_letter_says_what_to_do_instead(
    cli: Cli, fleet: stand_in.Fleet, letter: DeadLetter
) -> None:
    assert cli("deadletter", "resolve", letter.id, "--as", "fixed", "--reason", "reseated").status == 0
    done = cli("task", "retry", letter.campaign_id, letter.host)
    assert done.status == 4
    assert "was resolved as fixed by alice" in done.err
    assert f"hostler host reboot {letter.host}" in done.err
    assert cli("deadletter", "resolve", letter.id, "--as", "rma", "--ticket", "RMA-1").status == 0
    assert f"hostler host rebind {letter.host}" in cli("task", "retry", letter.campaign_id, letter.host).err


def test_tasks_are_listed_shown_and_retried(cli: Cli, fleet: stand_in.Fleet, letter: DeadLetter) -> None:
    assert "dead_letter" in cli("task", "list", "c-9").out
    assert cli("task", "show", "c-9/gpu-001", "-o", "json").json()["evidence"][0]["kind"] == "attempt_failed"
    assert cli("task", "show", "c-9").status == 2
    assert cli("task", "retry", "c-9", "gpu-002").status == 4
    assert cli("task", "retry", "c-9", "gpu-001", "-o", "json").json()["retry_of"] == "c-9"
    sent = [request for name, request in fleet.asked if name == "RetryDeadLetters"]
    assert [list(request.ids) for request in sent] == [["c-9.h-1"]]


def test_holds_come_and_go(cli: Cli, fleet: stand_in.Fleet) -> None:
    assert cli("hold", "add", "gpu-001").status == 2
    assert cli("hold", "add", "gpu-001", "--reason", "BIOS", "--kind", "firmware", "--dry-run").status == 0
    assert fleet.holds == {}
    assert cli("hold", "add", "gpu-001", "--reason", "BIOS", "--kind", "firmware", "--until", "4h").status == 0
    assert [hold.kind for hold in fleet.holds.values()] == ["firmware"]
    assert "BIOS" in cli("hold", "list").out
    assert cli("hold", "remove", "hold-1").status == 0
    assert cli("hold", "list", "-o", "json").json() == []


def test_a_hold_whose_answer_got_lost_is_asked_again_and_added_once(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.lost_answers["AddHold"] = 1
    done = cli("hold", "add", "gpu-001", "--reason", "BIOS")
    assert (done.status, len(fleet.holds), done.out.startswith("held 1\n")) == (0, 1, True)
    assert "used before" not in done.err
    for _ in range(2):
        done = cli("hold", "add", "gpu-002", "--reason", "BIOS", "--key", "k1")
    assert (done.status, len(fleet.holds)) == (0, 2)
    assert "key k1 was used before" in done.err


def test_audit_is_filtered_and_bounded(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.audit = [AuditEntry(id=f"a-{number}", at=1.0, actor="alice", action="host.note") for number in range(300)]
    done = cli("audit", "list", "--limit", "250", "--from", "24h", "--host", "gpu-001", "-o", "json")
    assert (done.status, len(done.json())) == (0, 250)
    assert [done.json()[0]["id"], done.json()[-1]["id"]] == ["a-50", "a-299"]
    assert "older entries are left out" in done.err
    sent = next(request for name, request in fleet.asked if name == "ListAudit")
    assert sent.filter.host == "gpu-001"
    assert abs(getattr(sent.filter, "from").seconds - stand_in.server_clock() + 86400) < 30
    assert cli("audit", "export").out.splitlines()[0].startswith("id,at,actor,action")


def test_the_brake_is_let_go_for_named_hosts_with_a_reason(cli: Cli) -> None:
    assert cli("brake", "release", "gpu-001", "--yes").status == 2
    assert cli("brake", "release", "gpu-001", "--reason", "seen").status == 2
    done = cli("brake", "release", "gpu-001", "--reason", "seen", "--yes", "-o", "json").json()
    assert (done["hosts"], done["until"][-1]) == (["gpu-001"], "Z")


def test_status_says_when_the_store_is_away(cli: Cli, fleet: stand_in.Fleet) -> None:
    assert "available" in cli("status").out
    fleet.store_problem = "no quorum"
    said = cli("status").out
    assert "UNAVAILABLE since 20" in said
    assert "(for 30 s): no quorum; nothing is started" in said


def test_an_import_names_the_domains_that_are_new(cli: Cli, fleet: stand_in.Fleet, tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("hosts: []")
    shown = cli("host", "import", str(file), "--dry-run")
    assert "new domains, each with a limit of 1: rack/r2" in shown.out
    assert "hostler domain set-budget rack/r2 5%" in shown.out
    fleet.domains["rack/r2"] = Domain(name="rack/r2", kind="rack", enrolled=8, charged=0, limit=1, limit_from="default")
    assert cli("host", "import", str(file), "--dry-run", "-o", "json").json()["new_domains"] == []
    assert list(told(["site/x", "rack/r9"], None))[:2] == [
        "new site: site/x",
        "new domains, each with a limit of 1: rack/r9",
    ]


def test_domains_are_read_from_what_was_added_and_what_changed() -> None:
    fields = ("fabric: ib-c", "feeds: a1 -> a1;b9", "site: fra1 -> (none)", "model: rack")
    change = InventoryChange(kind="added", host_id="h-9", name="gpu-009", fields=fields)
    assert named([change, change]) == ["fabric/ib-c", "feed/a1", "feed/b9"]
