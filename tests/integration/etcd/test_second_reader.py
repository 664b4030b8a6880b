"""An independent client reads what ours wrote: PyPI's etcd3, let in through an import shim (see ADR 0003)."""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.internal import builder

from etcd_fixtures import SharedEtcd
from hostler_coordinator.etcd import Election, Put

pytestmark = pytest.mark.integration


class Loader(importlib.abc.Loader):
    """Old generated modules build their descriptors by hand, which current protobuf refuses; but they also hold the
    serialized descriptor. It is taken out of the source and given to protobuf's own builder; nothing changes on disk.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def exec_module(self, module: ModuleType) -> None:
        tree = ast.parse(Path(self._path).read_text(encoding="utf-8"))
        for node in tree.body:  # what it imports must be in the pool first
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("etcdrpc"):
                for alias in node.names:
                    importlib.import_module(f"{node.module}.{alias.name}")
        file = descriptor_pool.Default().AddSerializedFile(serialized(tree))
        builder.BuildMessageAndEnumDescriptors(file, module.__dict__)
        builder.BuildTopDescriptorsAndMessages(file, module.__name__, module.__dict__)
        module.__dict__["DESCRIPTOR"] = file


def serialized(tree: ast.Module) -> bytes:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "FileDescriptor":
            for keyword in node.keywords:
                if keyword.arg == "serialized_pb":
                    literal: Any = keyword.value if isinstance(keyword.value, ast.Constant) else keyword.value.args[0]  # type: ignore[attr-defined]
                    return literal.value if isinstance(literal.value, bytes) else literal.value.encode("latin1")
    raise AssertionError("no serialized descriptor in the module")


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not (fullname.startswith("etcd3.etcdrpc.") and fullname.endswith("_pb2")):
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert found is not None
        assert found.origin is not None
        return importlib.util.spec_from_loader(fullname, Loader(found.origin), origin=found.origin)


@pytest.fixture
def second(etcd: SharedEtcd) -> Iterator[Any]:
    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            etcd3 = importlib.import_module("etcd3")
    finally:
        sys.meta_path.remove(finder)
    host, _, port = etcd.endpoints[0].partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = etcd3.client(host=host, port=int(port), timeout=5)
    yield client
    client.close()


async def test_another_client_reads_what_ours_wrote(etcd: SharedEtcd, second: Any) -> None:
    key = etcd.prefix.decode()
    result = await etcd.client.txn([], [Put(etcd.prefix + b"a", b"\x00\xff"), Put(etcd.prefix + b"b", b"2")])
    async with Election(etcd.client, etcd.prefix + b"leader", b"me").lead() as leadership:
        values = {meta.key: (value, meta.mod_revision, meta.lease_id) for value, meta in second.get_prefix(key)}
        assert values == {
            etcd.prefix + b"a": (b"\x00\xff", result.revision, 0),
            etcd.prefix + b"b": (b"2", result.revision, 0),
            etcd.prefix + b"leader": (b"me", leadership.create_revision, leadership.lease_id),
        }
        held = second.transactions.create(etcd.prefix + b"leader") == leadership.create_revision
        assert second.transaction([held], [second.transactions.put(key + "c", "theirs")], [])[0]
    stored = (await etcd.client.get(etcd.prefix + b"c")).kv
    assert stored is not None
    assert stored.value == b"theirs"
