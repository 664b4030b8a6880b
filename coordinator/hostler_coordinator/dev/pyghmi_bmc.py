"""A BMC on pyghmi's server class, for where Debian's `ipmi_sim` cannot be had; the host behind it is not in here.

One process per BMC, started with `argv`. The control command is called exactly as by `ipmi_sim` (see
`ipmi_sim.write_config`). It has no sensors and no event log, and costs some 35 MB, fifty times as much as `ipmi_sim`.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import Any

from pyghmi.ipmi import bmc
from pyghmi.ipmi.private import serversession

from hostler_coordinator.bmc.credentials import Credentials, resolve
from hostler_coordinator.dev.ipmi_sim import fru_data

CONTROL_TIMEOUT_S = 10.0
_STORAGE, _FRU_INFO, _FRU_READ = 0x0A, 0x10, 0x11
_NOT_NOW = 0xC0
# Offset in the Open Session request, algorithm of cipher suite 3, RMCP+ status when something else is proposed.
_SUITE_3 = ((8, 0x01, 0x04), (16, 0x01, 0x05), (24, 0x01, 0x10))


class StrictSession(serversession.ServerSession):  # type: ignore[misc] # pyghmi ships no types
    """pyghmi's server says "cipher suite 3" to whatever is proposed, and its own client then dies; refuse instead."""

    def create_open_session_response(self, request: Any) -> Any:
        """Accept cipher suite 3 alone, as a well-kept BMC does; suite 0 in particular is refused."""
        for offset, algorithm, status in _SUITE_3:
            if len(request) < offset + 5 or request[offset + 4] & 0x3F != algorithm:
                self.clientsessionid = request[4:8]
                return bytearray([request[0], status, 0, 0]) + self.clientsessionid
        return super().create_open_session_response(request)


class ControlledBmc(bmc.Bmc):  # type: ignore[misc] # pyghmi ships no types
    """Passes power verbs on to the control command."""

    def __init__(self, address: str, port: int, credentials: Credentials, serial: str, control_command: str) -> None:
        super().__init__({credentials.username: credentials.password}, port=port, address=address)
        self._control = tuple(shlex.split(control_command))
        self._fru = fru_data(serial)

    def get_power_state(self) -> str:
        """Ask the control command; a machine that cannot be asked is an error for the client, not "off"."""
        said = self._run("get", "power")
        if said not in {"power:0", "power:1"}:
            raise RuntimeError(f"the control command said {said!r}")
        return "on" if said == "power:1" else "off"

    def power_on(self) -> int:
        """Switch on."""
        return self._set("power", "1")

    def power_off(self) -> int:
        """Switch off."""
        return self._set("power", "0")

    def power_reset(self) -> int:
        """Reset."""
        return self._set("reset", "1")

    def power_shutdown(self) -> int:
        """Ask the operating system to shut down."""
        return self._set("shutdown", "1")

    def handle_raw_request(self, request: Any, session: Any) -> None:
        """Answer reads of FRU 0, which pyghmi's server does not know, and leave the rest to it."""
        netfn, number, data = request["netfn"], request["command"], request["data"]
        if (netfn, number) == (_STORAGE, _FRU_INFO):
            session.send_ipmi_response(data=[*len(self._fru).to_bytes(2, "little"), 0])
        elif (netfn, number) == (_STORAGE, _FRU_READ):
            start = int.from_bytes(bytes(data[1:3]), "little")
            chunk = self._fru[start : start + data[3]]
            session.send_ipmi_response(data=[len(chunk), *chunk])
        else:
            super().handle_raw_request(request, session)

    def _set(self, what: str, value: str) -> int:
        return 0 if self._run("set", what, value) is not None else _NOT_NOW

    def _run(self, *words: str) -> str | None:
        """What the control command printed; None when it failed or took too long."""
        try:
            done = subprocess.run(
                [*self._control, *words], capture_output=True, text=True, timeout=CONTROL_TIMEOUT_S, check=False
            )
        except (subprocess.TimeoutExpired, OSError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None


def argv(address: str, port: int, credentials_ref: str, serial: str, control_command: str) -> tuple[str, ...]:
    """How to start one in the foreground; it serves until it is killed."""
    words = (address, str(port), credentials_ref, serial, control_command)
    return (sys.executable, "-m", "hostler_coordinator.dev.pyghmi_bmc", *words)


def main() -> None:
    """Serve until killed."""
    address, port, reference, serial, control_command = sys.argv[1:]
    serversession.ServerSession = StrictSession
    ControlledBmc(address, int(port), resolve(reference), serial, control_command).listen()


if __name__ == "__main__":
    main()
