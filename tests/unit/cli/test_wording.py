"""What people read: nothing twice, one host is one host, flags by their names, clear questions, no lost column."""

from __future__ import annotations

import os
import pty
import select
import time
from typing import Any

import pytest
import typer.main

from hostler_contract.campaigns import CampaignState
from hostler_contract.hosts import BmcRef
from hostler_contract.views import BmcProbe, HostWhy
from hostler_coordinator.cli import manual
from hostler_coordinator.cli.app import app
from hostler_coordinator.cli.campaign_screens import CAMPAIGN_COLUMNS, campaign_row
from hostler_coordinator.cli.errors import FLAG_OF_FIELD, Faults, Problem, usage
from hostler_coordinator.cli.host_screens import HOST_COLUMNS, host_row, why_sentence
from hostler_coordinator.cli.output import console
from hostler_coordinator.cli.tables import lay_out
from hostler_coordinator.phrases import because, counted
from unit.cli import stand_in
from unit.cli.conftest import Cli, child

COMMANDS = {" ".join(words[1:]): command for words, command in manual.walk(typer.main.get_command(app))}


def test_counts_and_states_read_as_sentences() -> None:
    assert [counted(number, "host") for number in (0, 1, 2)] == ["0 hosts", "1 host", "2 hosts"]
    assert because("paused", "paused by alice: lunch") == "paused by alice: lunch"
    assert because("aborting", "aborted by alice") == "aborting, asked for by alice"
    assert because("incomplete", "1 host proved; 1 failed") == "incomplete: 1 host proved; 1 failed"
    assert because("running", "") == "running"


def test_an_error_names_its_flag_and_says_its_sentence_once() -> None:
    assert usage("asks first", flag="--yes", fix="add --yes").as_lines() == [
        "hostler: wrong usage: asks first",
        "  next: add --yes",
    ]
    assert usage("selects nothing", flag="HOSTS").as_lines() == ["hostler: wrong usage: HOSTS: selects nothing"]
    two = Problem("INVALID_ARGUMENT", "a: x is odd; mend it", fields=(("a", "is odd; mend it"), ("b", "is too")))
    assert two.as_lines() == ["hostler: wrong usage: a: x is odd; mend it", "  b: is too"]


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (("hold", "add", "--until", "yesterday"), ("--reason", "--until", "HOSTS")),
        (("campaign", "submit", "--deadline", "5", "--soak", "x", "--force", "--yes"), ("--deadline", "--soak")),
        (("campaign", "submit", "--key", " ", "--force", "--yes"), ("--key", "HOSTS", "--reason")),
        (("campaign", "plan", "--drain-timeout", "-1s"), ("--drain-timeout", "HOSTS")),
        (("audit", "list", "--from", "x", "--to", "y"), ("--from", "--to")),
        (("brake", "release", "gpu-001", ","), ("HOST", "--reason")),
    ],
)
def test_every_fault_of_a_command_line_is_told_at_once(cli: Cli, arguments: tuple[str, ...], flags: tuple[str]) -> None:
    done = cli(*arguments)
    assert (done.status, done.out) == (2, "")
    for flag in flags:
        assert done.err.count(f"  {flag}: ") == 1, done.err


def test_only_wrong_usage_is_gathered() -> None:
    def missing() -> None:
        raise Problem("NOT_FOUND", "no such file")

    with pytest.raises(Problem, match="no such file"):
        Faults().take(missing)


def test_fields_of_the_api_are_named_by_flags_that_exist() -> None:
    known = {name for command in COMMANDS.values() for option in command.params for name in option.opts}
    known |= {str(option.metavar).strip("[].") for command in COMMANDS.values() for option in command.params}
    assert set(FLAG_OF_FIELD.values()) - known == set()


def test_what_needs_a_ticket_calls_it_so(cli: Cli, fleet: stand_in.Fleet) -> None:
    assert cli("host", "retire", "gpu-001", "--ticket", "R-1").status == 0
    assert cli("host", "retire", "gpu-002", "--rma", "R-1").status == 0
    assert {"gpu-001", "gpu-002"} <= {host.name for host in fleet.hosts.values() if host.state == "retired"}


def test_an_empty_note_is_refused_and_one_is_taken_off_by_name(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.hosts["gpu-001"] = stand_in.make_host(1, note="loose")
    for blank in ("", "  "):
        done = cli("host", "note", "gpu-001", blank)
        assert (done.status, "--remove" in done.err, fleet.hosts["gpu-001"].note) == (2, True, "loose")
    assert cli("host", "note", "gpu-001", "tight", "--remove").status == 2
    assert cli("host", "note", "gpu-001", "--remove", "--dry-run").out == "the note on gpu-001 would be taken off\n"
    assert cli("host", "note", "gpu-001", "--remove").out == "the note on gpu-001 was taken off\n"
    assert fleet.hosts["gpu-001"].note == ""


@pytest.mark.parametrize(("fault", "status"), [("auth", 4), ("credentials", 4), ("unreachable", 5), ("busy", 5)])
def test_a_bmc_that_refuses_is_no_outage_and_has_a_next_step(
    cli: Cli, fleet: stand_in.Fleet, fault: str, status: int
) -> None:
    fleet.probe = BmcProbe(fault=fault, text="Incorrect password provided", at=stand_in.server_clock())
    for arguments in (("power", "status", "gpu-001"), ("power", "verify-serial", "gpu-001"), ("locate", "gpu-001")):
        done = cli("host", *arguments)
        assert (done.status, done.out) == (status, "")
        assert "Incorrect password provided\n  next: " in done.err
    assert cli("host", "power", "status", "gpu-001", "-o", "json").json()["error"]["reason"] == fault


def test_locate_says_what_it_did_and_a_serial_gets_a_verdict(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.probe = BmcProbe(text="accepted", at=stand_in.server_clock())
    assert (
        "locate LED  on; it stays on until: hostler host locate --off gpu-001" in cli("host", "locate", "gpu-001").out
    )
    assert "unknown" not in cli("host", "locate", "gpu-001", "--off").out
    fleet.probe = BmcProbe(text="SN-1, BOARD-7", at=stand_in.server_clock())
    done = cli("host", "power", "verify-serial", "gpu-001")
    assert (done.status, "not verified" in done.out) == (0, True)
    fleet.hosts["gpu-001"] = stand_in.make_host(1, bmc=BmcRef(address="10.0.0.1", serial="sn-1"))
    assert "this is gpu-001" in cli("host", "power", "verify-serial", "gpu-001").out
    fleet.hosts["gpu-001"] = stand_in.make_host(1, bmc=BmcRef(address="10.0.0.1", serial="SN-2"))
    done = cli("host", "power", "verify-serial", "gpu-001")
    assert (done.status, done.out, "expects SN-2" in done.err) == (4, "", True)


def test_the_power_state_is_not_said_twice(cli: Cli) -> None:
    assert cli("host", "power", "status", "gpu-001").out.count("power") == 1


def test_nothing_is_what_no_host_waits_for() -> None:
    why = HostWhy(host="gpu-001", host_id="h-1", state="up", waiting_for="nothing: no work waits", as_of=1.0)
    assert why_sentence(why) == "gpu-001 is up: no work waits."
    held = why.model_copy(update={"state": "held", "waiting_for": "held by bob (hands off): a link"})
    assert why_sentence(held) == "gpu-001 is held by bob (hands off): a link."


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("wide", [False, True])
def test_a_narrow_terminal_loses_nothing(width: int, *, wide: bool) -> None:
    campaign = stand_in.make_campaign("c-1", waiting_for="fabric/ib-a is full", reason="kernel 6.8")
    text = " ".join(lay_out(CAMPAIGN_COLUMNS, [campaign_row(campaign)], wide=wide, width=width))
    for shown in ("c-1", "alice", "fabric/ib-a", *(("kernel", "k-c-1") if wide else ())):
        assert shown in text
    host = stand_in.make_host(1, serial="SN-1", charged_to=("fabric/ib-a",), note="fan replaced")
    lines = lay_out(HOST_COLUMNS, [host_row(host, None)], wide=wide, width=width)
    for shown in ("gpu-001", "ib-a", "r00", *(("SN-1", "boot-1", "10.0.0.1", "fabric/ib-a") if wide else ())):
        assert shown in " ".join(lines)


def test_by_stays_beside_a_campaign_at_80_columns_and_what_it_waits_for_goes_below() -> None:
    campaign = stand_in.make_campaign("c-tg5xxtho", waiting_for="4 hosts wait: fabric/ib-a is full: 2 of 2")
    head, row, *below = lay_out(CAMPAIGN_COLUMNS, [campaign_row(campaign)], wide=False, width=80)
    assert "BY" in head.split()
    assert "alice" in row.split()
    assert below[0].strip().startswith("waiting for: 4 hosts wait: fabric/ib-a is full")
    ended = stand_in.make_campaign("c-tg5xxtho", state=CampaignState.SUCCEEDED, waiting_for="")
    assert len(lay_out(CAMPAIGN_COLUMNS, [campaign_row(ended)], wide=False, width=80)) == 2


def test_columns_that_only_wide_shows_take_no_room_when_they_are_empty() -> None:
    rows = [host_row(stand_in.make_host(1, address=""), None)]
    (head, *_) = lay_out(HOST_COLUMNS, rows, wide=True, width=None)
    assert ("ADDRESS" in head, "BOOT ID" in head) == (False, True)


def test_a_rich_screen_is_not_wrapped_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    import sys  # noqa: PLC0415 - the captured stream

    console(sys.stdout).print("word " * 100 + "/a/path/that/stays/whole")
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_yaml_is_not_wrapped_either(cli: Cli, fleet: stand_in.Fleet) -> None:
    note = "word " * 100 + "end"
    fleet.hosts["gpu-001"] = stand_in.make_host(1, note=note)
    assert f"note: {note}\n" in cli("host", "show", "gpu-001", "-o", "yaml").out


@pytest.mark.parametrize("words", ["", "campaign", "dev", "demo", "dev up", "dev fault", "dev status", "dev down"])
def test_h_is_help_everywhere(bare_cli: Cli, words: str) -> None:
    done = bare_cli(*words.split(), "-h")
    assert done.status == 0
    assert "-h, --help" in done.out


def _talk(coordinator: stand_in.StandIn, typed: list[str], *arguments: str) -> tuple[int, str]:
    """Answer the questions of a command, one after the other; returns its exit status and what was shown."""
    leader, follower = pty.openpty()
    process = child(coordinator, *arguments, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    text, left, answered, deadline = "", list(typed), 0, time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                text += os.read(leader, 65536).decode()
            except OSError:  # the last writer has gone
                break
        if left and text.rstrip(" ").endswith(":") and len(text) > answered:
            answered = len(text) + len(left[0]) + 2
            os.write(leader, f"{left.pop(0)}\n".encode())
    status = process.wait(timeout=20)
    os.close(leader)
    return status, text


@pytest.mark.parametrize(("typed", "status"), [(["maybe", "y"], 0), (["maybe", "n"], 4), (["perhaps", ""], 4)])
def test_neither_yes_nor_no_is_asked_again(
    coordinator: stand_in.StandIn, fleet: stand_in.Fleet, typed: list[str], status: int
) -> None:
    ended, text = _talk(coordinator, typed, "host", "remove", "gpu-001")
    assert (ended, "gpu-001" in fleet.hosts) == (status, status != 0)
    assert f"'{typed[0]}' is neither yes nor no: type y to go on, or n to leave it" in text
    assert text.count("[y/N]") == 2


def test_what_is_no_number_is_asked_again(coordinator: stand_in.StandIn, fleet: stand_in.Fleet) -> None:
    status, text = _talk(coordinator, ["eight", "8"], "campaign", "submit", "--all")
    assert (status, len(fleet.submitted)) == (0, 1)
    assert "'eight' is no number" in text


def test_a_key_is_told_once(cli: Cli, fleet: stand_in.Fleet) -> None:
    done = cli("campaign", "submit", "gpu-001", "--yes")
    key: Any = fleet.submitted[0].key
    assert done.out.count(key) == 1
    assert cli("campaign", "submit", "gpu-002", "--yes", "--key", "mine").out.count("mine") == 1


def test_a_value_that_is_none_of_the_known_ones_is_told_plainly(bare_cli: Cli) -> None:
    done = bare_cli("task", "list", "c-1", "--state", "cancelled")
    assert (done.status, "Value error" in done.err) == (2, False)
    assert "'cancelled' is not one of" in done.err
    assert "'aborted'" in done.err
