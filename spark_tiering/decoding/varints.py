"""
Varints, zigzag, at many places of a buffer at once. The eight bytes at a place are one number, of
which three shifts join the groups of seven bits. A longer varint, as only a time can have, is read
again by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spark_tiering.decoding.batch_walk import Int64s

Words: TypeAlias = npt.NDArray[np.uint64]

PADDING: Final = bytes(16)
"""Must stand behind the last byte that is looked at: a varint of ten bytes may begin on it."""
INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT32_VARINT_BYTES_MAX: Final = 5
_INT64_VARINT_BYTES_MAX: Final = 10


def _u(value: int) -> np.uint64:
    return np.uint64(value)


_HIGH_BITS: Final = _u(0x8080808080808080)
_LOW_BITS: Final = _u(0x7F7F7F7F7F7F7F7F)
_ONE: Final = _u(1)
_TWO: Final = _u(2)
_FOUR: Final = _u(4)
_SEVEN: Final = _u(7)
# Times 256**k this has k + 1 in its highest byte.
_SIZES: Final = _u(0x0102030405060708)
_HIGHEST_BYTE: Final = _u(56)
_EVEN_7, _ODD_7 = _u(0x007F007F007F007F), _u(0x7F007F007F007F00)
_EVEN_14, _ODD_14 = _u(0x00003FFF00003FFF), _u(0x3FFF00003FFF0000)
_EVEN_28, _ODD_28 = _u(0x000000000FFFFFFF), _u(0x0FFFFFFF00000000)


class VarintBuffer:
    """Holds bytes in which varints are read by position; positions outside move to the end."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = data
        self.bytes = np.frombuffer(data, dtype=np.uint8)
        count = len(data) - 7
        self.words: Words = np.ndarray((count,), dtype="<u8", buffer=data, strides=(1,))
        self.pairs = np.ndarray((count,), dtype="<u2", buffer=data, strides=(1,))
        self.last = count - 1

    def words_at(self, position: Int64s) -> Words:
        return self.words[np.minimum(position, self.last)]

    def int32_at(self, position: Int64s) -> tuple[Int64s, Int64s]:
        """Return the numbers and their sizes: 0 for no int32, or one with too many bytes."""
        position = np.minimum(position, self.last)
        # Fields of one kind have sizes of one kind nearly always: the first tells.
        if len(position) and self.bytes[position[0]] < 0x80:
            first = self.bytes[position]
            if first.max() < 0x80:
                return _BYTES[first], np.ones(len(first), dtype=np.int64)
        value, size = decode_pairs(self.pairs[position])
        if np.count_nonzero(size) < len(size):
            long = np.flatnonzero(size == 0)
            value[long], size[long] = int32_of(*decode_words(self.words[position[long]]))
        return value, size

    def int64_at(self, position: Int64s) -> tuple[Int64s, Int64s]:
        words = self.words_at(position)
        value, size = decode_words(words)
        if not size.all():
            for at in np.flatnonzero(size == 0):
                value[at], size[at] = self._long_at(int(position[at]))
        return value, size

    def _long_at(self, position: int) -> tuple[int, int]:
        """Read a number of more than eight bytes; its size is 0 when it has more than ten."""
        found = 0
        for count, byte in enumerate(self.data[position : position + _INT64_VARINT_BYTES_MAX]):
            found |= (byte & 0x7F) << 7 * count
            if byte < 0x80:
                found &= 2**64 - 1
                return (found >> 1) ^ -(found & 1), count + 1
        return 0, 0


def decode_words(words: Words) -> tuple[Int64s, Int64s]:
    """Read the number at the lowest bytes of each word, and its size; 0 if it is longer."""
    lowest = ~words
    lowest &= _HIGH_BITS
    lowest &= -lowest
    bits = lowest - _ONE
    bits |= lowest
    bits &= words
    bits &= _LOW_BITS
    bits = _joined(bits, _EVEN_7, _ODD_7, _ONE)
    bits = _joined(bits, _EVEN_14, _ODD_14, _TWO)
    bits = _joined(bits, _EVEN_28, _ODD_28, _FOUR)
    sign = bits & _ONE
    bits >>= _ONE
    bits ^= -sign
    lowest >>= _SEVEN
    lowest *= _SIZES
    lowest >>= _HIGHEST_BYTE
    return bits.view(np.int64), lowest.view(np.int64)


def _joined(bits: Words, even: np.uint64, odd: np.uint64, shift: np.uint64) -> Words:
    upper = bits & odd
    upper >>= shift
    bits &= even
    bits |= upper
    return bits


def decode_pairs(pairs: npt.NDArray[np.uint16]) -> tuple[Int64s, Int64s]:
    """Decode numbers of at most two bytes by table: size 0 where the number is longer."""
    value = _PAIRS[pairs].astype(np.int64)
    size = value & 3
    value >>= 2
    return value, size


def decode_short(words: Words) -> tuple[Int64s, Int64s]:
    """Decode as `decode_words` does, for numbers that nearly always have two bytes or less."""
    value, size = decode_pairs(words.astype(np.uint16))
    if np.count_nonzero(size) < len(size):
        long = np.flatnonzero(size == 0)
        value[long], size[long] = decode_words(words[long])
    return value, size


def int32_of(value: Int64s, size: Int64s) -> tuple[Int64s, Int64s]:
    """Return the numbers, with size 0 for those that are no int32 or have too many bytes."""
    if size.max(initial=0) < INT32_VARINT_BYTES_MAX:
        return value, size
    bad = (size > INT32_VARINT_BYTES_MAX) | (value < INT32_MIN) | (value > INT32_MAX)
    return value, np.where(bad, 0, size)


def _make_pairs() -> npt.NDArray[np.int32]:
    """Tabulate numbers, times four, and sizes by two bytes; size 0 for longer numbers."""
    pairs = np.arange(2**16, dtype=np.uint64)
    value, size = decode_words(pairs | _u(0x00FF0000))
    return np.where(size > 2, 0, value * 4 + size).astype(np.int32)


_PAIRS: Final = _make_pairs()
_BYTES: Final = (_PAIRS[:128] >> 2).astype(np.int64)
