"""OpenIPMI's BMC simulator for development fleet and tests: finds it, writes its configuration, says how to start it.

The machine behind the BMC is not in here: the caller names the command that `ipmi_sim` runs for every power verb.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hostler_coordinator.dev import debian

# ipmi_sim itself and the libraries that a bare system may lack; the rest (libc) is everywhere.
PACKAGES = ("openipmi", "libopenipmi0", "libpopt0", "libssl3")
SESSIONS_PER_USER = 10
SENSOR_POLL_MS = 5000
COMPILE_TIMEOUT_S = 10.0
MAX_SECRET_CHARS = 16  # what every IPMI client and BMC agrees on
_SENSOR_INPUTS = {"inlet": 24, "psu1": 1, "psu2": 1}
_PLAIN = re.compile(r"[A-Za-z0-9_.:@%+=,/-]+")


@dataclass(frozen=True)
class SimulatorTools:
    """Where the programs are, and where their libraries are when they were fetched (else None)."""

    ipmi_sim: Path
    sdrcomp: Path
    libraries: Path | None

    def env(self) -> dict[str, str]:
        """Environment to start the programs with."""
        if self.libraries is None:
            return dict(os.environ)
        known = os.environ.get("LD_LIBRARY_PATH")
        return {**os.environ, "LD_LIBRARY_PATH": f"{self.libraries}:{known}" if known else str(self.libraries)}


@dataclass(frozen=True)
class SimulatedBmc:
    """A written configuration: start `argv` with `env` in the foreground; it serves until it is killed.

    `inputs` is the folder of the sensors' raw values: `inlet` (degrees C), `psu1` and `psu2` (state bits of IPMI
    table 42-3: 1 present, 2 failed, 8 input lost); writing a number there changes the sensor within `SENSOR_POLL_MS`.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    inputs: Path


def find(into: Path | None = None) -> SimulatorTools:
    """Find the simulator on PATH, else fetch it as a Debian package without root.

    Raises:
        hostler_coordinator.dev.debian.FetchFailed: neither was possible; the text names the next step.
    """
    on_path = shutil.which("ipmi_sim"), shutil.which("sdrcomp")
    if on_path[0] and on_path[1]:
        return SimulatorTools(Path(on_path[0]), Path(on_path[1]), None)
    root = debian.fetch(PACKAGES, into or debian.tools_dir())
    libraries = root / "usr/lib" / f"{platform.machine()}-linux-gnu"
    return SimulatorTools(root / "usr/bin/ipmi_sim", root / "usr/bin/sdrcomp", libraries)


def write_config(  # noqa: PLR0917 - the line of an inventory, in its order
    folder: Path,
    name: str,
    address: str,
    port: int,
    username: str,
    password: str,
    serial: str,
    control_command: str,
    *,
    tools: SimulatorTools | None = None,
) -> SimulatedBmc:
    """Write everything that one BMC needs below `folder` and return how to start it.

    `control_command` is run by the BMC, which waits for it: with `get power` it prints `power:0` or `power:1`; with
    `set power 0|1`, `set reset 1`, `set shutdown 1`, `set identify …`, `set boot …` it does that; it exits 0 when it
    could. It inherits the BMC's UDP socket, so whatever it leaves running must close descriptors from 3 on first.

    `tools` is what `find` returned (asked for when None).

    Raises:
        ValueError: a word that the simulator's configuration cannot hold; the text names it.
    """
    tools = tools or find()
    _check_words(name, address, username, password, serial)
    inputs, state = folder / "inputs", folder / "state"
    (state / "ipmi_sim" / name).mkdir(parents=True, exist_ok=True)
    inputs.mkdir(exist_ok=True)
    for sensor, value in _SENSOR_INPUTS.items():
        (inputs / sensor).write_text(f"{value}\n")
    (state / "ipmi_sim" / name / "sdr.20.main").write_bytes(_compiled_sdrs(tools))
    lan, emulator = folder / "lan.conf", folder / "sim.emu"
    lan.write_text(_lan_config(name, address, port, username, password, control_command))
    lan.chmod(0o600)  # holds the password
    emulator.write_text(_emulator_config(inputs, serial))
    argv = (str(tools.ipmi_sim), "-c", str(lan), "-f", str(emulator), "-s", str(state), "-n")
    return SimulatedBmc(argv, tools.env(), inputs)


def _check_words(name: str, address: str, username: str, password: str, serial: str) -> None:
    for what, word in (("name", name), ("address", address), ("username", username), ("password", password)):
        if not _PLAIN.fullmatch(word):
            raise ValueError(f"{what} must be letters, digits and _.:@%+=,/- only")
    if len(username) > MAX_SECRET_CHARS or len(password) > MAX_SECRET_CHARS:
        raise ValueError(f"username and password may have at most {MAX_SECRET_CHARS} characters")
    if not serial.isascii() or not 0 < len(serial) <= 60:
        raise ValueError("serial must have 1 to 60 ASCII characters")


def _lan_config(name: str, address: str, port: int, username: str, password: str, control_command: str) -> str:
    if '"' in control_command or "\n" in control_command:
        raise ValueError("control_command may hold neither double quotes nor line ends")
    return f"""\
name "{name}"
set_working_mc 0x20
  startlan 1
    addr {address} {port}
    priv_limit admin
    allowed_auths_callback md5
    allowed_auths_user md5
    allowed_auths_operator md5
    allowed_auths_admin md5
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{control_command}"
  user 1 false "" "unused" user {SESSIONS_PER_USER} md5
  user 2 true "{username}" "{password}" admin {SESSIONS_PER_USER} md5
"""


def _emulator_config(inputs: Path, serial: str) -> str:
    fru = fru_data(serial)
    data = " ".join(f"0x{byte:02x}" for byte in fru)
    psu_states = " ".join(["000000000001011"] * 4)
    inlet_states = " ".join(["000111111000000"] * 4)
    poll = f"poll {SENSOR_POLL_MS} file"
    return f"""\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
sensor_add 0x20 0 1 0x01 0x01 {poll} "{inputs}/inlet"
sensor_set_value 0x20 0 1 24 0
sensor_set_threshold 0x20 0 1 settable 011000 0 50 45 0 0 0
sensor_set_event_support 0x20 0 1 enable scanning per-state {inlet_states}
sensor_add 0x20 0 2 0x08 0x6f {poll} "{inputs}/psu1"
sensor_set_event_support 0x20 0 2 enable scanning per-state {psu_states}
sensor_add 0x20 0 3 0x08 0x6f {poll} "{inputs}/psu2"
sensor_set_event_support 0x20 0 3 enable scanning per-state {psu_states}
mc_add_fru_data 0x20 0 {len(fru)} data {data}
mc_enable 0x20
"""


def fru_data(serial: str) -> bytes:
    """FRU 0 after the Platform Management FRU specification: a chassis and a board area that both name the serial."""
    text = serial.encode("ascii")
    chassis = _area(bytes([0x01, 0x00, 0x17]) + _field(b"CH1") + _field(text))
    board = _area(
        bytes([0x01, 0x00, 0x19, 0, 0, 0]) + _field(b"SIM") + _field(b"HOST") + _field(text) + _field(b"PN1") + b"\xc0"
    )
    header = bytes([0x01, 0x00, 0x01, 0x01 + len(chassis) // 8, 0x00, 0x00, 0x00])
    return header + _checksum(header) + chassis + board


def _field(text: bytes) -> bytes:
    return bytes([0xC0 | len(text)]) + text


def _area(body: bytes) -> bytes:
    """Close an area: end mark, padding to a multiple of 8, its length in byte 1, its checksum last."""
    body += b"\xc1"
    body += b"\x00" * (-(len(body) + 1) % 8)
    sized = bytes([body[0], (len(body) + 1) // 8]) + body[2:]
    return sized + _checksum(sized)


def _checksum(data: bytes) -> bytes:
    return bytes([-sum(data) & 0xFF])


@functools.cache
def _compiled_sdrs(tools: SimulatorTools) -> bytes:
    """The sensors' records in binary form; the same for every BMC, so compiled once per process."""
    with tempfile.TemporaryDirectory() as work:
        source, compiled = Path(work) / "sim.sdrs", Path(work) / "sdr.main"
        source.write_text(_INLET_SDR + _psu_sdr(2, 1) + _psu_sdr(3, 2))
        command = [str(tools.sdrcomp), "-o", str(compiled), str(source)]
        done = subprocess.run(
            command, env=tools.env(), capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr.strip()[:500]}")
        return compiled.read_bytes()


_INLET_SDR = """\
sdr type 1
 sensor_owner_id 0x20
 sensor_owner_lun 0
 channel_number 0
 sensor_number 1
 entity_id system_board
 entity_instance 1
 sensor_type Temperature
 init_scanning true
 init_sensor_type true
 default_sensor_scan_on true
 sensor_threshold_access settable
 event_reading_type_code 1
 return_unc true
 return_uc true
 analog_data_format unsigned
 rate_unit none
 modifier_unit none
 percentage false
 base_unit degrees_C
 modifier_unit_code unspecified
 linearization linear
 m 1
 tolerance 0
 b 0
 accuracy 1
 accuracy_exp 0
 sensor_direction input
 r_exp 0
 b_exp 0
 sensor_maximum 255
 sensor_minimum 0
 id_string "Inlet Temp"
endsdr
"""


def _psu_sdr(sensor: int, instance: int) -> str:
    return f"""\
sdr type 2
 sensor_owner_id 0x20
 sensor_owner_lun 0
 channel_number 0
 sensor_number {sensor}
 entity_id power_supply
 entity_instance {instance}
 sensor_type Power_Supply
 event_reading_type_code 0x6f
 event0_state_ret true
 event1_state_ret true
 event3_state_ret true
 id_string "PSU{instance} Status"
endsdr
"""
