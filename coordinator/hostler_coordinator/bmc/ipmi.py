"""One login to an IPMI BMC through pyghmi 1.6.19, in the worker process only; retries and decisions do not belong here.

What pyghmi's defects (measured, `docs/decisions/0005-out-of-band.md`) make necessary:
- credentials are bytes: with str every second login to a BMC that failed once is a dead object for ever;
- a login may "succeed" with a dead session object: it is looked at before use;
- `raw_command` *returns* errors, and 0xd5 would lose its number in `set_power`: only raw commands are used;
- an order that gets no answer is sent up to four times and then again after a silent second login: both are switched
  off for this session (`_once`), so one order is one datagram;
- logging out is never automatic, and a slot left taken stays taken for about a minute.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Sequence
from typing import Any

from pyghmi.ipmi import command, fru

from hostler_coordinator.bmc import faults
from hostler_coordinator.bmc.answers import BmcTarget, FaultClass, Machine, Verb, chassis_reading, plain
from hostler_coordinator.bmc.credentials import Credentials
from hostler_coordinator.bmc.faults import BmcFaultError
from hostler_coordinator.bmc.sessions import Reading

# IPMI 2.0 table 28-4: Chassis Control.
_CHASSIS_CONTROL = {Verb.OFF: 0, Verb.ON: 1, Verb.CYCLE: 2, Verb.RESET: 3, Verb.NMI: 4, Verb.SOFT: 5}
ANSWER_WAIT_S = 6.0  # for on and off, within the pool's 15 s together with the login
SINGLE_SHOT_WAIT_S = 50.0  # some BMCs answer a reset only when it is done (12 s seen); within the pool's 65 s
MAX_USERNAME_BYTES = 16
MAX_PASSWORD_BYTES = 20
COMMON_PASSWORD_BYTES = 16
MAX_FRU_BYTES = 4096
_OPERATOR, _ADMINISTRATOR = 3, 4
_CHASSIS, _APPLICATION, _STORAGE = 0x00, 0x06, 0x0A


class IpmiSession:
    """A `BmcSession` over IPMI 2.0 (cipher suite 17, then 3; never 0)."""

    def __init__(self, target: BmcTarget, credentials: Credentials, verb: Verb) -> None:
        """Log in; raise BmcFaultError."""
        self._password_bytes = len(credentials.password.encode())
        _check_lengths(credentials)
        try:
            self._command = command.Command(
                bmc=target.address,
                port=target.port,
                userid=credentials.username.encode(),
                password=credentials.password.encode(),
                privlevel=_ADMINISTRATOR if verb is Verb.COLD_RESET else _OPERATOR,
            )
        except Exception as error:  # noqa: BLE001 - pyghmi raises nearly every type, struct.error and TypeError included
            raise self._login_fault(error) from None
        session = self._command.ipmi_session
        if session.broken or not session.logged:
            raise BmcFaultError(FaultClass.UNREACHABLE, "pyghmi handed back a dead session object")

    def reading(self) -> Reading:
        """Read power and fault bits (one round trip)."""
        data = self._ask(_CHASSIS, 0x01)
        if not data:
            raise BmcFaultError(FaultClass.PROTOCOL, "Get Chassis Status answered without data")
        state, conditions = chassis_reading(data[0])
        return Reading(state, raw_state=f"chassis status 0x{data[0]:02x}", conditions=conditions)

    def serials(self) -> tuple[str, ...]:
        """Read FRU 0: chassis, product and board serial numbers, those that are there."""
        info = self._fru_info()
        found = (info.get(name) for name in ("Chassis serial number", "Serial Number", "Board serial number"))
        told = (serial.strip() for serial in found if isinstance(serial, str) and serial.strip())
        return tuple(dict.fromkeys(told))

    def machine(self) -> Machine:
        """By FRU 0, product before board; else the numbers of Get Device ID (IPMI 2.0 section 20.1)."""
        try:
            info = self._fru_info()
        except BmcFaultError as fault:
            if fault.fault in {FaultClass.UNREACHABLE, FaultClass.AUTH}:
                raise
            info = {}
        for maker, model in (("Manufacturer", "Product name"), ("Board manufacturer", "Board product name")):
            if plain(info.get(model)):
                return Machine(manufacturer=plain(info.get(maker)), model=plain(info.get(model)))
        data = self._ask(_APPLICATION, 0x01)
        if len(data) < 11:
            return Machine()
        manufacturer = int.from_bytes(bytes(data[6:9]), "little") & 0xFFFFF
        product = int.from_bytes(bytes(data[9:11]), "little")
        return Machine(manufacturer=f"IANA {manufacturer}", model=f"product {product}")

    def _fru_info(self) -> dict[str, Any]:
        size = int.from_bytes(self._ask(_STORAGE, 0x10, (0,))[:2], "little")
        raw = self._read_fru(min(size, MAX_FRU_BYTES))
        try:
            return dict(fru.FRU(rawdata=raw).info or {})
        except Exception as error:  # noqa: BLE001 - a malformed FRU raises whatever the parser stumbles over
            raise BmcFaultError(FaultClass.PROTOCOL, f"FRU 0 cannot be read: {type(error).__name__}") from None

    def _read_fru(self, size: int) -> bytearray:
        raw = bytearray()
        while len(raw) < size:
            chunk = min(16, size - len(raw))
            data = self._ask(_STORAGE, 0x11, (0, len(raw) & 0xFF, len(raw) >> 8, chunk))
            if len(data) <= 1:
                break
            raw += bytes(data[1:])
        return raw

    def sel(self, limit: int, budget_s: float) -> tuple[str, ...]:
        """Walk the log's chain of record ids; raw records, because pyghmi's decoder first reads the whole SDR."""
        give_up_at = time.monotonic() + budget_s
        kept: collections.deque[str] = collections.deque(maxlen=limit)
        if int.from_bytes(self._ask(_STORAGE, 0x40)[1:3], "little") == 0:
            return ()
        record, seen = 0x0000, set[int]()
        while record != 0xFFFF and record not in seen and time.monotonic() < give_up_at:
            seen.add(record)
            data = self._ask(_STORAGE, 0x43, (0, 0, record & 0xFF, record >> 8, 0, 0xFF))
            if len(data) < 18:
                break
            record = int.from_bytes(data[:2], "little")
            kept.append(sel_text(bytes(data[2:18])))
        if record != 0xFFFF:
            kept.append(f"(stopped after {len(seen)} records: the log was not read to its end)")
        return tuple(kept)

    def locate(self, *, lit: bool) -> None:
        """Chassis Identify: on until switched off, or 255 s where the BMC knows no "until"."""
        if not lit:
            self._ask(_CHASSIS, 0x04, (0,))
            return
        try:
            self._ask(_CHASSIS, 0x04, (0, 1))
        except BmcFaultError as fault:
            if fault.code is None:
                raise
            self._ask(_CHASSIS, 0x04, (255,))

    def prepare(self, verb: Verb) -> None:
        """Nothing to find out: IPMI says only on sending whether it knows an order."""

    def order(self, verb: Verb) -> str:
        """Transmit one order once; a completion code other than 0, or silence, is raised."""
        self._once(SINGLE_SHOT_WAIT_S if verb.single_shot else ANSWER_WAIT_S)
        if verb is Verb.COLD_RESET:
            self._ask(_APPLICATION, 0x02)
        else:
            self._ask(_CHASSIS, 0x02, (_CHASSIS_CONTROL[verb],))
        return ""

    def close(self) -> None:
        """Log out without waiting for the answer."""
        try:
            self._command.ipmi_session.logout()
        except Exception:  # noqa: BLE001 - whatever it is, the operation is over and its answer known
            return

    def _once(self, wait_s: float) -> None:
        """Let pyghmi send the next command once and wait `wait_s`, with no second login behind our back."""
        session = self._command.ipmi_session
        session.logontries = 0
        session.timeout = wait_s
        session.maxtimeout = wait_s + 0.5

    def _ask(self, netfn: int, number: int, data: Sequence[int] = ()) -> Sequence[int]:
        self._command.ipmi_session.logontries = 0
        answer = self._guarded(lambda: self._command.raw_command(netfn=netfn, command=number, data=list(data)))
        code = answer.get("code", 0)
        if code:
            raise faults.from_completion_code(code, str(answer.get("error", "unknown completion code")))
        return list(answer.get("data", ()))

    @staticmethod
    def _guarded(call: Callable[[], Any]) -> dict[str, Any]:
        try:
            answer = call()
        except Exception as error:  # noqa: BLE001 - see the login
            raise faults.from_ipmi_exception(error, during_login=False) from None
        if not isinstance(answer, dict):
            raise BmcFaultError(FaultClass.UNREACHABLE, "no answer to the command")
        return answer

    def _login_fault(self, error: Exception) -> BmcFaultError:
        fault = faults.from_ipmi_exception(error, during_login=True)
        if fault.fault is FaultClass.AUTH and self._password_bytes > COMMON_PASSWORD_BYTES:
            fault.text += (
                f"; the password is longer than {COMMON_PASSWORD_BYTES} bytes, and some BMCs keep only"
                f" {COMMON_PASSWORD_BYTES} of them"
            )
        return fault


def _check_lengths(credentials: Credentials) -> None:
    if len(credentials.username.encode()) > MAX_USERNAME_BYTES:
        raise BmcFaultError(FaultClass.CREDENTIALS, f"the user name is longer than IPMI's {MAX_USERNAME_BYTES} bytes")
    if len(credentials.password.encode()) > MAX_PASSWORD_BYTES:
        raise BmcFaultError(FaultClass.CREDENTIALS, f"the password is longer than IPMI's {MAX_PASSWORD_BYTES} bytes")


def sel_text(record: bytes) -> str:
    """One SEL record (16 bytes, IPMI 2.0 table 32-1) as a line: id, epoch seconds, sensor, event, and the raw bytes."""
    number = int.from_bytes(record[0:2], "little")
    if record[2] != 0x02:
        return f"{number} type=0x{record[2]:02x} raw={record.hex()}"
    stamp = int.from_bytes(record[3:7], "little")
    edge = "deasserted" if record[12] & 0x80 else "asserted"
    return (
        f"{number} t={stamp} sensor_type=0x{record[10]:02x} sensor=0x{record[11]:02x}"
        f" event=0x{record[12] & 0x7F:02x} {edge} data={record[13:16].hex()} raw={record.hex()}"
    )
