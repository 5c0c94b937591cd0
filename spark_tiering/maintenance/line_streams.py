"""
Streams of lines: plain, or compressed where the name of the file says so. Lines are read one at a
time, up to a limit.
"""

from __future__ import annotations

import gzip
import importlib
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LINE_BYTES_MAX: Final = 64 * 1024 * 1024
"""The reader refuses longer lines: the largest batch that any log here takes is smaller."""
GZIP, ZSTD = ".gz", ".zst"
LEVEL: Final = 6
_BUFFER_BYTES: Final = 1 << 20


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
    """
    Yield every line with its end, also a last one without. Raise `ConfigError` for a file that
    cannot be read, or is not compressed as its name says.
    """
    try:
        with path.open("rb") as file, _inflating(path, file) as stream:
            while line := stream.readline(bytes_max + 1):
                if len(line) > bytes_max:
                    msg = f"{path}: a line of more than {bytes_max} bytes"
                    raise ConfigError(msg)
                yield line
    except (EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        msg = f"{path}: it is cut, or is not what was written: {error}"
        raise ConfigError(msg) from error
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
            yield cast("BinaryIO", _Lines(stream.read))
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


class _Lines:
    """Splits a stream that has no `readline`."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._held = b""
        self._at = 0
        self._is_over = False

    def readline(self, bytes_max: int) -> bytes:
        while True:
            found = self._held.find(b"\n", self._at)
            held = len(self._held) - self._at
            if found >= 0 or self._is_over or held >= bytes_max:
                stop = len(self._held) if found < 0 else found + 1
                stop = min(stop, self._at + bytes_max)
                line, self._at = self._held[self._at : stop], stop
                return line
            more = self._read(_BUFFER_BYTES)
            self._is_over = not more
            self._held, self._at = self._held[self._at :] + more, 0


def arrow_for(path: Path, module: str = "pyarrow") -> Any:
    """Import pyarrow, which is large, and only needed for some names."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        msg = f"{path}: this form needs pyarrow: pip install 'rlmm[spark]', or name a .jsonl.gz"
        raise ConfigError(msg) from error
