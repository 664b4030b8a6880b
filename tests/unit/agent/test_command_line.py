"""The agent's command line: help with the look of the other programs, and one default for its settings."""

from __future__ import annotations

import pytest

from hostler_agent.command_line import COMMANDS, DEFAULT_CONFIG, parser


def test_help_looks_like_that_of_the_other_programs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parser().parse_args(["-h"])
    told = capsys.readouterr().out
    assert told.startswith("Usage: hostler-agent [OPTIONS] COMMAND [ARGS]...\n\n  Looks after the host it runs on.\n")
    assert told.index("\nOptions:\n") < told.index("\nCommands:\n")
    assert "{" not in told
    assert all(f"\n  {name} " in told for name, _ in COMMANDS)


@pytest.mark.parametrize("command", [name for name, _ in COMMANDS])
def test_each_command_has_an_example_and_knows_where_its_settings_are(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parser().parse_args([command]).config == DEFAULT_CONFIG
    with pytest.raises(SystemExit, match="0"):
        parser().parse_args([command, "--help"])
    told = capsys.readouterr().out
    assert f"Usage: hostler-agent {command} [OPTIONS]" in told
    assert f"  Example:\n    hostler-agent {command} --config {DEFAULT_CONFIG}\n" in told


@pytest.mark.parametrize("wrong", [[], ["explode"], ["run", "--explode"]])
def test_a_wrong_command_line_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(wrong)
    assert "Usage: hostler-agent" in capsys.readouterr().err
