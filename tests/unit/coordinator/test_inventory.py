"""Inventory: both forms of file, every bad line by name, identity, and the difference."""

from __future__ import annotations

import pytest

from hostler_contract.hosts import BmcRef, HostRecord, Retirement
from hostler_contract.views import InventoryChange
from hostler_coordinator.inventory import apply, diff, match, parse_inventory
from hostler_coordinator.inventory_files import LARGEST_BYTES
from hostler_coordinator.refusals import BadField, BadFields

YAML = b"""
hosts:
  - name: gpu-001
    fabric: ib-a
    rack: 07
    feeds: [f1, f2]
    model: H200 SXM
    serial: SN0001
    address: 10.0.0.1
    bmc: {protocol: redfish, address: 10.1.0.1, credentials: "file:/etc/hostler/bmc", serial: SN0001}
    labels: {tier: gold}
  - name: no
    serial: SN0002
"""
CSV = b"""# what the file above says
name,fabric,rack,feeds,model,serial,address,bmc_protocol,bmc_address,bmc_credentials,bmc.serial,label:tier
gpu-001,ib-a,07,f1;f2,H200 SXM,SN0001,10.0.0.1,redfish,10.1.0.1,file:/etc/hostler/bmc,SN0001,gold

no,,,,,SN0002,,,,,,
"""


def records(content: bytes, now: float = 5.0) -> list[HostRecord]:
    return [apply(entry, None, now) for entry in parse_inventory(content)]


KNOWN = records(YAML)


def problems(content: bytes, form: str = "") -> list[BadField]:
    with pytest.raises(BadFields) as caught:
        parse_inventory(content, form)
    return list(caught.value.problems)


def changes(content: bytes, *, remove_missing: bool = False) -> list[InventoryChange]:
    return diff(KNOWN, parse_inventory(content), remove_missing=remove_missing)


def test_yaml_keeps_what_was_typed() -> None:
    first, second = KNOWN
    assert (first.name, first.rack, first.feeds, first.labels) == ("gpu-001", "07", ("f1", "f2"), {"tier": "gold"})
    assert first.bmc == BmcRef(
        protocol="redfish", address="10.1.0.1", port=443, credentials="file:/etc/hostler/bmc", serial="SN0001"
    )
    assert (second.name, second.bmc, second.site, second.enrolled_at) == ("no", None, "site", 5.0)


def test_csv_says_the_same() -> None:
    assert records(CSV) == KNOWN


def test_the_derived_id_depends_on_the_serial_alone() -> None:
    (moved,) = records(b"- {name: other, serial: sn0001, rack: r9}")
    assert moved.id == KNOWN[0].id
    assert records(b"- {name: a, id: my-id}")[0].id == "my-id"


def test_a_renamed_host_is_a_change_and_not_another_host() -> None:
    (change,) = changes(b"- {name: gpu-0001, serial: SN0001, rack: r8}")
    assert (change.kind, change.host_id) == ("changed", KNOWN[0].id)
    assert change.fields == ("name: gpu-001 -> gpu-0001", "rack: 07 -> r8")


def test_what_a_file_leaves_out_stays() -> None:
    (entry, host) = match(KNOWN, parse_inventory(b"name,serial,bmc_port\ngpu-001,SN0001,8443\n"))[0]
    after = apply(entry, host, 9.0)
    assert host is not None
    assert host.bmc is not None
    assert after == host.model_copy(update={"bmc": host.bmc.model_copy(update={"port": 8443})})


def test_what_a_file_says_is_empty_goes() -> None:
    (change,) = changes(b"hosts:\n- name: gpu-001\n  serial: SN0001\n  rack: null\n  bmc:\n  labels: {}\n")
    assert "rack: 07 -> (none)" in change.fields
    assert "bmc.address: 10.1.0.1 -> (none)" in change.fields
    assert "labels.tier: gold -> (none)" in change.fields


def test_adding_and_removing_are_told() -> None:
    new = b"- {name: new, serial: SN3, rack: r1}"
    assert [change.kind for change in changes(new)] == ["added"]
    assert [(change.kind, change.name) for change in changes(new, remove_missing=True)] == [
        ("added", "new"),
        ("removed", "gpu-001"),
        ("removed", "no"),
    ]
    assert [change.kind for change in changes(YAML, remove_missing=True)] == ["unchanged", "unchanged"]


def test_retired_hosts_are_not_removed() -> None:
    retired = KNOWN[0].model_copy(update={"retired": Retirement(ticket="RMA-1", by="kim", at=0)})
    told = diff([retired, KNOWN[1]], parse_inventory(b"- {name: new, serial: SN3}"), remove_missing=True)
    assert [change.name for change in told if change.kind == "removed"] == ["no"]


def test_two_hosts_may_swap_names_in_one_file() -> None:
    told = changes(b"- {name: no, serial: SN0001}\n- {name: gpu-001, serial: SN0002}\n")
    assert [change.fields for change in told] == [("name: gpu-001 -> no",), ("name: no -> gpu-001",)]


@pytest.mark.parametrize(
    ("content", "field", "says"),
    [
        (b"- {name: gpu-001, serial: NEW1}", "line 1: name", "belongs to gpu-001 already"),
        (b"- {name: x, serial: SN9, bmc: {protocol: redfish, address: 10.1.0.1}}", "line 1: bmc.address", "gpu-001"),
        (b"- {name: x, serial: SN9, bmc: {protocol: ipmi}}", "line 1: bmc.address", "is missing"),
        (b"- {name: x, id: zz, serial: SN0001}", "line 1: serial", "belongs to gpu-001 .* not to id zz"),
    ],
)
def test_clashes_with_known_hosts(content: bytes, field: str, says: str) -> None:
    with pytest.raises(BadFields, match=says) as caught:
        changes(content)
    assert caught.value.problems[0].field == field


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ("name: a b", "name", "odd characters"),
        ("rack: r/1", "rack", "odd characters"),
        ("feeds: [f1, f1]", "feeds", "twice"),
        ("address: 10.0.0.999", "address", "neither"),
        ("address: 'http://x'", "address", "neither"),
        ("serial: To Be Filled By O.E.M.", "serial", "placeholder"),
        ("serial: 00000000", "serial", "placeholder"),
        ("serial: [a, b]", "serial", "one value"),
        ("rak: r1", "rak", "did you mean rack"),
        ("name: {a: b}", "name", "not a text"),
        ("bmc: {protocol: ssh}", "bmc.protocol", "no BMC protocol"),
        ("bmc: {port: 65536}", "bmc.port", "no port"),
        ("bmc: admin", "bmc", "neither a set of fields nor ipmi://"),
        ("bmc: ipmi://", "bmc", "neither a set of fields"),
        ("bmc: ipmi://10.0.0.1:0", "bmc", "neither a set of fields"),
        ("bmc: 'http://10.0.0.1'", "bmc", "neither a set of fields"),
        ("labels: {'b@d': x}", "labels.b@d", "no label key"),
        ("labels: {rack: x}", "labels.rack", "hides"),
        ("labels: {ok: 'a$'}", "labels.ok", "odd characters"),
    ],
)
def test_bad_fields_name_line_field_and_fix(fields: str, field: str, says: str) -> None:
    key = fields.partition(":")[0]
    rest = [f"{name}: {value}" for name, value in (("name", "good"), ("serial", "SN9")) if name != key]
    content = "\n".join(["hosts:", "- id: h1", *(f"  {line}" for line in [fields, *rest])])
    (problem,) = problems(content.encode())
    assert problem.field == f"line 3: {field}"
    assert says in str(problem)
    assert problem.fix


@pytest.mark.parametrize(
    "line",
    [
        "bmc: {password: hunter2}",
        "bmc: {credentials: hunter2}",
        "bmc: {credentials: 'env:hunter2!'}",
        "password: hunter2",
        "bmc: {address: 'root:hunter2@10.0.0.1'}",
        "bmc: {credentials: 'file:/a/../hunter2'}",
        "bmc: hunter2",
        "bmc: ipmi://root:hunter2@10.0.0.1",
        "bmc: ipmi://10.0.0.1/hunter2",
    ],
)
def test_secrets_are_refused_and_never_repeated(line: str) -> None:
    (problem,) = problems(f"hosts:\n- name: a\n  serial: SN9\n  {line}\n".encode())
    assert "hunter2" not in str(problem)
    assert problem.field.startswith("line 4: ")


def test_every_bad_line_is_told_at_once() -> None:
    found = problems(b"name,serial,rack\ngood,SN1,r1\nb@d,SN2,r1\nshort,SN3\n,SN4,r1\n\nlast,,r1\n")
    assert [problem.field for problem in found] == ["line 4", "line 3: name", "line 5: name", "line 7: serial"]


def test_duplicates_name_both_lines() -> None:
    found = problems(b"id,name,serial,bmc_address\na,x,S1,10.0.0.1\nb,x,s1,10.0.0.1\na,y,S2,10.0.0.2\n")
    assert [(problem.field, problem.reason) for problem in found] == [
        ("line 3: name", "is on line 2 too"),
        ("line 3: serial", "is on line 2 too"),
        ("line 3: bmc.address", "is on line 2 too"),
        ("line 4: id", "is on line 2 too"),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "lists no hosts"),
        (b"hosts: 3", "no list"),
        (b"a: [", "not YAML"),
        (b"\xff\xfe", "not UTF-8"),
        (b"name,serial\na,S1\0", "line 2.*control character"),
        (b"x" * (LARGEST_BYTES + 1), "8 MiB"),
        (b"[" * 1_000_000, "YAML"),
        (b"fabric,rack\na,b\n", 'no column "name"'),
        (b"name,rack,rack\na,b,c\n", "column twice"),
    ],
)
def test_files_that_cannot_be_used(content: bytes, says: str) -> None:
    with pytest.raises(BadField, match=says):
        parse_inventory(content)


def test_fc_b06_the_uuid_of_the_hosts_own_system_is_taken_in_and_its_change_is_shown() -> None:
    uuid = "4c4c4544-0051-3010-8046-b4c04f4b5a32"
    (host,) = records(f"- {{name: a, serial: S1, system_uuid: {uuid}}}".encode())
    assert host.system_uuid == uuid
    (change,) = changes(f"- {{name: gpu-001, serial: SN0001, system_uuid: {uuid}}}".encode())
    assert change.fields == (f"system_uuid: (none) -> {uuid}",)
    for bad in ("x", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"):
        (problem,) = problems(f"- {{name: a, serial: S1, system_uuid: {bad}}}".encode())
        assert problem.field == "line 1: system_uuid"


def test_a_form_that_does_not_exist() -> None:
    with pytest.raises(BadField, match="no form of inventory"):
        parse_inventory(YAML, "toml")


def test_aliases_are_refused_before_they_grow() -> None:
    bomb = (
        b"a: &a [x,x]\nb: &b [*a,*a]\nhosts: [{name: q, serial: SN9, feeds: *a}, {name: r, serial: SN8, feeds: *a}]\n"
    )
    assert "alias" in str(problems(bomb)[0])


def test_an_unclosed_quote_names_the_line() -> None:
    assert problems(b'name,serial\na,S1\nb,"S2\n', "csv")[0].field == "line 3"


def test_problems_are_bounded() -> None:
    lines = "".join(f"h@{number},S{number}\n" for number in range(5_000))
    assert len(problems(f"name,serial\n{lines}".encode())) == 100
