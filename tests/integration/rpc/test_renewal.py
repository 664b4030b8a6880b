"""Certificates are renewed while the server runs, and handshakes under way are not harmed by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostler_coordinator.rpc.channels import Renewal, Tls

OLD, NEW = Tls(b"old", b"key", b"ca"), Tls(b"new", b"key", b"ca")


class Papers:
    """What lies on the disk now, and how often somebody looked."""

    def __init__(self) -> None:
        self.newest = OLD
        self.looks = 0
        self.missing = False

    def __call__(self) -> Tls:
        self.looks += 1
        if self.missing:
            raise FileNotFoundError
        return self.newest


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Tls]:
    """Configurations handed to gRPC, in order."""
    found: list[Tls] = []

    def configuration(tls: Tls) -> object:
        found.append(tls)
        return object()

    monkeypatch.setattr(Tls, "configuration", configuration)
    return found


def test_a_configuration_is_handed_over_once_per_renewal(made: list[Tls]) -> None:
    papers = Papers()
    renewal = Renewal(papers)
    assert [renewal() for _ in range(3)] == [None] * 3
    papers.newest = NEW
    assert renewal() is not None
    assert [renewal() for _ in range(3)] == [None] * 3
    assert (made, papers.looks) == ([NEW], 8)


def test_papers_that_cannot_be_read_leave_the_old_ones_and_are_tried_again(made: list[Tls]) -> None:
    papers = Papers()
    renewal = Renewal(papers)
    papers.missing = True
    with pytest.raises(FileNotFoundError):
        renewal()
    papers.missing, papers.newest = False, NEW
    assert renewal() is not None
    assert (made, renewal.served) == ([NEW], NEW)


def test_a_storm_of_handshakes_ends_no_server_and_meets_the_renewed_certificate() -> None:
    """With a configuration made anew for each handshake this ended by SIGSEGV within a second, each time."""
    script = Path(__file__).with_name("handshakes.py")
    done = subprocess.run(
        [sys.executable, str(script), "4"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    count, first, last = (int(word) for word in done.stdout.split())
    assert (count > 100, first, last) == (True, 0, 1)
