"""Selectors: FC-D01 (empty), FC-D03 (padding), labels, names, retired hosts, and bounds."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler_contract.campaigns import Selector
from hostler_contract.hosts import HostRecord, Retirement
from hostler_coordinator.names import natural_key, nearest
from hostler_coordinator.refusals import BadField
from hostler_coordinator.selector import select

RETIRED = Retirement(ticket="RMA-7", by="kim", at=0)


def host(name: str, **fields: object) -> HostRecord:
    return HostRecord.model_validate({"id": f"id-{name}", "name": name, "enrolled_at": 0, **fields})


FLEET = [
    *(host(f"gpu{n:02}", fabric="ib-a", feeds=("f1", "f2"), model="H200 SXM") for n in range(1, 5)),
    *(host(f"gpu{n:03}", fabric="ib-b", labels={"burn-in": "yes"}) for n in range(1, 5)),
    *(host(f"node{n}", fabric="ib-c", rack=f"r{n // 100}") for n in range(600, 0, -1)),
    host("old", fabric="ib-a", retired=RETIRED),
]


def chosen(*hosts: str, labels: tuple[str, ...] = (), everything: bool = False) -> list[str]:
    selection = select(Selector(hosts=hosts, labels=labels, all=everything), FLEET)
    return [one.name for one in selection.hosts]


def test_fc_d03_padding_is_part_of_the_name() -> None:
    assert chosen("gpu[01-04]") == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert chosen("gpu[001-004]") == ["gpu001", "gpu002", "gpu003", "gpu004"]
    assert chosen("node[541-570]") == [f"node{n}" for n in range(541, 571)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpu[01-004]", "mixed padding"),
        ("gpu[1-04]", "mixed padding"),
        ("gpu[04-01]", "backwards.*write"),
        ("node[1-100000000]", "too large"),
        ("node[1-99999,1-99999]", "too large"),
        ("r[1-100]n[1-100]x[1-100]", "too large"),
        ("r[1-2]n[1-2]x[1-2]y[1-2]z[1-2]", "more than 4 groups"),
    ],
)
def test_fc_d03_bad_ranges_are_refused_without_expansion(text: str, says: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadField, match=says) as caught:
            chosen("gpu01", text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.field == "selector.hosts[1]"
    assert peak < 1_000_000


@pytest.mark.parametrize("text", ["", " ", ",", ":", ", ,", "\t", ";"])
def test_fc_d01_nearly_empty_selects_nothing(text: str) -> None:
    with pytest.raises(BadField, match="selects nothing"):
        chosen(text)
    with pytest.raises(BadField, match="selects nothing"):
        chosen(labels=(text,))


def test_fc_d01_empty_selects_nothing_and_all_must_be_said() -> None:
    with pytest.raises(BadField, match="selects nothing"):
        select(Selector(), FLEET)
    with pytest.raises(BadField, match="selects nothing"):
        select(Selector(all=True), [])
    assert len(chosen(everything=True)) == 608


@pytest.mark.parametrize(
    "selector",
    [
        Selector(hosts=("gpu01",), all=True),
        Selector(labels=("fabric=ib-a",), all=True),
        Selector(hosts=("gpu01",), labels=("fabric=ib-a",)),
    ],
)
def test_exactly_one_kind_of_selector(selector: Selector) -> None:
    with pytest.raises(BadField, match="given together"):
        select(selector, FLEET)


def test_names_come_in_natural_order_whatever_the_order_given() -> None:
    assert chosen("node10", "node9,gpu[02-03]") == ["gpu02", "gpu03", "node9", "node10"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gup01", "is no enrolled host; did you mean gpu.*gpu01"),
        ("node[599-603]", "node601, node602, node603' are no enrolled hosts"),
        ("gpu01,gpu01", "named twice"),
        ("gpu[01-02,02]", "named twice"),
        ("gpu01,id-gpu01", "named twice"),
        ("old", "retired under ticket RMA-7 by kim"),
        ("gpu01,,gpu02", "empty entry"),
        ("gpu[01", "brackets"),
        ("gpu]01[", "brackets"),
        ("gpu[]", "no range"),
        ("gpu[a-b]", "no range"),
        ("gpu 01", "characters that no host name has"),
        ("gpü01", r"'\\xfc'"),
        ("gpu01\0", r"'\\x00'"),
        ("-gpu", "is not a host name"),
        ("x" * 200, "longer than 128"),
        ("x" * 70_000, "longer than 65536"),
    ],
)
def test_bad_names_say_what_and_how(text: str, says: str) -> None:
    with pytest.raises(BadField, match=says) as caught:
        chosen(text)
    assert caught.value.fix
    assert len(str(caught.value)) < 500


def test_an_id_may_stand_for_a_name() -> None:
    assert chosen("id-node5") == ["node5"]


def test_two_hosts_of_one_name_need_the_id() -> None:
    twins = [host("a", id="h1"), host("a", id="h2")]
    with pytest.raises(BadField, match=r"name of several hosts \(h1, h2\)"):
        select(Selector(hosts=("a",)), twins)
    assert select(Selector(hosts=("h2",)), twins).hosts == (twins[1],)


@pytest.mark.parametrize(
    ("term", "count"),
    [
        ("fabric=ib-a", 4),
        ("fabric=ib-c,rack!=r5", 500),
        ("feed=f2", 4),
        ("feed!=f2", 604),
        ("rack", 600),
        ("!rack", 8),
        ("burn-in", 4),
        ("burn-in=yes", 4),
        ("model=H200 SXM", 4),
        ("name=node7", 1),
        ("id=id-node7", 1),
        ("site=site", 608),
        (" fabric = ib-b ", 4),
    ],
)
def test_labels(term: str, count: int) -> None:
    assert len(chosen(labels=(term,))) == count


def test_retired_hosts_that_labels_would_match_are_told_of() -> None:
    selection = select(Selector(labels=("fabric=ib-a",)), FLEET)
    assert [one.name for one in selection.retired] == ["old"]
    with pytest.raises(BadField, match="no enrolled host but 1 retired"):
        select(Selector(labels=("name=old",)), FLEET)


@pytest.mark.parametrize(
    ("term", "says"),
    [
        ("fabric=ib-z", "there is fabric=ib-a"),
        ("tier=gold", "no host has 'tier' at all"),
        ("fabric=", "where the value"),
        ("=ib-a", "where a label key"),
        ("fab ric=a", "no label key has"),
        ("fabric=a$b", r"no label value has \('\$'\)"),
        ("fabric=ib-a,,rack=r1", "empty term"),
        ("fabric=ib-a\n", None),
        (",".join(["rack"] * 65), "more than 64 terms"),
    ],
)
def test_bad_labels(term: str, says: str | None) -> None:
    if says is None:
        assert len(chosen(labels=(term,))) == 4
        return
    with pytest.raises(BadField, match=says):
        chosen(labels=(term,))


def test_nearest_is_quick_on_a_large_fleet_and_knows_other_padding() -> None:
    fleet = [f"gpu-{n:04}" for n in range(10_000)]
    assert nearest("gpu-131", fleet)[0] == "gpu-0131"
    assert nearest("completely-else", fleet) == []


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_natural_order_is_numeric(numbers: list[int]) -> None:
    names = sorted((f"n{number}-x" for number in numbers), key=natural_key)
    assert names == [f"n{number}-x" for number in sorted(numbers)]
