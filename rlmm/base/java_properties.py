r"""
Java's properties files, read as `java.util.Properties` reads them. Pure.

An odd number of backslashes at a line's end continues it. Files are ISO-8859-1, other letters are
`\uXXXX`, and the later of equal keys counts. Unlike Java, a lone backslash at the end is nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

ENCODING = "iso-8859-1"

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|\Z)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Property:
    """One key with its value; *line* is the number of the natural line where it begins."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> list[Property]:
    r"""
    Return every property in the file's order, repeated keys among them.

    Raises `ConfigError` with the line for a `\u` without four hexadecimal digits.
    """
    found = []
    for number, line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None, "the pattern matches nothing, too"
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None, "the pattern matches nothing, too"
        value = line[separator.end() :]
        found.append(Property(_unescaped(key.group(), number), _unescaped(value, number), number))
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, begun = "", 0
    for number, natural in enumerate(_LINE_END.split(text), 1):
        body = natural.lstrip(_BLANKS)
        if not pending:
            if not body or body[0] in "#!":
                continue
            begun = number
        if (len(body) - len(body.rstrip("\\"))) % 2:
            pending += body[:-1]
        else:
            yield begun, pending + body
            pending = ""
    if pending:
        yield begun, pending


def _unescaped(text: str, line: int) -> str:
    """Return *text* with escapes resolved; a backslash before any other letter is dropped."""
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        code, letter = match.groups()
        if code is not None:
            return chr(int(code, 16))
        if letter == "u":
            msg = f"line {line}: \\u must be followed by four hexadecimal digits"
            raise ConfigError(msg)
        return _LETTERS.get(letter, letter or "")

    # Characters above the first 65,536 are written as two escapes, each half of one.
    halves = _ESCAPE.sub(character, text).encode("utf-16-le", "surrogatepass")
    return halves.decode("utf-16-le", "surrogatepass")
