"""Certificates are renewed while the server runs, and handshakes under way are not harmed by it."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostler_coordinator import pki
from hostler_coordinator.rpc.channels import Renewal, Tls


class Papers:
    """What lies on the disk now."""

    def __init__(self, folder: Path) -> None:
        authority = pki.make_ca(folder, now=datetime.now(UTC))
        issued = [authority.issue(name, pki.Role.COORDINATOR, now=datetime.now(UTC)) for name in ("old", "new")]
        self.old, self.new = (Tls(one.cert.read_bytes(), one.key.read_bytes(), one.ca.read_bytes()) for one in issued)
        self.newest = self.old
        self.missing = False

    def __call__(self) -> Tls:
        if self.missing:
            raise FileNotFoundError
        return self.newest


def test_a_configuration_is_handed_over_once_per_renewal(tmp_path: Path) -> None:
    papers = Papers(tmp_path)
    renewal = Renewal(papers)
    assert [renewal() for _ in range(3)] == [None] * 3
    papers.newest = papers.new
    assert renewal() is not None
    assert [renewal() for _ in range(3)] == [None] * 3
    assert renewal.served == papers.new


def test_papers_that_cannot_be_read_leave_the_old_ones_and_are_tried_again(tmp_path: Path) -> None:
    papers = Papers(tmp_path)
    renewal = Renewal(papers)
    papers.missing, papers.newest = True, papers.new
    with pytest.raises(FileNotFoundError):
        renewal()
    assert renewal.served == papers.old
    papers.missing = False
    assert renewal() is not None


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
