"""Agents that lose their coordinator for long, in virtual time: when each is back, and how evenly all of them are."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field

import pytest

from hostler_agent.assembly import World, assemble
from hostler_agent.attachment import Attachment, AttachmentSettings
from hostler_agent.backoff import full_jitter_s
from hostler_agent.board import Board
from hostler_agent.config import Settings
from hostler_agent.decide import ActState, Blocker, Entry
from hostler_agent.drain import NoDrain
from hostler_agent.ports import ActResult, AttachError, Loaded, Reading, SessionLostError, Verdict
from hostler_agent.session import Assignment, Heartbeat, HeartbeatReply, Hello, Incoming, Outgoing, Pull, Welcome
from hostler_contract.hosts import HostFacts, Usability
from simulator.loop import new_loop
from unit.agent.situations import OLD, situation

AGENTS = 3000
CAP_S = 300.0
ATTACH_TIMEOUT_S = 10.0
DEFAULT_CAP_S = 60.0


class VirtualClock:
    """The loop's own time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, duration_s: float) -> None:
        await asyncio.sleep(duration_s)


class Quiet:
    """A logger and a supervisor that keep nothing: three thousand agents have much to say."""

    def info(self, event: str, **words: object) -> None:
        """Ignore."""

    warning = error = info

    def bind(self, **words: object) -> Quiet:
        return self

    def ready(self) -> None:
        """Ignore."""

    def status(self, text: str) -> None:
        """Ignore."""

    def alive(self) -> None:
        """Ignore."""


class HealthyHost:
    """A host that is up, free and usable all the time."""

    async def read(self) -> Reading:
        return Reading(boot_id=OLD, soft_reboots=0)

    async def facts(self) -> HostFacts:
        return HostFacts()

    async def blockers(self) -> tuple[Blocker, ...]:
        return ()

    async def reboot(self, order: Assignment) -> ActResult:
        return ActResult(ActState.ACCEPTED)

    async def run(self) -> Verdict:
        return Verdict(Usability.USABLE)


class MemoryJournal:
    """Keeps the newest entry."""

    def __init__(self) -> None:
        self.entry = Entry()

    async def load(self) -> Loaded:
        return Loaded(self.entry)

    async def save(self, entry: Entry) -> None:
        self.entry = entry


# --- the way to the coordinator ---------------------------------------------------------------------------------------


@dataclass
class Outage:
    """From `at` on, for `lasts_s`: connections are refused and broken, or packets are dropped without a word."""

    at: float
    lasts_s: float
    drops: frozenset[str] = frozenset()
    """Of *up* (to the coordinator) and *down*; none means that connections break and are refused."""

    @property
    def over_at(self) -> float:
        return self.at + self.lasts_s

    def holds(self, way: str) -> bool:
        return self.at <= asyncio.get_running_loop().time() < self.over_at and way in (self.drops or {"up", "down"})


@dataclass
class Line:
    """The way of one agent to its coordinator, which welcomes it and answers every beat; says when what arrived."""

    outage: Outage
    arrived: list[tuple[float, type[Outgoing]]] = field(default_factory=list)
    attempts: list[float] = field(default_factory=list)
    beats_again: asyncio.Event = field(default_factory=asyncio.Event)

    async def attach(self, hello: Callable[[], Hello]) -> Stream:
        now = asyncio.get_running_loop().time()
        self.attempts.append(now)
        stream = Stream(self)
        await stream.send(hello())
        if self.outage.holds("up") and not self.outage.drops:
            raise AttachError("unreachable", "connection refused")
        if self.outage.holds("up") or self.outage.holds("down"):
            await asyncio.sleep(ATTACH_TIMEOUT_S)
            raise AttachError("timeout", "no welcome in time")
        return stream

    def first(self, kind: type[Outgoing]) -> float:
        """When the first of a kind arrived after the outage, seconds after it; infinite when none did."""
        over_at = self.outage.over_at
        return min((at - over_at for at, what in self.arrived if what is kind and at >= over_at), default=float("inf"))


class Stream:
    """One stream. What is dropped is gone without an error; where nothing is dropped, an outage breaks the stream."""

    welcome = Welcome(coordinator="c1", heartbeat_interval_s=10.0, reattach_span_s=30.0)

    def __init__(self, line: Line) -> None:
        self._line = line
        self._answers: asyncio.Queue[Incoming] = asyncio.Queue()

    async def send(self, message: Outgoing) -> None:
        if self._line.outage.holds("up"):
            return
        now = asyncio.get_running_loop().time()
        self._line.arrived.append((now, type(message)))
        if isinstance(message, Heartbeat) and not self._line.outage.holds("down"):
            self._answers.put_nowait(HeartbeatReply(sequence=message.sequence))
            if now >= self._line.outage.over_at:
                self._line.beats_again.set()

    async def receive(self) -> Incoming:
        outage = self._line.outage
        until_s = outage.at - asyncio.get_running_loop().time()
        if outage.drops or until_s < 0:
            return await self._answers.get()
        try:
            return await asyncio.wait_for(self._answers.get(), until_s)
        except TimeoutError:
            raise SessionLostError("reset by peer") from None

    async def close(self) -> None:
        """Nothing of it stays."""


# --- the agents -------------------------------------------------------------------------------------------------------


async def live(line: Line, seed: int) -> None:
    """One whole agent with the settings that it has by default; ends by cancellation."""
    host, quiet = HealthyHost(), Quiet()
    world = World(
        host=host,
        checks=host,
        journal=MemoryJournal(),
        drain=NoDrain(),
        coordinators=line,
        clock=VirtualClock(),
        supervisor=quiet,
        chance=random.Random(seed),
    )
    agent, _ = await assemble(world, Settings(host_id="id-h1", endpoints=("c1:1",)), quiet)
    await agent.run()


async def attach_only(line: Line, seed: int) -> None:
    """The agent's line to the control plane alone, until it beats again: three thousand whole agents take too long."""
    attachment = Attachment(
        Board(situation(Entry(), attached=False)),
        line,
        HealthyHost(),
        VirtualClock(),
        random.Random(seed),
        Quiet(),
        host_id="id-h1",
        settings=AttachmentSettings(backoff_first_s=0.5, backoff_cap_s=CAP_S),
    )
    keeping = asyncio.create_task(attachment.keep())
    try:
        await line.beats_again.wait()
    finally:
        keeping.cancel()


def run_all(
    lines: Iterable[Line], live_one: Callable[[Line, int], Coroutine[None, None, None]], lasts_s: float
) -> None:
    """Have every agent live for so long."""

    async def world() -> None:
        tasks = [asyncio.create_task(live_one(line, seed)) for seed, line in enumerate(lines)]
        ended, left = await asyncio.wait(tasks, timeout=lasts_s)
        for task in left:
            task.cancel()
        await asyncio.wait(tasks)
        assert [task.result() for task in ended] == [None] * len(ended)

    new_loop(random.Random(1)).run_until_complete(world())


def fullest_second(moments: Iterable[float]) -> int:
    return max(Counter(int(at) for at in moments).values())


# --- FC-A23 -----------------------------------------------------------------------------------------------------------


def test_fc_a23_after_twenty_minutes_three_thousand_agents_come_back_spread_over_the_cap() -> None:
    lines = [Line(Outage(60.0, 1200.0)) for _ in range(AGENTS)]
    run_all(lines, attach_only, 60.0 + 1200.0 + CAP_S + 30.0)
    mean = AGENTS / CAP_S
    attached = [line.first(Hello) for line in lines]
    assert max(attached) <= CAP_S
    assert fullest_second(attached) <= 3 * mean
    assert fullest_second(line.first(Heartbeat) for line in lines) <= 3 * mean


def test_fc_a23_what_an_agent_says_first_follows_its_own_return() -> None:
    """It asks for work at once and beats one interval later: both are spread as the returns are."""
    lines = [Line(Outage(60.0, 1200.0)) for _ in range(20)]
    run_all(lines, live, 60.0 + 1200.0 + 90.0)
    for line in lines:
        assert line.first(Hello) <= DEFAULT_CAP_S
        assert line.first(Pull) - line.first(Hello) < 0.1
        assert 8.9 < line.first(Heartbeat) - line.first(Hello) < 11.1


@pytest.mark.parametrize("lasts_s", [700.0, 900.0, 1200.0, 1800.0, 3600.0])
def test_however_long_the_outage_the_rate_of_returns_is_the_same(lasts_s: float) -> None:
    """Drawn from the schedule alone, so that many more agents make the noise small."""
    returned = [back_after(lasts_s, seed) for seed in range(20_000)]
    assert max(returned) <= CAP_S
    tenths = Counter(int(at / CAP_S * 10) for at in returned)
    assert max(tenths.values()) <= 1.11 * 2_000 * 1.08
    assert min(tenths[tenth] for tenth in range(8)) >= 1.11 * 2_000 * 0.92


def back_after(outage_s: float, seed: int) -> float:
    chance, at = random.Random(seed), 0.0
    for attempt in itertools.count():
        if at >= outage_s:
            break
        at += full_jitter_s(attempt, chance, first_s=0.5, cap_s=CAP_S)
    return at - outage_s


def test_a_short_outage_is_over_soon() -> None:
    lines = [Line(Outage(60.0, 3.0)) for _ in range(200)]
    run_all(lines, attach_only, 60.0 + 3.0 + 60.0)
    returned = [line.first(Hello) for line in lines]
    assert max(returned) < 30.0 + 16.0
    assert sum(returned) / len(returned) < 15.0


# --- FC-A22 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drops", [{"up"}, {"down"}, {"up", "down"}], ids="-".join)
def test_fc_a22_after_335_s_of_dropped_packets_the_agent_asks_for_work_within_one_cap(drops: set[str]) -> None:
    lines = [Line(Outage(60.0, 335.0, frozenset(drops))) for _ in range(30)]
    run_all(lines, live, 60.0 + 335.0 + 120.0)
    for line in lines:
        assert line.first(Pull) <= DEFAULT_CAP_S
        in_vain = [at for at in line.attempts if 60.0 < at < 60.0 + 335.0]
        assert 6 <= len(in_vain) <= 16
        assert max(b - a for a, b in itertools.pairwise(in_vain)) <= DEFAULT_CAP_S
