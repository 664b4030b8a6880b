"""A BMC on pyghmi's server class, for answers that ipmi_sim never gives; run as a process: FOLDER ADDRESS PORT SECRET.

Files in FOLDER switch its faults: `strict-state` (0xd5 to what does not fit the state), `busy` (0xc0), `cipher-refused`
(no suite is good enough), `rakp2-illegal` (refuses the name with "illegal parameter"), `mute-after-open` (answers Open
Session and never the next message), `cuts-passwords` (knows only the first 16 characters), `ignore-off`, `ignore-on`,
`status-byte` (holds the first byte of Get Chassis Status in hex). `orders` is the log of orders, `power` holds 0 or 1.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyghmi.ipmi import bmc
from pyghmi.ipmi.private import constants, serversession

SUITE_3 = ((8, 0x01, 0x04), (16, 0x01, 0x05), (24, 0x01, 0x10))  # offset, algorithm, RMCP+ status when it is another
ILLEGAL_PARAMETER = 0x12
WRONG_STATE, NODE_BUSY = 0xD5, 0xC0


class StrictSession(serversession.ServerSession):  # type: ignore[misc] # pyghmi ships no types
    """pyghmi's server says "suite 3" to whatever was proposed; a real BMC refuses what it does not speak."""

    folder: Path

    def create_open_session_response(self, request: Any) -> Any:
        """Refuse every proposal other than cipher suite 3."""
        for offset, algorithm, status in SUITE_3:
            proposed = request[offset + 4] & 0x3F if len(request) >= offset + 5 else None
            if proposed != algorithm or (self.folder / "cipher-refused").exists():
                self.clientsessionid = request[4:8]
                return bytearray([request[0], status, 0, 0]) + self.clientsessionid
        return super().create_open_session_response(request)

    def _got_rakp1(self, data: Any) -> None:
        if (self.folder / "mute-after-open").exists():
            return
        if (self.folder / "rakp2-illegal").exists():
            refusal = bytearray([data[0], ILLEGAL_PARAMETER, 0, 0]) + self.clientsessionid
            self.send_payload(refusal, constants.payload_types["rakp2"], retry=False)
            return
        super()._got_rakp1(data)


class FaultyBmc(bmc.Bmc):  # type: ignore[misc] # pyghmi ships no types
    """One machine whose power is a file."""

    def __init__(self, folder: Path, address: str, port: int, secret: str) -> None:
        known = secret[:16] if (folder / "cuts-passwords").exists() else secret
        super().__init__({"ADMIN": known}, port=port, address=address)
        self._folder = folder

    def get_power_state(self) -> str:
        """What the power file says."""
        return "on" if (self._folder / "power").read_text().strip() == "1" else "off"

    def get_chassis_status(self, session: Any) -> None:
        """The true state, or the byte that a test has laid down."""
        forced = self._folder / "status-byte"
        first = int(forced.read_text(), 16) if forced.exists() else int(self.get_power_state() == "on")
        session.send_ipmi_response(data=[first, 0, 0])

    def power_on(self) -> int:
        """Switch on."""
        return self._order("on", "1")

    def power_off(self) -> int:
        """Switch off."""
        return self._order("off", "0", needs_on=True)

    def power_reset(self) -> int:
        """Reset."""
        return self._order("reset", None, needs_on=True)

    def power_shutdown(self) -> int:
        """Soft off."""
        return self._order("soft", "0", needs_on=True)

    def _order(self, name: str, power: str | None, *, needs_on: bool = False) -> int:
        with (self._folder / "orders").open("a") as log:
            log.write(f"{name}\n")
        if (self._folder / "busy").exists():
            return NODE_BUSY
        if needs_on and (self._folder / "strict-state").exists() and self.get_power_state() == "off":
            return WRONG_STATE
        if power is not None and not (self._folder / f"ignore-{name}").exists():
            (self._folder / "power").write_text(power)
        return 0


def main() -> None:
    """Serve until killed."""
    folder, address, port, secret = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    StrictSession.folder = folder
    serversession.ServerSession = StrictSession
    FaultyBmc(folder, address, port, secret).listen()


if __name__ == "__main__":
    main()
