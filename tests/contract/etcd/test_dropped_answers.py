"""Faults that a healthy etcd cannot be made to show: answers that are lost, refused or contradict themselves. A small
server of ours speaks etcd's wire format and, where it should, passes requests on to the real one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from etcd_fixtures import SharedEtcd
from hostler_coordinator.etcd import (
    AuthFailed,
    ClusterChanged,
    Compacted,
    EtcdClient,
    Login,
    OutcomeUnknown,
    Put,
    StoreUnavailable,
    WatchCancelled,
    absent,
)
from hostler_coordinator.etcd.errors import Failure, sort_failure
from hostler_coordinator.etcd.pb import wire_pb2 as wire

Handler = Callable[[Any, Any], Awaitable[Any]]


class FakeEtcd:
    """Answers as told, method by method; a method that was told nothing is UNIMPLEMENTED."""

    def __init__(self) -> None:
        self.unary: dict[str, tuple[Any, Handler]] = {}
        self.watch: Handler | None = None
        self.endpoint = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FakeEtcd]:
        services: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
        for path, (request, handler) in self.unary.items():
            service, method = path.split("/")
            services.setdefault(service, {})[method] = grpc.unary_unary_rpc_method_handler(
                handler,
                request_deserializer=request.FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
        if self.watch is not None:
            services["etcdserverpb.Watch"] = {
                "Watch": grpc.stream_stream_rpc_method_handler(
                    self.watch,
                    request_deserializer=wire.WatchRequest.FromString,
                    response_serializer=wire.WatchResponse.SerializeToString,
                )
            }
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(name, methods) for name, methods in services.items()]
        )
        self.endpoint = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        try:
            yield self
        finally:
            await server.stop(None)


def losing_answers(etcd: SharedEtcd, lost: int) -> FakeEtcd:
    """Passes transactions on to the real etcd, and loses the first ``lost`` answers."""
    fake = FakeEtcd()
    sent: list[int] = []

    async def txn(request: wire.TxnRequest, context: Any) -> wire.TxnResponse:
        async with grpc.aio.insecure_channel(etcd.endpoints[0]) as channel:
            forward: Any = channel.unary_unary(
                "/etcdserverpb.KV/Txn", wire.TxnRequest.SerializeToString, wire.TxnResponse.FromString
            )
            answer: wire.TxnResponse = await forward(request)
        sent.append(answer.header.revision)
        if len(sent) <= lost:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        return answer

    fake.unary["etcdserverpb.KV/Txn"] = (wire.TxnRequest, txn)
    return fake


async def test_fc_a20_a_write_whose_answer_was_lost_is_unknown_and_not_repeated(etcd: SharedEtcd) -> None:
    key = etcd.prefix + b"grant"
    async with losing_answers(etcd, 1).running() as fake, EtcdClient([fake.endpoint]) as client:
        with pytest.raises(OutcomeUnknown, match="Txn may or may not have happened") as caught:
            await client.txn([], [Put(key, b"1")])
        assert caught.value.since <= time.monotonic()
    stored = (await etcd.client.get(key)).kv
    assert stored is not None
    assert stored.version == 1


async def test_a_guarded_write_may_be_repeated_and_says_so(etcd: SharedEtcd) -> None:
    key = etcd.prefix + b"grant"
    async with losing_answers(etcd, 2).running() as fake, EtcdClient([fake.endpoint]) as client:
        result = await client.txn([absent(key)], [Put(key, b"1")], idempotent=True)
        assert client.unavailable_since is None
    assert (result.succeeded, result.repeated) == (False, True)
    stored = (await etcd.client.get(key)).kv
    assert stored is not None
    assert stored.version == 1


async def test_a_write_that_timed_out_is_unknown() -> None:
    fake = FakeEtcd()

    async def silence(_request: Any, _context: Any) -> Any:
        await asyncio.sleep(30.0)

    fake.unary["etcdserverpb.KV/Put"] = (wire.PutRequest, silence)
    fake.unary["etcdserverpb.KV/Range"] = (wire.RangeRequest, silence)
    async with fake.running(), EtcdClient([fake.endpoint], request_timeout_s=0.2, deadline_s=0.7) as client:
        with pytest.raises(OutcomeUnknown):
            await client.put(b"k", b"v")
        since = client.unavailable_since
        assert since is not None
        with pytest.raises(OutcomeUnknown):
            await client.put(b"k", b"v", idempotent=True)
        with pytest.raises(StoreUnavailable) as caught:
            await client.get(b"k")
        assert caught.value.since == since


async def test_a_store_that_is_not_there_is_unavailable_since_the_first_failure() -> None:
    started = time.monotonic()
    async with EtcdClient(["127.0.0.1:1", "127.0.0.2:1"], deadline_s=0.5) as client:
        with pytest.raises(StoreUnavailable, match=r"store unavailable for .*127\.0\.0\.1:1") as caught:
            await client.txn([], [Put(b"k", b"")])
        assert started <= caught.value.since <= time.monotonic()
        assert client.unavailable_since == caught.value.since


async def test_fc_a17_created_and_cancelled_in_one_answer_is_an_error() -> None:
    fake = FakeEtcd()

    async def watch(_requests: Any, context: Any) -> None:
        reason = "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token"
        await context.read()
        await context.write(wire.WatchResponse(created=True, canceled=True, cancel_reason=reason))
        await context.read()

    fake.watch = watch
    async with fake.running(), EtcdClient([fake.endpoint]) as client:
        with pytest.raises(WatchCancelled, match="invalid auth token"):
            await asyncio.wait_for(anext(client.watch(b"k", 1)), 5.0)


async def test_fc_a17_with_a_login_the_token_is_renewed_and_nothing_is_missed() -> None:
    fake = FakeEtcd()
    starts: list[int] = []
    tokens: list[str] = []

    async def authenticate(_request: Any, _context: Any) -> wire.AuthenticateResponse:
        tokens.append(f"token {len(tokens)}")
        return wire.AuthenticateResponse(token=tokens[-1])

    async def watch(_requests: Any, context: Any) -> None:
        starts.append((await context.read()).create_request.start_revision)
        if dict(context.invocation_metadata())["token"] == "token 0":
            answer = wire.WatchResponse(created=True, canceled=True, cancel_reason="etcdserver: invalid auth token")
            await context.write(answer)
        else:
            await context.write(wire.WatchResponse(created=True))
            event = wire.Event(kv=wire.KeyValue(key=b"k", mod_revision=7))
            await context.write(wire.WatchResponse(events=[event]))
        await context.read()

    fake.watch = watch
    fake.unary["etcdserverpb.Auth/Authenticate"] = (wire.AuthenticateRequest, authenticate)
    async with (
        fake.running(),
        EtcdClient([fake.endpoint], login=Login("coord", "secret")) as client,
        aclosing(client.watch(b"k", 5)) as batches,
    ):
        assert (await asyncio.wait_for(anext(batches), 5.0)).revision == 7
    assert starts == [5, 5]
    assert "secret" not in repr(Login("coord", "secret"))


async def test_a_watch_resumes_from_what_it_delivered_not_from_what_the_member_says() -> None:
    fake = FakeEtcd()
    starts: list[int] = []

    async def watch(_requests: Any, context: Any) -> None:
        starts.append((await context.read()).create_request.start_revision)
        await context.write(wire.WatchResponse(created=True, header=wire.Header(revision=100)))
        if len(starts) == 2:
            for revisions, fragment in (([42, 43], True), ([43, 44], False)):
                events = [wire.Event(kv=wire.KeyValue(mod_revision=revision)) for revision in revisions]
                await context.write(wire.WatchResponse(events=events, fragment=fragment))
        if len(starts) == 3:
            await context.write(wire.WatchResponse(header=wire.Header(revision=60)))  # a progress notice
        if len(starts) == 4:
            await context.write(wire.WatchResponse(canceled=True, compact_revision=90))
        await asyncio.sleep(0.05)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "member going away")

    fake.watch = watch
    async with fake.running(), EtcdClient([fake.endpoint]) as client, aclosing(client.watch(b"k", 42)) as batches:
        batch = await asyncio.wait_for(anext(batches), 5.0)
        assert [event.kv.mod_revision for event in batch.events] == [42]
        batch = await asyncio.wait_for(anext(batches), 5.0)
        assert [event.kv.mod_revision for event in batch.events] == [43, 43, 44]
        with pytest.raises(Compacted):
            await asyncio.wait_for(anext(batches), 5.0)
    assert starts == [42, 42, 45, 61]


async def test_a_watch_that_is_not_permitted_says_so() -> None:
    fake = FakeEtcd()

    async def watch(_requests: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "etcdserver: permission denied")

    fake.watch = watch
    async with fake.running(), EtcdClient([fake.endpoint]) as client:
        with pytest.raises(AuthFailed, match="permission denied"):
            await asyncio.wait_for(anext(client.watch(b"k", 1)), 5.0)


async def test_another_cluster_at_the_same_address_is_noticed() -> None:
    fake = FakeEtcd()
    clusters = iter((7, 8))

    async def answer(_request: Any, _context: Any) -> wire.RangeResponse:
        return wire.RangeResponse(header=wire.Header(cluster_id=next(clusters)))

    fake.unary["etcdserverpb.KV/Range"] = (wire.RangeRequest, answer)
    async with fake.running(), EtcdClient([fake.endpoint]) as client:
        await client.get(b"k")
        with pytest.raises(ClusterChanged, match="belongs to cluster 8, not to 7"):
            await client.get(b"k")


@pytest.mark.parametrize(
    ("code", "details", "failure"),
    [
        (grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses", Failure.NOT_APPLIED),
        (grpc.StatusCode.UNAVAILABLE, "etcdserver: no leader", Failure.NOT_APPLIED),
        (grpc.StatusCode.UNAVAILABLE, "etcdserver: request timed out", Failure.IN_DOUBT),
        (grpc.StatusCode.UNAVAILABLE, "etcdserver: leader changed", Failure.IN_DOUBT),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", Failure.IN_DOUBT),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", Failure.NO_SPACE),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: too many requests", Failure.NOT_APPLIED),
        (grpc.StatusCode.OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted", Failure.COMPACTED),
        (grpc.StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token", Failure.TOKEN),
        (grpc.StatusCode.PERMISSION_DENIED, "etcdserver: permission denied", Failure.AUTH),
        (grpc.StatusCode.NOT_FOUND, "etcdserver: requested lease not found", Failure.REFUSED),
    ],
)
def test_answers_are_sorted_by_what_they_mean_for_a_repeat(
    code: grpc.StatusCode, details: str, failure: Failure
) -> None:
    assert sort_failure(code, details) is failure
