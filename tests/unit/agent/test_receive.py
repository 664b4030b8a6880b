"""What each message of the coordinator changes, writes down and answers; above all, which GO is no GO."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hostler_agent.decide import Act, ActState, Entry, GoTicket, Received, Situation, condition_of, hello_of, receive
from hostler_agent.session import Go, Order, Outcome, OutcomeKind, OutcomeRecorded, Progress, Step, Stop
from hostler_contract.hosts import HostFacts, JournalPhase, Usability
from hostler_contract.work import OperationKind, Token
from unit.agent.situations import NEW, NOW, OLD, TASK, entry, order, outcome, situation

ACCEPTED, INTENT, ACTING, DONE = JournalPhase.ACCEPTED, JournalPhase.INTENT, JournalPhase.ACTING, JournalPhase.DONE
TOKEN = Token(epoch=1, counter=7)


def take(at: Situation, message: Order, *, sent_after: float = NOW - 1) -> Received:
    return receive(at, message, NOW, sent_after=sent_after, supported={OperationKind.REBOOT})


def refused(found: Received) -> Outcome:
    (reply,) = found.replies
    assert isinstance(reply, Outcome)
    assert found.save is None
    return reply


# --- assignments ------------------------------------------------------------------------------------------------------


def test_an_assignment_is_written_down_before_it_is_accepted() -> None:
    found = take(situation(pulled=True), order())
    assert found.save == found.situation.entry == entry(ACCEPTED)
    assert found.replies == (Progress(task_id=TASK, token=TOKEN, step=Step.ACCEPTED),)
    assert not found.situation.pulled


def test_an_order_for_another_boot_is_refused_and_never_taken_for_done() -> None:
    at = situation(boot_id=NEW)
    found = take(at, order(boot_before=OLD))
    assert refused(found).code == "another-boot"
    assert found.situation == at


def test_the_boot_before_is_the_coordinators_when_it_names_one() -> None:
    assert take(situation(boot_id=NEW), order(boot_before=NEW)).situation.entry.boot_before == NEW
    assert take(situation(boot_id=NEW), order()).situation.entry.boot_before == NEW


STALE = [
    (Token(epoch=1, counter=8), "c-9/h1", "older counter"),
    (Token(epoch=2, counter=1), "c-9/h1", "older epoch"),
    (TOKEN, "c-9/h1", "the same token for another task"),
]


@pytest.mark.parametrize(("newest", "task", "why"), STALE, ids=[row[2] for row in STALE])
def test_an_old_token_is_refused_and_changes_nothing(newest: Token, task: str, why: str) -> None:
    at = situation(Entry(newest_token=newest, newest_task=task))
    found = take(at, order())
    assert refused(found).code == "stale-token"
    assert found.situation == at


@pytest.mark.parametrize("phase", [ACCEPTED, INTENT, ACTING])
def test_the_same_assignment_again_reports_where_we_are(phase: JournalPhase) -> None:
    at = situation(entry(phase), started_at=NOW - 1)
    found = take(at, order())
    assert found.situation == replace(at, started_at=None)
    assert found.save is None
    (reply,) = found.replies
    assert isinstance(reply, Progress)


def test_the_same_assignment_after_its_outcome_has_the_outcome_said_again() -> None:
    at = situation(entry(DONE, outcome=outcome()), outcome_said_at=NOW - 1)
    found = take(at, order())
    assert (found.situation.outcome_said_at, found.replies, found.save) == (None, (), None)


@pytest.mark.parametrize("operation", [None, OperationKind.POWER_ON, OperationKind.POWER_OFF])
def test_an_unknown_operation_is_refused_for_good(operation: OperationKind | None) -> None:
    reply = refused(take(situation(), order(operation=operation)))
    assert (reply.code, reply.permanent) == ("unknown-operation", True)


def test_a_newer_token_replaces_the_task_and_forgets_its_go_act_and_stop() -> None:
    at = situation(entry(ACTING), go=GoTicket(NOW + 9), act=Act(ActState.FAILED, NOW), stop="x", checked=True)
    found = take(at, order(token=Token(epoch=1, counter=8))).situation
    assert (found.go, found.act, found.stop, found.checked) == (None, None, None, False)
    assert (found.entry.phase, found.entry.newest_token) == (ACCEPTED, Token(epoch=1, counter=8))


def test_a_standing_mark_is_remembered_across_tasks() -> None:
    left = Entry(drained_for="c-0/h1", drain_boot=OLD)
    assert take(situation(left), order()).situation.entry.drained_for == "c-0/h1"


# --- GO ---------------------------------------------------------------------------------------------------------------


def go(**over: Any) -> Go:
    return Go(**{"task_id": TASK, "token": TOKEN, "expires_in_s": 10.0, "boot_id": OLD, **over})


@pytest.mark.parametrize("phase", [INTENT, ACTING])
def test_a_go_is_good_until_it_expires(phase: JournalPhase) -> None:
    found = take(situation(entry(phase)), go())
    assert found.situation.go == GoTicket(NOW - 1 + 10.0)
    assert found.save is None


NO_GO: list[tuple[str, dict[str, Any], dict[str, Any], float]] = [
    ("another task", {}, {"task_id": "c-2/h1"}, 0),
    ("an older token", {}, {"token": Token(epoch=1, counter=6)}, 0),
    ("a newer token", {}, {"token": Token(epoch=1, counter=8)}, 0),
    ("another boot", {}, {"boot_id": NEW}, 0),
    ("no boot", {}, {"boot_id": ""}, 0),
    ("boot unknown", {"boot_id": ""}, {}, 0),
    ("both unknown", {"boot_id": ""}, {"boot_id": ""}, 0),
    ("boot has changed", {"boot_id": NEW}, {"boot_id": NEW}, 0),
    ("not yet intended", {"given": entry(ACCEPTED)}, {}, 0),
    ("outcome known", {"given": entry(DONE, outcome=outcome())}, {}, 0),
    ("no task", {"given": Entry()}, {}, 0),
    ("stopped", {"stop": "x"}, {}, 0),
    ("command given", {"given": entry(ACTING), "act": Act(ActState.ACCEPTED, NOW)}, {}, 0),
    ("expired", {}, {"expires_in_s": 0.0}, 0),
    ("negative", {}, {"expires_in_s": -5.0}, 0),
    ("may have waited too long", {}, {}, 10.0),
]


@pytest.mark.parametrize(("at", "over", "age_s"), [row[1:] for row in NO_GO], ids=[row[0] for row in NO_GO])
def test_no_go(at: dict[str, Any], over: dict[str, Any], age_s: float) -> None:
    before = situation(**{"given": entry(INTENT), **at})
    found = take(before, go(**over), sent_after=NOW - age_s)
    assert found.situation == before
    assert found.note
    assert (found.replies, found.save) == ((), None)


# --- stop and recorded ------------------------------------------------------------------------------------------------


def stop(**over: Any) -> Stop:
    return Stop(**{"task_id": TASK, "token": TOKEN, "reason": "enough", **over})


@pytest.mark.parametrize("phase", [ACCEPTED, INTENT])
def test_stop_before_the_act_is_heeded_and_takes_the_go_away(phase: JournalPhase) -> None:
    found = take(situation(entry(phase), go=GoTicket(NOW + 9)), stop()).situation
    assert (found.stop, found.go) == ("enough", None)


def test_stop_after_the_act_is_too_late() -> None:
    at = situation(entry(ACTING))
    found = take(at, stop())
    assert found.situation == at
    assert found.replies == (Progress(task_id=TASK, token=TOKEN, step=Step.ACTING),)


def test_stop_on_another_boot_is_too_late() -> None:
    at = situation(entry(INTENT), boot_id=NEW)
    assert take(at, stop()).situation == at


def test_stop_with_an_older_token_is_not_for_this_attempt() -> None:
    at = situation(entry(INTENT))
    assert take(at, stop(token=Token(epoch=1, counter=6))) == Received(at, note="stop with the older token 1.6")


def test_stop_for_a_task_that_is_not_here_is_answered() -> None:
    reply = refused(take(situation(), stop()))
    assert (reply.kind, reply.code) == (OutcomeKind.STOPPED, "not-held")


def test_stop_after_the_outcome_has_it_said_again() -> None:
    at = situation(entry(DONE, outcome=outcome()), outcome_said_at=NOW)
    assert take(at, stop()).situation.outcome_said_at is None


def test_recorded_forgets_the_task_but_never_the_token() -> None:
    at = situation(entry(DONE, outcome=outcome(), drained_for=TASK, drain_boot=OLD), damage="journal unreadable")
    found = take(at, OutcomeRecorded(task_id=TASK, token=TOKEN))
    assert found.save == Entry(newest_token=TOKEN, newest_task=TASK, drained_for=TASK, drain_boot=OLD)
    assert found.situation.damage == ""


@pytest.mark.parametrize(
    "message",
    [
        OutcomeRecorded(task_id="c-2/h1", token=TOKEN),
        OutcomeRecorded(task_id=TASK, token=Token(epoch=1, counter=6)),
    ],
)
def test_recorded_for_another_is_not_for_us(message: OutcomeRecorded) -> None:
    at = situation(entry(DONE, outcome=outcome()))
    assert take(at, message).situation == at


def test_recorded_without_an_outcome_forgets_nothing() -> None:
    at = situation(entry(INTENT))
    assert take(at, OutcomeRecorded(task_id=TASK, token=TOKEN)).situation == at


# --- condition and hello ----------------------------------------------------------------------------------------------


def test_the_condition_says_starting_while_the_soak_runs() -> None:
    at = situation(entry(ACTING, order=order(soak_s=60.0)), boot_id=NEW, usable_since=NOW - 59)
    assert condition_of(at, NOW).usability is Usability.STARTING
    assert condition_of(at, NOW).usability_reason == "soaking for 60 s"
    assert condition_of(at, NOW + 1).usability is Usability.USABLE


def test_the_condition_says_shutting_down_once_the_command_was_accepted() -> None:
    at = situation(entry(ACTING), act=Act(ActState.ACCEPTED, NOW))
    assert condition_of(at, NOW).shutting_down
    assert not condition_of(situation(entry(ACTING), act=Act(ActState.FAILED, NOW)), NOW).shutting_down


def test_hello_carries_what_the_disk_says() -> None:
    hello = hello_of(situation(entry(INTENT), damage="d"), NOW, "id-1", HostFacts(hostname="h1"))
    assert (hello.host_id, hello.boot_id, hello.newest_token) == ("id-1", OLD, TOKEN)
    assert (hello.journal.task_id, hello.journal.phase, hello.journal.damage) == (TASK, INTENT, "d")
