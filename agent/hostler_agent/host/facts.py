"""Who and what the machine is, by psutil and DMI; names and addresses are facts here, never identity (FC-A28)."""

from __future__ import annotations

import os
import socket
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from hostler_contract.hosts import HostFacts

# What vendors write when they write nothing.
PLACEHOLDERS = frozenset(
    {"", "none", "n/a", "not specified", "not available", "default string", "to be filled by o.e.m.", "0", "unknown"}
)
UUID_PLACEHOLDERS = frozenset(
    {
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "03000200-0400-0500-0006-000700080009",
    }
)


def read_facts(sysroot: Path, *, hostname: str, address: str, soft_reboots: int) -> HostFacts:
    """Collect the facts. What cannot be read stays empty."""
    system = os.uname()
    return HostFacts(
        hostname=hostname or socket.gethostname(),
        address=address or first_address(),
        kernel=system.release,
        architecture=system.machine,
        cpu_count=psutil.cpu_count() or 0,
        memory_bytes=psutil.virtual_memory().total,
        uptime_s=_uptime_s(sysroot),
        chassis_serial=_dmi(sysroot, "chassis_serial") or _dmi(sysroot, "product_serial"),
        system_uuid=_uuid(sysroot),
        model=" ".join(filter(None, (_dmi(sysroot, "sys_vendor"), _dmi(sysroot, "product_name")))),
        agent_version=agent_version(),
        soft_reboot_count=soft_reboots,
    )


def agent_version() -> str:
    """Version of the installed distribution; empty in a bare checkout."""
    try:
        return version("hostler")
    except PackageNotFoundError:
        return ""


def first_address() -> str:
    """The first address of an interface that is up and is no loopback; empty when there is none."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    for name, addresses in sorted(psutil.net_if_addrs().items()):
        for one in addresses:
            if name in up and one.family == socket.AF_INET and not one.address.startswith("127."):
                return one.address
    return ""


def _uptime_s(sysroot: Path) -> float:
    try:
        return float((sysroot / "proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0


def _dmi(sysroot: Path, name: str) -> str:
    """One DMI field without the vendors' ways of leaving it empty."""
    try:
        text = (sysroot / "sys/class/dmi/id" / name).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return "" if text.lower() in PLACEHOLDERS else text


def _uuid(sysroot: Path) -> str:
    text = _dmi(sysroot, "product_uuid").lower()
    return "" if text in UUID_PLACEHOLDERS else text
