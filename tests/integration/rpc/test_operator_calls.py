"""Operators' calls over real mTLS: answered here or by the leader, refused with details that a program can read."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from hostler_contract.campaigns import CampaignState
from hostler_contract.pb.hostler.v1 import campaign_pb2 as pb
from hostler_contract.pb.hostler.v1 import fleet_pb2
from hostler_coordinator.pki import Role
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import AlreadyDifferent, BadField, BadFields, NotFound, Refused, Unavailable
from hostler_coordinator.rpc.channels import REQUEST_BYTES_MAX, dialler
from hostler_coordinator.rpc.forward import CALLER_KEY
from hostler_coordinator.rpc.identity import PLAINTEXT_CLAIM
from hostler_coordinator.rpc.server import RpcServer, ServerSettings
from hostler_coordinator.rpc.statuses import NOTICE_KEY
from hostler_coordinator.service.callers import Caller
from hostler_coordinator.service.trouble import store_away
from integration.rpc.rig import LISTED_AT, Fleet, Node, elect

pytestmark = pytest.mark.integration

CAMPAIGNS = "/hostler.v1.CampaignService/"
SINCE = 1_800_000_000.0


async def ask(channel: Any, name: str, request: Any, answer: type[Any], **options: Any) -> Any:
    call = channel.unary_unary(
        CAMPAIGNS + name if "/" not in name else name,
        request_serializer=type(request).SerializeToString,
        response_deserializer=answer.FromString,
    )
    return await call(request, timeout=10, **options)


async def get(channel: Any, **options: Any) -> Any:
    return await ask(channel, "GetCampaign", pb.GetCampaignRequest(id="c-1"), pb.GetCampaignResponse, **options)


def watch(channel: Any) -> Any:
    call = channel.unary_stream(
        CAMPAIGNS + "WatchCampaign",
        request_serializer=pb.WatchCampaignRequest.SerializeToString,
        response_deserializer=pb.WatchCampaignResponse.FromString,
    )
    return call(pb.WatchCampaignRequest(id="c-1"), timeout=10)


def details_of(error: grpc.aio.AioRpcError) -> dict[str, Any]:
    """The details of a status by type, as any client can read them."""
    trailing: Any = error.trailing_metadata()
    status = status_pb2.Status.FromString(dict(trailing)["grpc-status-details-bin"])
    found: dict[str, Any] = {}
    for packed in status.details:
        for kind in ("ErrorInfo", "BadRequest", "PreconditionFailure", "RetryInfo", "ResourceInfo"):
            message = getattr(error_details_pb2, kind)()
            if packed.Unpack(message):
                found[kind] = message
    return found


async def refusal(fleet: Fleet, node: Node, error: Exception) -> tuple[grpc.aio.AioRpcError, dict[str, Any]]:
    fleet.one.campaigns.raises = error
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await get(fleet.channel(node))
    return refused.value, details_of(refused.value)


@pytest.mark.parametrize("via", ["one", "two"])
async def test_the_leader_answers_whoever_is_asked_and_knows_who_asks(fleet: Fleet, via: str) -> None:
    wanted = pb.CampaignRequest(selector=pb.Selector(hosts=["gpu-1"]), limits=pb.Limits(max_down=["fabric=3"]))
    request = pb.SubmitCampaignRequest(key="k1", request=wanted, expect_count=1, confirmed=True)
    answer = await ask(fleet.channel(getattr(fleet, via)), "SubmitCampaign", request, pb.SubmitCampaignResponse)

    assert answer.campaign.created_by == "alice"
    assert not answer.repeated_key
    [(caller, key, asked, count, token, confirmed)] = fleet.one.campaigns.asked
    assert (caller, key, count, token, confirmed) == (Caller("alice"), "k1", 1, "", True)
    assert asked.limits.max_down == ("fabric=3",)
    assert fleet.two.campaigns.asked == []


async def test_a_watch_streams_through_a_follower_and_ends_with_the_leaders_status(fleet: Fleet) -> None:
    fleet.one.campaigns.raises = NotFound("campaign", "c-1")
    call = watch(fleet.channel(fleet.two))
    seen = [await call.read() for _ in range(3)]
    assert [(answer.campaign.id, answer.campaign.created_by) for answer in seen] == [
        ("c-1-0", "c1"),
        ("c-1-1", "c1"),
        ("c-1-2", "c1"),
    ]
    assert await call.code() is grpc.StatusCode.NOT_FOUND


async def test_a_watch_ends_as_unavailable_when_another_leads(fleet: Fleet) -> None:
    fleet.one.campaigns.ends = False
    channel = fleet.channel(fleet.two)
    call = watch(channel)
    for _ in range(3):
        await call.read()
    fleet.election.addresses["c1"] = "127.0.0.1:9"
    assert (await get(channel)).campaign.created_by == "c2's records"
    assert await call.code() is grpc.StatusCode.UNAVAILABLE
    assert "no longer leads" in await call.details() or "cannot be reached" in await call.details()


async def test_pages_and_states_pass_through(fleet: Fleet) -> None:
    channel, token, ids = fleet.channel(fleet.two), "", []
    for _ in range(3):
        states = [pb.CAMPAIGN_STATE_RUNNING, pb.CAMPAIGN_STATE_PAUSED]
        request = pb.ListCampaignsRequest(page_size=2, page_token=token, states=states)
        answer = await ask(channel, "ListCampaigns", request, pb.ListCampaignsResponse)
        ids += [campaign.id for campaign in answer.campaigns]
        token = answer.next_page_token
        assert answer.as_of.ToMicroseconds() / 1e6 == LISTED_AT
    assert ids == ["c-0", "c-1", "c-2", "c-3", "c-4"]
    assert token == ""
    assert fleet.one.campaigns.asked[1] == (2, "2", (CampaignState.RUNNING, CampaignState.PAUSED))


@pytest.mark.parametrize("via", ["one", "two"])
async def test_a_refusal_names_the_holder_since_when_and_the_next_step(fleet: Fleet, via: str) -> None:
    refused = Refused("held", "host gpu-1", "is held", holder="bob", since=SINCE, fix="ask bob")
    error, details = await refusal(fleet, getattr(fleet, via), refused)

    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert error.details() == "host gpu-1: is held (held by bob since 2027-01-15T08:00:00.000000Z); ask bob"
    assert (details["ErrorInfo"].domain, details["ErrorInfo"].reason) == ("hostler", "held")
    assert details["ErrorInfo"].metadata["holder"] == "bob"
    [violation] = details["PreconditionFailure"].violations
    assert (violation.type, violation.subject) == ("held", "host gpu-1")
    assert "bob" in violation.description


async def test_bad_fields_are_named_by_path(fleet: Fleet) -> None:
    error, details = await refusal(fleet, fleet.two, BadField("limits.max_down[1]", "fabric=0", "is zero", "say more"))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error.details() == "limits.max_down[1]: 'fabric=0' is zero; say more"
    assert details["BadRequest"].field_violations[0].field == "limits.max_down[1]"


async def test_hundreds_of_bad_fields_still_fit_the_answer(fleet: Fleet) -> None:
    problems = [BadField(f"content line {line}", "x" * 500, "is odd", "correct it") for line in range(500)]
    error, details = await refusal(fleet, fleet.two, BadFields(problems))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (error.details() or "").endswith("and 480 more")
    assert details["BadRequest"].field_violations[0].field == "content line 0"
    assert details["ErrorInfo"].metadata["count"] == "500"


@pytest.mark.parametrize(
    ("error", "code", "reason", "text"),
    [
        (NotFound("campaign", "c-1", "list them"), grpc.StatusCode.NOT_FOUND, "not-found", "no campaign 'c-1'"),
        (AlreadyDifferent("k", "alice"), grpc.StatusCode.ALREADY_EXISTS, "key-reused", "another request"),
        (Unavailable("starting", None, 3.0), grpc.StatusCode.UNAVAILABLE, "unavailable", "starting"),
        (
            StoreUnavailableError("no quorum", SINCE),
            grpc.StatusCode.UNAVAILABLE,
            "store-unavailable",
            "the store is unavailable since 2027-01-15T08:00:00.000000Z: no quorum",
        ),
    ],
)
async def test_every_refusal_has_its_status(
    fleet: Fleet, error: Exception, code: grpc.StatusCode, reason: str, text: str
) -> None:
    answered, details = await refusal(fleet, fleet.two, error)
    assert answered.code() is code
    assert details["ErrorInfo"].reason == reason
    assert text in (answered.details() or "")
    if code is grpc.StatusCode.UNAVAILABLE:
        assert details["RetryInfo"].retry_delay.seconds in {2, 3}


async def test_a_bug_is_internal_with_an_id_and_says_nothing_else(fleet: Fleet) -> None:
    error, details = await refusal(fleet, fleet.one, ZeroDivisionError("secret"))
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in (error.details() or "")
    assert details["ErrorInfo"].metadata["id"] in (error.details() or "")
    assert fleet.one.observed[-1][0::2] == ("/hostler.v1.CampaignService/GetCampaign", "INTERNAL")


async def test_an_unknown_enum_value_is_the_callers_fault(fleet: Fleet) -> None:
    request = pb.ListCampaignsRequest(states=[77])  # type: ignore[list-item]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask(fleet.channel(fleet.one), "ListCampaigns", request, pb.ListCampaignsResponse)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "77" in (refused.value.details() or "")


async def submit(channel: Any) -> grpc.aio.AioRpcError:
    """A change, which is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask(channel, "SubmitCampaign", pb.SubmitCampaignRequest(key="k"), pb.SubmitCampaignResponse)
    return refused.value


async def notice_of(channel: Any) -> tuple[Any, error_details_pb2.ErrorInfo, str]:
    """A campaign, and the notice that its answer carries."""
    call = channel.unary_unary(
        CAMPAIGNS + "GetCampaign",
        request_serializer=pb.GetCampaignRequest.SerializeToString,
        response_deserializer=pb.GetCampaignResponse.FromString,
    )(pb.GetCampaignRequest(id="c-1"), timeout=10)
    answer = await call
    status = status_pb2.Status.FromString(dict(await call.trailing_metadata())[NOTICE_KEY])
    info = error_details_pb2.ErrorInfo()
    status.details[0].Unpack(info)
    return answer.campaign, info, status.message


async def test_without_a_leader_changes_are_refused_and_say_why(fleet: Fleet) -> None:
    elect(None, fleet.nodes)
    error = await submit(fleet.channel(fleet.two))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    since = "2027-01-15T08:00:00.000000Z"
    assert error.details() == f"no coordinator leads since {since}: one is being elected; nothing was changed"
    details = details_of(error)
    assert details["RetryInfo"].retry_delay.seconds == 1
    assert dict(details["ErrorInfo"].metadata) == {
        "since": since,
        "outcome": "none",
        "fix": "wait some seconds: another coordinator is elected; if none is, look at the coordinators",
    }


@pytest.mark.parametrize("via", ["one", "two"])
async def test_without_the_store_changes_name_it_and_reads_come_from_the_records(fleet: Fleet, via: str) -> None:
    for node in fleet.nodes:
        node.standing.store = store_away(SINCE, "no etcd member answers")
        node.standing.believes = "c1"
    fleet.election.leader = None
    channel = fleet.channel(getattr(fleet, via))
    since = "2027-01-15T08:00:00.000000Z"
    error = await submit(channel)
    text = f"the store is unavailable since {since}: no etcd member answers; nothing was changed"
    assert (error.details(), details_of(error)["ErrorInfo"].reason) == (text, "store-unavailable")
    campaign, info, said = await notice_of(channel)
    assert campaign.created_by in {"c1's records", "c2's records"}
    assert (info.reason, info.metadata["since"]) == ("store-unavailable", since)
    assert said.endswith(f"read from the records as of {since}")


async def test_records_that_were_never_read_are_not_taken_for_none(fleet: Fleet) -> None:
    elect(None, fleet.nodes)
    fleet.two.standing.read_at = None
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await get(fleet.channel(fleet.two))
    assert "has not read the records yet" in (refused.value.details() or "")
    name = "/hostler.v1.FleetService/GetStatus"
    answer = await ask(fleet.channel(fleet.two), name, fleet_pb2.GetStatusRequest(), fleet_pb2.GetStatusResponse)
    assert answer.coordinator == "c2"


async def test_without_a_leader_the_status_is_answered_all_the_same(fleet: Fleet) -> None:
    elect(None, fleet.nodes)
    name = "/hostler.v1.FleetService/GetStatus"
    answer = await ask(fleet.channel(fleet.two), name, fleet_pb2.GetStatusRequest(), fleet_pb2.GetStatusResponse)
    assert answer.coordinator == "c2"


async def test_a_leader_that_cannot_be_reached_is_named(fleet: Fleet) -> None:
    await fleet.one.stop()
    channel = fleet.channel(fleet.two)
    error = await submit(channel)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    said = error.details() or ""
    assert said.startswith(f"leader c1 at {fleet.one.address} cannot be reached since 20")
    assert said.endswith("it refuses the connection: nothing listens there; nothing was changed")
    details = details_of(error)
    assert (details["ErrorInfo"].reason, details["ErrorInfo"].metadata["outcome"]) == ("leader-unreachable", "none")
    assert "RetryInfo" in details
    campaign, info, _ = await notice_of(channel)
    assert (campaign.created_by, info.reason) == ("c2's records", "leader-unreachable")


async def test_a_leader_that_goes_in_the_middle_of_a_change_leaves_it_in_doubt(fleet: Fleet) -> None:
    proxy = await fleet.proxy(fleet.one.address)
    fleet.election.addresses["c1"] = proxy.address
    channel = fleet.channel(fleet.two)
    await get(channel)
    proxy.freeze()
    error = await submit(channel)
    assert error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
    assert (error.details() or "").endswith("it may have been done all the same")
    assert details_of(error)["ErrorInfo"].metadata["outcome"] == "unknown"


async def test_a_call_is_forwarded_once_only(fleet: Fleet) -> None:
    fleet.one.standing.believes = "c2"
    fleet.two.standing.believes = "c1"
    fleet.election.leader = None
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await get(fleet.channel(fleet.two))
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert details_of(refused.value)["ErrorInfo"].reason == "leader-changed"
    calls = [[seen for seen in node.observed if "GetCampaign" in seen[0]] for node in fleet.nodes]
    assert [len(seen) for seen in calls] == [1, 1]


async def test_nobody_but_a_coordinator_may_name_another_caller(fleet: Fleet) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await get(fleet.channel(fleet.one, "mallory"), metadata=((CALLER_KEY, b"alice"),))
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert fleet.one.refused[0][0] == "operator/mallory"


@pytest.mark.parametrize(("name", "role"), [("h1", Role.AGENT), ("c9", Role.COORDINATOR), ("e1", Role.ETCD)])
async def test_operators_calls_are_for_operators(fleet: Fleet, name: str, role: Role) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await get(fleet.channel(fleet.two, name, role))
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert "for operators only" in (refused.value.details() or "")


async def test_a_body_of_ten_megabytes_is_refused_clearly(fleet: Fleet) -> None:
    channel = fleet.channel(fleet.two)
    request = pb.GetCampaignRequest(id="x" * 10_000_000)
    options = (("grpc.max_send_message_length", -1),)
    tls = fleet.tls("bob", Role.OPERATOR)
    credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
    async with grpc.aio.secure_channel(fleet.two.address, credentials, options=options) as wide:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(wide, "GetCampaign", request, pb.GetCampaignResponse)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in (refused.value.details() or "")

    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask(channel, "GetCampaign", pb.GetCampaignRequest(id="x" * 2_000_000), pb.GetCampaignResponse)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"this call takes at most {REQUEST_BYTES_MAX}" in (refused.value.details() or "")
    assert fleet.one.campaigns.asked == []


async def test_the_servers_bound_on_a_call_holds_without_a_deadline(fleet: Fleet) -> None:
    answer = await get(fleet.channel(fleet.two))
    assert answer.campaign.id == "c-1"
    [(method, seconds, code)] = [seen for seen in fleet.one.observed if "GetCampaign" in seen[0]]
    assert (method, code) == ("/hostler.v1.CampaignService/GetCampaign", "OK")
    assert 0 < seconds < 10


async def test_health_and_reflection_answer(fleet: Fleet) -> None:
    channel = fleet.channel(fleet.two)
    health = health_pb2_grpc.HealthStub(channel)
    for service in ("", "hostler.v1.CampaignService", "hostler.v1.AgentService"):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING

    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=10)
    names = [service.name async for answer in call for service in answer.list_services_response.service]
    assert "hostler.v1.FleetService" in names
    assert "hostler.v1.PeerService" in names


async def test_a_peer_without_a_certificate_or_without_tls_gets_nowhere(fleet: Fleet) -> None:
    tls = fleet.tls("alice", Role.OPERATOR)
    no_certificate = grpc.ssl_channel_credentials(tls.authority)
    for channel in (
        grpc.aio.insecure_channel(fleet.one.address),
        grpc.aio.secure_channel(fleet.one.address, no_certificate),
    ):
        async with channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await get(channel)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert fleet.one.observed == [] or all("Relay" in seen[0] for seen in fleet.one.observed)


async def test_a_certificate_of_another_region_is_not_known_here(fleet: Fleet) -> None:
    other = Node("c3", fleet.authority, fleet.election, fleet.now, region="r2")
    await other.start()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await get(fleet.channel(other))
    await other.stop()
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "of region r1, this is r2" in (refused.value.details() or "")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "10.0.0.1:1", "localhost:1", "[::1]:1"])
def test_plaintext_beyond_loopback_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="plaintext"):
        RpcServer(ServerSettings(address, plaintext=True), None, *[None] * 5, sessions=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="plaintext"):
        dialler(None)(address)


def test_a_server_without_certificates_must_be_asked_for() -> None:
    with pytest.raises(ValueError, match="without certificates"):
        RpcServer(ServerSettings("127.0.0.1:0"), None, *[None] * 5, sessions=None)  # type: ignore[arg-type]


async def test_frequent_pings_of_our_own_clients_are_welcome(fleet: Fleet) -> None:
    """FC-A21: no GOAWAY for too many pings, with or without a call in progress."""
    tls = fleet.tls("bob", Role.OPERATOR)
    credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
    options = (
        ("grpc.keepalive_time_ms", 600),
        ("grpc.http2.ping_timeout_ms", 2000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    )
    async with grpc.aio.secure_channel(fleet.one.address, credentials, options=options) as channel:
        await get(channel)
        broken = asyncio.create_task(channel.wait_for_state_change(grpc.ChannelConnectivity.READY))
        done, _ = await asyncio.wait([broken], timeout=4.0)
        broken.cancel()
        assert not done, channel.get_state()
        await get(channel)


async def test_plaintext_on_loopback_believes_what_it_is_told(fleet: Fleet) -> None:
    node = Node("c3", fleet.authority, fleet.election, fleet.now, plaintext=True)
    await node.start()
    fleet.election.leader = "c3"
    async with dialler(None)(node.address) as channel:
        assert (await get(channel)).campaign.created_by == "c3"
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await get(channel, metadata=((PLAINTEXT_CLAIM, "host/h1"),))
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await get(channel, metadata=((PLAINTEXT_CLAIM, "root"),))
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    await node.stop()
