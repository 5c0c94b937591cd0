"""Which folders of the product import which others, computed from the imports of their modules."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@functools.cache
def modules() -> Mapping[str, Path]:
    return {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): path
        for path in tree.python_files(*tree.PACKAGES)
    }


def imported_modules(path: Path) -> set[str]:
    names = {name for _, name in runtime_imports(tree.parse(path))}
    names |= {name.rpartition(".")[0] for name in names - modules().keys()}
    return names & modules().keys()


def runtime_imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((child.lineno, alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from ((child.lineno, f"{child.module}.{alias.name}") for alias in child.names)
        else:
            yield from runtime_imports(child)


@functools.cache
def importing_modules() -> Mapping[Path, set[str]]:
    importing: dict[Path, set[str]] = defaultdict(set)
    for name, path in modules().items():
        for imported in imported_modules(path):
            folder = modules()[imported].parent
            if folder != path.parent:
                importing[folder].add(name)
    return importing


def knot() -> list[str]:
    graph = TopologicalSorter[str]()
    for folder, names in importing_modules().items():
        for name in names:
            graph.add(str(modules()[name].parent), str(folder))
    try:
        graph.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
