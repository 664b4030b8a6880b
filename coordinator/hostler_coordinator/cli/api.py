"""The public API's methods by name, each with its path and types; how a call is made lives in `connection`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from google.protobuf.message import Message

from hostler_contract.pb.hostler.v1 import audit_pb2 as audit
from hostler_contract.pb.hostler.v1 import campaign_pb2 as campaign
from hostler_contract.pb.hostler.v1 import deadletter_pb2 as deadletter
from hostler_contract.pb.hostler.v1 import fleet_pb2 as fleet

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


@dataclass(frozen=True)
class Method(Generic[Q, R]):
    """One method of the API."""

    service: str
    name: str
    request: Callable[..., Q]
    read: Callable[[bytes], R]
    repeatable: bool = True
    """Done twice it is the same as done once: by nature, or by its key. False: never sent again while in doubt."""
    tells_itself: bool = False
    """The answer itself says when it was read from old records."""

    @property
    def path(self) -> str:
        """The path on the wire, as gRPC spells it."""
        return f"/hostler.v1.{self.service}/{self.name}"


def _in(service: str, name: str, request: Callable[..., Q], response: type[R]) -> Method[Q, R]:
    return Method(service, name, request, response.FromString)


def _once(method: Method[Q, R]) -> Method[Q, R]:
    """Twice is not once: "there is no such host" of a host that the first call removed."""
    return replace(method, repeatable=False)


def _telling(method: Method[Q, R]) -> Method[Q, R]:
    return replace(method, tells_itself=True)


_C, _F, _D, _A = "CampaignService", "FleetService", "DeadLetterService", "AuditService"

PLAN_CAMPAIGN = _in(_C, "PlanCampaign", campaign.PlanCampaignRequest, campaign.PlanCampaignResponse)
SUBMIT_CAMPAIGN = _in(_C, "SubmitCampaign", campaign.SubmitCampaignRequest, campaign.SubmitCampaignResponse)
GET_CAMPAIGN = _in(_C, "GetCampaign", campaign.GetCampaignRequest, campaign.GetCampaignResponse)
LIST_CAMPAIGNS = _in(_C, "ListCampaigns", campaign.ListCampaignsRequest, campaign.ListCampaignsResponse)
WATCH_CAMPAIGN = _in(_C, "WatchCampaign", campaign.WatchCampaignRequest, campaign.WatchCampaignResponse)
PAUSE_CAMPAIGN = _in(_C, "PauseCampaign", campaign.PauseCampaignRequest, campaign.PauseCampaignResponse)
RESUME_CAMPAIGN = _in(_C, "ResumeCampaign", campaign.ResumeCampaignRequest, campaign.ResumeCampaignResponse)
ABORT_CAMPAIGN = _in(_C, "AbortCampaign", campaign.AbortCampaignRequest, campaign.AbortCampaignResponse)
LIST_TASKS = _in(_C, "ListTasks", campaign.ListTasksRequest, campaign.ListTasksResponse)
GET_TASK = _in(_C, "GetTask", campaign.GetTaskRequest, campaign.GetTaskResponse)

LIST_HOSTS = _in(_F, "ListHosts", fleet.ListHostsRequest, fleet.ListHostsResponse)
GET_HOST = _in(_F, "GetHost", fleet.GetHostRequest, fleet.GetHostResponse)
EXPLAIN_HOST = _telling(_in(_F, "ExplainHost", fleet.ExplainHostRequest, fleet.ExplainHostResponse))
DRAIN_HOSTS = _in(_F, "DrainHosts", fleet.DrainHostsRequest, fleet.DrainHostsResponse)
UNDRAIN_HOSTS = _in(_F, "UndrainHosts", fleet.UndrainHostsRequest, fleet.UndrainHostsResponse)
NOTE_HOST = _in(_F, "NoteHost", fleet.NoteHostRequest, fleet.NoteHostResponse)
RETIRE_HOST = _in(_F, "RetireHost", fleet.RetireHostRequest, fleet.RetireHostResponse)
REBIND_HOST = _in(_F, "RebindHost", fleet.RebindHostRequest, fleet.RebindHostResponse)
REMOVE_HOST = _once(_in(_F, "RemoveHost", fleet.RemoveHostRequest, fleet.RemoveHostResponse))
IMPORT_INVENTORY = _in(_F, "ImportInventory", fleet.ImportInventoryRequest, fleet.ImportInventoryResponse)
PROBE_BMC = _once(_in(_F, "ProbeBmc", fleet.ProbeBmcRequest, fleet.ProbeBmcResponse))
LIST_DOMAINS = _in(_F, "ListDomains", fleet.ListDomainsRequest, fleet.ListDomainsResponse)
GET_DOMAIN = _in(_F, "GetDomain", fleet.GetDomainRequest, fleet.GetDomainResponse)
SET_DOMAIN_BUDGET = _in(_F, "SetDomainBudget", fleet.SetDomainBudgetRequest, fleet.SetDomainBudgetResponse)
ADD_HOLD = _in(_F, "AddHold", fleet.AddHoldRequest, fleet.AddHoldResponse)
LIST_HOLDS = _in(_F, "ListHolds", fleet.ListHoldsRequest, fleet.ListHoldsResponse)
REMOVE_HOLD = _once(_in(_F, "RemoveHold", fleet.RemoveHoldRequest, fleet.RemoveHoldResponse))
RELEASE_BRAKE = _in(_F, "ReleaseBrake", fleet.ReleaseBrakeRequest, fleet.ReleaseBrakeResponse)
GET_STATUS = _telling(_in(_F, "GetStatus", fleet.GetStatusRequest, fleet.GetStatusResponse))

LIST_DEAD_LETTERS = _in(_D, "ListDeadLetters", deadletter.ListDeadLettersRequest, deadletter.ListDeadLettersResponse)
GET_DEAD_LETTER = _in(_D, "GetDeadLetter", deadletter.GetDeadLetterRequest, deadletter.GetDeadLetterResponse)
RETRY_DEAD_LETTERS = _in(
    _D, "RetryDeadLetters", deadletter.RetryDeadLettersRequest, deadletter.RetryDeadLettersResponse
)
RESOLVE_DEAD_LETTER = _in(
    _D, "ResolveDeadLetter", deadletter.ResolveDeadLetterRequest, deadletter.ResolveDeadLetterResponse
)

LIST_AUDIT = _in(_A, "ListAudit", audit.ListAuditRequest, audit.ListAuditResponse)
EXPORT_AUDIT = _in(_A, "ExportAudit", audit.ExportAuditRequest, audit.ExportAuditResponse)
