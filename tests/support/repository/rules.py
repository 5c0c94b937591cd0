"""Rules over one file: each takes a text or a syntax tree and gives its findings, one line each."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 400

# The words are written with a break, so that these rules do not find themselves.
_LEFTOVER = re.compile(rf"\b({'TO-DO|FIX-ME|XX-X|HA-CK'.replace('-', '')})\b")
_REGISTRIES = "py-pi|python-hosted|cra-tes|npm-js|ma-ven|debi-an".replace("-", "")
_INDEX = re.compile(
    rf"\b({_REGISTRIES})[\w.-]*\.(org|io|com|net)\b"
    r"|(?<!\S)--(extra-)?index-url|(?<!\S)--find-links|(?<!\S)--trusted-host|PIP_(EXTRA_)?INDEX_URL"
)
_MACHINE_PATH = re.compile(r"(?<![\w.)}>])/(?:work|root|home|Users)/\w|\.\./shared\b")
_EMPTY_NAME = re.compile(r"(Manager|Handler|Utils?|Processor|Base|Impl|Data|Info)$")
_EMPTY_MODULES = {"base", "common", "data", "helpers", "info", "misc", "util", "utils"}
_KAFKA_NAMES = {"RemoteLogMetadataManager"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def long_functions(tree: ast.Module) -> list[str]:
    return [
        f"line {function.lineno}: {function.name} has {length} lines"
        for function in functions(tree)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]


def calls(tree: ast.Module, *names: str) -> list[str]:
    return [
        f"line {node.lineno}: {name}()"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (name := called_name(node)) in names
    ]


def first_texts(tree: ast.Module, name: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each call of *name* whose first argument is a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called_name(node) == name and node.args:
            text = node.args[0]
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield node.lineno, text.value


def called_name(call: ast.Call) -> str:
    called = call.func
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def prints(tree: ast.Module) -> list[str]:
    return [
        f"line {node.lineno}: print()"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and full name of each import: `from a import b` gives `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def aliases(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield line, full name and alias of each `from a import b as c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.asname:
                    yield node.lineno, f"{node.module}.{alias.name}", alias.asname


def undocumented_tests(tree: ast.Module) -> list[str]:
    return [
        f"line {function.lineno}: {function.name} states no fact"
        for function in functions(tree)
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]


def derived_classes(tree: ast.Module, bases: set[str]) -> list[str]:
    return [
        f"line {node.lineno}: {node.name} derives from {ast.unparse(base)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if ast.unparse(base).rpartition(".")[2] in bases
    ]


def empty_names(tree: ast.Module) -> list[str]:
    return [
        f"line {node.lineno}: {node.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and _EMPTY_NAME.search(node.name)
        and node.name not in _KAFKA_NAMES
    ]


def is_empty_module_name(stem: str) -> bool:
    return stem in _EMPTY_MODULES


def leftovers(text: str) -> list[str]:
    return _lines(_LEFTOVER, text)


def addresses(text: str) -> list[str]:
    return _lines(_INDEX, text)


def machine_paths(text: str) -> list[str]:
    return _lines(_MACHINE_PATH, text)


def _lines(pattern: re.Pattern[str], text: str) -> list[str]:
    return [
        f"line {number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
