"""How soon an agent comes back to a coordinator, by what it has to do and how often it failed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
import structlog

from hostler_agent.attachment import WORKING_CAP_S, WORKING_SPAN_S, Attachment, AttachmentSettings
from hostler_agent.board import Board
from hostler_agent.decide import Entry
from hostler_agent.ports import AttachError, SessionLostError
from hostler_agent.session import Hello, Incoming, Outgoing, Welcome
from hostler_contract.hosts import HostFacts
from unit.agent.situations import entry, situation

SPAN_S = 60.0
CAP_S = 300.0


class Ended(Exception):
    """The test has seen enough."""


class LostSession:
    """A stream that lived for a while and breaks as soon as it is read."""

    welcome = Welcome(coordinator="c1", heartbeat_interval_s=10.0, reattach_span_s=SPAN_S)

    async def send(self, message: Outgoing) -> None:
        raise SessionLostError(str(message))

    async def receive(self) -> Incoming:
        raise SessionLostError("reset by peer")

    async def close(self) -> None:
        return


class Coordinators:
    """Takes the agent in, or is away; every attempt lasts `lasts_s` of the agent's clock."""

    def __init__(self, clock: RecordingClock, *, away: bool, lasts_s: float) -> None:
        self.away = away
        self._clock = clock
        self._lasts_s = lasts_s

    async def attach(self, hello: Callable[[], Hello]) -> LostSession:
        hello()
        self._clock.at += self._lasts_s
        if self.away:
            raise AttachError("unreachable", "connection refused")
        return LostSession()


class RecordingClock:
    """Sleeps at once and keeps how long was asked for."""

    def __init__(self, sleeps: int) -> None:
        self.at = 1000.0
        self.slept: list[float] = []
        self._most = sleeps

    def now(self) -> float:
        return self.at

    async def sleep(self, duration_s: float) -> None:
        self.slept.append(duration_s)
        self.at += duration_s
        if len(self.slept) == self._most:
            raise Ended


class Facts:
    """The one thing of the host that attaching needs."""

    async def facts(self) -> HostFacts:
        return HostFacts()


async def pauses(given: Entry, *, away: bool, lasts_s: float = 20.0, count: int = 200) -> list[float]:
    """How long the agent stayed away each time; a stream of 20 s is no failure."""
    clock = RecordingClock(count)
    attachment = Attachment(
        Board(situation(given, attached=False)),
        Coordinators(clock, away=away, lasts_s=lasts_s),
        Facts(),  # type: ignore[arg-type]  # the rest of the host is of no interest here
        clock,
        random.Random(7),
        structlog.get_logger(),
        host_id="id-h1",
        settings=AttachmentSettings(backoff_first_s=0.5, backoff_cap_s=CAP_S),
    )
    with pytest.raises(Ended):
        await asyncio.wait_for(attachment.keep(), 20)
    return clock.slept


async def test_an_idle_host_comes_back_within_the_span_that_the_coordinator_named() -> None:
    slept = await pauses(Entry(), away=False)
    assert SPAN_S * 0.9 < max(slept) <= SPAN_S


async def test_a_host_at_work_comes_back_within_a_second() -> None:
    slept = await pauses(entry(), away=False)
    assert WORKING_SPAN_S * 0.9 < max(slept) <= WORKING_SPAN_S


async def test_while_no_coordinator_answers_an_idle_host_backs_off_to_the_cap() -> None:
    slept = await pauses(Entry(), away=True)
    assert CAP_S * 0.9 < max(slept) <= CAP_S


async def test_while_no_coordinator_answers_a_host_at_work_goes_on_trying() -> None:
    slept = await pauses(entry(), away=True)
    assert WORKING_CAP_S * 0.9 < max(slept) <= WORKING_CAP_S


async def test_a_stream_that_breaks_at_once_is_a_failure_also_for_a_host_at_work() -> None:
    slept = await pauses(entry(), away=False, lasts_s=0.0)
    assert max(slept) <= WORKING_CAP_S
    assert sum(slept[100:]) / 100 > WORKING_SPAN_S
