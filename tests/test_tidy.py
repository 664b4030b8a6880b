"""Holds the tree to its house rules: sizes, names, fresh generated code, a wheel with everything in it and no more."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tidy import extras, rules, wheel
from tidy.tree import PRODUCT_ROOTS, ROOT, Source, sources, written

Rule = Callable[[Source], Iterator[str]]

PYTHON_RULES: list[Rule] = [
    rules.long_functions,
    rules.long_module,
    rules.forbidden_name,
    rules.missing_nameplate,
    rules.mocked_own_type,
]
TEXT_RULES: list[Rule] = [rules.unfinished, rules.machine_path, rules.registry_address, rules.secret]

PURE_ROOMS = {
    "hostler_agent": ["decide"],
    "hostler_coordinator": [
        "alarms",
        "causes",
        "dispatch",
        "draft",
        "durations",
        "enact",
        "explain",
        "fsck",
        "hostlists",
        "inventory",
        "inventory_files",
        "inventory_rows",
        "ladder",
        "layout",
        "learned",
        "ledger",
        "lifecycle",
        "limits",
        "live",
        "names",
        "pages",
        "phrases",
        "planner",
        "policy",
        "quantities",
        "refusals",
        "selector",
        "standing",
        "state",
        "views",
        "waves",
        "windows",
    ],
}
# Data and plug-ins that nothing imports by name.
NEVER_IMPORTED = {"tzdata"}
ALL_DIRECT = extras.declared("agent", "coordinator", "cli", "dev") - {"hostler"}


@pytest.mark.parametrize("rule", PYTHON_RULES, ids=lambda rule: rule.__name__)
def test_python_that_people_write_keeps_to_the_rule(rule: Rule) -> None:
    assert [finding for source in written() for finding in rule(source)] == []


@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: rule.__name__)
def test_every_text_file_keeps_to_the_rule(rule: Rule) -> None:
    assert [finding for source in sources() if not source.is_generated for finding in rule(source)] == []


PLANTED: list[tuple[Rule, str, str]] = [
    (rules.long_functions, "a.py", "def long() -> None:\n" + "    pass\n" * 70),
    (rules.long_module, "a.py", "x = 1\n" * 501),
    (rules.forbidden_name, "coordinator/hostler_coordinator/utils.py", ""),
    (rules.forbidden_name, "agent/hostler_agent/common/host.py", ""),
    (rules.missing_nameplate, "a.py", "x = 1\n"),
    (rules.missing_nameplate, "a.py", '"""name"""\n'),
    (rules.mocked_own_type, "a.py", "from unittest import mock\n"),
    (rules.mocked_own_type, "a.py", "from unittest.mock import patch\n"),
    (rules.mocked_own_type, "a.py", "def test(mocker): ...\n"),
    (rules.mocked_own_type, "a.py", "monkeypatch.setattr('hostler_agent.loop.step', None)\n"),
    (rules.mocked_own_type, "a.py", "from hostler_agent import loop\nmonkeypatch.setattr(loop, 'step', None)\n"),
    (rules.unfinished, "a.md", "later: TO" + "DO\n"),
    (rules.unfinished, "a.py", "raise Not" + "ImplementedError\n"),
    (rules.machine_path, "a.md", "see /wo" + "rk/main\n"),
    (rules.machine_path, "a.md", "see /ho" + "me/ada\n"),
    (rules.registry_address, "a.json", '"resol' + 'ved": "x"\n'),
    (rules.registry_address, "a.txt", "https://mirror.example/sim" + "ple/grpcio\n"),
    (rules.secret, "a.pem", "-----BEGIN PRIVATE" + " KEY-----\n" + "A" * 64 + "\n"),
]


@pytest.mark.parametrize(("rule", "name", "text"), PLANTED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_violation_is_found(rule: Rule, name: str, text: str) -> None:
    assert len(list(rule(Source(name, text)))) == 1


def test_a_patch_of_somebody_elses_function_is_allowed() -> None:
    text = "import os\nfrom hostler_agent import journal\nmonkeypatch.setattr(os, 'fsync', f)\n"
    text += "monkeypatch.setattr(journal.os, 'fsync', f)\nmonkeypatch.setenv('A', 'b')\n"
    assert list(rules.mocked_own_type(Source("a.py", text))) == []


def test_every_pure_room_is_named_in_the_import_contract() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    contracts = tool["importlinter"]["contracts"]
    (named,) = (set(contract["source_modules"]) for contract in contracts if contract["id"] == "pure-core")
    roots = {Path(root).name: ROOT / root for root in PRODUCT_ROOTS}
    existing = {
        f"{package}.{room}"
        for package, rooms in PURE_ROOMS.items()
        for room in rooms
        if (roots[package] / f"{room}.py").exists() or (roots[package] / room).is_dir()
    }
    assert named == existing


def test_generated_code_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "protos/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.build(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_product_file_and_nothing_else(built: Path) -> None:
    expected = {
        str(Path(source.name).relative_to(root.split("/")[0]))
        for source in sources()
        for root in PRODUCT_ROOTS
        if source.name.startswith(root + "/")
    }
    held = wheel.names(built)
    assert {name for name in held if ".dist-info/" not in name and ".data/" not in name} == expected


def test_the_wheel_brings_the_units_and_the_commands(built: Path) -> None:
    units = {name.split("/systemd/")[1] for name in wheel.names(built) if "/share/hostler/systemd/" in name}
    assert units == {source.name.removeprefix("systemd/") for source in sources() if source.name.startswith("systemd/")}
    commands = re.findall(r"^(\S+) = (\S+)$", wheel.read(built, "entry_points.txt"), flags=re.MULTILINE)
    assert dict(commands) == {
        "hostler": "hostler_coordinator.cli:main",
        "hostler-agent": "hostler_agent.__main__:main",
        "hostler-coordinator": "hostler_coordinator.__main__:main",
    }


def _is_cli(source: Source) -> bool:
    return source.name.startswith(("coordinator/hostler_coordinator/cli", "coordinator/hostler_coordinator/dev/"))


def _room(prefix: str, *, cli: bool = False) -> list[Source]:
    return [
        source for source in sources() if source.is_python and source.name.startswith(prefix) and _is_cli(source) == cli
    ]


ROLES = {
    "contract": (_room("protos/hostler_contract/"), extras.declared()),
    "agent": (_room("agent/"), extras.declared("agent")),
    "coordinator": (_room("coordinator/"), extras.declared("coordinator")),
    # Standing a fleet up on one machine takes every role.
    "cli": (_room("coordinator/", cli=True), extras.declared("cli", "coordinator", "agent")),
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_declares_what_it_imports(role: str) -> None:
    room, declared = ROLES[role]
    assert extras.imported(room) - declared == set()


BRINGS = {"contract": (), "agent": ("agent",), "coordinator": ("coordinator",), "cli": ("cli",)}


@pytest.mark.parametrize("role", BRINGS)
def test_an_extra_brings_nothing_that_its_rooms_do_not_import(role: str) -> None:
    extra = BRINGS[role]
    brought = extras.declared(*extra) - (extras.declared() if extra else set())
    room, _ = ROLES[role]
    assert brought - extras.imported(room) - NEVER_IMPORTED == set()


ENTRY_MODULES = [
    ("hostler_contract.codec", ()),
    ("hostler_agent.__main__", ("agent",)),
    ("hostler_coordinator.__main__", ("coordinator",)),
    ("hostler_coordinator.cli", ("cli",)),
]


@pytest.mark.parametrize(("module", "wanted"), ENTRY_MODULES, ids=str)
def test_an_extra_is_enough_to_import_its_entry_module(module: str, wanted: Iterable[str]) -> None:
    assert extras.import_with_only(module, extras.declared(*wanted)) == ""


def test_every_direct_dependency_has_its_reason_in_the_docs() -> None:
    text = (ROOT / "docs/dependencies.md").read_text()
    explained = {canonicalize_name(name) for name in re.findall(r"^\| `([^`]+)`", text, flags=re.MULTILINE)}
    assert explained == ALL_DIRECT


def test_the_lock_names_every_direct_dependency_with_hashes() -> None:
    text = (ROOT / ".ci/constraints.txt").read_text()
    locked = {
        canonicalize_name(name)
        for name in re.findall(r"^([\w.-]+)==\S.*\\\n +--hash=sha256:", text, flags=re.MULTILINE)
    }
    assert extras.declared("agent", "coordinator", "cli", "dev") - {"hostler"} <= locked


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert re.search(r"^## Unreleased$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)


def test_decisions_are_numbered_once_and_have_their_parts() -> None:
    records = [source for source in sources() if re.match(r"docs/decisions/\d{4}-", source.name)]
    numbers = [source.path.name[:4] for source in records]
    assert sorted(set(numbers)) == sorted(numbers)
    parts = ("## Context", "## Decision", "## Consequences")
    assert [(record.name, part) for record in records for part in parts if part not in record.text] == []
