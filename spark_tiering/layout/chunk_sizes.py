"""
Sizes of stored chunks as one text of a manifest, in the plugin's form. Pure.

Base64 of one zstd frame, numbers big-endian: count, least of all but the last, bytes per value (1
byte), differences to the least, the last as it is:

    sizes                             before zstd
    none                              00000000
    213                               00000001 000000d5
    1000000, 1000010, 1000020, 777    00000004 000f4240 01 00 0a 14 00000309

Reading is strict, and lists of more than `CHUNKS_MAX` sizes are refused, to bound the memory.
"""

from __future__ import annotations

import base64
import binascii
import struct
import sys
from array import array
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.frames import FrameWriter, inflate_frame_up_to

if TYPE_CHECKING:
    from collections.abc import Sequence

CHUNKS_MAX = 512 * 1024
"""Those of the longest log in chunks of 4 KiB, which is a thousandth of the size in use."""
ENCODED_BYTES_MAX = 13 + 4 * CHUNKS_MAX
"""Before zstd, each size in four bytes."""
TEXT_CHARACTERS_MAX = 3 * 1024 * 1024
"""Longer texts are not looked at: none of them is a list that cannot be compressed any further."""

_COUNT = struct.Struct(">i")
_HEAD = struct.Struct(">iiB")
_VALUE_BYTES = 4
_WHERE = "transformedChunks"


def format_sizes(sizes: Sequence[int]) -> str:
    """Raise `InvalidArgument` for sizes that no manifest can carry."""
    encoded = encode_sizes(sizes)
    return base64.b64encode(FrameWriter(has_checksum=False).frame(encoded)).decode("ascii")


def parse_sizes(text: str) -> array[int] | LayoutFinding:
    if len(text) > TEXT_CHARACTERS_MAX:
        detail = f"{_WHERE}: {len(text)} characters, at most {TEXT_CHARACTERS_MAX} are read"
        return LayoutFinding(LayoutFault.TOO_LARGE, detail)
    try:
        frame = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        return _damaged(f"no base64: {error}")
    encoded = inflate_frame_up_to(frame, ENCODED_BYTES_MAX, _WHERE)
    return encoded if isinstance(encoded, LayoutFinding) else decode_sizes(encoded)


def encode_sizes(sizes: Sequence[int]) -> bytes:
    if len(sizes) > CHUNKS_MAX:
        msg = f"{len(sizes)} chunks, at most {CHUNKS_MAX}"
        raise InvalidArgument(msg)
    for size in (min(sizes, default=0), max(sizes, default=0)):
        if not 0 <= size <= INT32_MAX:
            msg = f"a stored chunk cannot have {size} bytes"
            raise InvalidArgument(msg)
    if not sizes:
        return _COUNT.pack(0)
    *others, last = sizes
    if not others:
        return _COUNT.pack(1) + _COUNT.pack(last)
    least = min(others)
    width = max((max(others) - least).bit_length() + 7 >> 3, 1)
    values = b"".join((size - least).to_bytes(width) for size in others)
    return _HEAD.pack(len(sizes), least, width) + values + _COUNT.pack(last)


def decode_sizes(encoded: bytes) -> array[int] | LayoutFinding:
    if len(encoded) < _COUNT.size:
        return _damaged(f"{len(encoded)} bytes")
    (count,) = _COUNT.unpack_from(encoded)
    if count > CHUNKS_MAX:
        detail = f"{_WHERE}: {count} chunks, at most {CHUNKS_MAX} are read"
        return LayoutFinding(LayoutFault.TOO_LARGE, detail)
    least, width = 0, 0
    if count >= 2:
        if len(encoded) < _HEAD.size:
            return _damaged(f"{len(encoded)} bytes for {count} sizes")
        _, least, width = _HEAD.unpack_from(encoded)
        if not 1 <= width <= _VALUE_BYTES or least < 0:
            return _damaged(f"values of {width} bytes on top of {least}")
    head_bytes = _HEAD.size if count >= 2 else _COUNT.size
    expected = head_bytes + (count - 1) * width + _COUNT.size if count else _COUNT.size
    if count < 0 or len(encoded) != expected:
        return _damaged(f"{len(encoded)} bytes for {count} sizes, expected {expected}")
    if count == 0:
        return array("q")
    sizes = _widened(memoryview(encoded)[head_bytes : -_COUNT.size], width, least)
    sizes.append(*_COUNT.unpack_from(encoded, len(encoded) - _COUNT.size))
    if not 0 <= min(sizes) <= max(sizes) <= INT32_MAX:
        return _damaged(f"a size of {min(sizes)} or {max(sizes)} bytes")
    return sizes


def _widened(values: memoryview, width: int, least: int) -> array[int]:
    if width == 0:
        return array("q")
    native = bytearray(len(values) // width * _VALUE_BYTES)
    for place in range(width):
        native[_VALUE_BYTES - width + place :: _VALUE_BYTES] = values[place::width]
    numbers = array("I", bytes(native))
    if sys.byteorder == "little":
        numbers.byteswap()
    return array("q", (number + least for number in numbers))


def _damaged(detail: str) -> LayoutFinding:
    return LayoutFinding(LayoutFault.DAMAGED, f"{_WHERE}: {detail}")
