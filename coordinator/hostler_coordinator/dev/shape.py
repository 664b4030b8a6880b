"""What a development fleet looks like: its size, and each host's name, place and BMC; nothing is started here."""

from __future__ import annotations

import string
from dataclasses import dataclass

HOSTS_MAX = 2000
FABRICS_MAX = 26
COORDINATORS_MAX = 9
HOSTS_PER_RACK = 16
HOSTS_PER_SUBNET = 250
BMC_PORT = 6230
COORDINATOR_PORT = 7443
METRICS_PORT = 9464
REGION = "dev"
SITE = "dev"

MACHINE_FAULTS = (
    "hang",
    "hang-on-reboot",
    "no-boot",
    "slow-boot",
    "soft-ignored",
    "reboot-ignored",
    "reboot-fails",
    "inhibited",
    "busy",
    "unusable",
)
BMC_FAULTS = ("bmc-dead", "bmc-slow", "bmc-lies", "bmc-wrong-password")
CLEAR = "clear"
FAULTS = (*MACHINE_FAULTS, *BMC_FAULTS)


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the fleet is and how its machines behave. Raises ValueError with words for people."""

    hosts: int
    fabrics: int = 2
    coordinators: int = 3
    etcd_members: int = 1
    boot_seconds: float = 2.0
    faults: tuple[tuple[str, str], ...] = ()
    """(host, kind), switched on when every agent has attached, just before the fleet counts as ready."""

    def __post_init__(self) -> None:
        _within("--hosts", self.hosts, HOSTS_MAX)
        _within("--fabrics", self.fabrics, min(FABRICS_MAX, self.hosts))
        _within("--coordinators", self.coordinators, COORDINATORS_MAX)
        if self.etcd_members not in {1, 3, 5}:
            raise ValueError(f"--etcd-members is {self.etcd_members}; give 1, 3 or 5")
        if not 0.1 <= self.boot_seconds <= 600.0:
            raise ValueError(f"--boot-seconds is {self.boot_seconds:g}; give 0.1 to 600")
        known = {self.host_name(number) for number in range(1, self.hosts + 1)}
        for host, kind in self.faults:
            if host not in known:
                raise ValueError(
                    f"there is no host {host!r}; they are {self.host_name(1)} to {self.host_name(self.hosts)}"
                )
            if kind not in FAULTS:
                raise ValueError(f"there is no fault {kind!r}; there are {', '.join(FAULTS)}")

    def host_name(self, number: int) -> str:
        """Name of the host with this number, counted from 1."""
        return f"gpu-{number:0{max(3, len(str(self.hosts)))}d}"


@dataclass(frozen=True, slots=True)
class HostPlan:
    """One host before it exists."""

    id: str
    name: str
    serial: str
    fabric: str
    rack: str
    feed: str
    bmc_address: str


@dataclass(frozen=True, slots=True)
class CoordinatorPlan:
    """One coordinator before it exists."""

    name: str
    address: str
    metrics: str
    ip: str


def hosts_of(shape: Shape, block: int) -> list[HostPlan]:
    """Every host: fabrics are even runs of neighbours, racks hold 16 hosts of one fabric, feeds alternate by rack.

    `block` is the second number of the addresses: BMCs stand at 127.BLOCK.1.1, 127.BLOCK.1.2, …
    """
    plans = []
    places = _places(shape)
    for number in range(1, shape.hosts + 1):
        fabric, rack = places[number - 1]
        subnet, last = divmod(number - 1, HOSTS_PER_SUBNET)
        plans.append(
            HostPlan(
                id=f"sim-{number:04d}",
                name=shape.host_name(number),
                serial=f"SIM{block:03d}X{number:04d}",
                fabric=f"ib-{string.ascii_lowercase[fabric]}",
                rack=f"r{rack + 1:02d}",
                feed=f"feed-{'ab'[rack % 2]}",
                bmc_address=f"127.{block}.{subnet + 1}.{last + 1}",
            )
        )
    return plans


def coordinators_of(shape: Shape, block: int) -> list[CoordinatorPlan]:
    """Every coordinator, at 127.BLOCK.0.11 and on."""
    return [
        CoordinatorPlan(
            name=f"c{number}",
            address=f"127.{block}.0.{10 + number}:{COORDINATOR_PORT}",
            metrics=f"127.{block}.0.{10 + number}:{METRICS_PORT}",
            ip=f"127.{block}.0.{10 + number}",
        )
        for number in range(1, shape.coordinators + 1)
    ]


def etcd_ip(block: int) -> str:
    """The one address of all etcd members."""
    return f"127.{block}.0.2"


def _places(shape: Shape) -> list[tuple[int, int]]:
    """Fabric and rack of each host in turn; no rack spans two fabrics."""
    places: list[tuple[int, int]] = []
    rack = -1
    for fabric in range(shape.fabrics):
        members = shape.hosts * (fabric + 1) // shape.fabrics - shape.hosts * fabric // shape.fabrics
        for place in range(members):
            rack += place % HOSTS_PER_RACK == 0
            places.append((fabric, rack))
    return places


def _within(flag: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise ValueError(f"{flag} is {value}; give 1 to {most}")
