"""
Documents for programs: JSON, JSON lines, YAML. A document is `{"schema": "rlmm/KIND/VERSION",
...head, "items": [...], ...foot}`; JSON lines are its items only. JSON has one item per line, in
ASCII, for `grep` and old locales.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from rlmm.cli.printing.answer import Printer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.views.values import View

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*", re.ASCII)
"""Texts that are texts in any YAML, unless they are words."""
_ESCAPED = re.compile(r"[^ !#-\[\]-~]")
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"])


def _other_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


_ENCODER = json.JSONEncoder(default=_other_text)


def json_text(value: object) -> str:
    """Return *value* on one line; bytes are hexadecimal."""
    return _ENCODER.encode(value)


def head_of(answer: CommandAnswer) -> View:
    """Return the fields before the items, the schema first."""
    return {"schema": f"rlmm/{answer.kind}/{answer.version}", **answer.head_fields()}


def document_head(answer: CommandAnswer) -> View:
    """Return the head with the notes, since programs do not read standard error."""
    head = head_of(answer)
    if not answer.told:
        return head
    notes = head.get("notes")
    return {**head, "notes": [*answer.told, *(notes if isinstance(notes, list) else ())]}


class JsonPrinter(Printer):
    def __init__(self, answer: CommandAnswer) -> None:
        self._answer = answer
        self._has_items = False

    def begin(self) -> Iterable[str]:
        head = "".join(
            f"{json_text(k)}: {json_text(v)},\n " for k, v in document_head(self._answer).items()
        )
        return [f'{{{head}"items": [']

    def item(self, item: View) -> Iterable[str]:
        before = ",\n  " if self._has_items else "\n  "
        self._has_items = True
        return [before, json_text(item)]

    def end(self, foot: View) -> Iterable[str]:
        rest = "".join(f",\n {json_text(k)}: {json_text(v)}" for k, v in foot.items())
        return ["\n ]" if self._has_items else "]", rest, "}\n"]


class JsonLines(Printer):
    def item(self, item: View) -> Iterable[str]:
        return [json_text(item), "\n"]


class YamlPrinter(Printer):
    """Prints one document of YAML 1.2 that YAML 1.1 readers understand equally."""

    def __init__(self, answer: CommandAnswer) -> None:
        self._answer = answer
        self._has_items = False

    def begin(self) -> Iterable[str]:
        return ["".join(yaml_lines(document_head(self._answer)))]

    def item(self, item: View) -> Iterable[str]:
        before = "" if self._has_items else "items:\n"
        self._has_items = True
        return [before, "".join(_entry(item, ""))]

    def end(self, foot: View) -> Iterable[str]:
        return ["" if self._has_items else "items: []\n", "".join(yaml_lines(foot))]


def yaml_lines(value: object, indent: str = "") -> Iterator[str]:
    """Return the lines of a mapping or list that is not empty."""
    if isinstance(value, dict):
        for name, one in value.items():
            if _is_nested(one):
                yield f"{indent}{yaml_scalar(str(name))}:\n"
                yield from yaml_lines(one, f"{indent}  ")
            else:
                yield f"{indent}{yaml_scalar(str(name))}: {yaml_scalar(one)}\n"
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _entry(one, indent)


def _entry(value: object, indent: str) -> Iterator[str]:
    """Return one list entry: its content begins behind the dash."""
    if not _is_nested(value):
        yield f"{indent}- {yaml_scalar(value)}\n"
        return
    for number, line in enumerate(yaml_lines(value, f"{indent}  ")):
        yield line if number else f"{indent}- {line[len(indent) + 2 :]}"


def _is_nested(value: object) -> bool:
    return isinstance(value, (dict, list, tuple)) and bool(value)


def yaml_scalar(value: object) -> str:
    """Return a scalar or an empty collection in a form that every YAML version reads alike."""
    match value:
        case str():
            is_plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
            return value if is_plain else f'"{_ESCAPED.sub(_escape, value)}"'
        case float():
            text = json_text(value)
            return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return json_text(value)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"
