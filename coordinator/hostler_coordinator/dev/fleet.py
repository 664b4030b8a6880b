"""Brings a development fleet up, keeps it running and takes it down; what each part is told is `blueprint`'s."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from hostler_coordinator.dev import blueprint
from hostler_coordinator.dev.addresses import Block, claim_block
from hostler_coordinator.dev.bmc_park import new_password
from hostler_coordinator.dev.control import Machines
from hostler_coordinator.dev.etcd_server import EtcdCluster
from hostler_coordinator.dev.operator import Operator
from hostler_coordinator.dev.premises import Premises, read_json, write_json, write_text
from hostler_coordinator.dev.processes import RESTART_AFTER_S, Kept, child_environment, started_ticks, sweep
from hostler_coordinator.dev.shape import REGION, Shape, coordinators_of, etcd_ip, hosts_of
from hostler_coordinator.etcd import TlsFiles
from hostler_coordinator.pki import CertFiles, Role, make_ca

LEADER_WITHIN_S = 60.0
UP_WITHIN_S = 120.0
LOOK_S = 0.4
COORDINATOR_AFTER_S = 7.0
"""Longer than the election's 6 s, so that a killed leader is succeeded by another and not by itself."""
OPERATOR = "dev-operator"


class FleetFailed(RuntimeError):
    """The fleet could not come up or lost a part that it cannot go on without; the text says which."""


class Fleet:
    """One fleet in one folder. `run` returns when it is cancelled, with everything ended; raises FleetFailed."""

    def __init__(self, place: Premises, shape: Shape, say: Callable[[str], None]) -> None:
        """`say` is told what is going on, a line at a time."""
        self._place = place
        self._shape = shape
        self._say = say
        self._run = uuid.uuid4().hex
        self._env = child_environment(self._run)
        self._coordinators: list[Kept] = []
        self._machines: Kept | None = None
        self._bmcs: Kept | None = None
        self._etcd: EtcdCluster | None = None
        self._etcd_down_since: dict[int, float] = {}
        self._told: Any = None
        self._ending = threading.Event()

    async def run(self) -> None:
        """Bring it up, write ready.json, and keep it running."""
        self._write_mark()
        block = claim_block(random.SystemRandom())
        try:
            await self._bring_up(block)
            while True:
                await self._look()
                self._tell(block)
                await asyncio.sleep(LOOK_S)
        finally:
            self._ending.set()  # ends what waits in a thread
            self._place.ready.unlink(missing_ok=True)
            await asyncio.shield(asyncio.ensure_future(self._take_down()))
            block.release()

    # --- up -----------------------------------------------------------------------------------------------------------

    async def _bring_up(self, block: Block) -> None:
        began = time.monotonic()
        self._say("making certificates")
        papers = await asyncio.to_thread(self._issue, block.number)
        await self._start_etcd(block.number)
        self._start_coordinators(block.number, papers)
        self._write_machines(block.number, papers)
        await self._enrol(block.number)
        self._start_machines()
        await self._await_agents()
        await self._set_faults()
        self._say(f"ready after {time.monotonic() - began:.1f} s")

    def _write_mark(self) -> None:
        mark = {
            "run": self._run,
            "pid": os.getpid(),
            "started": started_ticks(os.getpid()),
            "shape": asdict(self._shape),
        }
        write_json(self._place.mark, mark)

    def _issue(self, block: int) -> dict[str, CertFiles]:
        """A CA, and one certificate for etcd, the operator, every coordinator and every host, by name."""
        now = datetime.now(UTC)
        authority = make_ca(self._place.folder / "pki", now=now)
        # Members dial each other from 127.0.0.1, and etcd holds a peer's certificate against where it comes from.
        etcd_ips = [etcd_ip(block), "127.0.0.1"]
        issued = {
            "etcd": authority.issue("etcd", Role.ETCD, now=now, region=REGION, ips=etcd_ips),
            OPERATOR: authority.issue(OPERATOR, Role.OPERATOR, now=now, region=REGION),
        }
        for plan in coordinators_of(self._shape, block):
            issued[plan.name] = authority.issue(plan.name, Role.COORDINATOR, now=now, region=REGION, ips=[plan.ip])
        for host in hosts_of(self._shape, block):
            issued[host.name] = authority.issue(host.name, Role.AGENT, now=now, region=REGION, subject=host.id)
        return issued

    async def _start_etcd(self, block: int) -> None:
        self._say(
            f"starting etcd ({self._shape.etcd_members} members)" if self._shape.etcd_members > 1 else "starting etcd"
        )
        pki = self._place.folder / "pki"
        tls = TlsFiles(ca=pki / "ca.pem", cert=pki / "etcd.pem", key=pki / "etcd.key")
        self._etcd = EtcdCluster(self._place.folder / "etcd", self._shape.etcd_members, tls, etcd_ip(block))
        await self._etcd.start()

    def _start_coordinators(self, block: int, papers: dict[str, CertFiles]) -> None:
        self._say(f"starting {self._shape.coordinators} coordinators")
        everyone = coordinators_of(self._shape, block)
        endpoints = self._etcd.endpoints if self._etcd is not None else ()
        for plan in everyone:
            settings = blueprint.coordinator_settings(self._shape, plan, everyone, papers[plan.name], endpoints)
            path = self._place.coordinator(plan.name, "yaml")
            write_text(path, blueprint.as_yaml(settings))
            command = (sys.executable, "-m", "hostler_coordinator", "run", "--config", str(path))
            kept = Kept(plan.name, command, self._place.coordinator(plan.name, "log"), self._env, COORDINATOR_AFTER_S)
            kept.start()
            self._coordinators.append(kept)
        write_text(self._place.profile, blueprint.as_yaml(blueprint.profile(everyone, papers[OPERATOR])))

    def _write_machines(self, block: int, papers: dict[str, CertFiles]) -> None:
        chance = random.SystemRandom()
        hosts = hosts_of(self._shape, block)
        endpoints = [plan.address for plan in coordinators_of(self._shape, block)]
        passwords = {host.name: new_password(chance) for host in hosts}
        self._place.secrets.mkdir(mode=0o700, exist_ok=True)
        for host in hosts:
            write_text(self._place.secrets / host.name, f"{blueprint.BMC_USERNAME}\n{passwords[host.name]}\n", 0o600)
            folder = self._place.host(host.name)
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("power", "faults"):  # the BMC may be asked before the machine stands
                (folder / name).write_text("1\n" if name == "power" else "", encoding="ascii")
        told = [blueprint.machine(self._shape, host, papers[host.name], endpoints) for host in hosts]
        write_json(self._place.folder / "machines.json", told)
        write_json(self._place.bmcs, [blueprint.bmc(host, passwords[host.name]) for host in hosts], 0o600)
        (self._place.folder / "inventory.yaml").write_bytes(blueprint.inventory(hosts, self._place.secrets))
        python = (sys.executable, "-m")
        where = ("--dir", str(self._place.folder))
        self._bmcs = Kept(
            "BMCs",
            (*python, "hostler_coordinator.dev.bmc_park", *where),
            self._place.folder / "bmc-park.log",
            self._env,
        )
        self._bmcs.start()
        machines = (*python, "hostler_agent.simulated", *where)
        self._machines = Kept("machines", machines, self._place.folder / "machines.log", self._env)

    async def _enrol(self, block: int) -> None:
        hosts = hosts_of(self._shape, block)

        def enrol() -> None:
            operator = Operator(self._place.profile, self._check)
            try:
                operator.await_leader(LEADER_WITHIN_S)
                self._say(f"importing {len(hosts)} hosts")
                operator.import_inventory((self._place.folder / "inventory.yaml").read_bytes())
                operator.open_domains(blueprint.open_domains(hosts))
            finally:
                operator.close()

        work = asyncio.create_task(asyncio.to_thread(enrol))
        while not work.done():
            for kept in self._coordinators:
                kept.look(time.monotonic())  # one that a signal ended is started again, as systemd would
            await asyncio.wait({work}, timeout=LOOK_S)
        await work

    def _check(self) -> None:
        """A coordinator that gives up while it starts is a mistake of ours, to be told at once."""
        if self._ending.is_set():
            raise FleetFailed("it was told to end while it started")
        for kept in self._coordinators:
            if kept.gave_up:
                raise FleetFailed(f"coordinator {kept.name} ended while it started: {kept.log_tail()}")

    def _start_machines(self) -> None:
        if self._machines is not None:
            self._machines.start()

    async def _await_agents(self) -> None:
        def told(up: int) -> None:
            self._say(f"{up} of {self._shape.hosts} agents attached")
            if self._machines is not None and self._machines.pid is None:
                raise FleetFailed(f"the machines ended while they started: {self._machines.log_tail()}")

        def wait() -> None:
            operator = Operator(self._place.profile, self._check)
            try:
                operator.await_hosts_up(self._shape.hosts, UP_WITHIN_S, told)
            finally:
                operator.close()

        await asyncio.to_thread(wait)
        await self._await_bmcs()

    async def _await_bmcs(self) -> None:
        """Wait until every BMC runs; nothing is asked of them yet."""
        async with asyncio.timeout(UP_WITHIN_S):
            while len(read_json(self._place.bmc_pids) or {}) < self._shape.hosts:
                if self._bmcs is None or self._bmcs.pid is None:
                    raise FleetFailed(
                        f"the BMCs ended while they started: {self._bmcs.log_tail() if self._bmcs else ''}"
                    )
                await asyncio.sleep(LOOK_S)

    async def _set_faults(self) -> None:
        machines = Machines(self._place)
        for host, kind in self._shape.faults:
            await asyncio.to_thread(machines.set_fault, host, kind)

    # --- keeping it ---------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Start again what died; a fleet whose machines are gone has come to its end."""
        now = time.monotonic()
        if self._machines is not None and self._machines.pid is None:
            raise FleetFailed(
                f"the parent of all machines ended, and with it every machine: {self._machines.log_tail()}"
            )
        for kept in (*self._coordinators, self._bmcs):
            if kept is not None:
                kept.look(now)
        for index in range(self._shape.etcd_members if self._etcd is not None else 0):
            await self._look_at_etcd(index, now)

    async def _look_at_etcd(self, index: int, now: float) -> None:
        if self._etcd is None or self._etcd.pid(index) is not None:
            self._etcd_down_since.pop(index, None)
        elif now - self._etcd_down_since.setdefault(index, now) >= RESTART_AFTER_S:
            self._etcd_down_since.pop(index, None)
            await self._etcd.restart(index)

    def _tell(self, block: Block) -> None:
        """Keep ready.json true."""
        facts = self._facts(block.number)
        if facts != self._told:
            write_json(self._place.ready, facts)
            self._told = facts

    def _facts(self, block: int) -> dict[str, Any]:
        plans = coordinators_of(self._shape, block)
        hosts = hosts_of(self._shape, block)
        etcd = self._etcd
        pids = {kept.name: kept.pid for kept in self._coordinators}
        pki = self._place.folder / "pki"
        return {
            "profile": str(self._place.profile),
            "endpoints": [plan.address for plan in plans],
            "pids": {
                "etcd": [pid for i in range(self._shape.etcd_members) if etcd and (pid := etcd.pid(i)) is not None],
                "coordinators": [pid for pid in pids.values() if pid is not None],
                "agents": read_json(self._place.agents) or {},
                "bmcs": read_json(self._place.bmc_pids) or {},
            },
            "supervisor": os.getpid(),
            "effects": str(self._place.effects),
            "coordinators": {
                plan.name: {"address": plan.address, "metrics": plan.metrics, "pid": pids.get(plan.name)}
                for plan in plans
            },
            "etcd": {
                "endpoints": list(etcd.endpoints) if etcd else [],
                **{
                    name: str(pki / file)
                    for name, file in (("ca", "ca.pem"), ("cert", "etcd.pem"), ("key", "etcd.key"))
                },
            },
            "hosts": {
                host.name: {
                    "id": host.id,
                    "fabric": host.fabric,
                    "rack": host.rack,
                    "feed": host.feed,
                    "bmc": host.bmc_address,
                }
                for host in hosts
            },
        }

    # --- down ---------------------------------------------------------------------------------------------------------

    async def _take_down(self) -> None:
        """Coordinators first, so that nothing acts on what ends after them; whatever is left goes by the run's mark."""
        self._say("taking everything down")
        await asyncio.gather(*(kept.stop(3.0) for kept in self._coordinators))
        others = [kept.stop() for kept in (self._machines, self._bmcs) if kept is not None]
        await asyncio.gather(*others, *([self._etcd.stop(2.0)] if self._etcd is not None else []))
        left = await asyncio.to_thread(sweep, self._run, self._place.folder)
        if left:
            self._say(f"these processes would not end: {', '.join(map(str, left))}")
        with contextlib.suppress(OSError):
            shutil.rmtree(self._place.secrets)
