"""hostler.v1.AuditService: messages to models and back; what the calls mean lives in `service`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from hostler_contract.codec import to_message
from hostler_contract.pb.hostler.v1 import audit_pb2 as pb
from hostler_coordinator.rpc import requests

if TYPE_CHECKING:
    from hostler_coordinator.rpc.services import AuditCalls
    from hostler_coordinator.service.callers import Caller


class AuditRpc:
    """One method per RPC; `make_filter` is service.audit.AuditFilter."""

    def __init__(self, service: AuditCalls, make_filter: Callable[..., Any]) -> None:
        self._service = service
        self._make_filter = make_filter

    async def list_audit(self, _caller: Caller, request: pb.ListAuditRequest) -> pb.ListAuditResponse:
        """A page of entries."""
        wanted = self._filter(request.filter)
        read = self._service.newest if request.newest_first else self._service.list
        found, token = await read(request.page_size, request.page_token, wanted)
        answer = pb.ListAuditResponse(entries=[to_message(one, pb.AuditEntry) for one in found], next_page_token=token)
        return requests.dated(answer, self._service)

    async def export_audit(
        self, _caller: Caller, request: pb.ExportAuditRequest
    ) -> AsyncIterator[pb.ExportAuditResponse]:
        """Everything that matches, oldest first."""
        async for batch in self._service.export(self._filter(request.filter)):
            yield pb.ExportAuditResponse(entries=[to_message(one, pb.AuditEntry) for one in batch])

    def _filter(self, message: pb.AuditFilter) -> Any:
        return self._make_filter(
            host=message.host,
            campaign_id=message.campaign_id,
            actor=message.actor,
            action=message.action,
            from_at=_instant(message, "from"),
            to_at=_instant(message, "to"),
        )


def _instant(message: Any, name: str) -> float | None:
    """Epoch seconds, or None when unset; `from` is a word of Python's, so fields are read by name."""
    return getattr(message, name).ToMicroseconds() / 1e6 if message.HasField(name) else None
