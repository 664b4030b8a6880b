"""The notifier against a real HTTP server on loopback: one call per cause, re-sent, resolved, and never lost."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hostler_contract.moments import parse_instant
from hostler_coordinator.notify import Alert, Notifier


class RealClock:
    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Webhook:
    """What Alertmanager would know, from the posts it took; `status` is what it answers."""

    def __init__(self) -> None:
        self.status = 200
        self.refused = 0
        self.posts: list[list[dict[str, Any]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if outer.status == 200:
                    outer.posts.append(body)
                else:
                    outer.refused += 1
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's own name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self.server.server_port}/api/v2/alerts"

    def told(self, name: str) -> list[str]:
        """For one alert, in order of the posts: standing or over."""
        now = time.time()
        alerts = [alert for post in self.posts for alert in post if alert["labels"]["alertname"] == name]
        return ["over" if float(str(parse_instant(alert["endsAt"]))) <= now else "standing" for alert in alerts]


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    hook = Webhook()
    hook.thread.start()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()
    hook.thread.join(5)


@asynccontextmanager
async def running(notifier: Notifier) -> AsyncIterator[Notifier]:
    task = asyncio.create_task(notifier.run())
    yield notifier
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def make(url: str, **settings: Any) -> Notifier:
    chosen = {"resend_every_s": 60.0, "retry_every_s": 0.05, "timeout_s": 1.0, **settings}
    return Notifier(url, RealClock(), generator_url="hostler", **chosen)


async def until(condition: Callable[[], bool], within_s: float = 15.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in a server thread
            await asyncio.sleep(0.01)


def fire(notifier: Notifier, name: str) -> None:
    notifier.fire(name, {"alertname": name}, {"summary": f"{name} waits"}, time.time())


async def test_fires_once_per_cause_and_resolves_when_cured(webhook: Webhook) -> None:
    async with running(make(webhook.url)) as notifier:
        fire(notifier, "DeadLetter")
        fire(notifier, "DeadLetter")
        await until(lambda: webhook.told("DeadLetter") == ["standing"])
        notifier.resolve("DeadLetter", time.time())
        await until(lambda: notifier.settled)
    assert len(webhook.posts) == 2
    first, last = (post[0] for post in webhook.posts)
    assert first["startsAt"] == last["startsAt"]
    assert last["endsAt"] < first["endsAt"]
    assert set(first) == {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}


async def test_sent_again_while_it_lasts(webhook: Webhook) -> None:
    async with running(make(webhook.url, resend_every_s=0.1)) as notifier:
        fire(notifier, "StoreUnavailable")
        await until(lambda: len(webhook.posts) >= 3)
    assert len({post[0]["startsAt"] for post in webhook.posts}) == 1


async def test_a_failing_webhook_loses_neither_fire_nor_resolve(webhook: Webhook) -> None:
    webhook.status = 503
    async with running(make(webhook.url)) as notifier:
        fire(notifier, "A")
        fire(notifier, "B")
        await until(lambda: webhook.refused >= 2)
        notifier.resolve("A", time.time())
        assert not notifier.settled
        await until(lambda: notifier.failing_since is not None)
        webhook.status = 200
        await until(lambda: notifier.settled)
    assert webhook.told("A")[-1:] == ["over"]
    assert webhook.told("B")[-1:] == ["standing"]
    assert notifier.failing_since is None


async def test_a_dead_webhook_blocks_nobody(webhook: Webhook) -> None:
    async with running(make("http://127.0.0.1:9/", most_alerts=10)) as notifier:
        began = time.monotonic()
        for number in range(1_000):
            fire(notifier, f"alert-{number}")
        assert time.monotonic() - began < 1.0
        assert (len(notifier.standing), notifier.dropped) == (10, 990)
        await until(lambda: notifier.failing_since is not None)


async def test_a_new_leader_tells_what_stands(webhook: Webhook) -> None:
    async with running(make(webhook.url)) as notifier:
        now = time.time()
        notifier.sync({"x": Alert({"alertname": "X"}), "y": Alert({"alertname": "Y"})}, now)
        await until(lambda: notifier.settled)
        notifier.sync({"y": Alert({"alertname": "Y"}), "z": Alert({"alertname": "Z"})}, time.time())
        await until(lambda: notifier.settled)
        assert set(notifier.standing) == {"y", "z"}
        notifier.forget()
        assert notifier.standing == {}
    assert webhook.told("X")[-1] == "over"
    assert webhook.told("Y") == ["standing"]
    assert webhook.told("Z") == ["standing"]


async def test_what_was_cured_before_anyone_was_called_calls_nobody(webhook: Webhook) -> None:
    notifier = make(webhook.url)
    fire(notifier, "Brief")
    notifier.resolve("Brief", time.time())
    fire(notifier, "Real")
    async with running(notifier):
        await until(lambda: notifier.settled)
    assert webhook.told("Brief") == []


async def test_a_cause_that_comes_back_before_its_end_was_told_stands(webhook: Webhook) -> None:
    async with running(make(webhook.url)) as notifier:
        fire(notifier, "Flap")
        await until(lambda: notifier.settled)
        webhook.status = 500
        notifier.resolve("Flap", time.time())
        await until(lambda: webhook.refused >= 1)
        fire(notifier, "Flap")
        webhook.status = 200
        await until(lambda: notifier.settled)
    assert webhook.told("Flap")[-1] == "standing"


def test_an_address_that_is_no_webhook() -> None:
    with pytest.raises(ValueError, match="http://"):
        make("ftp://x")
