"""Bytes changed as a bad disk or a bad peer changes them, by the caller's randomness. Pure."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import google_crc32c

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

_CHANGES_MAX = 4
_INSERTED_MAX = 24
_RANDOM_MAX = 300
_COPIES_MAX = 3
_FIRST_CRC_BYTE = 21
_MAGIC_AT = 16
_LENGTH_FROM = 12

_EXTREME_BYTES = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF)
EXTREMES = tuple(
    struct.pack(form, number)
    for form, bits in ((">i", 31), (">q", 63), (">h", 15))
    for number in (0, -1, 1, -(2**bits), 2**bits - 1)
) + tuple(
    bytes.fromhex(varint)
    for varint in (
        "00",  # null
        "01",  # empty, or -1 as zigzag
        "ff01",  # two bytes
        "8000",  # zero, not minimal
        "ffffffff07",  # 2^31 - 1
        "ffffffff0f",  # -1 as int, and 2^31 - 1 as zigzag
        "ffffffffffffffffff01",  # ten bytes
        "ffffffffffffffffffff01",  # eleven
    )
)
"""Numbers at the ends of their types, as fixed bytes and as varints: lengths, counts, offsets."""


def mutated(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return *data* after one to four changes; splices take from *others*."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, _CHANGES_MAX)):
        rng.choice(_CHANGES)(rng, changed, others)
    return bytes(changed)


def with_sound_crc(data: bytes) -> bytes:
    """Return *data* with correct CRCs, as far as batches can be told apart."""
    fixed = bytearray(data)
    start = 0
    while start + _FIRST_CRC_BYTE <= len(fixed) and fixed[start + _MAGIC_AT] == 2:
        (length,) = struct.unpack_from(">i", fixed, start + 8)
        stop = start + _LENGTH_FROM + length
        if not start + _FIRST_CRC_BYTE <= stop <= len(fixed):
            break
        crc = google_crc32c.value(bytes(fixed[start + _FIRST_CRC_BYTE : stop]))
        struct.pack_into(">I", fixed, start + _MAGIC_AT + 1, crc)
        start = stop
    return bytes(fixed)


def _flip(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_byte(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice(_EXTREME_BYTES)


def _cut_off(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    del data[rng.randint(0, len(data)) :]


def _cut_out(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    del data[at : at + rng.randint(1, _INSERTED_MAX)]


def _insert(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    data[at:at] = rng.randbytes(rng.randint(1, _INSERTED_MAX))


def _overwrite_with_extreme(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    extreme = rng.choice(EXTREMES)
    at = rng.randint(0, len(data))
    data[at : at + len(extreme)] = extreme


def _insert_extreme(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    """Replace one byte by an extreme length of the same encoding, and keep the bytes behind it."""
    at = rng.randint(0, len(data))
    data[at : at + 1] = rng.choice(EXTREMES)


def _repeat(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    piece = data[at : at + rng.randint(1, _INSERTED_MAX)]
    data[at:at] = piece * rng.randint(1, _COPIES_MAX)


def _splice(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    other = rng.choice(others)
    at = rng.randint(0, len(data))
    data[at:] = other[min(at, rng.randint(0, len(other))) :]


def _replace_all(rng: Random, data: bytearray, _others: Sequence[bytes]) -> None:
    if rng.random() < 0.1:
        data[:] = rng.randbytes(rng.randint(0, _RANDOM_MAX))


_CHANGES: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip,
    _flip,
    _set_byte,
    _set_byte,
    _cut_off,
    _cut_out,
    _insert,
    _overwrite_with_extreme,
    _insert_extreme,
    _repeat,
    _splice,
    _replace_all,
)
