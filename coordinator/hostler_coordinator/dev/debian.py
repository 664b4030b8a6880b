"""Programs out of Debian packages without root: download, extract, hand back the folder. What the programs do,
and where else they might be found, is their callers' affair.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

COMMAND_TIMEOUT_S = 240.0
LOCK_WAIT_S = 300.0
_LOCK_POLL_S = 0.2
_REASON_LINES_MAX = 4


class FetchFailed(RuntimeError):
    """Packages could not be had: names them, says why, and what to do next."""

    def __init__(self, packages: Sequence[str], reason: str, next_step: str) -> None:
        self.packages = tuple(packages)
        self.reason = reason
        self.next_step = next_step
        super().__init__(f"cannot fetch {', '.join(packages)}: {reason}; {next_step}")


def tools_dir() -> Path:
    """Where fetched tools live: ``$HOSTLER_TOOLS_DIR``, else a folder of the running Python environment."""
    named = os.environ.get("HOSTLER_TOOLS_DIR")
    return Path(named) if named else Path(sys.prefix) / "share" / "hostler" / "tools"


def fetch(packages: Sequence[str], into: Path) -> Path:
    """Extract Debian packages below ``into`` and return the root of their files (``root / "usr/bin/…"``).

    Needs no root rights and changes nothing outside ``into``. A second call returns the first one's result at once. Two
    processes may call it together: one fetches, the other waits for at most ``LOCK_WAIT_S``. Dependencies are not
    resolved: name every package that is wanted.

    Raises:
        FetchFailed: with the packages, the reason and the next step.
    """
    if not packages:
        raise ValueError("name at least one package")
    root = into / "+".join(packages)
    if root.is_dir():
        return root
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise FetchFailed(packages, f"{tool} is not on PATH", _install_hint(packages))
    try:
        into.mkdir(parents=True, exist_ok=True)
        with _locked(into / ".lock", packages):
            if not root.is_dir():  # else another process fetched it while this one waited
                _fetch_into(packages, into, root)
    except OSError as error:
        raise FetchFailed(
            packages, str(error), f"make {into} writable or set $HOSTLER_TOOLS_DIR to a folder that is"
        ) from error
    return root


def _fetch_into(packages: Sequence[str], into: Path, root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=into) as name:
        work = Path(name)
        downloads, extracted = work / "downloads", work / "root"
        downloads.mkdir()
        extracted.mkdir()
        _download(packages, work, downloads)
        for archive in sorted(downloads.glob("*.deb")):
            _run(packages, ["dpkg", "-x", str(archive), str(extracted)], work)
        extracted.rename(root)  # the one visible step: a half-extracted folder never has the final name


def _download(packages: Sequence[str], work: Path, downloads: Path) -> None:
    """Use the system's package lists; where they are missing or stale, private ones fetched into ``work``."""
    try:
        _run(packages, ["apt-get", "download", *packages], downloads)
    except FetchFailed:
        for partial in downloads.iterdir():
            partial.unlink()
        private = _private_state(work)
        _run(packages, ["apt-get", *private, "-qq", "update"], work)
        _run(packages, ["apt-get", *private, "download", *packages], downloads)


def _private_state(work: Path) -> list[str]:
    """Options that keep everything apt writes inside ``work``, so that no rights are needed and nothing is changed."""
    for folder in ("lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    settings = {
        "Dir::State::lists": work / "lists",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "",  # as root, apt would drop to a user that cannot enter a private folder
        "APT::Update::Post-Invoke-Success::": "",
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def _run(packages: Sequence[str], command: Sequence[str], folder: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    if os.geteuid() != 0:  # root's apt drops to another user, who could not enter this folder
        environment["TMPDIR"] = str(folder)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        reason = f"`{command[0]}` did not end within {COMMAND_TIMEOUT_S:.0f} s"
        raise FetchFailed(packages, reason, "check that the package mirror answers, then try again") from error
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        said = [line for line in lines if line.startswith(("E:", "dpkg"))] or lines
        reason = f"`{command[0]}` ended with {done.returncode}: {' '.join(said[-_REASON_LINES_MAX:]) or 'no message'}"
        raise FetchFailed(packages, reason, _install_hint(packages))


def _install_hint(packages: Sequence[str]) -> str:
    hint = f"run `apt-get update && apt-get install {' '.join(packages)}` as root"
    return f"{hint}, or set $HOSTLER_ETCD to an etcd binary" if "etcd-server" in packages else hint


@contextlib.contextmanager
def _locked(path: Path, packages: Sequence[str]) -> Iterator[None]:
    """Hold the folder's lock; the kernel lets go of it when this process dies."""
    give_up_at = time.monotonic() + LOCK_WAIT_S
    with path.open("a", encoding="utf-8") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > give_up_at:
                    reason = f"another process has held {path} for more than {LOCK_WAIT_S:.0f} s"
                    raise FetchFailed(packages, reason, "end that process, then try again") from error
                time.sleep(_LOCK_POLL_S)
        yield
