"""hostler.v1.DeadLetterService: messages to models and back; what the calls mean lives in `service`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler_contract.codec import to_message
from hostler_contract.pb.hostler.v1 import campaign_pb2
from hostler_contract.pb.hostler.v1 import deadletter_pb2 as pb
from hostler_coordinator.refusals import BadField
from hostler_coordinator.rpc import requests

if TYPE_CHECKING:
    from hostler_coordinator.rpc.services import DeadLetterCalls
    from hostler_coordinator.service.callers import Caller


class DeadLetterRpc:
    """One method per RPC."""

    def __init__(self, service: DeadLetterCalls) -> None:
        self._service = service

    async def list_dead_letters(
        self, _caller: Caller, request: pb.ListDeadLettersRequest
    ) -> pb.ListDeadLettersResponse:
        """A page of dead letters."""
        states = requests.read(requests.DeadLetterStates, request).states
        found, token = await self._service.list(request.page_size, request.page_token, states, request.campaign_id)
        letters = [to_message(one, pb.DeadLetter) for one in found]
        answer = pb.ListDeadLettersResponse(dead_letters=letters, next_page_token=token)
        return requests.dated(answer, self._service)

    async def get_dead_letter(self, _caller: Caller, request: pb.GetDeadLetterRequest) -> pb.GetDeadLetterResponse:
        """One dead letter."""
        return pb.GetDeadLetterResponse(dead_letter=to_message(await self._service.get(request.id), pb.DeadLetter))

    async def retry_dead_letters(
        self, caller: Caller, request: pb.RetryDeadLettersRequest
    ) -> pb.RetryDeadLettersResponse:
        """Open a linked campaign."""
        campaign = await self._service.retry(caller, tuple(request.ids), request.reason, request.key, request.dry_run)
        return pb.RetryDeadLettersResponse(campaign=to_message(campaign, campaign_pb2.Campaign))

    async def resolve_dead_letter(
        self, caller: Caller, request: pb.ResolveDeadLetterRequest
    ) -> pb.ResolveDeadLetterResponse:
        """Say what became of the host."""
        kind = requests.read(requests.ResolutionWanted, request).kind
        if kind is None:
            raise BadField("kind", "", "is missing", "say fixed, rma or ignored")
        letter = await self._service.resolve(
            caller, request.id, kind, request.ticket, request.reason, request.dry_run, request.force
        )
        return pb.ResolveDeadLetterResponse(dead_letter=to_message(letter, pb.DeadLetter))
