"""Models, messages and records: same fields, loss-free round trips, clear refusals."""

from __future__ import annotations

import json

import pytest
from google.protobuf.message import Message
from pydantic import BaseModel

from hostler_contract import campaigns, codec, hosts, views, work
from hostler_contract.pb.hostler.v1 import agent_pb2, audit_pb2, campaign_pb2, deadletter_pb2, fleet_pb2, work_pb2

PAIRS = [
    (views.Campaign, campaign_pb2.Campaign),
    (views.Plan, campaign_pb2.Plan),
    (views.Task, campaign_pb2.Task),
    (views.Counts, campaign_pb2.Counts),
    (views.Consequence, campaign_pb2.Consequence),
    (views.PlannedDomain, campaign_pb2.PlannedDomain),
    (views.PlannedWave, campaign_pb2.PlannedWave),
    (views.PlannedBlocked, campaign_pb2.PlannedBlocked),
    (views.DomainProgress, campaign_pb2.DomainProgress),
    (views.InFlight, campaign_pb2.InFlight),
    (views.RecentFailure, campaign_pb2.RecentFailure),
    (campaigns.CampaignRequest, campaign_pb2.CampaignRequest),
    (campaigns.Selector, campaign_pb2.Selector),
    (campaigns.Limits, campaign_pb2.Limits),
    (views.Host, fleet_pb2.Host),
    (views.HostWhy, fleet_pb2.HostWhy),
    (views.Domain, fleet_pb2.Domain),
    (views.ChargeHolder, fleet_pb2.ChargeHolder),
    (views.Hold, fleet_pb2.Hold),
    (views.InventoryChange, fleet_pb2.InventoryChange),
    (views.BmcProbe, fleet_pb2.ProbeBmcResponse),
    (views.Status, fleet_pb2.GetStatusResponse),
    (hosts.BmcRef, fleet_pb2.Bmc),
    (views.DeadLetter, deadletter_pb2.DeadLetter),
    (work.Resolution, deadletter_pb2.Resolution),
    (views.AuditEntry, audit_pb2.AuditEntry),
    (work.Token, work_pb2.Token),
    (work.Evidence, work_pb2.Evidence),
    (hosts.Condition, agent_pb2.Condition),
    (hosts.HostFacts, agent_pb2.HostFacts),
    (hosts.Journal, agent_pb2.Journal),
]


@pytest.mark.parametrize(("model", "message"), PAIRS, ids=lambda pair: getattr(pair, "__name__", ""))
def test_a_model_and_its_message_have_the_same_fields(model: type[BaseModel], message: type[Message]) -> None:
    assert set(model.model_fields) == set(message.DESCRIPTOR.fields_by_name)


ENUMS = [
    (work.TaskState, work_pb2.TaskState),
    (work.EvidenceKind, work_pb2.EvidenceKind),
    (work.OperationKind, work_pb2.OperationKind),
    (work.RebootMode, work_pb2.RebootMode),
    (work.Verdict, work_pb2.Verdict),
    (work.DeadLetterState, deadletter_pb2.DeadLetterState),
    (work.ResolutionKind, deadletter_pb2.ResolutionKind),
    (campaigns.CampaignState, campaign_pb2.CampaignState),
    (hosts.HoldKind, fleet_pb2.HoldKind),
    (hosts.Usability, agent_pb2.Usability),
    (hosts.JournalPhase, agent_pb2.JournalPhase),
    (views.BmcVerb, fleet_pb2.ProbeBmcRequest.Verb),
]


@pytest.mark.parametrize(("model", "message"), ENUMS, ids=lambda pair: getattr(pair, "__name__", ""))
def test_an_enum_and_its_wire_form_have_the_same_words(model: type, message: object) -> None:
    descriptor = message.DESCRIPTOR  # type: ignore[attr-defined]
    words = {codec._enum_word(descriptor, value.number) for value in descriptor.values if value.number}
    assert words == {member.value for member in model}  # type: ignore[attr-defined]


def test_a_task_survives_the_wire() -> None:
    task = views.Task(
        id="c-1/gpu-1",
        campaign_id="c-1",
        host_id="gpu-1",
        host="gpu-1",
        state=work.TaskState.POWER_CYCLING,
        since=1764547200.123456,
        token=work.Token(epoch=2, counter=9),
        evidence=(work.Evidence(kind=work.EvidenceKind.BOOT_CHANGED, at=1764547201.5, detail="a -> b"),),
    )
    message = codec.to_message(task, campaign_pb2.Task)
    assert message.state == work_pb2.TASK_STATE_POWER_CYCLING
    assert codec.from_message(views.Task, message) == task


def test_nothing_set_stays_nothing_and_maps_stay_maps() -> None:
    host = views.Host(id="h", name="gpu-1", labels={"rack": "r1"}, enrolled_at=1.0)
    back = codec.from_message(views.Host, codec.to_message(host, fleet_pb2.Host))
    assert back == host
    assert back.last_heard_at is None
    assert back.bmc is None


def test_a_record_is_readable_json_with_its_schema_and_zoned_times() -> None:
    record = work.TaskRecord(campaign="c", host="h", state=work.TaskState.ACTING, since=1764547200.5)
    raw = codec.to_record(record)
    parsed = json.loads(raw)
    assert parsed["schema_version"] == 1
    assert parsed["since"] == "2025-12-01T00:00:00.500000Z"
    assert codec.from_record(work.TaskRecord, raw) == record


def test_a_record_with_a_field_of_a_newer_version_is_read() -> None:
    raw = b'{"schema_version":2,"campaign":"c","host":"h","state":"acting","since":5,"hue":"blue"}'
    assert codec.from_record(work.TaskRecord, raw).state is work.TaskState.ACTING


def test_records_of_before_bmc_facts_were_kept_are_read() -> None:
    claim = codec.from_record(hosts.Claim, b'{"schema_version":1,"host":"h","token":{"epoch":1,"counter":7},"at":5}')
    assert claim.refused < claim.token
    host = codec.from_record(hosts.HostRecord, b'{"schema_version":1,"id":"h","name":"gpu-1","enrolled_at":5}')
    assert host.system_uuid == ""


def test_what_a_bmc_told_comes_back_whole() -> None:
    facts = hosts.BmcFacts(host="h", binding="redfish a:443 - -", system="/redfish/v1/Systems/1", model="R750", at=5.5)
    assert codec.from_record(hosts.BmcFacts, codec.to_record(facts)) == facts
    assert (facts.of_model, facts.model_copy(update={"manufacturer": "Dell"}).of_model) == ("R750", "Dell R750")
    seen = views.BmcSeen(system=facts.system, model=facts.model, at=5.5, graceful="gpu-3: off at once")
    host = views.Host(id="h", name="gpu-1", enrolled_at=5.0, system_uuid="U-1", bmc_seen=seen)
    assert codec.from_message(views.Host, codec.to_message(host, fleet_pb2.Host)) == host


def test_a_broken_record_is_named() -> None:
    with pytest.raises(codec.UnreadableRecordError, match="tasks/c/h"):
        codec.from_record(work.TaskRecord, b'{"cut', "tasks/c/h")


def test_a_time_without_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="has no offset"):
        work.Evidence.model_validate({"kind": "note", "at": "2026-07-01T22:00:00"})


def test_an_enum_number_of_a_newer_version_is_refused_by_name() -> None:
    message = campaign_pb2.Task(id="x", state=99)  # type: ignore[arg-type]
    with pytest.raises(codec.UnknownEnumValueError, match="TaskState has no value 99"):
        codec.from_message(views.Task, message)


def test_tokens_order_by_epoch_first() -> None:
    assert work.Token(epoch=1, counter=9) < work.Token(epoch=2, counter=1)
    assert str(work.Token(epoch=2, counter=1)) == "2.1"
