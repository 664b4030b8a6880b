"""Twenty thousand hosts, a campaign over all of them, and half a million audit entries, as read page by page."""

from __future__ import annotations

import resource
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from hostler_contract.campaigns import AuditRecord
from hostler_contract.codec import to_message
from hostler_contract.pb.hostler.v1 import audit_pb2, campaign_pb2, fleet_pb2
from hostler_coordinator.enact import audit_id
from hostler_coordinator.service.audit import READ_ENTRIES, AuditFilter, AuditService
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.service.fleet import FleetService
from memory_store import MemoryStore
from service_office import ALICE, NOON, Office, request

HOSTS = 20_000
ENTRIES = 500_000
ANSWER_MOST_BYTES = 1 << 20
"""A quarter of what gRPC takes by default."""
GROWTH_MOST_MIB = 64
PARTS = {
    **{f"gpu{n}": f"GPU-{n:08x}-9c1b-4d2e-8f00-0123456789ab serial 165492300{n}" for n in range(8)},
    **{f"nic{n}": f"mlx5_{n} 0c42a1030065{n:04x} port 1 at 400 Gb/s" for n in range(10)},
}
Pages = Callable[[str], Awaitable[tuple[Sequence[Any], str]]]


@pytest.fixture(scope="module")
def office() -> Office:
    office = Office()
    for number in range(HOSTS):
        office.enrol(f"gpu-{number:05d}", f"ib-{number // 500:02d}", labels=PARTS)
    return office


async def read_all(pages: Pages, message: type[Any], row: type[Any], field: str) -> list[Any]:
    """Every row, and no answer larger than an answer may be."""
    found: list[Any] = []
    token = ""
    while True:
        rows, token = await pages(token)
        answer = message(**{field: [to_message(one, row) for one in rows]}, next_page_token=token)
        assert answer.ByteSize() < ANSWER_MOST_BYTES
        found += rows
        if not token:
            return found


async def test_fc_d07_twenty_thousand_hosts_with_all_their_parts_are_listed_in_pages(office: Office) -> None:
    fleet = FleetService(office.desk())
    found = await read_all(
        lambda token: fleet.list_hosts(500, token, None, ()), fleet_pb2.ListHostsResponse, fleet_pb2.Host, "hosts"
    )
    assert [host.name for host in found] == [f"gpu-{number:05d}" for number in range(HOSTS)]
    assert found[-1].labels == PARTS


async def test_fc_d07_a_campaign_of_twenty_thousand_is_shown_whole_in_one_answer_and_in_pages(office: Office) -> None:
    campaigns = CampaignService(office.desk())
    asked = request(f"gpu-[00000-{HOSTS - 1}]")
    plan = await campaigns.plan(ALICE, asked)
    assert to_message(plan, campaign_pb2.Plan).ByteSize() < ANSWER_MOST_BYTES
    submitted, _ = await campaigns.submit(ALICE, "k", asked, HOSTS, plan.plan_token, True)
    await office.turn()
    shown = await campaigns.get(submitted.id)
    assert (shown.target_count, shown.counts.pending, shown.counts.running) == (HOSTS, HOSTS - 40, 40)
    assert to_message(shown, campaign_pb2.Campaign).ByteSize() < ANSWER_MOST_BYTES
    tasks = await read_all(
        lambda token: campaigns.list_tasks(submitted.id, 500, token, (), ""),
        campaign_pb2.ListTasksResponse,
        campaign_pb2.Task,
        "tasks",
    )
    assert len({task.host for task in tasks}) == HOSTS


class LongAudit(MemoryStore):
    """Half a million entries that exist only while they are read."""

    def __init__(self) -> None:
        super().__init__()
        self.largest_read = 0

    async def audit(self, after: str, limit: int, before: str = "") -> Sequence[AuditRecord]:
        first = int(after.rpartition("-")[2]) + 1 if after else 0
        end = int(before.rpartition("-")[2]) if before else ENTRIES
        self.largest_read = max(self.largest_read, limit)
        return [self._entry(number) for number in range(first, min(end, first + limit))]

    @staticmethod
    def _entry(number: int) -> AuditRecord:
        at = NOON + number
        return AuditRecord(
            id=audit_id(at, f"{number:06d}"),
            at=at,
            actor="rule planner",
            action="task.succeeded",
            host=f"h-gpu-{number % HOSTS:05d}",
            campaign="c-1",
            reason="new kernel",
            detail="boot id changed from 5f1c2d3e-0a1b-4c2d-8e3f-001122334455",
        )


def peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


async def test_fc_d07_half_a_million_audit_entries_are_exported_in_order_within_bounded_memory() -> None:
    office = Office()
    office.store = store = LongAudit()
    before, count, newest = peak_mib(), 0, ""
    async for batch in AuditService(office.desk()).export(AuditFilter()):
        assert newest < batch[0].id
        newest = batch[-1].id
        count += len(batch)
        if count % 100_000 == len(batch):  # a few are looked at closely: all of them would take long
            answer = audit_pb2.ExportAuditResponse(entries=[to_message(one, audit_pb2.AuditEntry) for one in batch])
            assert answer.ByteSize() < ANSWER_MOST_BYTES
    assert count == ENTRIES
    assert newest.endswith(f"-{ENTRIES - 1}")
    assert store.largest_read == READ_ENTRIES
    assert peak_mib() - before < GROWTH_MOST_MIB
