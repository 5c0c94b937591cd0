"""The folders of the tree: layered, mapped by their docstrings, and pure where they say so."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

from tests.support.repository import folder_graph, tree

DOES_IO = {
    "aiohttp", "asyncio", "boto3", "os", "pyspark", "socket", "subprocess", "threading", "time",
}  # fmt: skip
"""Modules that a pure module does not import."""
MAY_STAND_LOOSE = {"__init__.py", "__main__.py", "py.typed"}
MAPPED = (*tree.PACKAGES, "tests/support")


def packages(*roots: str) -> dict[Path, str]:
    """Return each package below the roots, by default the product's, with its docstring."""
    return {
        path.parent: ast.get_docstring(tree.parse(path)) or ""
        for path in tree.python_files(*(roots or tree.PACKAGES))
        if path.name == "__init__.py"
    }


def test_folders_import_no_other_in_a_circle() -> None:
    """No two folders of the product import each other, directly or through others."""
    assert not folder_graph.knot()


def test_rlmm_holds_packages_alone() -> None:
    """Every module of the service lies in a package."""
    loose = {path.name for path in tree.files() if path.parent == Path("rlmm")}
    assert loose == MAY_STAND_LOOSE


def test_every_folder_has_a_map() -> None:
    """The docstring of each package names each of its modules and packages."""
    missing = [
        f"{folder}: {name}"
        for folder, text in packages(*MAPPED).items()
        for name in sorted(_names_below(folder))
        if not re.search(rf"(?m)(`{name}[`.])|(^ +{name}/?  )", text)
    ]
    assert not missing


def test_maps_name_nothing_that_is_not_there() -> None:
    """Each line of a map names a module or package below it, which no other line names."""
    line = re.compile(r"(?m)^(?: {4}(?=[a-z_]+/?  )|- `(?=[a-z_]+`: ))([a-z_]+)")
    for folder, text in packages(*MAPPED).items():
        named = line.findall(text)
        assert set(named) <= _names_below(folder), folder
        assert len(named) == len(set(named)), folder


def test_map_of_the_metadata_names_every_module_once() -> None:
    """The table of `rlmm/metadata` in ARCHITECTURE.md has each module of the package."""
    table = tree.read(Path("ARCHITECTURE.md")).partition("Inside `rlmm/metadata`")[2]
    rows = re.findall(r"^\| (`.+?`) \|", table.partition("\n## ")[0], re.MULTILINE)
    named = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(named) == sorted(_names_below(Path("rlmm/metadata")))


def test_folders_of_unit_tests_are_named_after_packages() -> None:
    """No unit test lies loose, and each folder of them has the name of what it tests."""
    names = {Path(folder).name for folder in (*MAPPED, "bench")}
    names.update(_names_below(Path("rlmm")))
    tests = [path for path in tree.files() if path.is_relative_to("tests/unit")]
    assert {path.parts[2] for path in tests} <= names


def test_lists_of_maps_are_sorted() -> None:
    """The list in a package's docstring names each module once, in the order of the names."""
    unsorted = []
    for folder, text in packages(*MAPPED).items():
        names = re.findall(r"(?m)^- `(\w+)`: ", text)
        if names != sorted(set(names)):
            unsorted.append(folder)
    assert not unsorted


def test_folders_are_imported_by_those_that_their_map_names() -> None:
    """Each package names in its docstring the other packages that import it."""
    unnamed = []
    for folder, importing in folder_graph.importing_modules().items():
        text = " ".join(packages()[folder].split())
        allowed = re.search(r"May be imported by (.*?)\.(?= |$)", text)
        if allowed is not None and allowed[1].startswith("every package above it"):
            continue
        named = re.findall(r"`([\w.]+)`", allowed[1]) if allowed is not None else []
        shared = folder.parts[0] in {"rlmm", "spark_tiering"}
        group = ".".join(folder.parts[: 2 if shared else 1])
        unnamed += [
            f"{folder}: {name}"
            for name in sorted(importing)
            if not any(f"{name}.".startswith(f"{other}.") for other in (*named, group))
        ]
    assert not unnamed


def test_modules_that_call_themselves_pure_do_no_io() -> None:
    """A module, or a package, whose docstring says "Pure." imports nothing that does I/O."""
    pure_folders = {folder for folder, text in packages().items() if _says_pure(text)}
    impure = []
    for path in tree.python_files(*tree.PACKAGES):
        parsed = tree.parse(path)
        own = _says_pure((ast.get_docstring(parsed) or "").partition("\n\n")[0])
        if own or path.parent in pure_folders:
            impure += [
                f"{path}:{line}: {name}"
                for line, name in folder_graph.runtime_imports(parsed)
                if name.split(".")[0] in DOES_IO
            ]
    assert not impure


def _says_pure(text: str) -> bool:
    return re.search(r"\bPURE\b|\bPure\.", text.partition("\n\n")[0]) is not None


@functools.cache
def _names_below(folder: Path) -> frozenset[str]:
    sources = tree.python_files(*MAPPED)
    modules = {path.stem for path in sources if path.parent == folder}
    below = {
        path.parent.name
        for path in sources
        if path.name == "__init__.py" and path.parent.parent == folder
    }
    return frozenset(modules - {"__init__", "__main__"} | below)
