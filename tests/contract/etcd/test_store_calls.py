"""What the etcd client promises of reads, transactions, watches and leases, on a real member and on a simulated one."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import pytest

from etcd_fixtures import SharedEtcd, wait_until
from hostler_coordinator.etcd import (
    OPS_MAX,
    Compacted,
    Delete,
    Deleted,
    EtcdClient,
    EtcdError,
    Get,
    Listing,
    MemberStatus,
    Put,
    RequestRefused,
    Stored,
    absent,
    create_revision_is,
    lease_is,
    mod_revision_is,
    prefix_empty,
    prefix_end,
    prefix_unchanged_since,
    present,
    value_is,
    version_is,
)


@pytest.fixture
def etcd(either_etcd: SharedEtcd) -> SharedEtcd:
    """Both, one after the other."""
    return either_etcd


@pytest.mark.parametrize(
    ("prefix", "end"),
    [(b"/a/", b"/a0"), (b"a\xff", b"b"), (b"a\xff\xff", b"b"), (b"\xff", b"\0"), (b"", b"\0")],
)
def test_prefix_end_is_the_first_key_behind_the_prefix(prefix: bytes, end: bytes) -> None:
    assert prefix_end(prefix) == end


async def test_get_tells_absent_from_empty_and_reads_the_past(etcd: SharedEtcd) -> None:
    key = etcd.prefix + b"k"
    before = await etcd.client.get(key)
    assert before.kv is None
    first = await etcd.client.put(key, b"")
    await etcd.client.put(key, b"new")
    now = await etcd.client.get(key)
    assert now.kv is not None
    assert (now.kv.value, now.kv.create_revision, now.kv.version) == (b"new", first, 2)
    past = await etcd.client.get(key, revision=first)
    assert past.kv is not None
    assert past.kv.value == b""
    assert await etcd.client.delete(key) == 1
    assert await etcd.client.delete(key) == 0


async def test_a_txn_needs_every_compare(etcd: SharedEtcd) -> None:
    one, two, three = (etcd.prefix + name for name in (b"1", b"2", b"3"))
    revision = await etcd.client.put(one, b"v")
    result = await etcd.client.txn(
        [
            mod_revision_is(one, revision),
            create_revision_is(one, revision),
            version_is(one, 1),
            value_is(one, b"v"),
            lease_is(one, 0),
            present(one),
            absent(two),
        ],
        [Put(two, b"w"), Get(one), Delete(one, want_before=True)],
    )
    assert result.succeeded
    assert not result.repeated
    stored, got, deleted = result.responses
    assert stored == Stored()
    assert isinstance(got, Listing)
    assert got.kvs[0].value == b"v"
    assert isinstance(deleted, Deleted)
    assert (deleted.count, deleted.before[0].value) == (1, b"v")
    refused = await etcd.client.txn([absent(three), absent(two)], [Put(three, b"x")], [Get(two)])
    assert not refused.succeeded
    assert isinstance(refused.responses[0], Listing)
    assert refused.responses[0].kvs[0].mod_revision == result.revision
    assert (await etcd.client.get(three)).kv is None


async def test_a_range_compare_sees_every_key_of_a_prefix(etcd: SharedEtcd) -> None:
    charges, mark = etcd.prefix + b"charges/", etcd.prefix + b"mark"
    assert (await etcd.client.txn([prefix_empty(charges)], [Put(mark, b"1")])).succeeded
    revision = await etcd.client.put(charges + b"a", b"")
    assert not (await etcd.client.txn([prefix_empty(charges)], [Put(mark, b"2")])).succeeded
    assert (await etcd.client.txn([prefix_unchanged_since(charges, revision)], [Put(mark, b"3")])).succeeded
    await etcd.client.put(charges + b"b", b"")
    assert not (await etcd.client.txn([prefix_unchanged_since(charges, revision)], [Put(mark, b"4")])).succeeded
    assert await etcd.client.delete_prefix(charges) == 2
    assert (await etcd.client.txn([prefix_empty(charges)], [Put(mark, b"5")])).succeeded


async def test_bounds_are_refused_before_anything_is_sent(etcd: SharedEtcd) -> None:
    with pytest.raises(ValueError, match="at most 100 compares, not 101"):
        await etcd.client.txn([absent(b"%d" % n) for n in range(OPS_MAX + 1)], [])
    with pytest.raises(ValueError, match="empty prefix"):
        await etcd.client.delete_prefix(b"")
    with pytest.raises(ValueError, match="at least one"):
        EtcdClient([])


async def test_a_malformed_request_is_refused_with_etcds_words(etcd: SharedEtcd) -> None:
    with pytest.raises(RequestRefused, match="duplicate key given"):
        await etcd.client.txn([], [Put(etcd.prefix, b"1"), Put(etcd.prefix, b"2")])
    with pytest.raises(RequestRefused, match="request is too large"):
        await etcd.client.put(etcd.prefix, bytes(1_700_000))


async def test_pages_are_all_of_one_revision(etcd: SharedEtcd) -> None:
    for n in range(7):
        await etcd.client.put(etcd.prefix + b"%d" % n, b"old")
    seen = []
    async with aclosing(etcd.client.pages(etcd.prefix, page_keys=3)) as pages:
        async for page in pages:
            seen.append(page)
            await etcd.client.put(etcd.prefix + b"6", b"changed while reading")
            await etcd.client.put(etcd.prefix + b"9", b"added while reading")
    assert [len(page.kvs) for page in seen] == [3, 3, 1]
    assert len({page.revision for page in seen}) == 1
    assert {kv.value for page in seen for kv in page.kvs} == {b"old"}
    whole = await etcd.client.range(etcd.prefix, page_keys=2)
    assert (whole.count, len(whole.kvs)) == (8, 8)
    assert await etcd.client.count(etcd.prefix) == 8


async def test_pages_shrink_when_values_are_large(etcd: SharedEtcd) -> None:
    for n in range(20):
        await etcd.client.put(etcd.prefix + b"%02d" % n, bytes(1_000_000))
    listing = await etcd.client.range(etcd.prefix)
    assert [kv.key[-2:] for kv in listing.kvs] == [b"%02d" % n for n in range(20)]
    await etcd.client.delete_prefix(etcd.prefix)


async def test_a_watch_hands_out_whole_revisions_from_its_start(etcd: SharedEtcd) -> None:
    first = await etcd.client.put(etcd.prefix + b"a", b"1")
    both = await etcd.client.txn([], [Put(etcd.prefix + b"b", b"2"), Put(etcd.prefix + b"c", b"3")])
    async with aclosing(etcd.client.watch(etcd.prefix, first, want_before=True)) as batches:
        batch = await anext(batches)
        assert [event.kv.value for event in batch.events] == [b"1", b"2", b"3"]
        assert batch.revision == both.revision
        await etcd.client.delete(etcd.prefix + b"a")
        batch = await anext(batches)
        assert batch.events[0].deleted
        assert batch.events[0].before is not None
        assert batch.events[0].before.value == b"1"


async def test_an_exact_watch_leaves_longer_keys_alone(etcd: SharedEtcd) -> None:
    got = await etcd.client.get(etcd.prefix + b"a")
    await etcd.client.put(etcd.prefix + b"ab", b"not this")
    await etcd.client.put(etcd.prefix + b"a", b"this")
    async with aclosing(etcd.client.watch(etcd.prefix + b"a", got.revision + 1, exact=True)) as batches:
        assert [event.kv.value for event in (await anext(batches)).events] == [b"this"]


async def test_fc_a18_compacted_history_is_an_error_that_names_the_revision(etcd: SharedEtcd) -> None:
    old = await etcd.client.put(etcd.prefix + b"a", b"1")
    await etcd.client.put(etcd.prefix + b"a", b"2")
    now = await etcd.client.put(etcd.prefix + b"a", b"3")
    await etcd.client.compact(now, physical=True)
    with pytest.raises(Compacted) as caught:
        async with aclosing(etcd.client.watch(etcd.prefix, old)) as batches:
            await anext(batches)
    assert caught.value.compact_revision == now
    with pytest.raises(Compacted):
        await etcd.client.range(etcd.prefix, revision=old)
    with pytest.raises(Compacted):
        await etcd.client.compact(old)
    listing = await etcd.client.range(etcd.prefix)
    assert listing.kvs[0].value == b"3"


async def test_kept_leases_share_a_stream_and_outlive_their_ttl(etcd: SharedEtcd) -> None:
    leases = [await etcd.client.lease_grant(2) for _ in range(3)]
    unkept = await etcd.client.lease_grant(2, keep=False)
    await etcd.client.put(etcd.prefix + b"kept", b"", lease=leases[0].id)
    await asyncio.wait_for(unkept.lost.wait(), 3.0)
    assert not unkept.alive
    await wait_until(lambda: all(lease.believed_until > time.monotonic() + 1.0 for lease in leases), 3.0)
    assert (await etcd.client.get(etcd.prefix + b"kept")).kv is not None
    assert await etcd.client.lease_revoke(leases[0])
    assert leases[0].lost.is_set()
    assert not leases[0].alive
    assert (await etcd.client.get(etcd.prefix + b"kept")).kv is None
    assert not await etcd.client.lease_revoke(leases[0])
    assert leases[1].alive
    assert leases[2].alive


async def test_a_lease_that_comes_while_the_last_one_goes_is_kept(etcd: SharedEtcd) -> None:
    async def renewed_when_it_came(turns: int) -> bool:
        """The new lease is granted so many turns of the loop after the last one began to go."""
        async with etcd.another() as client:
            last = await client.lease_grant(5)
            going = asyncio.create_task(client.lease_revoke(last))
            for _ in range(turns):
                await asyncio.sleep(0)
            lease = await client.lease_grant(5)
            granted_until = lease.believed_until
            await going
            await wait_until(lambda: lease.believed_until > granted_until or lease.lost.is_set())
            return lease.alive

    turns = range(0, 60, 2)
    kept = dict(zip(turns, await asyncio.gather(*map(renewed_when_it_came, turns)), strict=True))
    assert kept == dict.fromkeys(turns, True)


async def test_belief_in_a_lease_ends_before_etcds(etcd: SharedEtcd) -> None:
    lease = await etcd.client.lease_grant(2, keep=False)
    await asyncio.wait_for(lease.lost.wait(), 3.0)
    assert await etcd.client.lease_time_to_live(lease.id) is not None


async def test_a_lease_revoked_by_somebody_else_is_noticed(etcd: SharedEtcd) -> None:
    lease = await etcd.client.lease_grant(2)
    async with etcd.another() as other:
        taken = await other.lease_grant(5, keep=False)
        taken.id, own = lease.id, taken.id
        await other.lease_revoke(taken)
        taken.id = own
    await asyncio.wait_for(lease.lost.wait(), 2.0)
    assert await etcd.client.lease_time_to_live(lease.id) is None


async def test_members_say_how_they_are(etcd: SharedEtcd) -> None:
    (status,) = (await etcd.client.status()).values()
    assert isinstance(status, MemberStatus)
    assert status.is_leader
    assert status.db_size_bytes > 0
    (member,) = await etcd.client.members()
    assert (member.id, member.client_urls) == (status.member_id, (f"http://{etcd.endpoints[0]}",))
    assert await etcd.client.alarms() == ()
    await etcd.client.defragment(etcd.endpoints[0])


async def test_the_observer_hears_of_every_attempt(etcd: SharedEtcd) -> None:
    heard: list[tuple[str, str]] = []
    async with etcd.another(observer=lambda name, _, outcome: heard.append((name, outcome))) as client:
        await client.put(etcd.prefix, b"")
        await client.get(etcd.prefix)
    assert heard == [("Put", "ok"), ("Range", "ok")]
    with pytest.raises(EtcdError, match="closed"):
        await client.get(etcd.prefix)
