"""CampaignService of the stand-in coordinator; no part of the product."""

# ruff: noqa: N802 - gRPC names the methods
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from hostler_contract import codec
from hostler_contract.campaigns import ENDED, CampaignRequest, CampaignState
from hostler_contract.pb.hostler.v1 import campaign_pb2 as cpb
from hostler_contract.pb.hostler.v1 import campaign_pb2_grpc as cgrpc
from hostler_contract.views import (
    Consequence,
    Counts,
    Host,
    Plan,
)
from unit.cli.fleet_state import (
    SIZE_LIMIT,
    Edge,
    Refusal,
    bad_field,
    campaign_answer,
    info,
    make_campaign,
    not_found,
    stale_plan,
)


class CampaignDesk(Edge, cgrpc.CampaignServiceServicer):
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
            return campaign_answer(answer, self.fleet.campaigns[campaign_id])
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
        return campaign_answer(cpb.SubmitCampaignResponse(), campaign)

    def GetCampaign(self, request: Any, context: Any) -> Any:
        return self.answer(
            "GetCampaign",
            request,
            context,
            lambda: campaign_answer(cpb.GetCampaignResponse(), self.fleet.campaign(request.id)),
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
            yield campaign_answer(cpb.WatchCampaignResponse(), campaign)
            self.fleet.watched.append(campaign)
            if campaign.state in ENDED:
                return
            with self.fleet.changed:
                while self.fleet.campaigns[request.id] is campaign and context.is_active():
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
        return campaign_answer(answer, campaign if request.dry_run else changed)

    def PauseCampaign(self, request: Any, context: Any) -> Any:
        what = Consequence(kind="waiting", host_count=3, hosts=("gpu-002", "gpu-003"), text="3 hosts start later")
        return self.answer(
            "PauseCampaign",
            request,
            context,
            lambda: self._steer(request, CampaignState.PAUSED, cpb.PauseCampaignResponse(), what),
        )

    def ResumeCampaign(self, request: Any, context: Any) -> Any:
        what = Consequence(kind="waiting", host_count=3, text="3 hosts start as the limits allow")
        return self.answer(
            "ResumeCampaign",
            request,
            context,
            lambda: self._steer(request, CampaignState.RUNNING, cpb.ResumeCampaignResponse(), what),
        )

    def AbortCampaign(self, request: Any, context: Any) -> Any:
        what = Consequence(kind="withdrawn", host_count=12, text="12 hosts never start")
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
