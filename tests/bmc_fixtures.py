"""Simulated machines behind real IPMI BMCs, a pool to reach them, and what independent clients say of their power."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from hostler_coordinator.bmc.answers import BmcTarget, Protocol
from hostler_coordinator.bmc.health import HealthSettings
from hostler_coordinator.bmc.pool import BmcPool, PoolSettings
from hostler_coordinator.bmc.retries import RetrySettings
from hostler_coordinator.dev import debian, ipmi_sim

USERNAME, PASSWORD = "ADMIN", "s3cret"
READY_WITHIN_S = 20.0
# Get Channel Authentication Capabilities outside any session: the first thing that every client asks.
_PROBE = bytes.fromhex("0600ff07000000000000000000092018c88100388e04b5")

# The machine: a state file, a line per boot and per order. Descriptors from 3 on belong to the BMC.
HOOK = """\
#!/bin/sh
d=$1; op=$2; shift 2
case $op in
get) for key; do
    case $key in power) echo "power:$(cat "$d/power")" ;; boot) echo boot:none ;; *) exit 1 ;; esac
  done ;;
set) while [ $# -gt 1 ]; do
    echo "$1 $2" >> "$d/orders"
    [ -e "$d/ignore-$1" ] || case $1$2 in
        power1) [ "$(cat "$d/power")" = 1 ] || { echo boot >> "$d/boots"; echo 1 > "$d/power"; } ;;
        power0) echo 0 > "$d/power" ;;
        reset1) echo boot >> "$d/boots" ;;
        shutdown1) [ -e "$d/hung" ] || echo 0 > "$d/power" ;;
    esac
    shift 2
  done ;;
esac
exit 0
"""

QUICK = PoolSettings(
    power_workers=2,
    readings_workers=1,
    slow_workers=1,
    health=HealthSettings(poll_gap_s=0.1, order_gap_s=0.1, probe_first_s=0.5, probe_max_s=1.0),
    retries=RetrySettings(backoff_s=0.2, busy_s=0.2, not_ready_gap_s=0.3),
)


@dataclass
class Machine:
    """One simulated machine and the BMC in front of it."""

    folder: Path
    target: BmcTarget
    process: subprocess.Popen[bytes]

    @property
    def boots(self) -> int:
        """How often the machine has started."""
        return len(self._lines("boots"))

    @property
    def orders(self) -> list[str]:
        """What the BMC has carried out, in order."""
        return self._lines("orders")

    @property
    def power(self) -> str:
        """The truth."""
        return "on" if (self.folder / "power").read_text().strip() == "1" else "off"

    def set_power(self, state: str) -> None:
        """Change the truth behind the BMC's back."""
        (self.folder / "power").write_text("1" if state == "on" else "0")

    def fault(self, name: str, content: str = "") -> None:
        """Switch a fault on."""
        (self.folder / name).write_text(content)

    def cure(self, name: str) -> None:
        """Switch a fault off."""
        (self.folder / name).unlink()

    def behind(self, address: tuple[str, int]) -> BmcTarget:
        """This machine's target through a proxy at `address`."""
        return replace(self.target, address=address[0], port=address[1])

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


StartMachine = Callable[..., Machine]


def free_udp_port() -> int:
    """A UDP port of 127.0.0.1 that nobody has at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_bmc(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the BMC answers the first question of every IPMI client."""
    give_up_at = time.monotonic() + READY_WITHIN_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.settimeout(0.1)
        probe.connect(("127.0.0.1", port))
        while time.monotonic() < give_up_at and process.poll() is None:
            try:
                probe.send(_PROBE)
                probe.recv(512)
                return
            except ConnectionError:
                time.sleep(0.02)  # nobody listens yet: refused at once, so the time-out does not slow this loop
            except TimeoutError:
                continue
    raise AssertionError(f"the BMC on port {port} did not answer (exit status {process.poll()})")


def write_secret(path: Path, password: str = PASSWORD) -> str:
    """Write a credentials file and return the reference to it."""
    path.write_text(f"{USERNAME}\n{password}\n")
    path.chmod(0o600)
    return f"file:{path}"


@pytest.fixture(scope="session")
def simulator() -> ipmi_sim.SimulatorTools:
    """OpenIPMI's simulator; skips with the reason where it cannot be had."""
    try:
        return ipmi_sim.find()
    except debian.FetchFailed as failure:
        pytest.skip(str(failure))


@pytest.fixture
def start_machine(simulator: ipmi_sim.SimulatorTools, tmp_path: Path) -> Iterator[StartMachine]:
    """Start machines behind ipmi_sim: `start_machine(power="on")`; `wait=False` does not wait for the BMC to answer."""
    hook = tmp_path / "hook"
    hook.write_text(HOOK)
    hook.chmod(0o700)
    secret = write_secret(tmp_path / "secret")
    with ExitStack() as running:

        def start(power: str = "on", serial: str | None = None, *, wait: bool = True) -> Machine:
            number = len(list(tmp_path.glob("machine-*")))
            folder = tmp_path / f"machine-{number}"
            folder.mkdir()
            port, told = free_udp_port(), serial or f"SN{number:04}"
            written = ipmi_sim.write_config(
                folder, f"bmc{number}", "127.0.0.1", port, USERNAME, PASSWORD, told, f"{hook} {folder}", tools=simulator
            )
            target = BmcTarget(f"host-{number}", Protocol.IPMI, "127.0.0.1", port, secret, serial=told)
            machine = Machine(folder, target, _spawn(running, written.argv, written.env))
            machine.set_power(power)
            if wait:
                await_bmc(port, machine.process)
            return machine

        yield start


@pytest.fixture
def start_faulty_bmc(tmp_path: Path) -> Iterator[StartMachine]:
    """Start machines behind `pyghmi_bmc`: `start_faulty_bmc("strict-state", power="off")`."""
    with ExitStack() as running:

        def start(*faults: str, power: str = "on", password: str = PASSWORD) -> Machine:
            number = len(list(tmp_path.glob("faulty-*")))
            folder = tmp_path / f"faulty-{number}"
            folder.mkdir()
            for fault in faults:
                (folder / fault).touch()
            secret, port = write_secret(folder / "secret", password), free_udp_port()
            target = BmcTarget(f"faulty-{number}", Protocol.IPMI, "127.0.0.1", port, secret)
            program = Path(__file__).with_name("pyghmi_bmc.py")
            argv = (sys.executable, str(program), str(folder), "127.0.0.1", str(port), password)
            (folder / "power").write_text("1" if power == "on" else "0")
            machine = Machine(folder, target, _spawn(running, argv, dict(os.environ)))
            await_bmc(port, machine.process)
            return machine

        yield start


def _spawn(running: ExitStack, argv: tuple[str, ...], env: dict[str, str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    running.callback(process.wait, 10)
    running.callback(process.kill)
    return process


@pytest_asyncio.fixture
async def bmc_pool() -> AsyncIterator[BmcPool]:
    """A small pool with short gaps; every worker is gone afterwards."""
    pool = BmcPool(QUICK)
    yield pool
    await pool.close()


@pytest.fixture(scope="session")
def ipmitool() -> str:
    """ipmitool, from PATH or from its package; skips with the reason where it cannot be had."""
    return _tool("ipmitool", ("ipmitool",), "usr/bin/ipmitool")


@pytest.fixture(scope="session")
def ipmipower() -> str:
    """freeipmi's ipmipower; skips with the reason where it cannot be had."""
    packages = ("freeipmi-tools", "libfreeipmi17", "libipmidetect0", "freeipmi-common", "libgcrypt20", "libgpg-error0")
    return _tool("ipmipower", packages, "usr/sbin/ipmipower")


def _tool(name: str, packages: tuple[str, ...], inside: str) -> str:
    found = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    if found:
        return found
    try:
        root = debian.fetch(packages, debian.tools_dir())
    except debian.FetchFailed as failure:
        pytest.skip(str(failure))
    wrapper = root / f"run-{name}"
    libraries = next(root.glob("usr/lib/*-linux-gnu"), root)
    wrapper.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{libraries}" exec "{root / inside}" "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper)
