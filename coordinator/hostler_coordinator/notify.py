"""Calls a person: keeps a webhook told of what stands; what deserves it is not decided here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from hostler_contract.moments import format_instant
from hostler_coordinator.ports import Clock

MOST_ALERTS = 1_000
MOST_PER_POST = 100
ATTEMPTS = 3
LONGEST_BACKOFF_S = 10.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Alert:
    """One cause that waits for a person. Alertmanager tells alerts apart by their labels."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Standing:
    alert: Alert
    since: float
    due_at: float
    ended_at: float | None = None
    attempted: bool = False


class Notifier:
    """Level-triggered: what stands is held here and sent again every `resend_every_s` until it is resolved.

    `fire`, `resolve` and `sync` only note what is so, and never wait; `run` does the sending. A webhook that is dead
    delays calls and loses none, up to `most_alerts`; beyond that the newest are refused and counted in `dropped`.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        timeout_s: float = 5.0,
        resend_every_s: float = 60.0,
        retry_every_s: float = 15.0,
        generator_url: str = "",
        most_alerts: int = MOST_ALERTS,
    ) -> None:
        if httpx.URL(url).scheme not in {"http", "https"}:
            raise ValueError("the webhook's address must start with http:// or https://")
        self._url = url
        self._clock = clock
        self._timeout_s = timeout_s
        self._resend_every_s = resend_every_s
        self._retry_every_s = retry_every_s
        self._generator_url = generator_url
        self._most_alerts = most_alerts
        self._standing: dict[str, _Standing] = {}
        self._ended: list[_Standing] = []
        self._wake = asyncio.Event()
        self.dropped = 0
        self.failing_since: float | None = None

    @property
    def standing(self) -> dict[str, Alert]:
        """What stands, by cause."""
        return {key: one.alert for key, one in self._standing.items()}

    @property
    def settled(self) -> bool:
        """True when the webhook has been told everything at least once."""
        return not self._ended and all(one.attempted and one.due_at > one.since for one in self._standing.values())

    def fire(self, key: str, labels: Mapping[str, str], annotations: Mapping[str, str], now: float) -> None:
        """Say that a cause stands; one that stands already keeps its start and takes the new annotations."""
        alert = Alert(dict(labels), dict(annotations))
        known = self._standing.get(key)
        if known and known.alert.labels == alert.labels:
            known.alert = alert
            return
        if known:
            self.resolve(key, now)
        elif len(self._standing) + len(self._ended) >= self._most_alerts:
            self.dropped += 1
            _log.warning("alert dropped", key=key, most_alerts=self._most_alerts)
            return
        self._standing[key] = _Standing(alert, since=now, due_at=now)
        # The same cause is back before its end was told: telling the end now would hide it.
        self._ended = [one for one in self._ended if one.alert.labels != alert.labels]
        self._wake.set()

    def resolve(self, key: str, now: float) -> None:
        """Say that a cause is cured; it is told until the webhook has heard it. Unknown causes are passed over."""
        known = self._standing.pop(key, None)
        if known is None or not known.attempted:
            return  # nobody was called, so nobody needs to be told that it is over
        known.ended_at = now
        self._ended.append(known)
        self._wake.set()

    def sync(self, current: Mapping[str, Alert], now: float) -> None:
        """Make what stands equal to `current`: fires what is new, resolves what is gone."""
        for key in self._standing.keys() - current.keys():
            self.resolve(key, now)
        for key, alert in current.items():
            self.fire(key, alert.labels, alert.annotations, now)

    def forget(self) -> None:
        """Stop speaking, without resolving anything: another leader tells what stands from now on."""
        self._standing.clear()
        self._ended.clear()

    async def run(self) -> None:
        """Send what is due, until cancelled."""
        async with httpx.AsyncClient(timeout=self._timeout_s) as client:
            while True:
                self._wake.clear()
                sent = await self._send_due(client)
                await self._pause(self._wait_s() if sent else self._retry_every_s, wakeable=sent)

    async def _send_due(self, client: httpx.AsyncClient) -> bool:
        """Send one batch; False when the webhook did not take it."""
        now = self._clock.now()
        due = [one for one in self._standing.values() if one.due_at <= now]
        batch = [*self._ended, *due][:MOST_PER_POST]
        if not batch:
            return True
        for one in batch:
            one.attempted = True
        try:
            await self._post(client, [self._written(one, now) for one in batch])
        except httpx.HTTPError as error:
            self._failed(error, len(batch), now)
            return False
        self.failing_since = None
        for one in batch:
            one.due_at = now + self._resend_every_s
        told = {id(one) for one in batch if one.ended_at is not None}
        # One that ended while it was being sent as standing is not told yet: it was not in the batch as ended.
        told -= {id(one) for one in due}
        self._ended = [one for one in self._ended if id(one) not in told]
        return True

    async def _post(self, client: httpx.AsyncClient, body: list[dict[str, object]]) -> None:
        attempts = AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.2, max=LONGEST_BACKOFF_S),
            retry=retry_if_exception_type(httpx.HTTPError),
            sleep=self._clock.sleep,
            reraise=True,
        )
        async for attempt in attempts:
            with attempt:
                (await client.post(self._url, json=body)).raise_for_status()

    def _failed(self, error: httpx.HTTPError, count: int, now: float) -> None:
        if self.failing_since is None:
            self.failing_since = now
        # The address may hold a token, and so may the error's text: only the host and the kind are logged.
        told = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else type(error).__name__
        _log.warning("webhook did not take alerts", host=httpx.URL(self._url).host, alerts=count, problem=told)

    def _wait_s(self) -> float:
        """Until the next alert is due; nothing standing waits for a wake, looking up once per resend interval."""
        now = self._clock.now()
        if self._ended:
            return 0.0
        next_at = min((one.due_at for one in self._standing.values()), default=now + self._resend_every_s)
        return max(0.0, next_at - now)

    async def _pause(self, seconds: float, *, wakeable: bool) -> None:
        """Wait that long, or, when `wakeable`, until something was noted; a failing webhook is not hurried."""
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._clock.sleep(seconds))]
        if wakeable:
            waits.append(asyncio.ensure_future(self._wake.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await one

    def _written(self, one: _Standing, now: float) -> dict[str, object]:
        """As Alertmanager takes it. A standing alert ends by itself after three resends, should we all die."""
        ends_at = now + 3 * self._resend_every_s if one.ended_at is None else one.ended_at
        return {
            "labels": dict(one.alert.labels),
            "annotations": dict(one.alert.annotations),
            "startsAt": format_instant(one.since),
            "endsAt": format_instant(ends_at),
            "generatorURL": self._generator_url,
        }
