"""A small coordinator that answers the public API over real gRPC on loopback, with state; no part of the product."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from hostler_contract import codec
from hostler_contract.campaigns import ENDED, CampaignRequest, CampaignState
from hostler_contract.hosts import HoldKind
from hostler_contract.pb.hostler.v1 import audit_pb2, audit_pb2_grpc
from hostler_contract.pb.hostler.v1 import campaign_pb2 as cpb
from hostler_contract.pb.hostler.v1 import campaign_pb2_grpc as cgrpc
from hostler_contract.pb.hostler.v1 import deadletter_pb2 as dpb
from hostler_contract.pb.hostler.v1 import deadletter_pb2_grpc as dgrpc
from hostler_contract.pb.hostler.v1 import fleet_pb2 as fpb
from hostler_contract.pb.hostler.v1 import fleet_pb2_grpc as fgrpc
from hostler_contract.views import (
    AuditEntry,
    BmcProbe,
    Campaign,
    Consequence,
    Counts,
    DeadLetter,
    Domain,
    Hold,
    Host,
    HostWhy,
    InventoryChange,
    Plan,
    Status,
    Task,
)
from hostler_contract.work import DeadLetterState, Resolution, ResolutionKind

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
    fails: dict[str, list[Refusal]] = field(default_factory=dict)
    """Refusals to give next, by method."""
    lost_answers: dict[str, int] = field(default_factory=dict)
    """How many answers get lost after the work was done, by method."""
    on_submit: Callable[[Fleet, Campaign], None] | None = None
    store_problem: str = ""
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


class _Edge:
    """What the four services share: the log, scripted refusals, lost answers, pages."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def answer(self, name: str, request: Any, context: grpc.ServicerContext, work: Callable[[], Any]) -> Any:
        self.fleet.asked.append((name, request))
        try:
            if waiting := self.fleet.fails.get(name):
                raise waiting.pop(0)
            done = work()
            if self.fleet.lost_answers.get(name, 0) > 0:
                self.fleet.lost_answers[name] -= 1
                raise Refusal(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        except Refusal as refusal:
            refusal.send(context)
        else:
            return done
        raise AssertionError("abort raises")

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


def _campaign_answer(answer: Any, campaign: Campaign) -> Any:
    codec.fill_message(campaign, answer.campaign)
    return answer


class CampaignDesk(_Edge, cgrpc.CampaignServiceServicer):  # type: ignore[misc]
    """CampaignService."""

    def PlanCampaign(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            hosts = self.fleet.select(request.request.selector)
            for limit in request.request.limits.max_down:
                if limit.endswith("=0"):
                    raise bad_field("request.limits.max_down[0]", f"{limit!r} lets nothing start; give at least 1")
            return cpb.PlanCampaignResponse(plan=codec.to_message(self._plan(hosts), cpb.Plan))

        return self.answer("PlanCampaign", request, context, work)

    @staticmethod
    def _plan(hosts: list[Host]) -> Plan:
        fabrics = sorted({host.fabric for host in hosts})
        return Plan.model_validate(
            {
                "plan_token": f"p-{len(hosts)}",
                "target_count": len(hosts),
                "waves": [
                    {"number": 1, "host_count": 1, "hosts": [hosts[0].name]},
                    {"number": 2, "host_count": len(hosts) - 1, "hosts": [host.name for host in hosts[1:20]]},
                ],
                "domains": [
                    {
                        "domain": f"fabric/{name}",
                        "enrolled": 61,
                        "targets": sum(host.fabric == name for host in hosts),
                        "charged_now": 1,
                        "limit": 3,
                        "limit_from": "campaign",
                        "rounding": "5% of 61 = 3.05, rounded down to 3",
                        "peak_down": 3,
                    }
                    for name in fabrics
                ],
                "blocked": [{"host": hosts[0].name, "code": "job-running", "why": "job 4711 of bob runs here"}],
                "expected_duration_s": 1260,
                "expected_from": "learned boot time of 4 min 10 s",
                "notes": ["gpu-002: name changed since the inventory"],
                "needs_count": len(hosts) > SIZE_LIMIT,
            }
        )

    def SubmitCampaign(self, request: Any, context: Any) -> Any:
        return self.answer("SubmitCampaign", request, context, lambda: self._submit(request))

    def _submit(self, request: Any) -> Any:
        digest = request.request.SerializeToString(deterministic=True)
        if request.key in self.fleet.keys:
            before, campaign_id = self.fleet.keys[request.key]
            if before != digest:
                raise Refusal(
                    grpc.StatusCode.ALREADY_EXISTS,
                    f"key {request.key!r} was used for another request",
                    (info("key-reused", holder=campaign_id, fix="use a new key for a new request"),),
                )
            answer = cpb.SubmitCampaignResponse(repeated_key=True)
            return _campaign_answer(answer, self.fleet.campaigns[campaign_id])
        hosts = self.fleet.select(request.request.selector)
        if len(hosts) > SIZE_LIMIT and not request.confirmed and request.expect_count != len(hosts):
            raise Refusal(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"{len(hosts)} hosts are selected, {request.expect_count} were expected",
                (info("count-differs"),),
            )
        if request.plan_token and request.plan_token != f"p-{len(hosts)}":
            raise stale_plan()
        asked = codec.from_message(CampaignRequest, request.request)
        campaign_id = f"c-{len(self.fleet.campaigns) + 1}"
        campaign = make_campaign(
            campaign_id,
            key=request.key,
            operation=asked.operation,
            mode=asked.mode,
            reason=asked.reason,
            selector=asked.selector,
            limits=asked.limits,
            target_count=len(hosts),
            counts=Counts(pending=len(hosts)),
        )
        self.fleet.submitted.append(request)
        self.fleet.keys[request.key] = (digest, campaign_id)
        self.fleet.put(campaign)
        if self.fleet.on_submit is not None:
            self.fleet.on_submit(self.fleet, campaign)
        return _campaign_answer(cpb.SubmitCampaignResponse(), campaign)

    def GetCampaign(self, request: Any, context: Any) -> Any:
        return self.answer(
            "GetCampaign",
            request,
            context,
            lambda: _campaign_answer(cpb.GetCampaignResponse(), self.fleet.campaign(request.id)),
        )

    def ListCampaigns(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            wanted = {cpb.CampaignState.Name(state).removeprefix("CAMPAIGN_STATE_").lower() for state in request.states}
            found = [item for item in self.fleet.campaigns.values() if not wanted or item.state in wanted]
            return self.page(found, request, "campaigns", cpb.ListCampaignsResponse())

        return self.answer("ListCampaigns", request, context, work)

    def WatchCampaign(self, request: Any, context: Any) -> Iterator[Any]:
        campaign = self.answer("WatchCampaign", request, context, lambda: self.fleet.campaign(request.id))
        while context.is_active():
            yield _campaign_answer(cpb.WatchCampaignResponse(), campaign)
            if campaign.state in ENDED:
                return
            with self.fleet.changed:
                before = campaign
                self.fleet.changed.wait_for(lambda: self.fleet.campaigns[request.id] is not before, timeout=0.2)
                while self.fleet.campaigns[request.id] is before and context.is_active():
                    self.fleet.changed.wait(timeout=0.2)
                campaign = self.fleet.campaigns[request.id]

    def _steer(self, request: Any, state: CampaignState, answer: Any, consequence: Consequence) -> Any:
        campaign = self.fleet.campaign(request.id)
        if campaign.state in ENDED:
            raise Refusal(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"campaign {campaign.id} is {campaign.state} already",
                (info("ended", fix="submit a new one"),),
            )
        changed = campaign.model_copy(update={"state": state, "state_reason": request.reason})
        if not request.dry_run:
            self.fleet.put(changed)
        codec.fill_message(consequence, answer.consequences.add())
        return _campaign_answer(answer, campaign if request.dry_run else changed)

    def PauseCampaign(self, request: Any, context: Any) -> Any:
        what = Consequence(kind="waiting", host_count=3, hosts=("gpu-002", "gpu-003"), text="start after a resume")
        return self.answer(
            "PauseCampaign",
            request,
            context,
            lambda: self._steer(request, CampaignState.PAUSED, cpb.PauseCampaignResponse(), what),
        )

    def ResumeCampaign(self, request: Any, context: Any) -> Any:
        what = Consequence(kind="waiting", host_count=3, text="start as the limits allow")
        return self.answer(
            "ResumeCampaign",
            request,
            context,
            lambda: self._steer(request, CampaignState.RUNNING, cpb.ResumeCampaignResponse(), what),
        )

    def AbortCampaign(self, request: Any, context: Any) -> Any:
        what = Consequence(kind="withdrawn", host_count=12, text="never start")
        return self.answer(
            "AbortCampaign",
            request,
            context,
            lambda: self._steer(request, CampaignState.ABORTED, cpb.AbortCampaignResponse(), what),
        )

    def ListTasks(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            self.fleet.campaign(request.campaign_id)
            found = [task for task in self.fleet.tasks.values() if task.campaign_id == request.campaign_id]
            return self.page(found, request, "tasks", cpb.ListTasksResponse())

        return self.answer("ListTasks", request, context, work)

    def GetTask(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            name = f"{request.campaign_id}/{request.host}"
            if name not in self.fleet.tasks:
                raise not_found("task", name)
            return cpb.GetTaskResponse(task=codec.to_message(self.fleet.tasks[name], cpb.Task))

        return self.answer("GetTask", request, context, work)


def stale_plan() -> Refusal:
    failure = error_details_pb2.PreconditionFailure()
    failure.violations.add(type="plan", subject="+3", description="gpu-121, gpu-122, gpu-123 were not in the plan")
    failure.violations.add(type="plan", subject="-1", description="gpu-007 was in the plan")
    return Refusal(
        grpc.StatusCode.FAILED_PRECONDITION,
        "the plan is out of date: +3 -1",
        (info("plan-stale", fix="plan again"), failure),
    )


class FleetDesk(_Edge, fgrpc.FleetServiceServicer):  # type: ignore[misc]
    """FleetService."""

    def ListHosts(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            found = self.fleet.select(request.selector) if request.HasField("selector") else self.fleet.hosts.values()
            return self.page(list(found), request, "hosts", fpb.ListHostsResponse())

        return self.answer("ListHosts", request, context, work)

    def GetHost(self, request: Any, context: Any) -> Any:
        return self._host("GetHost", request, context, {}, fpb.GetHostResponse)

    def _host(self, name: str, request: Any, context: Any, changes: dict[str, Any], response: Any) -> Any:
        def work() -> Any:
            host = self.fleet.host(request.host).model_copy(update=changes)
            if changes and not getattr(request, "dry_run", False):
                self.fleet.hosts[host.name] = host
            return response(host=codec.to_message(host, fpb.Host))

        return self.answer(name, request, context, work)

    def ExplainHost(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            self.fleet.host(request.host)
            return fpb.ExplainHostResponse(why=codec.to_message(self.fleet.whys[request.host], fpb.HostWhy))

        return self.answer("ExplainHost", request, context, work)

    def _mark(self, name: str, request: Any, context: Any, owner: str, response: Any) -> Any:
        def work() -> Any:
            found = self.fleet.select(request.selector)
            if not request.dry_run:
                for host in found:
                    self.fleet.hosts[host.name] = host.model_copy(update={"drained_by": owner})
            return response(hosts=[host.name for host in found])

        return self.answer(name, request, context, work)

    def DrainHosts(self, request: Any, context: Any) -> Any:
        return self._mark("DrainHosts", request, context, "alice", fpb.DrainHostsResponse)

    def UndrainHosts(self, request: Any, context: Any) -> Any:
        return self._mark("UndrainHosts", request, context, "", fpb.UndrainHostsResponse)

    def NoteHost(self, request: Any, context: Any) -> Any:
        return self._host("NoteHost", request, context, {"note": request.note}, fpb.NoteHostResponse)

    def RetireHost(self, request: Any, context: Any) -> Any:
        return self._host("RetireHost", request, context, {"state": "retired"}, fpb.RetireHostResponse)

    def RebindHost(self, request: Any, context: Any) -> Any:
        return self._host("RebindHost", request, context, {"serial": request.serial}, fpb.RebindHostResponse)

    def RemoveHost(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            host = self.fleet.host(request.host)
            if not request.dry_run:
                del self.fleet.hosts[host.name]
            return fpb.RemoveHostResponse(host_id=host.id, consequence="its history goes with it")

        return self.answer("RemoveHost", request, context, work)

    def ImportInventory(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            change = InventoryChange(kind="changed", host_id="h-1", name="gpu-001", fields=("rack: r1 -> r2",))
            answer = fpb.ImportInventoryResponse(unchanged=7, applied=not request.dry_run)
            codec.fill_message(change, answer.changes.add())
            return answer

        return self.answer("ImportInventory", request, context, work)

    def ProbeBmc(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            self.fleet.host(request.host)
            return codec.to_message(BmcProbe(power="on", text="power is on", at=server_clock()), fpb.ProbeBmcResponse)

        return self.answer("ProbeBmc", request, context, work)

    def ListDomains(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            found = [item for item in self.fleet.domains.values() if not request.kind or item.kind == request.kind]
            return self.page(found, request, "domains", fpb.ListDomainsResponse())

        return self.answer("ListDomains", request, context, work)

    def _domain(self, name: str) -> Domain:
        if name not in self.fleet.domains:
            raise not_found("domain", name)
        return self.fleet.domains[name]

    def GetDomain(self, request: Any, context: Any) -> Any:
        return self.answer(
            "GetDomain",
            request,
            context,
            lambda: fpb.GetDomainResponse(domain=codec.to_message(self._domain(request.name), fpb.Domain)),
        )

    def SetDomainBudget(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            domain = self._domain(request.name).model_copy(update={"budget": request.budget, "limit": 5})
            if not request.dry_run:
                self.fleet.domains[domain.name] = domain
            return fpb.SetDomainBudgetResponse(domain=codec.to_message(domain, fpb.Domain))

        return self.answer("SetDomainBudget", request, context, work)

    def AddHold(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            answer = fpb.AddHoldResponse()
            for host in self.fleet.select(request.selector):
                until = request.until.ToNanoseconds() / 1e9 if request.HasField("until") else None
                kind = HoldKind(fpb.HoldKind.Name(request.kind).removeprefix("HOLD_KIND_").lower())
                hold = Hold(
                    id=f"hold-{len(self.fleet.holds) + 1}",
                    host_id=host.id,
                    host=host.name,
                    kind=kind,
                    reason=request.reason,
                    owner="alice",
                    at=server_clock(),
                    until=until,
                )
                if not request.dry_run:
                    self.fleet.holds[hold.id] = hold
                codec.fill_message(hold, answer.holds.add())
            return answer

        return self.answer("AddHold", request, context, work)

    def ListHolds(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            return self.page(list(self.fleet.holds.values()), request, "holds", fpb.ListHoldsResponse())

        return self.answer("ListHolds", request, context, work)

    def RemoveHold(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            if request.id not in self.fleet.holds:
                raise not_found("hold", request.id)
            hold = self.fleet.holds[request.id]
            if not request.dry_run:
                del self.fleet.holds[request.id]
            return fpb.RemoveHoldResponse(hold=codec.to_message(hold, fpb.Hold))

        return self.answer("RemoveHold", request, context, work)

    def ReleaseBrake(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            answer = fpb.ReleaseBrakeResponse(hosts=[self.fleet.host(name).name for name in request.hosts])
            answer.until.FromSeconds(round(server_clock()) + 600)
            return answer

        return self.answer("ReleaseBrake", request, context, work)

    def GetStatus(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            now = server_clock()
            status = Status(
                coordinator="c1",
                leader="c2",
                leader_address="127.0.0.1:7001",
                leader_since=now - 3600,
                store_unavailable_since=now - 30 if self.fleet.store_problem else None,
                store_problem=self.fleet.store_problem,
                hosts=len(self.fleet.hosts),
                hosts_heard=len(self.fleet.hosts),
                now=now,
                version="0.1.0",
            )
            return codec.to_message(status, fpb.GetStatusResponse)

        return self.answer("GetStatus", request, context, work)


class DeadLetterDesk(_Edge, dgrpc.DeadLetterServiceServicer):  # type: ignore[misc]
    """DeadLetterService."""

    def _letter(self, name: str) -> DeadLetter:
        if name not in self.fleet.letters:
            raise not_found("dead letter", name)
        return self.fleet.letters[name]

    def ListDeadLetters(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            wanted = {
                dpb.DeadLetterState.Name(item).removeprefix("DEAD_LETTER_STATE_").lower() for item in request.states
            }
            found = [
                letter
                for letter in self.fleet.letters.values()
                if (not wanted or letter.state in wanted) and request.campaign_id in {"", letter.campaign_id}
            ]
            return self.page(found, request, "dead_letters", dpb.ListDeadLettersResponse())

        return self.answer("ListDeadLetters", request, context, work)

    def GetDeadLetter(self, request: Any, context: Any) -> Any:
        return self.answer(
            "GetDeadLetter",
            request,
            context,
            lambda: dpb.GetDeadLetterResponse(dead_letter=codec.to_message(self._letter(request.id), dpb.DeadLetter)),
        )

    def RetryDeadLetters(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            letters = [self._letter(name) for name in request.ids]
            campaign = make_campaign(
                f"c-{len(self.fleet.campaigns) + 1}",
                key=request.key,
                retry_of=letters[0].campaign_id,
                target_count=len(letters),
                counts=Counts(pending=len(letters)),
            )
            if not request.dry_run:
                self.fleet.put(campaign)
                if self.fleet.on_submit is not None:
                    self.fleet.on_submit(self.fleet, campaign)
            return _campaign_answer(dpb.RetryDeadLettersResponse(), campaign)

        return self.answer("RetryDeadLetters", request, context, work)

    def ResolveDeadLetter(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            kind = ResolutionKind(dpb.ResolutionKind.Name(request.kind).removeprefix("RESOLUTION_KIND_").lower())
            resolution = Resolution(
                kind=kind, by="alice", at=server_clock(), ticket=request.ticket, reason=request.reason
            )
            letter = self._letter(request.id).model_copy(
                update={"state": DeadLetterState.RESOLVED, "resolution": resolution}
            )
            if not request.dry_run:
                self.fleet.letters[letter.id] = letter
            return dpb.ResolveDeadLetterResponse(dead_letter=codec.to_message(letter, dpb.DeadLetter))

        return self.answer("ResolveDeadLetter", request, context, work)


class AuditDesk(_Edge, audit_pb2_grpc.AuditServiceServicer):  # type: ignore[misc]
    """AuditService."""

    def ListAudit(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            return self.page(self.fleet.audit, request, "entries", audit_pb2.ListAuditResponse())

        return self.answer("ListAudit", request, context, work)

    def ExportAudit(self, request: Any, context: Any) -> Iterator[Any]:
        self.fleet.asked.append(("ExportAudit", request))
        for start in range(0, len(self.fleet.audit), 500):
            part = [codec.to_message(item, audit_pb2.AuditEntry) for item in self.fleet.audit[start : start + 500]]
            yield audit_pb2.ExportAuditResponse(entries=part)
        for refusal in self.fleet.fails.pop("ExportAudit", []):
            refusal.send(context)


@dataclass
class StandIn:
    """One listening coordinator."""

    fleet: Fleet
    endpoint: str
    server: grpc.Server

    def stop(self) -> None:
        self.server.stop(grace=None).wait(timeout=5)


def start(fleet: Fleet, credentials: grpc.ServerCredentials | None = None) -> StandIn:
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    cgrpc.add_CampaignServiceServicer_to_server(CampaignDesk(fleet), server)
    fgrpc.add_FleetServiceServicer_to_server(FleetDesk(fleet), server)
    dgrpc.add_DeadLetterServiceServicer_to_server(DeadLetterDesk(fleet), server)
    audit_pb2_grpc.add_AuditServiceServicer_to_server(AuditDesk(fleet), server)
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    return StandIn(fleet, f"127.0.0.1:{port}", server)
