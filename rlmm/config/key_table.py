"""
Keys of the configuration with type, default and reason, read from the sections.

A key's *name* is its path with underscores. Dots, dashes and underscores are equal in a key, so
Kafka's `bootstrap.servers` is found as Kafka spells it.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import sys
import types
import typing
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlmm.base.secret import Secret
from rlmm.config.sections import DOTTED, OF_A_CLUSTER, PREFIXES, PROCESS_KEYS_OF_A_CLUSTER, Config

if TYPE_CHECKING:
    from collections.abc import Iterator

ENV_PREFIX = "RLMM_"

_KAFKA_FLAGS = {
    "kafka_bootstrap_servers": "--bootstrap-server",
    "kafka_command_config": "--command-config",
    "kafka_server_properties": "--server-properties",
}
_DERIVED = {"cluster_id", "is_learned", "is_observer", "token_provider"}
"""Fields that follow from other keys: servers that are not set, `mode`, and the file of tokens."""
_WITHOUT_NAME = {"security"}
"""A part of the Kafka client whose keys have Kafka's whole names already."""
_TYPE_CHECKING_NAMES: dict[str, Any] = {"Path": Path, "Secret": Secret, "TokenProvider": object}
"""What sections name in their annotations but import only for the type checker."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key: *kind* is its type without None, *default* is None where unset."""

    path: str
    section: str
    owner: type
    field: tuple[str, ...]
    kind: Any
    is_optional: bool
    default: object

    @property
    def name(self) -> str:
        return name_of(self.path)

    @property
    def env(self) -> str:
        return ENV_PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        return _KAFKA_FLAGS.get(self.name, "--" + self.name.replace("_", "-"))

    @property
    def is_secret(self) -> bool:
        return self.kind is Secret

    @property
    def is_of_cluster(self) -> bool:
        return self.section in OF_A_CLUSTER or self.field[0] in PROCESS_KEYS_OF_A_CLUSTER

    @property
    def is_text(self) -> bool:
        return self.kind in {str, Secret, Path}

    @property
    def allowed(self) -> str:
        if isinstance(self.kind, type) and issubclass(self.kind, StrEnum):
            return f"one of {', '.join(self.kind)}"
        words: dict[Any, str] = {
            int: "a whole number",
            float: "a finite number",
            bool: "true or false",
            Path: "a path",
            str: "a text",
            Secret: "a text",
        }
        return words.get(self.kind, "a list of texts, or one text with commas")

    @property
    def reason(self) -> str:
        """Return the docstring of the field on one line; empty if there is none."""
        return _docstrings(self.owner).get(self.field[-1], "")


def name_of(path: str) -> str:
    return path.replace(".", "_").replace("-", "_").lower()


def nearest(name: str, names: list[str]) -> str:
    found = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {found[0]}?" if found else ""


def _keys() -> Iterator[Key]:
    hints = typing.get_type_hints(Config)
    for section in fields(Config):
        owner, _ = _without_none(hints[section.name])
        prefix = PREFIXES.get(section.name, section.name)
        yield from _keys_of(owner, section.name, (), f"{prefix}." if prefix else "")


def _keys_of(owner: type[Any], section: str, at: tuple[str, ...], prefix: str) -> Iterator[Key]:
    names = {**_TYPE_CHECKING_NAMES, **vars(sys.modules[owner.__module__])}
    hints = typing.get_type_hints(owner, names)
    for part in fields(owner):
        kind, is_optional = _without_none(hints[part.name])
        if part.name in _DERIVED:
            continue
        spelled = part.name.replace("_", ".") if section in DOTTED else part.name
        if isinstance(kind, type) and is_dataclass(kind) and kind is not Secret:
            inner = prefix if part.name in _WITHOUT_NAME else f"{prefix}{spelled}."
            yield from _keys_of(kind, section, (*at, part.name), inner)
            continue
        default = None if part.default is MISSING else part.default
        yield Key(
            f"{prefix}{spelled}", section, owner, (*at, part.name), kind, is_optional, default
        )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) not in {types.UnionType, typing.Union}:
        return annotation, False
    (kind,) = [part for part in typing.get_args(annotation) if part is not type(None)]
    return kind, True


@cache
def _docstrings(owner: type) -> dict[str, str]:
    """Return the docstrings of the fields of a dataclass; empty if its source is not available."""
    try:
        (tree,) = ast.parse(inspect.cleandoc(inspect.getsource(owner))).body
    except OSError:
        return {}
    assert isinstance(tree, ast.ClassDef), owner
    found = {}
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            found[statement.target.id] = " ".join(str(following.value.value).split())
    return found


KEYS: dict[str, Key] = {key.name: key for key in _keys()}
