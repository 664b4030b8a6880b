"""The commands of docs/deploy.md for certificates, run as they stand: both programs take what comes out."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import hostler_agent.papers
import hostler_coordinator.papers
from hostler_agent.config import settings_from
from hostler_coordinator.cli.profile import load_profile
from hostler_coordinator.config import Settings
from hostler_coordinator.pki import Role, read_identity

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/deploy.md").read_text()
SAMPLE = ROOT / "systemd/sample"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the page's commands make."""
    folder = tmp_path_factory.mktemp("pki")
    (script,) = (block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "authority()" in block)
    subprocess.run(["bash", "-e", "-c", script], cwd=folder, check=True, capture_output=True, timeout=50)
    return folder


def test_keys_are_for_their_owner_alone(issued: Path) -> None:
    keys = list(issued.glob("*.key"))
    assert len(keys) == 12
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}
    assert not [*issued.glob("*.csr"), *issued.glob("*.ext")]


def test_a_coordinator_takes_its_certificates(issued: Path) -> None:
    raw: dict[str, Any] = yaml.safe_load((SAMPLE / "coordinator.yaml").read_text())
    raw["tls"] = {"ca": "ca.pem", "cert": "coordinator-1.pem", "key": "coordinator-1.key"}
    raw["etcd"]["tls"] = {"ca": "etcd-ca.pem", "cert": "etcd-client.pem", "key": "etcd-client.key"}
    for tls in (raw["tls"], raw["etcd"]["tls"]):
        tls.update({name: str(issued / file) for name, file in tls.items()})
    found = hostler_coordinator.papers.look_at(Settings(**raw), datetime.now(UTC).timestamp())
    assert found == hostler_coordinator.papers.Found()
    raw["name"] = "coordinator-2"
    doubts = hostler_coordinator.papers.look_at(Settings(**raw), datetime.now(UTC).timestamp()).doubts
    assert any("coordinator-2" in doubt for doubt in doubts)


def test_an_agent_takes_its_certificate(issued: Path, tmp_path: Path) -> None:
    raw: dict[str, Any] = yaml.safe_load((SAMPLE / "agent.yaml").read_text())
    raw |= {"host_id": "h-gpu-001", "journal": str(tmp_path / "journal.json"), "reboot": {"command": ["true"]}}
    raw["tls"] = {
        "ca": str(issued / "ca.pem"),
        "certificate": str(issued / "h-gpu-001.pem"),
        "key": str(issued / "h-gpu-001.key"),
    }
    now = datetime.now(UTC).timestamp()
    assert hostler_agent.papers.problems(settings_from(raw, "page"), now) == ([], [])
    raw["host_id"] = "h-gpu-002"
    wrong, _ = hostler_agent.papers.problems(settings_from(raw, "page"), now)
    assert [line.partition(":")[0] for line in wrong] == ["host_id"]


def test_the_operator_is_who_the_page_says(issued: Path) -> None:
    identity = read_identity((issued / "alice.pem").read_bytes())
    assert (identity.role, identity.name, identity.region) == (Role.OPERATOR, "alice", "r1")


def test_the_profile_of_the_page_can_be_read(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "profile.yaml").write_text(shown)
    said: list[str] = []
    profile = load_profile(str(tmp_path / "profile.yaml"), {}, said.append)
    assert (len(profile.endpoints), said) == (3, [])


def test_links_of_the_pages_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
