"""What reaches the services, and what comes back, for the calls whose messages hold enums, instants or messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from hostler_contract import views
from hostler_contract.campaigns import Selector
from hostler_contract.hosts import BmcRef, HoldKind
from hostler_contract.pb.hostler.v1 import audit_pb2, campaign_pb2, deadletter_pb2, fleet_pb2
from hostler_contract.work import DeadLetterState, ResolutionKind
from hostler_coordinator.refusals import BadField
from hostler_coordinator.rpc.audit import AuditRpc
from hostler_coordinator.rpc.deadletters import DeadLetterRpc
from hostler_coordinator.rpc.fleet import FleetRpc
from hostler_coordinator.rpc.services import AuditCalls, DeadLetterCalls, FleetCalls
from hostler_coordinator.service.callers import Caller

ALICE = Caller("alice")
AT = 1_800_000_000.25
HOST = views.Host(id="h1", name="gpu-1", enrolled_at=AT, labels={"a": "b"})
HOLD = views.Hold(
    id="o1", host_id="h1", host="gpu-1", kind=HoldKind.FIRMWARE, reason="r", owner="alice", at=AT, until=None
)
LETTER = views.DeadLetter(
    id="d1",
    campaign_id="c",
    host_id="h1",
    host="gpu-1",
    at=AT,
    cause="no-boot",
    text="t",
    suggestion="s",
    state=DeadLetterState.OPEN,
)


class KeptFleet:
    """A fleet of one host that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: tuple[Any, ...] = ()

    def as_of(self) -> float:
        return AT

    async def list_hosts(self, *asked: Any) -> tuple[tuple[views.Host, ...], str]:
        self.asked = asked
        return (HOST,), "next"

    async def drain(self, *asked: Any) -> views.Drained:
        self.asked = asked
        return views.Drained(hosts=("gpu-1",), over_budget=("fabric/ib-a would have 2 of 1",))

    async def rebind(self, *asked: Any) -> views.Host:
        self.asked = asked
        return HOST

    async def add_hold(self, *asked: Any) -> tuple[tuple[views.Hold, ...], bool]:
        self.asked = asked
        return (HOLD,), True

    async def probe_bmc(self, *asked: Any) -> views.BmcProbe:
        self.asked = asked
        return views.BmcProbe(power="on", at=AT)

    async def release_brake(self, *asked: Any) -> tuple[tuple[str, ...], float]:
        self.asked = asked
        return ("gpu-1",), AT

    async def import_inventory(self, *asked: Any) -> views.Imported:
        self.asked = asked
        change = views.InventoryChange(kind="added", host_id="h1", name="gpu-1", fields=("rack",))
        return views.Imported(changes=(change,), unchanged=7, applied=True, added=1, fleet=7)


class KeptLetters:
    """One dead letter."""

    def __init__(self) -> None:
        self.asked: tuple[Any, ...] = ()

    def as_of(self) -> float:
        return AT

    async def list(self, *asked: Any) -> tuple[tuple[views.DeadLetter, ...], str]:
        self.asked = asked
        return (LETTER,), ""

    async def resolve(self, *asked: Any) -> views.DeadLetter:
        self.asked = asked
        return LETTER


class KeptAudit:
    """Two entries, exported in two batches."""

    def __init__(self) -> None:
        self.asked: Any = None

    async def export(self, wanted: Any) -> AsyncIterator[tuple[views.AuditEntry, ...]]:
        self.asked = wanted
        for number in range(2):
            yield (views.AuditEntry(id=str(number), at=AT, actor="alice", action="hold.add"),)


@pytest.fixture
def kept() -> KeptFleet:
    return KeptFleet()


@pytest.fixture
def fleet_rpc(kept: KeptFleet) -> FleetRpc:
    return FleetRpc(cast("FleetCalls", kept))


async def test_no_selector_lists_all_but_an_empty_one_stays_empty(fleet_rpc: FleetRpc, kept: KeptFleet) -> None:
    answer = await fleet_rpc.list_hosts(ALICE, fleet_pb2.ListHostsRequest(page_size=5, states=["up"]))
    assert kept.asked == (5, "", None, ("up",))
    assert (answer.hosts[0].labels["a"], answer.next_page_token) == ("b", "next")
    assert answer.as_of.ToMicroseconds() / 1e6 == pytest.approx(AT, abs=1e-6)

    await fleet_rpc.list_hosts(ALICE, fleet_pb2.ListHostsRequest(selector=campaign_pb2.Selector()))
    assert kept.asked[2] == Selector()


async def test_a_drain_without_a_selector_selects_nothing(fleet_rpc: FleetRpc, kept: KeptFleet) -> None:
    await fleet_rpc.drain_hosts(ALICE, fleet_pb2.DrainHostsRequest(reason="r", dry_run=True))
    assert kept.asked == (ALICE, Selector(), "r", True, False)


async def test_a_rebind_carries_the_bmc_only_when_given(fleet_rpc: FleetRpc, kept: KeptFleet) -> None:
    await fleet_rpc.rebind_host(ALICE, fleet_pb2.RebindHostRequest(host="gpu-1", serial="S"))
    assert kept.asked[3] is None
    bmc = fleet_pb2.Bmc(protocol="redfish", address="127.0.0.9", port=443, credentials="env:X", serial="S")
    await fleet_rpc.rebind_host(ALICE, fleet_pb2.RebindHostRequest(host="gpu-1", serial="S", bmc=bmc))
    assert kept.asked[3] == BmcRef(protocol="redfish", address="127.0.0.9", port=443, credentials="env:X", serial="S")


async def test_a_hold_has_its_kind_and_its_end(fleet_rpc: FleetRpc, kept: KeptFleet) -> None:
    request = fleet_pb2.AddHoldRequest(kind=fleet_pb2.HOLD_KIND_FIRMWARE, reason="r", key="k")
    request.selector.hosts.append("gpu-1")
    request.until.FromMilliseconds(round(AT * 1000))
    answer = await fleet_rpc.add_hold(ALICE, request)
    assert kept.asked == (
        ALICE,
        Selector(hosts=("gpu-1",)),
        HoldKind.FIRMWARE,
        "r",
        pytest.approx(AT, abs=1e-6),
        False,
        "k",
    )
    assert answer.repeated_key
    assert not answer.holds[0].HasField("until")
    assert answer.holds[0].at.ToMilliseconds() == round(AT * 1000)


async def test_a_probe_must_say_what_to_ask(fleet_rpc: FleetRpc, kept: KeptFleet) -> None:
    request = fleet_pb2.ProbeBmcRequest(host="gpu-1", verb=fleet_pb2.ProbeBmcRequest.VERB_LOCATE_ON)
    answer = await fleet_rpc.probe_bmc(ALICE, request)
    assert kept.asked == (ALICE, "gpu-1", views.BmcVerb.LOCATE_ON, "")
    assert answer.power == "on"
    with pytest.raises(BadField, match="verb"):
        await fleet_rpc.probe_bmc(ALICE, fleet_pb2.ProbeBmcRequest(host="gpu-1"))


async def test_brake_and_inventory(fleet_rpc: FleetRpc, kept: KeptFleet) -> None:
    released = await fleet_rpc.release_brake(ALICE, fleet_pb2.ReleaseBrakeRequest(hosts=["gpu-1"], reason="r"))
    assert released.until.ToMilliseconds() == round(AT * 1000)
    wanted = fleet_pb2.ImportInventoryRequest(content=b"hosts: []", format="yaml", remove_missing=True, reason="r")
    imported = await fleet_rpc.import_inventory(ALICE, wanted)
    assert kept.asked == (ALICE, b"hosts: []", "yaml", False, True, "r", 0)
    assert (imported.changes[0].fields[0], imported.unchanged, imported.applied) == ("rack", 7, True)
    assert (imported.added, imported.removed, imported.fleet) == (1, 0, 7)


async def test_dead_letters_by_state_and_how_they_were_resolved() -> None:
    kept: Any = KeptLetters()
    rpc = DeadLetterRpc(cast("DeadLetterCalls", kept))
    request = deadletter_pb2.ListDeadLettersRequest(states=[deadletter_pb2.DEAD_LETTER_STATE_OPEN], campaign_id="c")
    answer = await rpc.list_dead_letters(ALICE, request)
    assert kept.asked == (0, "", (DeadLetterState.OPEN,), "c")
    assert answer.dead_letters[0].state == deadletter_pb2.DEAD_LETTER_STATE_OPEN

    resolved = deadletter_pb2.ResolveDeadLetterRequest(id="d1", kind=deadletter_pb2.RESOLUTION_KIND_RMA, ticket="T")
    await rpc.resolve_dead_letter(ALICE, resolved)
    assert kept.asked == (ALICE, "d1", ResolutionKind.RMA, "T", "", False, False)
    with pytest.raises(BadField, match="fixed, rma or ignored"):
        await rpc.resolve_dead_letter(ALICE, deadletter_pb2.ResolveDeadLetterRequest(id="d1"))


async def test_an_audit_filter_with_and_without_times() -> None:
    kept = KeptAudit()
    rpc = AuditRpc(cast("AuditCalls", kept), dict)
    wanted = audit_pb2.AuditFilter(host="gpu-1", actor="alice")
    wanted.to.FromMilliseconds(round(AT * 1000))
    answers = [answer async for answer in rpc.export_audit(ALICE, audit_pb2.ExportAuditRequest(filter=wanted))]
    assert [entry.id for answer in answers for entry in answer.entries] == ["0", "1"]
    assert kept.asked == {
        "host": "gpu-1",
        "campaign_id": "",
        "actor": "alice",
        "action": "",
        "from_at": None,
        "to_at": AT,
    }
