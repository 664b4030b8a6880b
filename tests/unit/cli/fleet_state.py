"""What the stand-in coordinator knows, how it refuses, and what its services share; no part of the product."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from hostler_contract import codec
from hostler_contract.pb.hostler.v1 import campaign_pb2 as cpb
from hostler_contract.views import (
    AuditEntry,
    BmcProbe,
    Campaign,
    Counts,
    DeadLetter,
    Domain,
    Hold,
    Host,
    HostWhy,
    Task,
)

SIZE_LIMIT = 100
SKEW_S = 420.0
"""This coordinator's clock is seven minutes ahead of the command line's (FC-D09)."""


def server_clock() -> float:
    return time.time() + SKEW_S


@dataclass
class Refusal(Exception):
    """An answer other than OK, with its google.rpc details."""

    code: grpc.StatusCode
    message: str
    details: tuple[Any, ...] = ()

    def send(self, context: grpc.ServicerContext) -> None:
        packed = []
        for detail in self.details:
            item = any_pb2.Any()
            item.Pack(detail)
            packed.append(item)
        status = status_pb2.Status(code=self.code.value[0], message=self.message, details=packed)
        assert status.code in code_pb2.Code.values()
        context.abort_with_status(rpc_status.to_status(status))


def info(reason: str, **metadata: str) -> error_details_pb2.ErrorInfo:
    return error_details_pb2.ErrorInfo(reason=reason, domain="hostler.v1", metadata=metadata)


def not_found(kind: str, name: str) -> Refusal:
    return Refusal(grpc.StatusCode.NOT_FOUND, f"there is no {kind} {name!r}", (info("no-such-" + kind),))


def bad_field(path: str, text: str) -> Refusal:
    bad = error_details_pb2.BadRequest()
    bad.field_violations.add(field=path, description=text)
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, "the request cannot be used", (info("bad-field"), bad))


@dataclass
class Fleet:
    """Everything that the stand-in knows; tests write into it directly."""

    hosts: dict[str, Host] = field(default_factory=dict)
    whys: dict[str, HostWhy] = field(default_factory=dict)
    domains: dict[str, Domain] = field(default_factory=dict)
    campaigns: dict[str, Campaign] = field(default_factory=dict)
    keys: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    letters: dict[str, DeadLetter] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    audit: list[AuditEntry] = field(default_factory=list)
    submitted: list[cpb.SubmitCampaignRequest] = field(default_factory=list)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)
    """Who plaintext calls said they came from."""
    watched: list[Campaign] = field(default_factory=list)
    """Every state that a watch has sent."""
    fails: dict[str, list[Refusal]] = field(default_factory=dict)
    """Refusals to give next, by method."""
    lost_answers: dict[str, int] = field(default_factory=dict)
    """How many answers get lost after the work was done, by method."""
    on_submit: Callable[[Fleet, Campaign], None] | None = None
    over_budget: list[str] = field(default_factory=list)
    """What a drain goes over; refused unless forced."""
    removals: int = 0
    """Hosts that an import removes; their number must then be stated."""
    probe: BmcProbe | None = None
    """What every BMC answers, in place of being on."""
    store_problem: str = ""
    notice: bytes = b""
    """Sent beside every answer: that it was read from old records."""
    changed: Condition = field(default_factory=Condition)

    def put(self, campaign: Campaign) -> None:
        with self.changed:
            self.campaigns[campaign.id] = campaign
            self.changed.notify_all()

    def campaign(self, campaign_id: str) -> Campaign:
        if campaign_id not in self.campaigns:
            raise not_found("campaign", campaign_id)
        return self.campaigns[campaign_id]

    def host(self, name: str) -> Host:
        if name not in self.hosts:
            raise not_found("host", name)
        return self.hosts[name]

    def select(self, selector: cpb.Selector) -> list[Host]:
        if selector.all:
            return list(self.hosts.values())
        if not selector.hosts and not selector.labels:
            raise bad_field("request.selector", "selects nothing")
        wanted = dict(term.split("=", 1) for term in selector.labels)
        named = [self.host(name) for name in selector.hosts]
        return named or [
            host for host in self.hosts.values() if all(host.labels.get(key) == value for key, value in wanted.items())
        ]


def make_host(number: int, **changes: Any) -> Host:
    fabric = "ib-a" if number % 2 else "ib-b"
    values: dict[str, Any] = {
        "id": f"h-{number}",
        "name": f"gpu-{number:03d}",
        "fabric": fabric,
        "rack": f"r{number // 8:02d}",
        "site": "fra1",
        "labels": {"fabric": fabric},
        "state": "up",
        "verdict": "ok",
        "boot_id": f"boot-{number}",
        "address": f"10.0.0.{number % 250}",
        "enrolled_at": server_clock() - 86400,
        "last_heard_at": server_clock() - 3,
    }
    return Host.model_validate(values | changes)


def make_campaign(campaign_id: str, **changes: Any) -> Campaign:
    now = server_clock()
    values: dict[str, Any] = {
        "id": campaign_id,
        "key": "k-" + campaign_id,
        "operation": "reboot",
        "mode": "soft",
        "state": "running",
        "created_at": now - 10,
        "created_by": "alice",
        "reason": "kernel",
        "target_count": 4,
        "counts": Counts(pending=4),
        "as_of": now,
    }
    return Campaign.model_validate(values | changes)


class Edge:
    """What the four services share: the log, scripted refusals, lost answers, pages."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def answer(self, name: str, request: Any, context: grpc.ServicerContext, work: Callable[[], Any]) -> Any:
        self.fleet.asked.append((name, request))
        claims = dict(context.invocation_metadata())
        if "hostler-plaintext-identity" in claims:
            self.fleet.callers.append(str(claims["hostler-plaintext-identity"]))
        try:
            if waiting := self.fleet.fails.get(name):
                raise waiting.pop(0)
            done = work()
            self._lose(name)
            if self.fleet.notice:
                context.set_trailing_metadata((("hostler-notice-bin", self.fleet.notice),))
        except Refusal as refusal:
            refusal.send(context)
        else:
            return done
        raise AssertionError("abort raises")

    def _lose(self, name: str) -> None:
        if self.fleet.lost_answers.get(name, 0) > 0:
            self.fleet.lost_answers[name] -= 1
            raise Refusal(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    @staticmethod
    def page(items: list[Any], request: Any, field_name: str, answer: Any) -> Any:
        start = int(request.page_token or 0)
        size = min(request.page_size or 50, 200)
        target = getattr(answer, field_name)
        for item in items[start : start + size]:
            codec.fill_message(item, target.add())
        if start + size < len(items):
            answer.next_page_token = str(start + size)
        return answer


def campaign_answer(answer: Any, campaign: Campaign) -> Any:
    codec.fill_message(campaign, answer.campaign)
    return answer


def stale_plan() -> Refusal:
    failure = error_details_pb2.PreconditionFailure()
    failure.violations.add(type="plan", subject="+3", description="gpu-121, gpu-122, gpu-123 were not in the plan")
    failure.violations.add(type="plan", subject="-1", description="gpu-007 was in the plan")
    return Refusal(
        grpc.StatusCode.FAILED_PRECONDITION,
        "the plan is out of date: +3 -1",
        (info("plan-stale", fix="plan again"), failure),
    )
