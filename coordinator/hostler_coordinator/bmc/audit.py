"""An inventory check of BMCs, read-only: does one let cipher suite 0 in, that is, anybody without a password?

pyghmi never proposes suite 0, so an independent client asks; what to do about a finding is not decided here.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import dataclass
from enum import Enum

from hostler_coordinator.bmc.answers import BmcTarget, Protocol

AUDIT_WAIT_S = 15.0
_WRONG_PASSWORD = "not-the-password"  # noqa: S105 - that is the point
_REFUSALS = ("open session response", "rakp", "cipher suite")


class SuiteZero(Enum):
    """OPEN is a finding; UNKNOWN is not a clean bill."""

    OPEN = "open"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class SuiteZeroFinding:
    """What one BMC did when it was asked for its power state with suite 0 and a wrong password."""

    host_id: str
    result: SuiteZero
    text: str


async def audit_suite_zero(
    target: BmcTarget, username: str = "ADMIN", *, tool: str | None = None, wait_s: float = AUDIT_WAIT_S
) -> SuiteZeroFinding:
    """Ask with suite 0 as `username` and a wrong password; it must fail. `tool` is the path of ipmitool, else PATH."""
    if target.protocol is not Protocol.IPMI:
        return SuiteZeroFinding(
            target.host_id, SuiteZero.UNKNOWN, "not asked: the inventory has no IPMI address for it"
        )
    found = shutil.which(tool or "ipmitool")
    if found is None:
        return SuiteZeroFinding(target.host_id, SuiteZero.UNKNOWN, "not asked: ipmitool is not installed here")
    said = await _ask(found, target, username, wait_s)
    if "chassis power is" in said:
        text = "cipher suite 0 lets anybody in without a password; disable it: ipmitool lan set 1 cipher_privs"
        return SuiteZeroFinding(target.host_id, SuiteZero.OPEN, text)
    if any(refusal in said for refusal in _REFUSALS):
        return SuiteZeroFinding(target.host_id, SuiteZero.REFUSED, "cipher suite 0 is refused")
    return SuiteZeroFinding(target.host_id, SuiteZero.UNKNOWN, "the BMC did not answer")


async def _ask(tool: str, target: BmcTarget, username: str, wait_s: float) -> str:
    """Everything that ipmitool said, in lower case; "" when it was not done in time."""
    where = ("-H", target.address, "-p", str(target.port), "-U", username, "-E")
    process = await asyncio.create_subprocess_exec(
        *(tool, "-I", "lanplus", "-C", "0", "-R", "1", "-N", "5", *where, "chassis", "power", "status"),
        env=os.environ | {"IPMI_PASSWORD": _WRONG_PASSWORD},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(wait_s):
            said, _ = await process.communicate()
    except TimeoutError:
        return ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode(errors="replace").casefold()
