"""hostler.v1.FleetService: messages to models and back; what the calls mean lives in `service`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.codec import to_message
from hostler_contract.pb.hostler.v1 import fleet_pb2 as pb
from hostler_coordinator.refusals import BadField
from hostler_coordinator.rpc import requests

if TYPE_CHECKING:
    from hostler_contract.campaigns import Selector
    from hostler_coordinator.rpc.services import FleetCalls
    from hostler_coordinator.service.callers import Caller


class FleetRpc:
    """One method per RPC."""

    def __init__(self, service: FleetCalls) -> None:
        self._service = service

    async def list_hosts(self, _caller: Caller, request: pb.ListHostsRequest) -> pb.ListHostsResponse:
        """A page of hosts; without a selector, of all."""
        selector = requests.read(requests.MaySelect, request).selector
        states = tuple(request.states)
        found, token = await self._service.list_hosts(request.page_size, request.page_token, selector, states)
        answer = pb.ListHostsResponse(hosts=[to_message(one, pb.Host) for one in found], next_page_token=token)
        return requests.dated(answer, self._service)

    async def get_host(self, _caller: Caller, request: pb.GetHostRequest) -> pb.GetHostResponse:
        """One host."""
        return pb.GetHostResponse(host=to_message(await self._service.get_host(request.host), pb.Host))

    async def explain_host(self, _caller: Caller, request: pb.ExplainHostRequest) -> pb.ExplainHostResponse:
        """What a host waits for."""
        return pb.ExplainHostResponse(why=to_message(await self._service.explain_host(request.host), pb.HostWhy))

    async def drain_hosts(self, caller: Caller, request: pb.DrainHostsRequest) -> pb.DrainHostsResponse:
        """Mark hosts as drained by a person."""
        done = await self._service.drain(caller, _selector(request), request.reason, request.dry_run, request.force)
        return to_message(done, pb.DrainHostsResponse)

    async def undrain_hosts(self, caller: Caller, request: pb.UndrainHostsRequest) -> pb.UndrainHostsResponse:
        """End such marks."""
        hosts = await self._service.undrain(caller, _selector(request), request.reason, request.dry_run)
        return pb.UndrainHostsResponse(hosts=hosts)

    async def note_host(self, caller: Caller, request: pb.NoteHostRequest) -> pb.NoteHostResponse:
        """Write a note on a host."""
        host = await self._service.note(caller, request.host, request.note, request.reason, request.dry_run)
        return pb.NoteHostResponse(host=to_message(host, pb.Host))

    async def retire_host(self, caller: Caller, request: pb.RetireHostRequest) -> pb.RetireHostResponse:
        """Take a host out of charge and denominator."""
        host, told = await self._service.retire(caller, request.host, request.ticket, request.reason, request.dry_run)
        return pb.RetireHostResponse(host=to_message(host, pb.Host), consequence=told)

    async def rebind_host(self, caller: Caller, request: pb.RebindHostRequest) -> pb.RebindHostResponse:
        """Carry an identity over to another board."""
        bmc = requests.read(requests.Rebinding, request).bmc
        host = await self._service.rebind(caller, request.host, request.serial, bmc, request.reason, request.dry_run)
        return pb.RebindHostResponse(host=to_message(host, pb.Host))

    async def remove_host(self, caller: Caller, request: pb.RemoveHostRequest) -> pb.RemoveHostResponse:
        """Forget a host."""
        host_id, consequence = await self._service.remove(caller, request.host, request.reason, request.dry_run)
        return pb.RemoveHostResponse(host_id=host_id, consequence=consequence)

    async def import_inventory(self, caller: Caller, request: pb.ImportInventoryRequest) -> pb.ImportInventoryResponse:
        """Compare a file with what is known, and apply it."""
        told = await self._service.import_inventory(
            caller,
            request.content,
            request.format,
            request.dry_run,
            request.remove_missing,
            request.reason,
            request.expect_removed,
        )
        return to_message(told, pb.ImportInventoryResponse)

    async def probe_bmc(self, caller: Caller, request: pb.ProbeBmcRequest) -> pb.ProbeBmcResponse:
        """Ask a BMC; changes no power."""
        verb = requests.read(requests.ProbeWanted, request).verb
        if verb is None:
            raise BadField("verb", "", "is missing", "say what to ask the BMC for, such as VERB_POWER_STATE")
        told = await self._service.probe_bmc(caller, request.host, verb, request.reason)
        return to_message(told, pb.ProbeBmcResponse)

    async def list_domains(self, _caller: Caller, request: pb.ListDomainsRequest) -> pb.ListDomainsResponse:
        """A page of domains."""
        found, token = await self._service.list_domains(request.page_size, request.page_token, request.kind)
        answer = pb.ListDomainsResponse(domains=[to_message(one, pb.Domain) for one in found], next_page_token=token)
        return requests.dated(answer, self._service)

    async def get_domain(self, _caller: Caller, request: pb.GetDomainRequest) -> pb.GetDomainResponse:
        """One domain."""
        return pb.GetDomainResponse(domain=to_message(await self._service.get_domain(request.name), pb.Domain))

    async def set_domain_budget(self, caller: Caller, request: pb.SetDomainBudgetRequest) -> pb.SetDomainBudgetResponse:
        """Set a domain's own budget."""
        domain = await self._service.set_budget(caller, request.name, request.budget, request.reason, request.dry_run)
        return pb.SetDomainBudgetResponse(domain=to_message(domain, pb.Domain))

    async def add_hold(self, caller: Caller, request: pb.AddHoldRequest) -> pb.AddHoldResponse:
        """Hands off these hosts."""
        wanted = requests.read(requests.HoldWanted, request)
        holds, repeated = await self._service.add_hold(
            caller, wanted.selector, wanted.kind, request.reason, wanted.until, request.dry_run, request.key
        )
        return pb.AddHoldResponse(holds=[to_message(one, pb.Hold) for one in holds], repeated_key=repeated)

    async def list_holds(self, _caller: Caller, request: pb.ListHoldsRequest) -> pb.ListHoldsResponse:
        """A page of holds."""
        found, token = await self._service.list_holds(request.page_size, request.page_token)
        answer = pb.ListHoldsResponse(holds=[to_message(one, pb.Hold) for one in found], next_page_token=token)
        return requests.dated(answer, self._service)

    async def remove_hold(self, caller: Caller, request: pb.RemoveHoldRequest) -> pb.RemoveHoldResponse:
        """End a hold."""
        hold = await self._service.remove_hold(caller, request.id, request.reason, request.dry_run)
        return pb.RemoveHoldResponse(hold=to_message(hold, pb.Hold))

    async def release_brake(self, caller: Caller, request: pb.ReleaseBrakeRequest) -> pb.ReleaseBrakeResponse:
        """Let out-of-band action go on for named hosts."""
        hosts, until = await self._service.release_brake(caller, tuple(request.hosts), request.reason, request.dry_run)
        answer = pb.ReleaseBrakeResponse(hosts=hosts)
        answer.until.FromMicroseconds(round(until * 1e6))
        return answer

    async def get_status(self, _caller: Caller, _request: pb.GetStatusRequest) -> pb.GetStatusResponse:
        """How the control plane is."""
        return to_message(await self._service.status(), pb.GetStatusResponse)


def _selector(request: pb.DrainHostsRequest | pb.UndrainHostsRequest) -> Selector:
    return requests.read(requests.Selected, request).selector
