"""
The reading of ranges: from bytes of a log or an index to requests to the store, and back. Pure.
Compressed or encrypted chunks are requested whole. Bytes of other lengths, frames and tags than the
manifest says are findings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from spark_tiering.layout.chunk_index import CHUNK_BYTES_MAX, is_stored_plain
from spark_tiering.layout.encryption import SEALED_BYTES
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.frames import inflate_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.layout.chunk_index import StoredChunk
    from spark_tiering.layout.encryption import SegmentCipher
    from spark_tiering.layout.manifest import Manifest
    from spark_tiering.segments.findings import SegmentPart

FETCH_BYTES = 16 * 1024 * 1024
"""Asked for at once: few requests, and no more memory than for some chunks."""


@dataclass(frozen=True, slots=True)
class ObjectRangeRead:
    """Reads an inclusive range of an object, and takes the wanted positions of the log from it."""

    first_byte: int
    last_byte: int
    chunks: tuple[StoredChunk, ...] = ()
    first_wanted: int = 0
    last_wanted: int = 0
    is_compressed: bool = True
    cipher: SegmentCipher | None = None
    """What opens each chunk, or the part, where it is sealed."""

    @property
    def size_bytes(self) -> int:
        return self.last_byte - self.first_byte + 1

    def contents(self, body: bytes | memoryview) -> Iterator[bytes | memoryview | LayoutFinding]:
        """Yield the wanted bytes of *body*, in order; nothing follows a finding."""
        if len(body) != self.size_bytes:
            detail = f"{len(body)} bytes at {self.first_byte}, expected {self.size_bytes}"
            yield LayoutFinding(LayoutFault.LENGTH, detail)
            return
        if not self.chunks:
            where = f"part of {len(body)} bytes at {self.first_byte}"
            yield body if self.cipher is None else self.cipher.open(body, where)
            return
        stored = memoryview(body)
        for chunk in self.chunks:
            start = chunk.stored_start - self.first_byte
            where = f"chunk {chunk.number}, {chunk.stored_bytes} bytes at {chunk.stored_start}"
            content = self._original(stored[start : start + chunk.stored_bytes], chunk, where)
            if isinstance(content, LayoutFinding):
                yield content
                return
            head = max(self.first_wanted - chunk.original_start, 0)
            yield memoryview(content)[head : self.last_wanted - chunk.original_start + 1]

    def _original(
        self, stored: memoryview, chunk: StoredChunk, where: str
    ) -> bytes | memoryview | LayoutFinding:
        opened: bytes | memoryview | LayoutFinding = stored
        if self.cipher is not None:
            opened = self.cipher.open(stored, where)
        if isinstance(opened, LayoutFinding):
            return opened
        if self.is_compressed:
            return inflate_frame(opened, chunk.original_bytes, where)
        if len(opened) != chunk.original_bytes:
            detail = f"{where}: {len(opened)} bytes in it, expected {chunk.original_bytes}"
            return LayoutFinding(LayoutFault.LENGTH, detail)
        return opened


def plan_log_fetches(
    manifest: Manifest,
    first_byte: int = 0,
    last_byte: int | None = None,
    *,
    cipher: SegmentCipher | None = None,
    fetch_bytes: int = FETCH_BYTES,
) -> Iterator[ObjectRangeRead] | LayoutFinding:
    """
    Plan the requests for the bytes [first_byte, last_byte] of the log, cut to its end; None is its
    end. Raises `InvalidArgument` for an end before the start, and for a start behind the log. No
    fetch exceeds *fetch_bytes*, except one of a single chunk.
    """
    chunks = manifest.chunks
    original_bytes = chunks.original_bytes
    if fetch_bytes <= 0:
        msg = f"fetches of {fetch_bytes} bytes"
        raise InvalidArgument(msg)
    if not 0 <= first_byte < original_bytes:
        msg = f"byte {first_byte} of a log of {original_bytes} bytes"
        raise InvalidArgument(msg)
    if last_byte is not None and last_byte < first_byte:
        msg = f"bytes {first_byte} to {last_byte}: the end lies before the start"
        raise InvalidArgument(msg)
    last = original_bytes - 1 if last_byte is None else min(last_byte, original_bytes - 1)
    refusal = _refusal(manifest, cipher)
    if refusal is not None:
        return refusal
    if not manifest.is_compressed and cipher is None:
        return _plain(first_byte, last, fetch_bytes)
    return _transformed(manifest, cipher, first_byte, last, fetch_bytes)


def plan_index_fetch(
    manifest: Manifest, part: SegmentPart, *, cipher: SegmentCipher | None = None
) -> ObjectRangeRead | LayoutFinding | None:
    """Plan the request for one index; `None` where it is empty, or the segment has none."""
    if manifest.is_encrypted and cipher is None:
        return _encrypted()
    place = manifest.indexes.place(part)
    if place is None or not place.size_bytes:
        return None
    return ObjectRangeRead(place.position, place.next_position - 1, cipher=cipher)


def _refusal(manifest: Manifest, cipher: SegmentCipher | None) -> LayoutFinding | None:
    chunks = manifest.chunks
    if manifest.is_encrypted and cipher is None:
        return _encrypted()
    if not manifest.is_compressed and cipher is None:
        if is_stored_plain(chunks):
            return None
        detail = f"{chunks.original_bytes} bytes, stored as they are in {chunks.stored_bytes}"
        return LayoutFinding(LayoutFault.INCONSISTENT, detail)
    largest = min(chunks.original_chunk_bytes, chunks.original_bytes)
    if largest > CHUNK_BYTES_MAX:
        detail = f"chunks of {largest} bytes, at most {CHUNK_BYTES_MAX} are held in memory"
        return LayoutFinding(LayoutFault.TOO_LARGE, detail)
    least = chunks.least_stored_chunk_bytes
    if least < (1 if cipher is None else SEALED_BYTES):
        # No frame and no sealed part is that short, and a range of no bytes cannot be asked for.
        how = "compressed" if cipher is None else "sealed"
        return LayoutFinding(LayoutFault.INCONSISTENT, f"a {how} chunk of {least} bytes")
    return None


def _encrypted() -> LayoutFinding:
    return LayoutFinding(LayoutFault.ENCRYPTED, "the key that it is encrypted with is needed")


def _plain(first_byte: int, last_byte: int, fetch_bytes: int) -> Iterator[ObjectRangeRead]:
    for start in range(first_byte, last_byte + 1, fetch_bytes):
        yield ObjectRangeRead(start, min(start + fetch_bytes - 1, last_byte))


def _transformed(
    manifest: Manifest,
    cipher: SegmentCipher | None,
    first_byte: int,
    last_byte: int,
    fetch_bytes: int,
) -> Iterator[ObjectRangeRead]:
    chunks = manifest.chunks

    def joined() -> ObjectRangeRead:
        last = together[-1]
        last_stored = last.stored_start + last.stored_bytes - 1
        return ObjectRangeRead(
            together[0].stored_start,
            last_stored,
            tuple(together),
            first_byte,
            last_byte,
            manifest.is_compressed,
            cipher,
        )

    together: list[StoredChunk] = []
    first_number = first_byte // chunks.original_chunk_bytes
    for number in range(first_number, last_byte // chunks.original_chunk_bytes + 1):
        chunk = chunks.chunk(number)
        end = chunk.stored_start + chunk.stored_bytes
        if together and end - together[0].stored_start > fetch_bytes:
            yield joined()
            together = []
        together.append(chunk)
    yield joined()
