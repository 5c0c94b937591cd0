"""
JSON lines: how backups and files of events are written, and how untrusted ones are read.

The first line is the header, the last one has `end` and a digest of all lines before it: a reader
refuses a file that was cut, or changed anywhere.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from rlmm.errors import ConfigError
from rlmm.log.request_checks import PARTITION_COUNT_MAX
from spark_tiering.layout.strict_json import JsonFault, load_json, typed_value
from spark_tiering.maintenance.line_streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

PartitionCount = Annotated[int, msgspec.Meta(ge=1, le=PARTITION_COUNT_MAX)]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_T = TypeVar("_T")


class LineFault(Exception):
    """A line is refused, with the reason in one line; `read_objects` adds file and line number."""


def parse_line(line: bytes, *, is_over: bool = False) -> dict[str, Any]:
    """Return the object that a line is, unless the file *is_over*. Raise `LineFault`."""
    if is_over:
        raise LineFault("more stands behind the end")
    if not line.endswith(b"\n"):
        raise LineFault("the file ends in the middle of this line")
    try:
        # The reader of the file limits lines by their bytes.
        found = load_json(line, bytes_max=len(line), values_max=len(line))
    except JsonFault as error:
        raise LineFault(error.detail) from error
    if not isinstance(found, dict):
        raise LineFault("no object of JSON")
    return found


def typed(found: Mapping[str, Any], of: type[_T]) -> _T:
    """Return an object as a value of type *of*. Raise `LineFault`."""
    try:
        return typed_value(found, of)
    except JsonFault as error:
        raise LineFault(error.detail) from error


def require_format(found: Mapping[str, Any], name: str, version: int, what: str) -> None:
    """Raise `LineFault` where a header is not of *what* that this build reads."""
    if found.get("format") != name:
        msg = f"no {what}: its first line has another format"
        raise LineFault(msg)
    if type(found.get("version")) is not int or found["version"] != version:
        msg = f"version {str(found.get('version'))[:40]!r}, this build reads {version}"
        raise LineFault(msg)


def read_objects(
    path: Path, parse: Callable[[int, dict[str, Any], str], _T], bytes_max: int, what: str
) -> Iterator[_T]:
    """
    Yield what *parse* makes of each line: it gets the number of the line, from 1 on, its object,
    and, for the line at the end alone, the digest of those before. Raise `ConfigError`.
    """
    digest, is_over, number = hashlib.sha256(), False, 0
    for number, line in enumerate(read_lines(path, bytes_max), 1):
        try:
            found = parse_line(line, is_over=is_over)
            is_over = number > 1 and "end" in found
            parsed = parse(number, found, digest.hexdigest() if is_over else "")
        except LineFault as error:
            where = f"{path}, line {number}" if number > 1 else str(path)
            raise ConfigError(f"{where}: {error}") from error
        digest.update(line)
        yield parsed
    if not number:
        raise ConfigError(f"{path}: an empty file, and no {what}")


class LineWriter:
    """Writes lines, and keeps their digest."""

    def __init__(self, write: Callable[[bytes], object], format_line: Callable[..., bytes]) -> None:
        self._write = write
        self._format_line = format_line
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def put(self, fields: Mapping[str, Any]) -> None:
        self.add(self._format_line(fields))

    def add(self, content: bytes) -> None:
        """Write lines as they are."""
        self._hash.update(content)
        self._write(content)


def compact_line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def spaced_line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields).encode() + b"\n"
