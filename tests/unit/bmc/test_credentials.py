"""References to secrets: what is read, what is refused, and that no refusal quotes the secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler_coordinator.bmc.credentials import CredentialsRefusedError, parse, resolve

SECRET = "s3cret-of-the-bmc"


def write(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return f"file:{path}"


def test_json_and_two_lines_are_read(tmp_path: Path):
    as_json = write(tmp_path / "a", f'{{"username": "ADMIN", "password": "{SECRET}"}}')
    as_lines = write(tmp_path / "b", f"ADMIN\n{SECRET}\n")
    for reference in (as_json, as_lines):
        found = resolve(reference)
        assert (found.username, found.password) == ("ADMIN", SECRET)
        assert SECRET not in repr(found)


def test_blanks_in_a_password_are_part_of_it():
    assert parse("ADMIN\n two words \n", "env:X").password == " two words "


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BMC_SECRET_OF_TEST", f"ADMIN\n{SECRET}")
    assert resolve("env:BMC_SECRET_OF_TEST").password == SECRET


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_file_that_others_can_get_at_is_refused_with_the_fix(tmp_path: Path, mode: int):
    reference = write(tmp_path / "c", f"ADMIN\n{SECRET}\n", mode)
    with pytest.raises(CredentialsRefusedError, match=rf"mode {mode:04o}.*chmod 0600"):
        resolve(reference)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'{{"username": "ADMIN", "password": "{SECRET}"', "not valid JSON"),
        (f'{{"username": "ADMIN", "secret": "{SECRET}"}}', "non-empty"),
        (f'{{"username": 7, "password": "{SECRET}"}}', "non-empty"),
        (SECRET, "exactly two lines, found 1"),
        (f"ADMIN\n{SECRET}\nmore", "exactly two lines, found 3"),
        (f"\n{SECRET}", "non-empty"),
        ("", "found 0"),
    ],
)
def test_a_malformed_secret_is_refused_and_not_quoted(tmp_path: Path, text: str, reason: str):
    with pytest.raises(CredentialsRefusedError, match=reason) as refusal:
        resolve(write(tmp_path / "d", text))
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize("reference", ["vault:bmc/1", "plain", "file:", "", "FILE:/x"])
def test_an_unknown_scheme_is_refused_and_the_known_ones_named(reference: str):
    with pytest.raises(CredentialsRefusedError, match=r"env:, file:"):
        resolve(reference)


def test_missing_and_odd_files_are_refused(tmp_path: Path):
    with pytest.raises(CredentialsRefusedError, match="No such file"):
        resolve(f"file:{tmp_path}/none")
    with pytest.raises(CredentialsRefusedError, match="not a regular file"):
        resolve(f"file:{tmp_path}")
    with pytest.raises(CredentialsRefusedError, match="larger than 4096"):
        resolve(write(tmp_path / "e", "x" * 5000))
    with pytest.raises(CredentialsRefusedError, match="not set in the environment"):
        resolve("env:BMC_NOT_SET_ANYWHERE")
