"""(situation, now) -> next step, as tables: every phase, what leads on from it, and what must never lead to an act."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler_agent.decide import (
    Act,
    ActState,
    Blocker,
    BlockerKind,
    DrainProgress,
    DrainState,
    Entry,
    GoTicket,
    Pauses,
    Situation,
    condition_of,
    next_step,
)
from hostler_agent.decide.next_step import UNCOUNTED
from hostler_agent.decide.steps import (
    AskForWork,
    Conclude,
    Inspect,
    Intend,
    MarkDrain,
    Perform,
    PollDrain,
    SayOutcome,
    SayPostBoot,
    SayStarted,
    Undrain,
    Wait,
)
from hostler_agent.session import OutcomeKind
from hostler_contract.hosts import JournalPhase, Usability
from hostler_contract.work import OperationKind
from unit.agent.situations import NEW, NOW, OLD, TASK, entry, order, outcome, situation

PAUSES = Pauses()
ACCEPTED, INTENT, ACTING, DONE = JournalPhase.ACCEPTED, JournalPhase.INTENT, JournalPhase.ACTING, JournalPhase.DONE
PERSON = Blocker(BlockerKind.PERSON, "logged in: grace on pts/0")
GPU = Blocker(BlockerKind.GPU_PROCESS, "GPU in use by train (pid 7)")
LOCK = Blocker(BlockerKind.INHIBITOR, "inhibited by installer (pid 1844): update in progress")


def step(**over: Any) -> object:
    return next_step(situation(**over), NOW, PAUSES)


IDLE: list[tuple[str, dict[str, Any], object]] = [
    ("asks for work", {}, AskForWork()),
    ("asks once", {"pulled": True}, Wait("asked for work")),
    ("not detached", {"attached": False}, Wait("no coordinator")),
    ("not while shutting down", {"shutting_down": True}, Wait("host is shutting down")),
    ("not while starting", {"usability": Usability.STARTING, "usability_reason": "x"}, Wait("host is starting: x")),
    ("not while unknown", {"usability": Usability.UNKNOWN, "usability_reason": "x"}, Wait("host is unknown: x")),
    ("not while unusable", {"usability": Usability.UNUSABLE, "usability_reason": "x"}, Wait("host is unusable: x")),
    ("pauses after a refusal", {"pull_after": NOW + 3}, Wait("pause after a refusal", NOW + 3)),
    ("pause over", {"pull_after": NOW}, AskForWork()),
    ("old mark, other boot", {"given": Entry(drained_for="c-0/h1", drain_boot=NEW)}, Undrain("c-0/h1")),
    ("old mark, same boot: stays", {"given": Entry(drained_for="c-0/h1", drain_boot=OLD)}, AskForWork()),
    ("old mark, boot unknown: stays", {"given": Entry(drained_for="c/h", drain_boot=NEW), "boot_id": ""}, AskForWork()),
    (
        "old mark stays while not usable",
        {"given": Entry(drained_for="c/h", drain_boot=NEW), "usability": Usability.UNUSABLE},
        Wait("host is unusable: "),
    ),
]


@pytest.mark.parametrize(("over", "expected"), [row[1:] for row in IDLE], ids=[row[0] for row in IDLE])
def test_without_a_task(over: dict[str, Any], expected: object) -> None:
    assert step(**over) == expected


def draining(state: DrainState, since: float = NOW - 10, polled_at: float | None = NOW - 10) -> dict[str, Any]:
    return {"can_drain": True, "drain": DrainProgress(state, since, polled_at, "job 17 runs")}


PREPARING: list[tuple[str, dict[str, Any], object]] = [
    ("looks before the intent", {}, Inspect()),
    ("writes the intent", {"checked": True}, Intend()),
    ("also without a coordinator", {"checked": True, "attached": False}, Intend()),
    ("a person blocks", {"blockers": (PERSON,)}, Conclude(OutcomeKind.REFUSED, "blocked", PERSON.who)),
    ("a GPU process blocks", {"blockers": (GPU,)}, Conclude(OutcomeKind.REFUSED, "blocked", GPU.who)),
    ("a lock inhibits", {"blockers": (LOCK,)}, Conclude(OutcomeKind.REFUSED, "inhibited", LOCK.who)),
    (
        "both are named",
        {"blockers": (GPU, LOCK)},
        Conclude(OutcomeKind.REFUSED, "blocked", f"{GPU.who}; {LOCK.who}"),
    ),
    ("force overrides", {"given": entry(order=order(force=True)), "blockers": (PERSON, GPU, LOCK)}, Inspect()),
    ("a drain comes first", {"can_drain": True, "blockers": (PERSON, GPU)}, MarkDrain()),
    ("force drains as well", {"given": entry(order=order(force=True)), "can_drain": True}, MarkDrain()),
    ("polls", draining(DrainState.MARKED), PollDrain()),
    ("polls a first time", draining(DrainState.MARKED, polled_at=None), PollDrain()),
    (
        "waits between polls",
        draining(DrainState.MARKED, polled_at=NOW - 1),
        Wait("draining: job 17 runs", NOW + 1),
    ),
    (
        "drain too long",
        draining(DrainState.MARKED, since=NOW - 60),
        Conclude(OutcomeKind.FAILED, "drain-timeout", "not empty after 60 s: job 17 runs"),
    ),
    (
        "default drain timeout",
        {"given": entry(order=order(drain_timeout_s=0.0)), **draining(DrainState.MARKED, since=NOW - 900)},
        Conclude(OutcomeKind.FAILED, "drain-timeout", "not empty after 900 s: job 17 runs"),
    ),
    ("drain failed", draining(DrainState.FAILED), Conclude(OutcomeKind.FAILED, "drain-failed", "job 17 runs")),
    ("drained: people do not block", {**draining(DrainState.EMPTY), "blockers": (PERSON,)}, Inspect()),
    (
        "drained: a leftover process does",
        {**draining(DrainState.EMPTY), "blockers": (GPU,)},
        Conclude(OutcomeKind.REFUSED, "blocked", GPU.who),
    ),
    ("stopped", {"stop": "enough"}, Conclude(OutcomeKind.STOPPED, "stopped", "enough")),
    (
        "stopped while draining",
        {"stop": "enough", **draining(DrainState.MARKED)},
        Conclude(OutcomeKind.STOPPED, "stopped", "enough"),
    ),
    ("another task's mark first", {"given": entry(drained_for="c-0/h1", drain_boot=OLD)}, Undrain("c-0/h1")),
    ("a GO changes nothing here", {"go": GoTicket(NOW + 9)}, Inspect()),
]


@pytest.mark.parametrize(("over", "expected"), [row[1:] for row in PREPARING], ids=[row[0] for row in PREPARING])
def test_accepted(over: dict[str, Any], expected: object) -> None:
    assert step(**{"given": entry(), **over}) == expected


def test_accepted_with_a_boot_id_that_cannot_be_read_is_refused() -> None:
    found = step(given=entry(), boot_id="")
    assert isinstance(found, Conclude)
    assert (found.kind, found.code) == (OutcomeKind.REFUSED, "boot-id-unknown")


GO = GoTicket(NOW + 5)
INTENDED: list[tuple[str, dict[str, Any], object]] = [
    ("says started", {}, SayStarted()),
    ("repeats it", {"started_at": NOW - 2}, SayStarted()),
    ("not too often", {"started_at": NOW - 1}, Wait("waiting for GO", NOW + 1)),
    ("waits for a coordinator", {"attached": False}, Wait("waiting for GO; no coordinator")),
    ("acts on GO", {"go": GO}, Perform()),
    ("acts on GO though detached meanwhile", {"go": GO, "attached": False}, Perform()),
    ("an expired GO is none", {"go": GoTicket(NOW), "started_at": NOW - 1}, Wait("waiting for GO", NOW + 1)),
    ("stop wins over GO", {"go": GO, "stop": "x"}, Conclude(OutcomeKind.STOPPED, "stopped", "x")),
    ("no GO yet", {"waiting_since": NOW - 299, "started_at": NOW - 1}, Wait("waiting for GO", NOW + 1)),
    ("intents expire", {"waiting_since": NOW - 300}, Conclude(OutcomeKind.REFUSED, "no-go", "no GO came within 300 s")),
    ("boot id unreadable: no act", {"go": GO, "boot_id": ""}, Wait("boot id cannot be read")),
]


@pytest.mark.parametrize(("over", "expected"), [row[1:] for row in INTENDED], ids=[row[0] for row in INTENDED])
def test_intent(over: dict[str, Any], expected: object) -> None:
    assert step(**{"given": entry(INTENT), **over}) == expected


def acted(state: ActState, ago_s: float = 10.0, text: str = "") -> dict[str, Any]:
    return {"act": Act(state, NOW - ago_s, text)}


STILL_UP = Conclude(OutcomeKind.FAILED, "still-up", "reboot command accepted, host still up")
SOFT = Conclude(OutcomeKind.FAILED, "soft-reboot", "userspace restarted, kernel did not")
ACTED: list[tuple[str, dict[str, Any], object]] = [
    ("after a restart: asks for GO again", {}, SayStarted()),
    ("a fresh GO leads on", {"go": GO}, Perform()),
    ("stop is too late", {"stop": "x", "started_at": NOW}, Wait("waiting for GO", NOW + 2)),
    ("no GO for long: not in progress for ever", {"waiting_since": NOW - 300}, "still-up"),
    ("accepted", acted(ActState.ACCEPTED), Wait("shutting down", NOW + 290)),
    ("accepted, a GO changes nothing", {**acted(ActState.ACCEPTED), "go": GO}, Wait("shutting down", NOW + 290)),
    ("accepted, still up", acted(ActState.ACCEPTED, 300), STILL_UP),
    ("failed", acted(ActState.FAILED, text="boo"), Conclude(OutcomeKind.FAILED, "reboot-command-failed", "boo")),
    ("inhibited", acted(ActState.INHIBITED, text="who"), Conclude(OutcomeKind.REFUSED, "inhibited", "who")),
    (
        "not permitted",
        acted(ActState.NOT_PERMITTED, text="polkit"),
        Conclude(OutcomeKind.FAILED, "not-permitted", "polkit", permanent=True),
    ),
    ("soft reboot counted", {"given": entry(ACTING, soft_reboots=0), "soft_reboots": 1}, SOFT),
    ("soft reboots unknown now", {"given": entry(ACTING, soft_reboots=0), "soft_reboots": -1}, SayStarted()),
    ("soft reboots unknown before", {"given": entry(ACTING, soft_reboots=-1), "soft_reboots": 3}, SayStarted()),
    ("soft reboots as before", {"given": entry(ACTING, soft_reboots=2), "soft_reboots": 2}, SayStarted()),
    ("userspace is younger", {"given": entry(ACTING, userspace_start="5"), "userspace_start": "9"}, SOFT),
    ("userspace unknown", {"given": entry(ACTING, userspace_start="5"), "userspace_start": ""}, SayStarted()),
]


@pytest.mark.parametrize(("over", "expected"), [row[1:] for row in ACTED], ids=[row[0] for row in ACTED])
def test_acting(over: dict[str, Any], expected: object) -> None:
    found = step(**{"given": entry(ACTING), **over})
    assert (found.code if isinstance(expected, str) and isinstance(found, Conclude) else found) == expected


def test_fc_a06_the_old_boot_is_never_done_however_long_it_takes() -> None:
    at = situation(entry(ACTING, order=order(shutdown_timeout_s=3600.0)), act=Act(ActState.ACCEPTED, NOW))
    for minutes in (1, 9, 16, 59):
        assert next_step(at, NOW + minutes * 60, PAUSES) == Wait("shutting down", NOW + 3600)
    back = replace(at, boot_id=NEW, act=None, usable_since=NOW + 1020, post_boot_said=True)
    found = next_step(back, NOW + 1021, PAUSES)
    assert isinstance(found, Conclude)
    assert found.kind is OutcomeKind.DONE


def test_fc_a07_a_soft_reboot_is_not_a_reboot() -> None:
    assert step(given=entry(ACTING, soft_reboots=0), soft_reboots=1) == SOFT


DONE_STEP = Conclude(OutcomeKind.DONE, "rebooted", f"boot id changed from {OLD}")
SOAKING = entry(ACTING, order=order(soak_s=100.0))
PROVING: list[tuple[str, dict[str, Any], object]] = [
    ("says it is back", {"post_boot_said": False}, SayPostBoot()),
    ("done when usable", {}, DONE_STEP),
    ("done without a coordinator", {"attached": False}, DONE_STEP),
    ("not while starting", {"usability": Usability.STARTING, "usability_reason": "x"}, "rebooted; host is starting: x"),
    ("not while unknown", {"usability": Usability.UNKNOWN, "usability_reason": "x"}, "rebooted; host is unknown: x"),
    ("not while unusable", {"usability": Usability.UNUSABLE, "usability_reason": "x"}, "rebooted; host is unusable: x"),
    ("soaks", {"given": SOAKING, "usable_since": NOW - 99}, Wait("rebooted; soaking for 100 s", NOW + 1)),
    ("soaked", {"given": SOAKING, "usable_since": NOW - 100}, DONE_STEP),
    ("undoes our mark first", {"given": entry(ACTING, drained_for=TASK, drain_boot=OLD)}, Undrain(TASK)),
    (
        "waits to undo again",
        {"given": entry(ACTING, drained_for=TASK), "undo_after": NOW + 2, "undo_text": "no"},
        Wait("our drain mark could not be undone: no", NOW + 2),
    ),
    ("from the intent as well", {"given": entry(INTENT)}, DONE_STEP),
    ("from accepted as well", {"given": entry(ACCEPTED)}, DONE_STEP),
    ("a stop does not undo a boot", {"stop": "x"}, DONE_STEP),
    ("a GO does not matter any more", {"go": GO}, DONE_STEP),
]


@pytest.mark.parametrize(("over", "expected"), [row[1:] for row in PROVING], ids=[row[0] for row in PROVING])
def test_on_another_boot(over: dict[str, Any], expected: object) -> None:
    found = step(**{"given": entry(ACTING), "boot_id": NEW, "post_boot_said": True, **over})
    assert (found.why if isinstance(expected, str) and isinstance(found, Wait) else found) == expected


ENDED: list[tuple[str, dict[str, Any], object]] = [
    ("says it", {}, SayOutcome()),
    ("repeats it", {"outcome_said_at": NOW - 10}, SayOutcome()),
    ("not too often", {"outcome_said_at": NOW - 4}, Wait("outcome not yet recorded", NOW + 6)),
    ("waits for a coordinator", {"attached": False}, Wait("no coordinator to report the outcome to")),
    ("undoes our mark first", {"given": entry(DONE, outcome=outcome(), drained_for=TASK)}, Undrain(TASK)),
    (
        "a host stuck in its shutdown stays drained",
        {"given": entry(DONE, outcome=outcome(OutcomeKind.FAILED, "still-up"), drained_for=TASK)},
        SayOutcome(),
    ),
    ("never acts again", {"go": GO, "boot_id": OLD}, SayOutcome()),
]


@pytest.mark.parametrize(("over", "expected"), [row[1:] for row in ENDED], ids=[row[0] for row in ENDED])
def test_with_an_outcome(over: dict[str, Any], expected: object) -> None:
    assert step(**{"given": entry(DONE, outcome=outcome()), **over}) == expected


situations = st.builds(
    Situation,
    entry=st.builds(
        entry,
        st.sampled_from([ACCEPTED, INTENT, ACTING, DONE]),
        outcome=st.sampled_from([None, outcome()]),
        drained_for=st.sampled_from(["", TASK, "c-0/h1"]),
        soft_reboots=st.integers(-1, 2),
    ),
    boot_id=st.sampled_from(["", OLD, NEW]),
    soft_reboots=st.integers(-1, 2),
    usability=st.sampled_from(list(Usability)),
    usable_since=st.sampled_from([None, NOW - 5]),
    blockers=st.sampled_from([(), (PERSON,), (GPU,)]),
    can_drain=st.booleans(),
    attached=st.booleans(),
    checked=st.booleans(),
    go=st.sampled_from([None, GoTicket(NOW - 1), GO]),
    stop=st.sampled_from([None, "x"]),
    act=st.sampled_from([None, Act(ActState.ACCEPTED, NOW - 1), Act(ActState.FAILED, NOW - 1, "x")]),
)


@given(situations)
def test_no_act_without_a_fresh_go_on_the_boot_of_a_durable_intent(at: Situation) -> None:
    if isinstance(next_step(at, NOW, PAUSES), Perform):
        assert at.go == GO
        assert at.entry.phase in {INTENT, ACTING}
        assert at.entry.boot_before == at.boot_id == OLD
        assert at.entry.outcome is None
        assert at.act is None
        assert at.stop is None or at.entry.phase is ACTING


@given(situations)
def test_done_only_on_another_boot_that_is_usable_with_our_mark_gone(at: Situation) -> None:
    found = next_step(at, NOW, PAUSES)
    if isinstance(found, Conclude) and found.kind is OutcomeKind.DONE:
        assert at.boot_id == NEW
        assert at.usability is Usability.USABLE
        assert at.entry.drained_for == ""
        assert at.usable_since is not None


@given(situations)
def test_what_waits_says_why_and_never_for_the_past(at: Situation) -> None:
    found = next_step(at, NOW, PAUSES)
    if isinstance(found, Wait):
        assert found.why
        assert found.until is None or found.until > NOW


COUNTED = "soft reboots counted: 0 -> 1; boot id unchanged"
SOFT_IN_VAIN = Conclude(OutcomeKind.FAILED, "still-up", "soft reboot command accepted, user space did not restart")
SOFT_UNKNOWN = Conclude(OutcomeKind.REFUSED, "soft-reboots-unknown", UNCOUNTED)
SOFT_ORDER = order(operation=OperationKind.SOFT_REBOOT, soak_s=10.0)


def soft(phase: JournalPhase = ACTING, **over: Any) -> object:
    """The next step of a soft reboot whose journal counts 0 before, on the same boot."""
    given = entry(phase, order=SOFT_ORDER, soft_reboots=0, userspace_start="100")
    return step(given=given, **{"soft_reboots": 1, "userspace_start": "900", "post_boot_said": True, **over})


SOFT_STEPS: list[tuple[str, dict[str, Any], object]] = [
    ("says it is back", {"post_boot_said": False}, SayPostBoot()),
    ("done when usable and soaked", {}, Conclude(OutcomeKind.DONE, "userspace-restarted", COUNTED)),
    ("soaks", {"usable_since": NOW - 4}, Wait("user space restarted; soaking for 10 s", NOW + 6)),
    ("not while starting", {"usability": Usability.STARTING, "usability_reason": "x"}, "user space restarted; host is"),
    ("the count says no", {"soft_reboots": 0, "act": Act(ActState.ACCEPTED, NOW)}, "shutting down"),
    ("in vain", {"soft_reboots": 0, "act": Act(ActState.ACCEPTED, NOW - 400)}, SOFT_IN_VAIN),
    ("a whole reboot ends it", {"boot_id": NEW, "soft_reboots": 0}, DONE_STEP),
    ("another's restart before the act is none of ours", {"phase": INTENT}, SayStarted()),
    ("accepted: the count must be known", {"phase": ACCEPTED, "soft_reboots": -1}, SOFT_UNKNOWN),
]


@pytest.mark.parametrize(("changes", "expected"), [row[1:] for row in SOFT_STEPS], ids=[row[0] for row in SOFT_STEPS])
def test_fc_a07_a_soft_reboot_that_was_ordered(changes: dict[str, Any], expected: object) -> None:
    found = soft(**changes)
    if isinstance(expected, str):
        assert isinstance(found, Wait)
        assert found.why.startswith(expected)
    else:
        assert found == expected


def test_fc_a07_while_it_soaks_the_host_is_not_called_usable() -> None:
    given = entry(ACTING, order=SOFT_ORDER, soft_reboots=0)
    told = condition_of(situation(given, soft_reboots=1, usable_since=NOW - 4), NOW)
    assert (told.usability, told.usability_reason) == (Usability.STARTING, "soaking for 10 s")
    assert condition_of(situation(given, soft_reboots=1, usable_since=NOW - 40), NOW).usability is Usability.USABLE
