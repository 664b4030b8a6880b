"""What `hostler dev status` shows, and what each fault means in words; nothing is asked or read here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hostler_coordinator.cli.tables import Column, facts, lay_out
from hostler_coordinator.dev.shape import CLEAR
from hostler_coordinator.phrases import counted

MEANINGS = {
    "hang": "its agent has stopped answering; the machine stays on, until its power is switched",
    "hang-on-reboot": "its next reboot will hang it instead",
    "no-boot": "it will never come back from a reboot or a power cycle",
    "slow-boot": "it will boot five times as slowly",
    "soft-ignored": "it takes no notice of its power button any more",
    "reboot-ignored": "it will accept a reboot and stay up",
    "reboot-fails": "it will refuse a reboot with an error",
    "inhibited": "a shutdown inhibitor is held on it",
    "busy": "a job runs on its GPUs",
    "unusable": "its post-boot checks fail from now on",
    "bmc-dead": "its BMC is gone",
    "bmc-slow": "its BMC takes 3 s for every command",
    "bmc-lies": "its BMC accepts commands and does nothing",
    "bmc-wrong-password": "its BMC knows another password than the inventory",
    CLEAR: "every fault is off; a machine stuck in its boot stays there until its power is switched",
}
COLUMNS = (
    Column("HOST"),
    Column("FABRIC"),
    Column("RACK", rank=3),
    Column("FEED", rank=4),
    Column("AGENT", right=True, rank=1),
    Column("BMC", right=True, rank=1),
    Column("AT", rank=2),
    Column("FAULTS", flex=True),
)


def fleet_screen(
    known: Mapping[str, Any], leader: str, faults: Mapping[str, Sequence[str]], width: int | None
) -> Iterator[str]:
    """`dev status`: `known` is ready.json, `faults` those switched on by host; AGENT and BMC are process ids."""
    pids, etcd = known["pids"], known["etcd"]
    coordinators = (f"{name} {of['address']} (process {of['pid']})" for name, of in known["coordinators"].items())
    yield from facts(
        (
            ("leader", leader),
            ("coordinators", ", ".join(coordinators)),
            (
                "etcd",
                ", ".join(f"{at} (process {pid})" for at, pid in zip(etcd["endpoints"], pids["etcd"], strict=False)),
            ),
            (
                "hosts",
                f"{counted(len(known['hosts']), 'host')}, {sum(map(bool, faults.values())) or 'none'} with a fault",
            ),
            ("supervisor", f"process {known['supervisor']}"),
            ("profile", known["profile"]),
            ("effects", known["effects"]),
        ),
        width=width,
    )
    yield ""
    rows = [
        (
            host,
            of["fabric"],
            of["rack"],
            of["feed"],
            pids["agents"].get(host, "-"),
            pids["bmcs"].get(host, "-"),
            of["bmc"],
            ", ".join(faults.get(host, ())),
        )
        for host, of in known["hosts"].items()
    ]
    yield from lay_out(COLUMNS, rows, wide=False, width=width)
