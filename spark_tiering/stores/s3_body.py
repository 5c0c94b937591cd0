"""A content as the body of one request, cut off before its end where length or sum is wrong."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NoReturn

from spark_tiering.layout.digests import continued_crc64nvme
from spark_tiering.stores.content import walk
from spark_tiering.stores.results import ContentSum, PutRefusal, PutRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.stores.content import ObjectContent, Piece

IN_MEMORY_BYTES = 1024 * 1024
"""Up to here a body is handed over whole, without asking the server first."""


class ContentSourceFailure(OSError):
    """Ends the request whose body cannot be had; never leaves this package."""


class RequestBody:
    """Streams a content once, or several times where the library begins anew."""

    def __init__(self, content: ObjectContent) -> None:
        self._content = content
        self._size_bytes = content.sum.size_bytes
        self.refused: PutRefused | None = None
        """Why the content cannot be sent."""
        self.error: Exception | None = None
        """What the source raised, where that is its owner's matter."""
        self._begin(0)

    def _begin(self, position: int) -> None:
        self._pieces: Iterator[Piece] | None = None
        self._rest = memoryview(b"")
        self._walked = ContentSum(0, 0)
        self._position = position

    def __len__(self) -> int:
        return self._size_bytes

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to the beginning or, to measure, to the end."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}[whence]
        if base + offset != self._position:
            self._begin(base + offset)
        return self._position

    def read(self, size_bytes: int = -1) -> bytes | memoryview:
        """Read at most so many bytes; none at the end."""
        if self._position >= self._size_bytes:
            return b""
        if self._pieces is None:
            if self._position:
                msg = f"bodies are read from their beginning, not from {self._position}"
                raise io.UnsupportedOperation(msg)
            self._pieces = walk(self._content)
        if size_bytes < 0:
            return b"".join(iter(lambda: bytes(self.read(IN_MEMORY_BYTES)), b""))
        if not self._rest:
            self._rest = self._next_piece(self._pieces)
        taken = self._rest[:size_bytes]
        self._rest = self._rest[size_bytes:]
        self._position += len(taken)
        return taken

    def _next_piece(self, pieces: Iterator[Piece]) -> memoryview:
        try:
            piece = next((piece for piece in pieces if piece), b"")
        except OSError as error:
            self._fail(f"the source failed after {self._walked.size_bytes} bytes: {error}")
        except Exception as error:
            self.error = error
            raise ContentSourceFailure(str(error)) from error
        size_bytes = self._walked.size_bytes + len(piece)
        walked = ContentSum(size_bytes, continued_crc64nvme(self._walked.crc64nvme, piece))
        self._walked = walked
        if not piece or size_bytes > self._size_bytes:
            self._fail(f"the source gave {walked}, and told {self._content.sum}")
        if size_bytes == self._size_bytes and walked != self._content.sum:
            self._fail(f"the source gave {walked}, and told {self._content.sum}")
        return memoryview(piece)

    def _fail(self, detail: str) -> NoReturn:
        self.refused = PutRefused(PutRefusal.SOURCE, detail)
        raise ContentSourceFailure(detail)
