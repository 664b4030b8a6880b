"""The surface itself: every verb of the acceptance page, help with an example, the manual, completion, hand-over."""

from __future__ import annotations

import re

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

from hostler_coordinator.cli import manual
from hostler_coordinator.cli.app import app
from hostler_coordinator.cli.entry import asked_format
from hostler_coordinator.cli.tables import clean, facts
from unit.cli import stand_in
from unit.cli.conftest import ROOT, Cli, child

COMMANDS = {" ".join(words[1:]): command for words, command in manual.walk(typer.main.get_command(app))}

VERBS = """
campaign submit|plan|list|show|watch|pause|resume|abort
task list|show|retry
host list|show|why|drain|undrain|reboot|power|locate|note|retire|rebind|remove|import
fabric list|show
domain list|show|set-budget
deadletter list|show|retry|resolve
hold add|list|remove
audit list|export
brake release
"""

LOOKING = {"list", "show", "why", "watch", "plan", "export"}


def test_every_verb_of_the_acceptance_page_exists_and_no_other_noun() -> None:
    wanted = {f"{line.split()[0]} {verb}" for line in VERBS.strip().splitlines() for verb in line.split()[1].split("|")}
    assert set(COMMANDS) == wanted | {"status", "demo", "dev"}


@pytest.mark.parametrize("words", sorted(set(COMMANDS) - {"demo", "dev"}))
def test_help_has_an_example_that_calls_this_very_command(words: str) -> None:
    done = CliRunner().invoke(app, [*words.split(), "--help"])
    assert done.exit_code == 0
    example = done.output.split("Example:")[1].split("Arguments:")[0].split("Options:")[0]
    assert f"hostler {words}" in example
    assert "--profile FILE" in done.output


@pytest.mark.parametrize("words", sorted(set(COMMANDS) - {"demo", "dev", "status"}))
def test_what_changes_something_can_be_rehearsed_and_given_a_reason(words: str) -> None:
    flags = {name for option in COMMANDS[words].params for name in option.opts}
    if words.rsplit(maxsplit=1)[-1] in LOOKING:
        assert "--dry-run" not in flags
    else:
        assert {"--dry-run", "--reason"} <= flags


def test_the_manual_is_fresh() -> None:
    assert (ROOT / "docs/cli.md").read_text() == manual.page(), (
        "run python -m hostler_coordinator.cli.manual > docs/cli.md"
    )


def test_completion_is_offered(coordinator: stand_in.StandIn) -> None:
    environment = {"_HOSTLER_COMPLETE": "complete_bash", "COMP_WORDS": "hostler campaign su", "COMP_CWORD": "2"}
    process = child(coordinator, environment=environment)
    out, _ = process.communicate(timeout=20)
    assert out.split() == [b"submit"]


def test_a_noun_alone_shows_its_verbs(bare_cli: Cli) -> None:
    done = bare_cli("campaign")
    assert (done.status, done.out) == (2, "")
    assert "submit" in done.err


def test_a_wrong_verb_names_the_help(bare_cli: Cli) -> None:
    done = bare_cli("campaign", "shw")
    assert done.status == 2
    assert "hostler campaign --help" in done.err


def test_the_last_format_given_counts_even_when_the_rest_is_wrong() -> None:
    assert asked_format(["-o", "json", "x"], "") == "json"
    assert asked_format(["x", "--output=yaml", "-ojson"], "") == "json"
    assert asked_format(["x", "--", "-o", "json"], "wide") == "wide"
    assert asked_format(["-o", "bogus"], "") == "table"


def test_texts_from_hosts_cannot_steer_the_terminal(cli: Cli, fleet: stand_in.Fleet) -> None:
    fleet.hosts["gpu-001"] = stand_in.make_host(1, note="\x1b[2Jgone\nnext\u202eline")
    shown = cli("host", "show", "gpu-001").out
    assert not re.search(r"[\x1b\u202e]", shown)
    assert clean("a\x07b\nc") == "a\N{REPLACEMENT CHARACTER}b c"


def test_facts_wrap_below_their_value() -> None:
    lines = list(facts((("name", "one two three four five six seven"), ("empty", "")), width=26))
    assert lines == ["name  one two three four", "      five six seven"]


def test_the_command_line_knows_nothing_of_the_coordinators_inside() -> None:
    allowed = {"cli", "durations", "phrases", "refusals", "transport_words"}
    for path in sorted((ROOT / "coordinator/hostler_coordinator/cli").glob("*.py")):
        rooms = set(re.findall(r"^from hostler_coordinator\.(\w+)", path.read_text(), re.MULTILINE))
        assert rooms <= allowed, path.name


def test_yaml_is_what_json_is(cli: Cli) -> None:
    as_yaml = yaml.safe_load(cli("host", "show", "gpu-001", "-o", "yaml").out)
    assert as_yaml == cli("host", "show", "gpu-001", "-o", "json").json()
