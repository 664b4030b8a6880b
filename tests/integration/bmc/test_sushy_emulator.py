"""Redfish against an independent implementation: sushy-emulator's fake driver, with TLS, basic log-in and delays."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest

from bmc_fixtures import PASSWORD, USERNAME, write_secret
from hostler_coordinator.bmc.answers import BmcTarget, Confirmation, FaultClass, PowerState, Protocol, Verb
from hostler_coordinator.bmc.cycle import power_cycle
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.pool import BmcPool
from hostler_coordinator.bmc.walk import CycleSettings, Outcome
from redfish_fake import write_certificate

pytestmark = pytest.mark.integration

UUID = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
READY_WITHIN_S = 30.0


async def yes() -> Confirmation:
    return Confirmation(ok=True)


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[BmcTarget]:
    """sushy-emulator as a process, one machine that is off."""
    ca_file = write_certificate(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (tmp_path / "htpasswd").write_text(f"{USERNAME}:{hashed}\n")
    config = {
        "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1",
        "SUSHY_EMULATOR_LISTEN_PORT": port,
        "SUSHY_EMULATOR_SSL_CERT": ca_file,
        "SUSHY_EMULATOR_SSL_KEY": str(tmp_path / "key.pem"),
        "SUSHY_EMULATOR_AUTH_FILE": str(tmp_path / "htpasswd"),
        "SUSHY_EMULATOR_STATE_DIR": str(tmp_path),
        "SUSHY_EMULATOR_FAKE_DRIVER": True,
        "SUSHY_EMULATOR_FAKE_SYSTEMS": [{"uuid": UUID, "name": "node1", "power_state": "Off", "nics": []}],
    }
    (tmp_path / "emulator.conf").write_text("".join(f"{key} = {value!r}\n" for key, value in config.items()))
    program = Path(sys.executable).with_name("sushy-emulator")
    process = subprocess.Popen(
        [str(program), "--config", str(tmp_path / "emulator.conf")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_listening(port, process)
        secret = write_secret(tmp_path / "secret")
        yield BmcTarget("h1", Protocol.REDFISH, "127.0.0.1", port, secret, system_uuid=UUID, ca_file=ca_file)
    finally:
        process.kill()
        process.wait(10)


def _await_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    give_up_at = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < give_up_at and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"sushy-emulator does not listen (exit status {process.poll()})")


def _power_told_to_others(target: BmcTarget) -> str:
    """The power state as a plain HTTPS client reads it."""
    login = b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
    url = f"https://{target.address}:{target.port}/redfish/v1/Systems/{UUID}"
    request = urllib.request.Request(url, headers={"Authorization": f"Basic {login}"})
    context = ssl.create_default_context(cafile=target.ca_file)
    with urllib.request.urlopen(request, timeout=10, context=context) as response:
        return str(json.load(response)["PowerState"]).casefold()


@pytest.mark.slow
async def test_a_walk_follows_delayed_transitions_and_agrees_with_a_plain_client(
    bmc_pool: BmcPool, emulator: BmcTarget
):
    settings = CycleSettings(dwell_s=0.2, poll_s=0.3, off_limit_s=25.0, on_limit_s=25.0)
    answer = await bmc_pool.call(emulator, Verb.STATUS)
    assert (answer.state, answer.system) == (PowerState.OFF, f"/redfish/v1/Systems/{UUID}"), answer
    first = await power_cycle(bmc_pool, emulator, settings, yes, Pacing())
    assert first.outcome is Outcome.POWERED_ON, first
    assert _power_told_to_others(emulator) == "on"
    second = await power_cycle(bmc_pool, emulator, settings, yes, Pacing())
    assert second.outcome is Outcome.CYCLED, second
    assert _power_told_to_others(emulator) == "on"


async def test_a_wrong_password_is_refused_by_the_emulator(bmc_pool: BmcPool, emulator: BmcTarget, tmp_path: Path):
    wrong = dataclasses.replace(emulator, credentials_ref=write_secret(tmp_path / "wrong", "nope-nope"))
    assert (await bmc_pool.call(wrong, Verb.STATUS)).fault is FaultClass.AUTH
