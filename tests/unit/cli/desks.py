"""The other services of the stand-in coordinator; no part of the product."""

# ruff: noqa: N802 - gRPC names the methods
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from hostler_contract import codec
from hostler_contract.hosts import HoldKind
from hostler_contract.pb.hostler.v1 import audit_pb2, audit_pb2_grpc
from hostler_contract.pb.hostler.v1 import deadletter_pb2 as dpb
from hostler_contract.pb.hostler.v1 import deadletter_pb2_grpc as dgrpc
from hostler_contract.pb.hostler.v1 import fleet_pb2 as fpb
from hostler_contract.pb.hostler.v1 import fleet_pb2_grpc as fgrpc
from hostler_contract.views import (
    BmcProbe,
    Counts,
    DeadLetter,
    Domain,
    Hold,
    InventoryChange,
    Status,
)
from hostler_contract.work import DeadLetterState, Resolution, ResolutionKind
from unit.cli.fleet_state import (
    Edge,
    Refusal,
    campaign_answer,
    make_campaign,
    not_found,
    server_clock,
)


class FleetDesk(Edge, fgrpc.FleetServiceServicer):
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
        def respond(hosts: list[str]) -> Any:
            return fpb.DrainHostsResponse(hosts=hosts, over_budget=self.fleet.over_budget)

        if self.fleet.over_budget and not (request.force or request.dry_run):
            self.fleet.fails["DrainHosts"] = [Refusal(grpc.StatusCode.FAILED_PRECONDITION, self.fleet.over_budget[0])]
        return self._mark("DrainHosts", request, context, "alice", respond)

    def UndrainHosts(self, request: Any, context: Any) -> Any:
        return self._mark("UndrainHosts", request, context, "", fpb.UndrainHostsResponse)

    def NoteHost(self, request: Any, context: Any) -> Any:
        return self._host("NoteHost", request, context, {"note": request.note}, fpb.NoteHostResponse)

    def RetireHost(self, request: Any, context: Any) -> Any:
        def respond(host: Any) -> Any:
            return fpb.RetireHostResponse(host=host, consequence="it is skipped as retired in c-9")

        return self._host("RetireHost", request, context, {"state": "retired"}, respond)

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
            answer = fpb.ImportInventoryResponse(unchanged=7, applied=not request.dry_run, changed=1, fleet=8)
            answer.removed, answer.needs_count = self.fleet.removals, bool(self.fleet.removals)
            codec.fill_message(change, answer.changes.add())
            return answer

        return self.answer("ImportInventory", request, context, work)

    def ProbeBmc(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            self.fleet.host(request.host)
            told = self.fleet.probe or BmcProbe(power="on", text="power on (0x01)", at=server_clock())
            return codec.to_message(told, fpb.ProbeBmcResponse)

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
            if request.key in self.fleet.keys:
                answer.repeated_key = True
                for held in self.fleet.holds.values():
                    codec.fill_message(held, answer.holds.add())
                return answer
            if not request.dry_run:
                self.fleet.keys[request.key] = (b"", "holds")
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
                hosts_dead=1,
                hosts_out_of_service=2,
                now=now,
                version="0.1.0",
            )
            return codec.to_message(status, fpb.GetStatusResponse)

        return self.answer("GetStatus", request, context, work)


class DeadLetterDesk(Edge, dgrpc.DeadLetterServiceServicer):
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
            return campaign_answer(dpb.RetryDeadLettersResponse(), campaign)

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


class AuditDesk(Edge, audit_pb2_grpc.AuditServiceServicer):
    """AuditService."""

    def ListAudit(self, request: Any, context: Any) -> Any:
        def work() -> Any:
            entries = self.fleet.audit[::-1] if request.newest_first else self.fleet.audit
            return self.page(entries, request, "entries", audit_pb2.ListAuditResponse())

        return self.answer("ListAudit", request, context, work)

    def ExportAudit(self, request: Any, context: Any) -> Iterator[Any]:
        self.fleet.asked.append(("ExportAudit", request))
        for start in range(0, len(self.fleet.audit), 500):
            part = [codec.to_message(item, audit_pb2.AuditEntry) for item in self.fleet.audit[start : start + 500]]
            yield audit_pb2.ExportAuditResponse(entries=part)
        for refusal in self.fleet.fails.pop("ExportAudit", []):
            refusal.send(context)
