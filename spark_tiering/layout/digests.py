"""
Digests of passing bytes: length, SHA-256, and CRC-64/NVME. Pure. `awscrt`, of the extra `tiering`,
is imported when the first sum is made, so that help works without it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import NamedTuple

SHA256_BYTES = 32
CRC64_BYTES = 8


class ContentDigest(NamedTuple):
    size_bytes: int
    sha256: bytes
    crc64nvme: int

    @property
    def crc64nvme_text(self) -> str:
        return crc64nvme_text(self.crc64nvme)


class StreamDigest:
    """The digest of bytes that are added piece by piece; how they are cut makes no difference."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._sha256 = hashlib.sha256()
        self._crc64nvme = 0

    def add(self, piece: bytes | memoryview) -> None:
        self.size_bytes += len(piece)
        self._sha256.update(piece)
        self._crc64nvme = continued_crc64nvme(self._crc64nvme, piece)

    def digest(self) -> ContentDigest:
        return ContentDigest(self.size_bytes, self._sha256.digest(), self._crc64nvme)


def digest_of(content: bytes | memoryview) -> ContentDigest:
    stream = StreamDigest()
    stream.add(content)
    return stream.digest()


def continued_crc64nvme(crc64nvme: int, piece: bytes | bytearray | memoryview) -> int:
    """Return the sum of bytes with the sum *before*, 0 for none, and *piece* behind them."""
    from awscrt import checksums  # noqa: PLC0415  # of an extra

    return checksums.crc64nvme(piece, crc64nvme)


def crc64nvme_text(crc64nvme: int) -> str:
    return base64.b64encode(crc64nvme.to_bytes(CRC64_BYTES)).decode("ascii")


def parse_crc64nvme(text: str) -> int | None:
    """Return a sum that S3 wrote; `None` where the text is none."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return int.from_bytes(content) if len(content) == CRC64_BYTES else None
