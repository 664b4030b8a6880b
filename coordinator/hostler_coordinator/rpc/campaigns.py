"""hostler.v1.CampaignService: messages to models and back; what the calls mean lives in `service`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from hostler_contract.campaigns import CampaignRequest
from hostler_contract.codec import to_message
from hostler_contract.pb.hostler.v1 import campaign_pb2 as pb
from hostler_coordinator.rpc import requests

if TYPE_CHECKING:
    from hostler_coordinator.rpc.services import CampaignCalls
    from hostler_coordinator.service.callers import Caller


class CampaignRpc:
    """One method per RPC."""

    def __init__(self, service: CampaignCalls) -> None:
        self._service = service

    async def plan_campaign(self, caller: Caller, request: pb.PlanCampaignRequest) -> pb.PlanCampaignResponse:
        """Work out what would happen."""
        plan = await self._service.plan(caller, _wanted(request.request))
        return pb.PlanCampaignResponse(plan=to_message(plan, pb.Plan))

    async def submit_campaign(self, caller: Caller, request: pb.SubmitCampaignRequest) -> pb.SubmitCampaignResponse:
        """Store a campaign."""
        campaign, repeated = await self._service.submit(
            caller,
            request.key,
            _wanted(request.request),
            request.expect_count,
            request.plan_token,
            request.confirmed,
        )
        return pb.SubmitCampaignResponse(campaign=to_message(campaign, pb.Campaign), repeated_key=repeated)

    async def get_campaign(self, _caller: Caller, request: pb.GetCampaignRequest) -> pb.GetCampaignResponse:
        """One campaign."""
        campaign = await self._service.get(request.id)
        return pb.GetCampaignResponse(campaign=to_message(campaign, pb.Campaign))

    async def list_campaigns(self, _caller: Caller, request: pb.ListCampaignsRequest) -> pb.ListCampaignsResponse:
        """A page of campaigns."""
        states = requests.read(requests.CampaignStates, request).states
        found, token = await self._service.list(request.page_size, request.page_token, states)
        campaigns = [to_message(one, pb.Campaign) for one in found]
        return requests.dated(pb.ListCampaignsResponse(campaigns=campaigns, next_page_token=token), self._service)

    async def watch_campaign(
        self, _caller: Caller, request: pb.WatchCampaignRequest
    ) -> AsyncIterator[pb.WatchCampaignResponse]:
        """A campaign at once, and whenever it changes."""
        async for campaign in self._service.watch(request.id):
            yield pb.WatchCampaignResponse(campaign=to_message(campaign, pb.Campaign))

    async def pause_campaign(self, caller: Caller, request: pb.PauseCampaignRequest) -> pb.PauseCampaignResponse:
        """Start nothing more."""
        done = await self._service.pause(caller, request.id, request.reason, request.dry_run)
        return pb.PauseCampaignResponse(**_consequences(done))

    async def resume_campaign(self, caller: Caller, request: pb.ResumeCampaignRequest) -> pb.ResumeCampaignResponse:
        """Go on."""
        done = await self._service.resume(caller, request.id, request.reason, request.dry_run)
        return pb.ResumeCampaignResponse(**_consequences(done))

    async def abort_campaign(self, caller: Caller, request: pb.AbortCampaignRequest) -> pb.AbortCampaignResponse:
        """End it."""
        done = await self._service.abort(caller, request.id, request.reason, request.dry_run)
        return pb.AbortCampaignResponse(**_consequences(done))

    async def list_tasks(self, _caller: Caller, request: pb.ListTasksRequest) -> pb.ListTasksResponse:
        """A page of tasks."""
        states = requests.read(requests.TaskStates, request).states
        found, token = await self._service.list_tasks(
            request.campaign_id, request.page_size, request.page_token, states, request.host
        )
        answer = pb.ListTasksResponse(tasks=[to_message(one, pb.Task) for one in found], next_page_token=token)
        return requests.dated(answer, self._service)

    async def get_task(self, _caller: Caller, request: pb.GetTaskRequest) -> pb.GetTaskResponse:
        """One task."""
        task = await self._service.get_task(request.campaign_id, request.host)
        return pb.GetTaskResponse(task=to_message(task, pb.Task))


def _wanted(request: pb.CampaignRequest) -> CampaignRequest:
    return requests.read(CampaignRequest, request)


def _consequences(done: tuple[Any, tuple[Any, ...]]) -> dict[str, Any]:
    campaign, consequences = done
    return {
        "campaign": to_message(campaign, pb.Campaign),
        "consequences": [to_message(one, pb.Consequence) for one in consequences],
    }
