"""What the board keeps of what agents say, and what it ignores."""

from __future__ import annotations

import pytest

from hostler_contract.hosts import JournalPhase, Usability
from hostler_contract.pb.hostler.v1 import agent_pb2, work_pb2
from hostler_contract.work import Token
from hostler_coordinator.board import REFUSED_MOST, TEXT_CHARACTERS_MAX, Board
from hostler_coordinator.live import ReportKind, Sighting

NOW = 1_800_000_000.0
TOKEN = work_pb2.Token(epoch=1, counter=7)


def hello(boot_id: str = "boot-1", usability: int = agent_pb2.USABILITY_USABLE) -> agent_pb2.Hello:
    return agent_pb2.Hello(
        host_id="h1",
        boot_id=boot_id,
        newest_token=TOKEN,
        facts=agent_pb2.HostFacts(hostname="gpu-1", soft_reboot_count=0),
        journal=agent_pb2.Journal(task_id="c/h1", token=TOKEN, phase=agent_pb2.JOURNAL_PHASE_INTENT),
        condition=agent_pb2.Condition(usability=usability),  # type: ignore[arg-type]
    )


def pull() -> agent_pb2.SessionRequest:
    return agent_pb2.SessionRequest(pull=agent_pb2.Pull())


def started(boot_id: str = "boot-1") -> agent_pb2.SessionRequest:
    return agent_pb2.SessionRequest(started=agent_pb2.Started(task_id="c/h1", token=TOKEN, boot_id=boot_id))


def outcome(kind: int = agent_pb2.OUTCOME_KIND_DONE, text: str = "") -> agent_pb2.SessionRequest:
    said = agent_pb2.Outcome(task_id="c/h1", token=TOKEN, kind=kind, text=text, boot_id="boot-2")  # type: ignore[arg-type]
    return agent_pb2.SessionRequest(outcome=said)


def beat(condition: agent_pb2.Condition | None = None) -> agent_pb2.SessionRequest:
    return agent_pb2.SessionRequest(heartbeat=agent_pb2.Heartbeat(sequence=1, condition=condition))


class Listener:
    """Remembers whom the board woke the engine for."""

    def __init__(self) -> None:
        self.hosts: list[str] = []

    def __call__(self, host: str) -> None:
        self.hosts.append(host)


@pytest.fixture
def woken() -> Listener:
    return Listener()


@pytest.fixture
def noted() -> Listener:
    return Listener()


@pytest.fixture
def board(woken: Listener, noted: Listener) -> Board:
    return Board(changed=woken, noted=noted)


def seen(board: Board) -> Sighting:
    return board.sightings["h1"]


def attach(board: Board, via: str = "a", session: int = 1, age_s: float = 0.0, now: float = NOW) -> None:
    board.attached("h1", via, session, hello(), age_s, now)


def test_hello_is_read_whole(board: Board, woken: Listener) -> None:
    attach(board)

    found = seen(board)
    assert (found.via, found.session, found.connected) == ("a", 1, True)
    assert (found.boot_id, found.newest_token, found.heard_at) == ("boot-1", Token(epoch=1, counter=7), NOW)
    assert found.facts.hostname == "gpu-1"
    assert (found.journal.phase, found.journal.task_id) == (JournalPhase.INTENT, "c/h1")
    assert found.condition.usability is Usability.USABLE
    assert woken.hosts == ["h1"]


def test_plain_heartbeats_wake_nobody(board: Board, woken: Listener) -> None:
    attach(board)
    board.heard("h1", "a", 1, 0.5, NOW + 5)
    board.message("h1", "a", 1, beat(), 0.0, NOW + 6)
    board.message("h1", "a", 1, beat(agent_pb2.Condition(usability=agent_pb2.USABILITY_USABLE)), 0.0, NOW + 7)

    assert seen(board).heard_at == NOW + 7
    assert woken.hosts == ["h1"]


def test_another_condition_wakes_the_engine(board: Board, woken: Listener) -> None:
    attach(board)
    board.message("h1", "a", 1, beat(agent_pb2.Condition(blocked_by="job 7")), 0.0, NOW + 1)

    assert seen(board).condition.blocked_by == "job 7"
    assert woken.hosts == ["h1", "h1"]


def test_pull_asks_for_work_until_the_session_ends(board: Board) -> None:
    attach(board)
    board.message("h1", "a", 1, pull(), 0.0, NOW)
    assert seen(board).wants_work

    board.detached("h1", "a", 1, "gone", NOW + 9)
    assert not seen(board).wants_work
    assert not seen(board).connected
    assert seen(board).heard_at == NOW


def test_report_numbers_grow_so_that_a_repetition_is_answered_again(board: Board) -> None:
    attach(board)
    for _ in range(2):
        board.message("h1", "a", 1, started(), 0.0, NOW)

    report = seen(board).report_on("c/h1", Token(epoch=1, counter=7))
    assert report is not None
    assert (report.kind, report.number, report.boot_id) == (ReportKind.STARTED, 2, "boot-1")
    assert seen(board).report_on("c/h1", Token(epoch=1, counter=8)) is None


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (agent_pb2.STEP_ACCEPTED, ReportKind.ACCEPTED),
        (agent_pb2.STEP_DRAINING, ReportKind.DRAINING),
        (agent_pb2.STEP_DRAINED, ReportKind.DRAINED),
        (agent_pb2.STEP_CHECKING, ReportKind.CHECKING),
        (agent_pb2.STEP_ACTING, ReportKind.ACTING),
        (agent_pb2.STEP_POST_BOOT, ReportKind.POST_BOOT),
    ],
)
def test_every_step_has_its_report_and_wakes_nobody(
    board: Board, woken: Listener, noted: Listener, step: agent_pb2.Step, kind: ReportKind
) -> None:
    attach(board)
    progress = agent_pb2.Progress(task_id="c/h1", token=TOKEN, step=step, detail="d")
    board.message("h1", "a", 1, agent_pb2.SessionRequest(progress=progress), 2.0, NOW)

    report = seen(board).report
    assert report is not None
    assert (report.kind, report.text, report.at) == (kind, "d", NOW - 2.0)
    assert (woken.hosts, noted.hosts) == (["h1"], ["h1"])


def refused(counter: int) -> agent_pb2.SessionRequest:
    said = outcome(agent_pb2.OUTCOME_KIND_REFUSED, "older than the newest seen")
    said.outcome.code = "stale-token"
    said.outcome.token.counter = counter
    return said


def test_fc_d10_a_stale_order_that_the_agent_refused_is_kept_beside_its_report(board: Board, woken: Listener) -> None:
    board.attached("h1", "c1", 1, hello(), 0.0, NOW)
    board.message("h1", "c1", 1, started(), 0.0, NOW)
    said = board.sightings["h1"].report
    woken.hosts.clear()
    board.message("h1", "c1", 1, refused(6), 0.0, NOW + 1)
    assert (board.sightings["h1"].report, woken.hosts[-1]) == (said, "h1")
    (order,) = board.refused.values()
    assert (order.token, order.why, order.at) == (Token(epoch=1, counter=6), "older than the newest seen", NOW + 1)
    assert order.by == "its agent (session on c1)"
    board.message("h1", "c1", 1, refused(7), 0.0, NOW + 2)  # the present one: the planner must hear of it
    report = board.sightings["h1"].report
    assert report is not None
    assert report.kind is ReportKind.REFUSED


def test_fc_d10_refused_orders_are_bounded_and_the_first_word_stands(board: Board) -> None:
    board.attached("h1", "c1", 1, hello(), 0.0, NOW)
    for counter in range(REFUSED_MOST + 5):
        board.message("h1", "c1", 1, refused(counter), 0.0, NOW + counter)
        board.message("h1", "c1", 1, refused(counter), 0.0, NOW + 9999)
    assert len(board.refused) == REFUSED_MOST
    assert [(token.counter, order.at) for (_, token), order in board.refused.items()] == [
        (counter, NOW + counter) for counter in range(5, REFUSED_MOST + 5)
    ]


def test_an_outcomes_long_text_is_marked_as_cut_and_its_boot_id_proves_nothing(board: Board) -> None:
    attach(board)
    board.message("h1", "a", 1, outcome(text="x" * 9000), 0.0, NOW)

    report = seen(board).report
    assert report is not None
    assert report.kind is ReportKind.DONE
    assert len(report.text) == TEXT_CHARACTERS_MAX
    assert report.text.endswith("(cut)")
    # Outcomes are repeated after the next boot, with the boot id of before: only a hello names the boot.
    assert seen(board).boot_id == "boot-1"


def test_words_of_a_newer_agent_are_unknown_not_guessed(board: Board, woken: Listener) -> None:
    board.attached("h1", "a", 1, hello(usability=77), 0.0, NOW)
    board.message("h1", "a", 1, outcome(kind=99), 0.0, NOW)
    board.message("h1", "a", 1, agent_pb2.SessionRequest(), 0.0, NOW)

    assert seen(board).condition.usability is Usability.UNKNOWN
    assert seen(board).facts.hostname == "gpu-1"
    assert seen(board).report is None
    assert board.unreadable == 3
    assert woken.hosts == ["h1"]


def test_an_older_session_of_the_same_coordinator_is_ignored(board: Board) -> None:
    attach(board, session=2)
    attach(board, session=1)
    board.message("h1", "a", 1, pull(), 0.0, NOW + 1)
    board.heard("h1", "a", 1, 0.0, NOW + 1)
    board.detached("h1", "a", 1, "late", NOW + 2)

    assert (seen(board).session, seen(board).connected, seen(board).wants_work) == (2, True, False)
    assert seen(board).heard_at == NOW


def test_between_coordinators_the_attach_that_opened_last_wins(board: Board) -> None:
    attach(board, via="b", session=50, now=NOW)
    attach(board, via="a", session=900, age_s=30.0, now=NOW + 1)
    assert seen(board).via == "b"

    attach(board, via="c", session=3, now=NOW + 2)
    board.detached("h1", "b", 50, "half-open until now", NOW + 3)
    board.message("h1", "b", 50, pull(), 0.0, NOW + 3)
    assert (seen(board).via, seen(board).connected, seen(board).wants_work) == ("c", True, False)


def test_a_broken_relay_disconnects_its_sessions_only(board: Board, woken: Listener, noted: Listener) -> None:
    attach(board, via="a")
    board.attached("h2", "b", 1, hello(), 0.0, NOW)
    board.forget_via("a", NOW + 20)

    assert not seen(board).connected
    assert seen(board).heard_at == NOW
    assert board.sightings["h2"].connected
    assert (woken.hosts, noted.hosts) == (["h1", "h2"], ["h1"])

    board.heard("h1", "a", 1, 0.0, NOW + 21)
    assert seen(board).heard_at == NOW


def test_after_a_broken_relay_any_number_is_taken_again(board: Board) -> None:
    attach(board, session=900)
    board.forget_via("a", NOW + 1)
    attach(board, session=5, now=NOW + 2)

    assert (seen(board).session, seen(board).connected) == (5, True)


def test_a_repeated_snapshot_keeps_report_and_pull_a_new_session_does_not(board: Board) -> None:
    attach(board)
    board.message("h1", "a", 1, pull(), 0.0, NOW)
    board.message("h1", "a", 1, started(), 0.0, NOW)
    attach(board, age_s=3.0, now=NOW + 3)
    assert seen(board).wants_work
    assert seen(board).report is not None
    assert seen(board).attached_at == NOW

    attach(board, session=2, now=NOW + 4)
    assert not seen(board).wants_work
    assert seen(board).report is None


def test_age_is_taken_off_and_never_runs_into_the_future(board: Board) -> None:
    attach(board, age_s=100.0)
    assert seen(board).heard_at == NOW - 100.0
    board.heard("h1", "a", 1, 4.0, NOW)
    assert seen(board).heard_at == NOW - 4.0
    board.heard("h1", "a", 1, -50.0, NOW)
    assert seen(board).heard_at == NOW - 4.0


def test_a_new_term_starts_empty(board: Board) -> None:
    attach(board)
    board.clear()
    assert board.sightings == {}


@pytest.mark.parametrize("odd", ["x" * 200_000, "a\nb-cdef", "\0boot-1", "no spaces here", ""])
def test_a_boot_id_of_an_odd_shape_is_unknown(board: Board, odd: str) -> None:
    board.attached("h1", "a", 1, hello(boot_id=odd), 0.0, NOW)
    assert seen(board).boot_id == ""


def test_a_token_out_of_range_is_damage_and_spoils_nothing_else(board: Board) -> None:
    said = hello()
    said.newest_token.counter = 2**63 - 1
    board.attached("h1", "a", 1, said, 0.0, NOW)
    assert seen(board).newest_token == Token()
    assert "out of range" in seen(board).journal.damage
    assert seen(board).boot_id == "boot-1"
    report = started()
    report.started.token.counter = 2**63 - 1
    board.message("h1", "a", 1, report, 0.0, NOW)
    assert seen(board).report is None


def test_facts_are_cut_and_carry_no_control_characters(board: Board) -> None:
    said = hello()
    said.facts.hostname = "gpu\n\0" + "x" * 5000
    board.attached("h1", "a", 1, said, 0.0, NOW)
    assert seen(board).facts.hostname.startswith("gpu  x")
    assert len(seen(board).facts.hostname) == 256
