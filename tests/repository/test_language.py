"""The language of the product: names that mean one thing, and docstrings with a named subject."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUGH = ("rlmm/cli/", "rlmm/config/", "rlmm/inspection/", "rlmm/state_sources/")
"""Packages whose prose does not follow the rules yet. One leaves when it is clean, for good."""
DOCSTRING_CHARACTERS_MIN = 27
GLOSSARY_NOUNS_MAX = 60
_GESTURES = """
    Adopted Answered Asked Asking Began Begun Built Called Came Cut Decided Done Drawn Ended Ending
    Fetched Filled Found Given Gone Heard Held Hidden Judged Judging Kept Known Knowing Laid Learned
    Left Listed Looked Looking Lost Made Meant Met Moved Named Opened Opening Owned Placed Planned
    Proved Read Reading Said Seen Seeing Sent Settled Settling Shown Sorted Spared Started Stored
    Taken Taking Told Tried Used Waited Walked Wanted Written
"""
GESTURES = frozenset(_GESTURES.split())
"""Participles and gerunds: a class is named by a noun."""
PRONOUN = re.compile(
    r"\b(?:whoever|whomever|nobody|somebody|anybody|everybody)\b|(?:^|[.:;]\s+)(?:who|what is)\b",
    re.IGNORECASE,
)
"""A pronoun where a caller, a broker, a writer task or an operator has to be named."""

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public_classes() -> Iterator[tuple[str, Path]]:
    for path in tree.python_files(*tree.PACKAGES):
        for node in tree.parse(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, path


def plain_files() -> list[Path]:
    return [path for path in tree.python_files(*tree.PACKAGES) if not str(path).startswith(ROUGH)]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Give the line and the text of each docstring, attributes' docstrings included."""
    for node in ast.walk(tree.parse(path)):
        for statement in getattr(node, "body", ()) if isinstance(node, Documented) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.lineno, " ".join(value.value.split())


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Give the line and the text of each string that is a sentence: docstrings and messages."""
    for node in ast.walk(tree.parse(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, " ".join(node.value.split())


def test_public_class_names_are_unique() -> None:
    """One name means one class in the whole product."""
    homes = defaultdict(set)
    for name, path in public_classes():
        homes[name].add(str(path))
    assert not {name: sorted(found) for name, found in homes.items() if len(found) > 1}


def test_public_classes_are_named_by_nouns() -> None:
    """No public class has a bare participle or gerund as its name."""
    assert not [f"{path}: {name}" for name, path in public_classes() if name in GESTURES]


def test_docstrings_say_something() -> None:
    """A docstring too short for a subject and a verb is deleted."""
    assert not [
        f"{path}:{line}: {text}"
        for path in plain_files()
        for line, text in docstrings(path)
        if len(text) < DOCSTRING_CHARACTERS_MIN
    ]


def test_texts_name_their_subject() -> None:
    """Docstrings and messages name the caller, the broker or the operator; no pronoun stands in."""
    assert not [
        f"{path}:{line}: {text}"
        for path in plain_files()
        for line, text in texts(path)
        if PRONOUN.search(text)
    ]


def test_glossary_is_short() -> None:
    """ARCHITECTURE.md explains at most 60 nouns, each once."""
    section = tree.read(Path("ARCHITECTURE.md")).split("## Glossary", 1)[1].split("\n## ", 1)[0]
    nouns = re.findall(r"(?m)^\| ([a-z][^|]+?) \|", section)[1:]
    assert 10 < len(nouns) <= GLOSSARY_NOUNS_MAX
    assert len(set(nouns)) == len(nouns)
