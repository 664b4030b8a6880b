"""Which distributions an extra brings, which ones a room imports, and whether a room can be imported with no others."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tidy.tree import ROOT, Source

_OWN = ("hostler_agent", "hostler_coordinator", "hostler_contract")

# Run in a child: everything that no allowed distribution provides cannot be imported, as if it were not installed.
_BLOCKED_IMPORT = """
import importlib, sys
blocked = set(sys.argv[2].split(","))
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
importlib.import_module(sys.argv[1])
"""


def declared(*extras: str) -> frozenset[str]:
    """Name the direct dependencies of a plain installation plus `extras`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return frozenset(canonicalize_name(Requirement(line).name) for line in listed)


def closure(direct: Iterable[str]) -> frozenset[str]:
    """Add everything that the installed versions of `direct` require on this machine, without their extras."""
    found: set[str] = set()
    waiting = list(direct)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        for line in importlib.metadata.requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return frozenset(found)


def imported(sources: Iterable[Source]) -> frozenset[str]:
    """Name the distributions whose modules these files import, at any depth; neither the standard library nor ours."""
    providers = importlib.metadata.packages_distributions()
    found: set[str] = set()
    for module in {module for source in sources for module in _modules(source)}:
        top = module.split(".")[0]
        if top in sys.stdlib_module_names or top in _OWN:
            continue
        found.add(_provider(module, providers.get(top, [top])))
    return frozenset(found)


def _modules(source: Source) -> Iterable[str]:
    for node in ast.walk(source.parsed()):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _provider(module: str, candidates: list[str]) -> str:
    """Tell apart the two distributions that share the name `google`; everything else has one."""
    if module.startswith("google."):
        return "protobuf" if module.startswith("google.protobuf") else "googleapis-common-protos"
    return canonicalize_name(candidates[0])


def import_with_only(module: str, distributions: Iterable[str]) -> str:
    """Import `module` in a child in which only `distributions` seem installed; return the error's last line or ''."""
    allowed = closure(distributions)
    blocked = sorted(
        top
        for top, providers in importlib.metadata.packages_distributions().items()
        if top not in _OWN and not any(canonicalize_name(provider) in allowed for provider in providers)
    )
    done = subprocess.run(
        [sys.executable, "-c", _BLOCKED_IMPORT, module, ",".join(blocked)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "agent:coordinator:protos"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return done.stderr.strip().split("\n")[-1]
