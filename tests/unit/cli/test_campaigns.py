"""Campaign verbs: plan, submit with consent and key, show, steer, watch and wait."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from hostler_contract.campaigns import CampaignState
from hostler_contract.views import Campaign, Counts, DomainProgress, InFlight, RecentFailure
from unit.cli import stand_in
from unit.cli.conftest import Cli, child


def _end(state: CampaignState, **counts: int) -> Callable[[stand_in.Fleet, Campaign], None]:
    def finish(fleet: stand_in.Fleet, campaign: Campaign) -> None:
        changes = {
            "state": state,
            "counts": Counts(**counts),
            "ended_at": campaign.as_of + 1,
            "as_of": campaign.as_of + 1,
        }
        fleet.put(campaign.model_copy(update=changes))

    return finish


def test_a_plan_shows_waves_peaks_rounding_blocked_hosts_and_time(cli: Cli) -> None:
    done = cli("campaign", "plan", "gpu-001", "gpu-002")
    assert done.status == 0
    for shown in ("p-2", "fabric/ib-a", "5% of 61 = 3.05, rounded down to 3", "job 4711 of bob", "21 min", "note:"):
        assert shown in done.out
    assert "takes at least  21 min" in done.out  # as one of its hosts is blocked
    assert "FREE" in done.out


@pytest.mark.parametrize(("every", "left", "shown"), [(0, 0, "0"), (3, 3, "3 open"), (3, 1, "1 of 3 open")])
def test_a_list_tells_open_dead_letters_from_all(
    cli: Cli, fleet: stand_in.Fleet, every: int, left: int, shown: str
) -> None:
    counts = Counts(dead_letter=every, succeeded=8 - every)
    fleet.put(stand_in.make_campaign("c-1", target_count=8, counts=counts, dead_letters_open=left))
    head, row = cli("campaign", "list").out.splitlines()[:2]
    at = head.index("DEAD LETTERS")
    assert row[at : at + len("DEAD LETTERS")].strip() == shown


def test_a_plan_as_json_is_the_plan(cli: Cli) -> None:
    plan = cli("campaign", "plan", "gpu-001", "gpu-002", "-o", "json").json()
    assert (plan["plan_token"], plan["target_count"], plan["domains"][0]["peak_down"]) == ("p-2", 2, 3)


def test_submit_answers_with_the_same_document_as_show(cli: Cli, fleet: stand_in.Fleet) -> None:
    done = cli("campaign", "submit", "gpu-001", "--yes", "--reason", "kernel", "--key", "k1", "-o", "json")
    submitted = done.json()
    assert submitted == cli("campaign", "show", submitted["id"], "-o", "json").json()
    assert {"id", "key", "operation", "state", "created_at", "created_by", "reason", "limits", "counts"} <= set(
        submitted
    )
    assert {"eta", "waiting_for"} <= set(submitted)
    assert (done.status, submitted["key"], submitted["created_at"][-1]) == (0, "k1", "Z")
    assert fleet.submitted[0].confirmed is False


def test_every_limit_is_sent_as_typed(cli: Cli, fleet: stand_in.Fleet) -> None:
    done = cli(
        *(
            "campaign",
            "submit",
            "gpu-001",
            "--yes",
            "--operation",
            "reboot",
            "--mode",
            "hard",
            "--max-down",
            "fabric=3",
        ),
        *("--max-down", "total=5%", "--rate", "10/min", "--wave", "1,5,20%", "--max-failures", "3", "--deadline", "6h"),
        *("--window", "Sun 02:00-04:00 Europe/Berlin", "--soak", "90s", "--drain-timeout", "15m", "--attempts", "4"),
        *("--force", "--reason", "urgent"),
    )
    request = fleet.submitted[0].request
    limits = request.limits
    assert done.status == 0
    assert list(limits.max_down) == ["fabric=3", "total=5%"]
    assert (limits.rate, limits.waves, list(limits.max_failures)) == ("10/min", "1,5,20%", ["3"])
    assert (limits.deadline_s, limits.soak_s, limits.drain_timeout_s, limits.attempts) == (21600, 90, 900, 4)
    assert list(limits.windows) == ["Sun 02:00-04:00 Europe/Berlin"]
    assert (request.mode, request.force, request.reason) == (2, True, "urgent")


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (("--deadline", "-6h"), "--deadline"),
        (("--deadline", "6"), "--deadline"),
        (("--soak", "soon"), "--soak"),
        (("--force",), "--reason"),
        (("--key", " "), "--key"),
        (("--expect-count", "0"), "--expect-count"),
        (("--operation", "melt"), "--operation"),
        (("--max-down", "fabric=0"), "--max-down"),
    ],
)
def test_bad_flags_are_named_and_nothing_is_submitted(
    cli: Cli, fleet: stand_in.Fleet, arguments: tuple[str, ...], flag: str
) -> None:
    done = cli("campaign", "submit", "gpu-001", "--yes", *arguments)
    assert (done.status, done.out, fleet.submitted) == (2, "", [])
    assert flag in done.err


def test_without_a_terminal_and_without_yes_nothing_is_submitted(cli: Cli, fleet: stand_in.Fleet) -> None:
    done = cli("campaign", "submit", "gpu-001")
    assert (done.status, fleet.submitted) == (2, [])
    assert "--yes" in done.err


def test_a_dry_run_shows_the_plan_and_submits_nothing(cli: Cli, fleet: stand_in.Fleet) -> None:
    done = cli("campaign", "submit", "gpu-001", "--dry-run", "-o", "json")
    assert (done.status, done.json()["target_count"], fleet.submitted) == (0, 1, [])


def test_the_same_key_gives_the_same_campaign_and_says_so(cli: Cli, fleet: stand_in.Fleet) -> None:
    first = cli("campaign", "submit", "gpu-001", "--yes", "--key", "k", "-o", "json")
    again = cli("campaign", "submit", "gpu-001", "--yes", "--key", "k", "-o", "json")
    assert first.json()["id"] == again.json()["id"]
    assert "was used before" in again.err
    other = cli("campaign", "submit", "gpu-002", "--yes", "--key", "k", "-o", "json")
    assert (other.status, other.json()["error"]["holder"], len(fleet.submitted)) == (4, "c-1", 1)


def test_a_generated_key_is_printed_before_the_campaign(cli: Cli, fleet: stand_in.Fleet) -> None:
    done = cli("campaign", "submit", "gpu-001", "--yes")
    assert re.search(r"^key: cli-[0-9a-f]{16}$", done.out, re.MULTILINE)
    assert fleet.submitted[0].key in done.out


def test_a_lost_answer_is_asked_for_again_under_the_same_key(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.lost_answers["SubmitCampaign"] = 2
    done = cli("campaign", "submit", "gpu-001", "--yes", "-o", "json")
    sent = [request for name, request in fleet.asked if name == "SubmitCampaign"]
    assert (done.status, len(sent), len(fleet.campaigns)) == (0, 3, 1)
    assert len({request.key for request in sent}) == 1


def test_an_answer_that_stays_lost_names_the_key_to_repeat(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.lost_answers["SubmitCampaign"] = 99
    done = cli("--timeout", "1s", "campaign", "submit", "gpu-001", "--yes", "-o", "json")
    error = done.json()["error"]
    assert (done.status, error["code"]) == (5, "UNAVAILABLE")
    assert f"--key {fleet.submitted[0].key}" in error["fix"]


def test_a_plan_out_of_date_is_refused_with_the_difference(cli: Cli, fleet: stand_in.Fleet) -> None:
    done = cli("campaign", "submit", "gpu-001", "--yes", "--plan", "p-7")
    assert (done.status, fleet.submitted) == (4, [])
    assert "+3: gpu-121, gpu-122, gpu-123" in done.err
    assert "-1: gpu-007" in done.err


def test_wait_ends_well(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.on_submit = _end(CampaignState.SUCCEEDED, succeeded=1)
    done = cli("campaign", "submit", "gpu-001", "--yes", "--wait", "-o", "json")
    assert (done.status, done.json()["state"], done.json()["counts"]["succeeded"]) == (0, "succeeded", 1)


@pytest.mark.parametrize("state", [CampaignState.INCOMPLETE, CampaignState.FAILED, CampaignState.ABORTED])
def test_wait_ends_badly_with_one_document_and_status_1(cli: Cli, fleet: stand_in.Fleet, state: CampaignState) -> None:
    fleet.on_submit = _end(state, dead_letter=1)
    done = cli("campaign", "submit", "gpu-001", "--yes", "--wait", "-o", "json")
    assert (done.status, done.json()["state"]) == (1, state)
    for_people = cli("campaign", "submit", "gpu-002", "--yes", "--wait")
    assert for_people.status == 1
    assert "deadletter list --campaign" in for_people.err


def test_an_interrupted_wait_leaves_the_campaign_running_and_says_so(
    coordinator: stand_in.StandIn, fleet: stand_in.Fleet
) -> None:
    process = child(coordinator, "campaign", "submit", "gpu-001", "--yes", "--wait", "-o", "json")
    _until(lambda: any(name == "WatchCampaign" for name, _ in fleet.asked))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, b"Traceback" in err) == (130, False)
    assert b'"INTERRUPTED"' in out
    assert b"campaign c-1 goes on" in out
    assert fleet.campaigns["c-1"].state is CampaignState.RUNNING


def _until(holds: Callable[[], bool], bound_s: float = 20.0) -> None:
    deadline = time.monotonic() + bound_s
    while not holds():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)


def test_list_shows_every_page_and_filters_by_state(cli: Cli, fleet: stand_in.Fleet) -> None:
    for number in range(450):
        state = "paused" if number % 2 else "running"
        fleet.put(stand_in.make_campaign(f"c-{number}", state=state))
    assert len(cli("campaign", "list", "-o", "json").json()) == 450
    paused = cli("campaign", "list", "--state", "paused", "-o", "name").out.split()
    assert (len(paused), paused[0]) == (225, "c-1")


def test_steering_says_what_is_still_going_to_happen(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.put(stand_in.make_campaign("c-1"))
    rehearsed = cli("campaign", "abort", "c-1", "--dry-run", "-o", "json").json()
    assert (rehearsed["dry_run"], rehearsed["state"], fleet.campaigns["c-1"].state) == (True, "running", "running")
    paused = cli("campaign", "pause", "c-1", "--reason", "flaps")
    assert paused.out.splitlines()[0] == "3 hosts start later (gpu-002, gpu-003 ...)"
    assert cli("campaign", "resume", "c-1", "-o", "json").json()["state"] == "running"
    aborted = cli("campaign", "abort", "c-1", "--wait", "-o", "json")
    assert (aborted.status, aborted.json()["consequences"][0]["host_count"]) == (0, 12)
    refused = cli("campaign", "abort", "c-1", "-o", "json")
    assert (refused.status, refused.json()["error"]["reason"]) == (4, "ended")


def _script(fleet: stand_in.Fleet) -> None:
    """Three changes, each once the one before has been sent."""
    start = fleet.campaigns["c-1"]
    step = InFlight(host="gpu-001", step="acting", since=start.as_of)
    progress = DomainProgress(domain="fabric/ib-a", total=4, done=2, charged=1, limit=3)
    failure = RecentFailure(host="gpu-004", at=start.as_of, cause="no boot within 30 min")
    steps: tuple[dict[str, Any], ...] = (
        {"in_flight": (step,), "domains": (progress,)},
        {"failures": (failure,), "counts": Counts(succeeded=3, dead_letter=1)},
        {"state": CampaignState.INCOMPLETE, "state_reason": "dead letters remain"},
    )
    for number, changes in enumerate(steps):
        _until(lambda: bool(fleet.watched) and fleet.watched[-1] is fleet.campaigns["c-1"])
        fleet.put(fleet.campaigns["c-1"].model_copy(update={**changes, "as_of": start.as_of + number + 1}))


@pytest.fixture
def running(fleet: stand_in.Fleet) -> Iterator[None]:
    fleet.put(stand_in.make_campaign("c-1"))
    thread = threading.Thread(target=_script, args=(fleet,))
    thread.start()
    yield
    thread.join(timeout=10)


def test_watch_as_json_is_one_document_per_change(running: None, coordinator: stand_in.StandIn) -> None:
    process = child(coordinator, "campaign", "watch", "c-1", "-o", "json")
    out, err = process.communicate(timeout=30)
    documents = [json.loads(line) for line in out.splitlines()]
    assert documents[-1]["state"] == "incomplete"
    assert {document["id"] for document in documents} == {"c-1"}
    assert (process.returncode, b"Traceback" in err) == (1, False)


def test_watch_without_a_terminal_writes_a_line_per_change(running: None, cli: Cli) -> None:
    done = cli("campaign", "watch", "c-1")
    lines = done.out.splitlines()
    assert done.status == 1
    assert len(lines) == 4
    assert "in flight: gpu-001 acting" in lines[1]
    assert "failed: gpu-004 (no boot within 30 min)" in lines[2]
    assert "dead letters remain" in done.err


def test_watch_on_a_terminal_draws_bars_steps_and_failures(running: None, coordinator: stand_in.StandIn) -> None:
    leader, follower = pty.openpty()
    environment = {"TERM": "xterm", "COLUMNS": "100", "LINES": "30", "PYTHONIOENCODING": "utf-8"}
    process = child(coordinator, "campaign", "watch", "c-1", stdout=follower, stderr=follower, environment=environment)
    os.close(follower)
    drawn = _read_all(leader)
    assert process.wait(timeout=20) == 1
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)
    for shown in ("fabric/ib-a", "2/4", "down 1 of 3", "acting", "no boot within 30 min", "incomplete"):
        assert shown in text
    assert "\x1b[" in drawn


def _read_all(descriptor: int, bound_s: float = 30.0) -> str:
    parts: list[bytes] = []
    deadline = time.monotonic() + bound_s
    while time.monotonic() < deadline:
        if not select.select([descriptor], [], [], 0.5)[0]:
            continue
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # the last writer has gone
            break
        if not part:
            break
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode(errors="replace")


def test_a_broken_watch_goes_on_elsewhere(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.put(stand_in.make_campaign("c-1", state="succeeded"))
    fleet.fails["WatchCampaign"] = [stand_in.Refusal(grpc.StatusCode.UNAVAILABLE, "going away")]
    done = cli("campaign", "watch", "c-1", "-o", "json")
    assert (done.status, done.json()["state"]) == (0, "succeeded")
    assert "warning" in done.err


def test_yes_at_a_terminal_is_needed_once_and_the_count_for_all(
    coordinator: stand_in.StandIn, fleet: stand_in.Fleet
) -> None:
    for typed, count in (("3", 0), ("8", 1)):
        leader, follower = pty.openpty()
        process = child(coordinator, "campaign", "submit", "--all", stdin=follower, stdout=follower, stderr=follower)
        os.close(follower)
        os.write(leader, f"{typed}\n".encode())
        text = _read_all(leader)
        process.wait(timeout=20)
        assert "Type the number of hosts (8)" in text
        assert (process.returncode, len(fleet.submitted)) == (0 if count else 4, count)
    assert (fleet.submitted[0].confirmed, fleet.submitted[0].plan_token) == (True, "p-8")
