"""
JSON lines: how backups and files of events are written, and how untrusted ones are read. The first
line is the header; the last has `end` and a digest of all lines before it, so that a reader refuses
a cut or changed file. The file's name says how it is compressed.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, TypeVar, cast

import msgspec

from rlmm.errors import ConfigError
from rlmm.log.request_checks import PARTITION_COUNT_MAX
from spark_tiering.layout.strict_json import JsonFault, load_json, typed_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

PartitionCount = Annotated[int, msgspec.Meta(ge=1, le=PARTITION_COUNT_MAX)]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
LINE_BYTES_MAX: Final = 64 * 1024 * 1024
"""The reader refuses longer lines: the largest batch that any log here takes is smaller."""
GZIP, ZSTD = ".gz", ".zst"
LEVEL: Final = 6
_BUFFER_BYTES: Final = 1 << 20
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
        raise LineFault(f"no {what}: its first line has another format")
    if type(found.get("version")) is not int or found["version"] != version:
        raise LineFault(f"version {str(found.get('version'))[:40]!r}, this build reads {version}")


def read_objects(
    path: Path, parse: Callable[[int, dict[str, Any], str], _T], bytes_max: int, what: str
) -> Iterator[_T]:
    """Yield what *parse* makes of a line's number, object and, at the end, the digest before."""
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
        self._hash.update(content)
        self._write(content)


def compact_line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def spaced_line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@contextmanager
def compressing(path: Path, file: BinaryIO) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes bytes to *file*, compressed as the name of *path* says."""
    if path.name.endswith(GZIP):
        # Neither a name nor a time stands in it: equal content is an equal file.
        with gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as stream:
            yield stream.write
    elif path.name.endswith(ZSTD):
        arrow = arrow_for(path)
        with arrow.CompressedOutputStream(arrow.PythonFile(KeptOpen(file), "w"), "zstd") as stream:
            held = bytearray()

            def write(content: bytes) -> None:
                held.extend(content)
                if len(held) >= _BUFFER_BYTES:
                    stream.write(bytes(held))
                    held.clear()

            yield write
            stream.write(bytes(held))
    else:
        yield file.write


def read_lines(path: Path, bytes_max: int = LINE_BYTES_MAX) -> Iterator[bytes]:
    """Yield every line with its end. Raise `ConfigError` for an unreadable or cut file."""
    try:
        with path.open("rb") as file, _inflating(path, file) as stream:
            while line := stream.readline(bytes_max + 1):
                if len(line) > bytes_max:
                    raise ConfigError(f"{path}: a line of more than {bytes_max} bytes")
                yield line
    except (EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(f"{path}: it is cut, or is not what was written: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error


@contextmanager
def _inflating(path: Path, file: BinaryIO) -> Iterator[BinaryIO]:
    if path.name.endswith(GZIP):
        with gzip.GzipFile(fileobj=file, mode="rb") as stream:
            yield cast("BinaryIO", stream)
    elif path.name.endswith(ZSTD):
        arrow = arrow_for(path)
        with arrow.CompressedInputStream(arrow.PythonFile(file, "r"), "zstd") as stream:
            yield cast("BinaryIO", io.BufferedReader(stream, _BUFFER_BYTES))
    else:
        yield file


class KeptOpen:
    """A file that stays open when a library closes it."""

    mode = "wb"

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.closed = False

    def write(self, content: bytes) -> int:
        return self._file.write(content)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True


def arrow_for(path: Path, module: str = "pyarrow") -> Any:
    """Import pyarrow, which is large, and only needed for some names."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        msg = f"{path}: this form needs pyarrow: pip install 'rlmm[spark]', or name a .jsonl.gz"
        raise ConfigError(msg) from error
