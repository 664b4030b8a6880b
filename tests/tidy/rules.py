"""The house rules that a linter does not know: each takes one file and says what is wrong with it, line by line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tidy.tree import Source

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 500
FORBIDDEN_NAMES = frozenset({"utils", "helpers", "common", "misc", "base", "manager"})

# Spelled so that the rules do not find themselves.
_UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b|Not[I]mplementedError")
_MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|farm|tmp/brief)/|(?<![\w.])/(?:home|Users)/[a-z]")
_REGISTRY = re.compile(
    r"https?://[\w.:-]+/(?:simple|packages|debian[\w-]*|pool|dists)/"
    r'|"resolved"\s*:|files\.pythonhosted|\bpypi\.org|registry\.(?:npmjs|yarnpkg)|deb\.debian\.org|--(?:extra-)?index-url\b'
)
_SECRET = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}")


def long_functions(source: Source) -> Iterator[str]:
    for node in ast.walk(source.parsed()):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{source.name}:{node.lineno}: {node.name} has {lines} lines, more than {FUNCTION_LINES_MAX}"


def long_module(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if lines > MODULE_LINES_MAX:
        yield f"{source.name}: {lines} lines, more than {MODULE_LINES_MAX}"


def forbidden_name(source: Source) -> Iterator[str]:
    for part in {*source.path.parts[:-1], source.path.stem} & FORBIDDEN_NAMES:
        yield f"{source.name}: a room may not be called {part}; name what it is for"


def missing_nameplate(source: Source) -> Iterator[str]:
    sentence = (ast.get_docstring(source.parsed()) or "").split("\n\n")[0]
    if not sentence.rstrip().endswith((".", ":", "!", "?")):
        yield f"{source.name}:1: does not open with a sentence that says what the room is for"


def unfinished(source: Source) -> Iterator[str]:
    yield from _matches(source, _UNFINISHED, "unfinished work")


def machine_path(source: Source) -> Iterator[str]:
    yield from _matches(source, _MACHINE_PATH, "a path of one machine")


def registry_address(source: Source) -> Iterator[str]:
    yield from _matches(source, _REGISTRY, "an address of a package registry")


def secret(source: Source) -> Iterator[str]:
    if _SECRET.search(source.text):
        yield f"{source.name}: holds a private key"


def mocked_own_type(source: Source) -> Iterator[str]:
    """Fakes are real implementations of a port. Replacing somebody else's function with monkeypatch stays allowed."""
    own = _own_names(source.parsed())
    for node in ast.walk(source.parsed()):
        if reason := _mock_in(node, own):
            yield f"{source.name}:{getattr(node, 'lineno', 1)}: {reason}"


def _matches(source: Source, pattern: re.Pattern[str], what: str) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if found := pattern.search(line):
            yield f"{source.name}:{number}: {what}: {found.group()}"


def _own_names(tree: ast.Module) -> frozenset[str]:
    """Names that this module binds to something of ours by importing it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hostler_"):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(
                alias.asname or alias.name.split(".")[0] for alias in node.names if alias.name.startswith("hostler_")
            )
    return frozenset(names)


def _mock_in(node: ast.AST, own: frozenset[str]) -> str | None:
    match node:
        case ast.Import(names=names) if any(alias.name in {"mock", "unittest.mock"} for alias in names):
            return "imports a mocking library"
        case ast.ImportFrom(module="unittest" | "unittest.mock" | "mock", names=names) if (
            node.module != "unittest" or any(alias.name == "mock" for alias in names)
        ):
            return "imports a mocking library"
        case ast.arg(arg="mocker"):
            return "uses the mocker fixture"
        case ast.Call(func=ast.Attribute(attr="setattr", value=ast.Name(id="monkeypatch")), args=[target, *_]):
            return _patched(target, own)
    return None


def _patched(target: ast.expr, own: frozenset[str]) -> str | None:
    if isinstance(target, ast.Constant) and isinstance(target.value, str) and target.value.startswith("hostler_"):
        return f"patches our own {target.value}"
    root: ast.AST = target
    while isinstance(root, ast.Attribute):
        root = root.value
    # `monkeypatch.setattr(module.os, "fsync", …)` reaches through our module to somebody else's function: allowed.
    if isinstance(root, ast.Name) and root.id in own and not _reaches_library(target):
        return f"patches our own {ast.unparse(target)}"
    return None


def _reaches_library(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and target.attr in {"os", "time", "shutil", "socket", "subprocess", "sys"}
