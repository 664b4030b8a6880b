"""A small coordinator that speaks the real protocol over real mTLS, and machines to go with it; no product code."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hostler_agent.journal import decode
from hostler_contract.pb.hostler.v1 import agent_pb2 as pb
from hostler_contract.pb.hostler.v1 import work_pb2
from hostler_contract.pb.hostler.v1.agent_pb2_grpc import AgentServiceServicer, add_AgentServiceServicer_to_server

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 20.0
Context = Any
"""grpc.aio.ServicerContext; its generic is not subscriptable at run time."""


async def until(condition: Callable[[], Any], what: str, limit_s: float = WAIT_S) -> Any:
    """Wait for a condition to hold, with a bound, and return what it gave."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}"
        await asyncio.sleep(0.02)
    return found


# --- certificates -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Certificates:
    """PEM files of one small authority."""

    folder: Path

    def tls(self, who: str) -> dict[str, str]:
        return {
            "ca": str(self.folder / "ca.pem"),
            "certificate": str(self.folder / f"{who}.pem"),
            "key": str(self.folder / f"{who}.key"),
        }

    def read(self, who: str) -> dict[str, bytes]:
        return {name: Path(path).read_bytes() for name, path in self.tls(who).items()}


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def issue(folder: Path, who: str, issuer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None, ip: str) -> Any:
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(who))
        .issuer_name(issuer[0].subject if issuer else _name(who))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(ip))]), critical=False)
    )
    certificate = builder.sign(issuer[1] if issuer else key, hashes.SHA256())
    (folder / f"{who}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{who}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, key


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("pki")
    authority = issue(folder, "ca", None, "127.0.0.1")
    for who, ip in (("server", "127.0.0.1"), ("agent", "127.0.0.1"), ("elsewhere", "127.9.9.9")):
        issue(folder, who, authority, ip)
    return Certificates(folder)


# --- the coordinator --------------------------------------------------------------------------------------------------


@dataclass
class FakeHost:
    """What the coordinator knows of one host. `sent` is what it said on the present stream, newest last."""

    hellos: list[pb.Hello] = field(default_factory=list)
    heard: list[pb.SessionRequest] = field(default_factory=list)
    queue: asyncio.Queue[pb.SessionResponse] | None = None
    pulled: bool = False
    condition: pb.Condition = field(default_factory=pb.Condition)
    streams: int = 0

    def of(self, kind: str) -> list[Any]:
        return [getattr(one, kind) for one in self.heard if one.WhichOneof("message") == kind]

    def steps(self) -> list[str]:
        return [pb.Step.Name(one.step).removeprefix("STEP_").lower() for one in self.of("progress")]


@dataclass
class Job:
    """One task that the coordinator wants done. Counters say what it has answered."""

    assignment: pb.Assignment
    give_go: bool = True
    gos: int = 0
    outcome: pb.Outcome | None = None
    recorded: bool = True


class FakeCoordinator(AgentServiceServicer):
    """Welcomes everybody; hands each host the job it has for it; gives GO; records outcomes."""

    def __init__(self, name: str = "fake-1") -> None:
        self.name = name
        self.hosts: dict[str, FakeHost] = {}
        self.jobs: dict[str, Job] = {}
        self.interval_s = 0.5
        self.endpoints: list[str] = []
        self.answer_heartbeats = True
        self.refuse: grpc.StatusCode | None = None
        self.port = 0
        self._server: grpc.aio.Server | None = None

    async def start(self, certificates: Certificates, who: str = "server", port: int = 0) -> str:
        read = certificates.read(who)
        credentials = grpc.ssl_server_credentials([(read["key"], read["certificate"])], read["ca"], True)
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        add_AgentServiceServicer_to_server(self, self._server)
        self.port = self._server.add_secure_port(f"127.0.0.1:{port}", credentials)
        await self._server.start()
        return f"127.0.0.1:{self.port}"

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(grace=0)
            self._server = None

    def host(self, host_id: str) -> FakeHost:
        return self.hosts.setdefault(host_id, FakeHost())

    def tell(self, host_id: str, **message: Any) -> None:
        """Put a message on the host's present stream."""
        queue = self.host(host_id).queue
        assert queue is not None, f"{host_id} is not attached"
        queue.put_nowait(pb.SessionResponse(**message))

    def give(self, host_id: str, job: Job) -> None:
        """Have the job done: at once when the host asked for work, else at its next pull."""
        self.jobs[host_id] = job
        if self.host(host_id).pulled:
            self.host(host_id).pulled = False
            self.tell(host_id, assignment=job.assignment)

    async def Session(  # noqa: N802 - gRPC's own name
        self, requests: AsyncIterator[pb.SessionRequest], context: Context
    ) -> None:
        if self.refuse is not None:
            await context.abort(self.refuse, "this host is not enrolled here")
        hello = (await anext(requests)).hello
        host = self.host(hello.host_id)
        queue: asyncio.Queue[pb.SessionResponse] = asyncio.Queue()
        host.hellos.append(hello)
        host.queue, host.condition, host.pulled = queue, hello.condition, False
        host.streams += 1
        queue.put_nowait(
            pb.SessionResponse(
                welcome=pb.Welcome(
                    coordinator=self.name,
                    heartbeat_interval_s=self.interval_s,
                    reattach_span_s=0.2,
                    endpoints=self.endpoints,
                )
            )
        )
        writer = asyncio.create_task(self._write(queue, context))
        try:
            async for request in requests:
                host.heard.append(request)
                self._answer(hello.host_id, host, request)
        finally:
            writer.cancel()
            if host.queue is queue:
                host.queue, host.pulled = None, False

    async def _write(self, queue: asyncio.Queue[pb.SessionResponse], context: Context) -> None:
        while True:
            await context.write(await queue.get())

    def _answer(self, host_id: str, host: FakeHost, request: pb.SessionRequest) -> None:
        match request.WhichOneof("message"):
            case "heartbeat":
                if request.heartbeat.HasField("condition"):
                    host.condition = request.heartbeat.condition
                if self.answer_heartbeats:
                    reply = pb.HeartbeatReply(sequence=request.heartbeat.sequence, next_interval_s=self.interval_s)
                    self.tell(host_id, heartbeat_reply=reply)
            case "pull":
                job = self.jobs.get(host_id)
                if job is not None and job.outcome is None:
                    self.tell(host_id, assignment=job.assignment)
                else:
                    host.pulled = True
            case "started":
                self._started(host_id, request.started)
            case "outcome":
                self._outcome(host_id, request.outcome)

    def _started(self, host_id: str, started: pb.Started) -> None:
        job = self.jobs.get(host_id)
        if job is not None and job.give_go and job.assignment.task_id == started.task_id:
            job.gos += 1
            self.tell(host_id, go=go_for(started))

    def _outcome(self, host_id: str, outcome: pb.Outcome) -> None:
        job = self.jobs.get(host_id)
        if job is None or outcome.token != job.assignment.token:
            return
        job.outcome = outcome
        if job.recorded:
            self.tell(host_id, outcome_recorded=pb.OutcomeRecorded(task_id=outcome.task_id, token=outcome.token))


def go_for(started: pb.Started, expires_in_s: float = 10.0) -> pb.Go:
    return pb.Go(task_id=started.task_id, token=started.token, expires_in_s=expires_in_s, boot_id=started.boot_id)


def reboot_job(host: str = "h1", counter: int = 1, **over: Any) -> Job:
    options = {key: over.pop(key) for key in ("give_go", "recorded") if key in over}
    values: dict[str, Any] = {
        "task_id": f"c-1/{host}",
        "token": work_pb2.Token(epoch=1, counter=counter),
        "operation": work_pb2.OPERATION_KIND_REBOOT,
        "mode": work_pb2.REBOOT_MODE_SOFT,
        "campaign_id": "c-1",
        "actor": "ada",
        "reason": "new kernel",
        "drain_timeout_s": 5.0,
        "shutdown_timeout_s": 10.0,
        **over,
    }
    return Job(pb.Assignment(**values), **options)


@pytest.fixture
async def coordinator(certificates: Certificates) -> AsyncIterator[FakeCoordinator]:
    fake = FakeCoordinator()
    await fake.start(certificates)
    yield fake
    await fake.stop()


# --- machines ---------------------------------------------------------------------------------------------------------


class Machines:
    """The simulated machines of one folder, in a process of their own."""

    def __init__(self, folder: Path, certificates: Certificates, endpoints: list[str]) -> None:
        self.folder = folder
        self._certificates = certificates
        self._endpoints = endpoints
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, hosts: list[str], **over: Any) -> None:
        agent = {
            "session": {"backoff_first_s": 0.05, "backoff_cap_s": 0.5, "attach_timeout_s": 5.0, "reply_timeout_s": 2.0},
            "reboot": {"refusal_pause_s": 0.1, "outcome_repeat_s": 0.5},
            "drain": {"poll_interval_s": 0.1, "undo_retry_s": 0.2},
            **over.pop("agent", {}),
        }
        machines = [
            {
                "host": host,
                "host_id": f"id-{host}",
                "endpoints": self._endpoints,
                "tls": self._certificates.tls("agent"),
                "boot_seconds": 0.3,
                "agent": agent,
                **over,
            }
            for host in hosts
        ]
        (self.folder / "machines.json").write_text(json.dumps(machines))
        path = os.pathsep.join(str(ROOT / part) for part in ("agent", "protos"))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hostler_agent.simulated", "--dir", str(self.folder)],
            env={**os.environ, "PYTHONPATH": path},
            cwd=ROOT,
        )

    def order(self, line: str) -> None:
        descriptor = os.open(self.folder / "machines.fifo", os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(descriptor, line.encode() + b"\n")
        finally:
            os.close(descriptor)

    def effects(self, host: str = "h1", effect: str = "") -> list[dict[str, Any]]:
        try:
            lines = (self.folder / "effects.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines]
        return [one for one in found if one["host"] == host and effect in {"", one["effect"]}]

    def boots(self, host: str = "h1") -> int:
        return len(self.effects(host, "boot"))

    def pid(self, host: str = "h1") -> int:
        try:
            pid = json.loads((self.folder / "agents.json").read_text()).get(host)
        except FileNotFoundError:
            return 0
        return int(pid or 0)

    def journal(self, host: str = "h1") -> dict[str, Any]:
        try:
            _, entry = decode((self.folder / "hosts" / host / "journal.json").read_bytes())
        except FileNotFoundError:
            return {}
        return entry.model_dump(mode="json")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=10)
            self.process = None


@pytest.fixture
def machines(tmp_path: Path, certificates: Certificates, coordinator: FakeCoordinator) -> Any:
    standing = Machines(tmp_path, certificates, [f"127.0.0.1:{coordinator.port}"])
    yield standing
    standing.stop()
