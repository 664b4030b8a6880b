"""Finding an etcd: what is refused, what is warned of, and what is said when there is none to be had."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hostler_coordinator.dev import debian
from hostler_coordinator.dev.etcd_server import EtcdUnusable, find_etcd, production_warning, refusal


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("patch", [0, 1, 2])
def test_versions_that_lose_writes_are_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: int
) -> None:
    named = program(tmp_path / "etcd", f"echo 'etcd Version: 3.5.{patch}'")
    monkeypatch.setenv("HOSTLER_ETCD", str(named))
    with pytest.raises(EtcdUnusable, match=rf"3\.5\.{patch}: .*issue 13766"):
        find_etcd()


def test_versions_below_the_production_minimum_are_warned_of() -> None:
    assert refusal((3, 4, 23)) is None
    assert "3.5.16" in (production_warning((3, 4, 23)) or "")
    assert production_warning((3, 5, 16)) is None
    assert refusal((3, 4, 21)) is not None


def test_a_named_program_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_ETCD", str(tmp_path / "missing"))
    with pytest.raises(EtcdUnusable, match="cannot be run"):
        find_etcd()
    monkeypatch.setenv("HOSTLER_ETCD", str(program(tmp_path / "other", "echo hello")))
    with pytest.raises(EtcdUnusable, match="does not say its version"):
        find_etcd()


def test_path_comes_before_fetching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(tmp_path / "etcd", "echo 'etcd Version: 3.5.16'")
    monkeypatch.delenv("HOSTLER_ETCD", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_etcd().path == found
    assert find_etcd().version == (3, 5, 16)


def test_without_apt_the_message_names_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(debian.FetchFailed, match=r"etcd-server: apt-get is not on PATH; .*\$HOSTLER_ETCD"):
        debian.fetch(["etcd-server"], tmp_path / "tools")


def test_missing_lists_are_fetched_into_a_private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    bin_folder = tmp_path / "bin"
    program(
        bin_folder / "apt-get",
        f'echo "$*" >> {tmp_path}/calls\n'
        f'case "$*" in *update*) : > {tmp_path}/updated ;;\n'
        f'*download*) [ -e {tmp_path}/updated ] || {{ echo "E: Unable to locate package" >&2; exit 100; }}\n'
        ": > some_1.deb ;; esac",
    )
    program(bin_folder / "dpkg", 'echo file > "$3/file"')
    monkeypatch.setenv("PATH", str(bin_folder))
    root = debian.fetch(["some"], tmp_path / "tools")
    assert (root / "file").read_text(encoding="utf-8") == "file\n"
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert [call.rsplit(" ", 2)[-1] for call in calls] == ["some", "update", "some"]
    assert f"Dir::State::lists={tmp_path}/tools/" in calls[1]
    assert debian.fetch(["some"], tmp_path / "tools") == root
    assert len((tmp_path / "calls").read_text(encoding="utf-8").splitlines()) == 3
    assert sorted(path.name for path in (tmp_path / "tools").iterdir()) == [".lock", "some"]


def test_a_failed_fetch_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin/apt-get", 'echo "E: no network" >&2; exit 100')
    program(tmp_path / "bin/dpkg", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(debian.FetchFailed, match="some: `apt-get` ended with 100: E: no network"):
        debian.fetch(["some"], tmp_path / "tools")
    assert [path.name for path in (tmp_path / "tools").iterdir()] == [".lock"]
