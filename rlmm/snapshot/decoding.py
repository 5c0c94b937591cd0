"""
Decoding of a file to its header and images, piece by piece. Pure: the caller reads the bytes. Every
length is checked against the rest of the file and the format's limits before anything is allocated.
Raises `SnapshotCorrupt` or `SnapshotUnsupported`.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

import cramjam

from rlmm.errors import SnapshotCorrupt
from rlmm.snapshot.format import (
    BLOCK,
    BLOCK_BYTES_MAX,
    DIGEST_BYTES,
    FILE_BYTES_MIN,
    IMAGE_BYTES_MAX,
    INFLATION_MAX,
    KIND_END,
    KIND_STORED,
    KIND_ZSTD,
    LENGTH,
    TRAILER,
    decode_header,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.snapshot.format import SnapshotHeader

    Read = Callable[[int], bytes]
    """Returns the next bytes of a file, fewer only at its end."""

    TakeImages = Callable[[bytes, int, bytes], tuple[int, int, bytes]]
    """Takes many images at once; see `Shard.import_images`."""

_PIECE_BYTES = 256 * 1024


def verify(read: Read, size: int) -> SnapshotHeader:
    """Return the header of a file of *size* bytes with a verified checksum; inflates nothing."""
    file = _File(read, size)
    header = decode_header(file.take)
    while file.left:
        file.take(min(file.left, _PIECE_BYTES), "a piece")
    file.require_digest()
    return header


class SnapshotReader:
    """
    Reads a file in one pass: its header at once, then its images. The checksum stands at the end:
    callers drop all they made of images when the iteration raises.
    """

    def __init__(self, read: Read, size: int) -> None:
        self._file = _File(read, size)
        self.header = decode_header(self._file.take)

    def images(self, take: TakeImages | None = None) -> Iterator[bytes]:
        """Yield the image of each user partition that *take* leaves, by rising key. Once."""
        content = _Content(take)
        for inflated in self._blocks():
            content.add(inflated)
            yield from content.images(INFLATION_MAX * self._file.left)
        if content.count != self.header.user_partitions or content.rest:
            msg = (
                f"{content.count} user partitions and {content.rest} bytes of another, expected "
                f"are {self.header.user_partitions}"
            )
            raise SnapshotCorrupt(msg)

    def _blocks(self) -> Iterator[bytes | bytearray]:
        file = self._file
        blocks = total = 0
        while True:
            head = file.take(BLOCK.size, "a block's head")
            kind, inflated, size = BLOCK.unpack(head)
            if kind == KIND_END:
                break
            if not 0 < inflated <= BLOCK_BYTES_MAX or not 0 < size <= min(inflated, file.left):
                msg = f"a block of {size} bytes that inflates to {inflated}, {file.left} are left"
                raise file.corrupt(msg)
            yield _inflated(file, kind, inflated, size)
            blocks += 1
            total += inflated
        trailer = head + file.take(TRAILER.size - BLOCK.size, "the trailer")
        if TRAILER.unpack(trailer) != (KIND_END, blocks, total):
            raise file.corrupt(f"the trailer does not tell of {blocks} blocks, {total} bytes")
        file.require_digest()


def _inflated(file: _File, kind: int, inflated: int, size: int) -> bytes | bytearray:
    data = file.take(size, "a block")
    if kind == KIND_STORED:
        if size != inflated:
            raise file.corrupt(f"a stored block of {size} bytes that inflates to {inflated}")
        return data
    if kind != KIND_ZSTD:
        raise file.corrupt(f"a block of kind {kind}")
    if inflated > INFLATION_MAX * size:
        raise file.corrupt(f"a block of {size} bytes that inflates to {inflated}")
    buffer = bytearray(inflated)
    try:
        found: int = cramjam.zstd.decompress_into(data, buffer)
    except cramjam.DecompressionError as error:
        raise file.corrupt(f"a block cannot be inflated: {error}") from error
    if found != inflated:
        raise file.corrupt(f"a block inflates to {found} bytes, not to {inflated}")
    return buffer


class _Content:
    def __init__(self, take: TakeImages | None) -> None:
        self.count = 0
        self._take = take
        self._waiting = bytearray()
        self._at = 0
        self._last_key = b""

    @property
    def rest(self) -> int:
        return len(self._waiting) - self._at

    def add(self, inflated: bytes | bytearray) -> None:
        del self._waiting[: self._at]
        self._at = 0
        self._waiting += inflated

    def images(self, coming_max: int) -> Iterator[bytes]:
        """
        Yield the images that are whole and were not taken; *coming_max* bytes more can come at
        most.
        """
        self._give()
        while self.rest >= LENGTH.size:
            size: int = LENGTH.unpack_from(self._waiting, self._at)[0]
            start = self._at + LENGTH.size
            missing = start + size - len(self._waiting)
            if not 0 < size <= IMAGE_BYTES_MAX or missing > coming_max:
                msg = f"user partition {self.count}: an image of {size} bytes cannot be there"
                raise SnapshotCorrupt(msg)
            if missing > 0:
                return
            with memoryview(self._waiting) as view:
                image = bytes(view[start : start + size])
            self._require_order(image)
            self._at = start + size
            self.count += 1
            yield image

    def _give(self) -> None:
        """Give away all images that are whole, with one copy of their bytes."""
        if self._take is None or self.rest < LENGTH.size:
            return
        size: int = LENGTH.unpack_from(self._waiting, self._at)[0]
        if self.rest < LENGTH.size + size:
            return
        with memoryview(self._waiting) as view:
            content = bytes(view[self._at :])
        stop, count, self._last_key = self._take(content, 0, self._last_key)
        self._at += stop
        self.count += count

    def _require_order(self, image: bytes) -> None:
        """Require rising keys: none comes twice, and equal states are equal when inflated."""
        key = _key_of(image)
        if key is None or (self.count and key <= self._last_key):
            msg = f"user partition {self.count} has no key, or not one behind the last"
            raise SnapshotCorrupt(msg)
        self._last_key = key


def _key_of(image: bytes) -> bytes | None:
    """Return the key at the beginning of an image: its length as a varint, and its bytes."""
    size = 0
    for at, byte in enumerate(image[:5]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            key = image[at + 1 : at + 1 + size]
            return key if len(key) == size else None
    return None


class _File:
    """A file from its first byte on, with its checksum; `left` does not count the checksum."""

    def __init__(self, read: Read, size: int) -> None:
        self.left = size - DIGEST_BYTES
        self._read = read
        self._size = size
        self._digest = hashlib.sha256()
        if size < FILE_BYTES_MIN:
            msg = f"no snapshot: {size} bytes, the shortest has {FILE_BYTES_MIN}"
            raise SnapshotCorrupt(msg)

    def corrupt(self, detail: str) -> SnapshotCorrupt:
        at = self._size - DIGEST_BYTES - self.left
        return SnapshotCorrupt(f"before byte {at} of {self._size}: {detail}")

    def take(self, size: int, what: str) -> bytes:
        if size > self.left:
            raise self.corrupt(f"{what} wants {size} bytes, {self.left} are left")
        data = self._read(size)
        if len(data) != size:
            raise self.corrupt(f"the file ends in {what}: it was longer when it was opened")
        self.left -= size
        self._digest.update(data)
        return data

    def require_digest(self) -> None:
        if self.left:
            raise self.corrupt(f"{self.left} bytes behind the end")
        found = self._read(DIGEST_BYTES)
        if not hmac.compare_digest(found, self._digest.digest()):
            raise self.corrupt("not what was written: the checksum differs")
