"""Varints of many places at once, beside one read byte by byte."""

from __future__ import annotations

import numpy as np

from spark_tiering.decoding.varints import INT32_MAX, INT32_MIN, PADDING, VarintBuffer
from tests.support.records.batches import varint

EDGES = sorted(
    {sign * (2**bits) + step for bits in range(63) for sign in (1, -1) for step in (-1, 0, 1)}
    | {0, 2**63 - 1, -(2**63)}
)


def placed(numbers: list[bytes]) -> tuple[VarintBuffer, list[int]]:
    places = [sum(map(len, numbers[:at])) for at in range(len(numbers))]
    return VarintBuffer(b"".join((*numbers, PADDING))), places


def test_int64_when_it_is_any_then_it_and_its_size_are_read() -> None:
    """Every int64 and its size of one to ten bytes are read, alone and among others."""
    numbers = [varint(edge) for edge in EDGES]
    buffer, places = placed(numbers)
    value, size = buffer.int64_at(np.array(places))
    assert value.tolist() == EDGES
    assert size.tolist() == [len(number) for number in numbers]


def test_int32_when_it_is_none_then_its_size_is_nothing() -> None:
    """A number outside 32 bits has no size and is not used as a length."""
    for some in (EDGES, [edge for edge in EDGES if -64 <= edge < 64], [0]):
        numbers = [varint(edge) for edge in some]
        buffer, places = placed(numbers)
        value, size = buffer.int32_at(np.array(places))
        for edge, number, one, bytes_of in zip(some, numbers, value, size, strict=True):
            if INT32_MIN <= edge <= INT32_MAX:
                assert (one, bytes_of) == (edge, len(number))
            else:
                assert bytes_of == 0


def test_int32_when_it_is_padded_then_only_up_to_five_bytes() -> None:
    """A padded int32 is read up to five bytes."""
    for size in range(2, 12):
        buffer, _ = placed([b"\x82" + b"\x80" * (size - 2) + b"\x00", varint(200)])
        value, sizes = buffer.int32_at(np.array([0, size]))
        assert sizes.tolist() == [size if size <= 5 else 0, 2]
        if size <= 5:
            assert value[0] == 1
        value, sizes = buffer.int64_at(np.array([0]))
        assert sizes[0] == (size if size <= 10 else 0)


def test_places_when_they_lie_outside_then_they_are_read_at_the_end() -> None:
    """Places outside the buffer are read at its end."""
    buffer, _ = placed([varint(1)] * 5)
    for read in (buffer.int32_at, buffer.int64_at):
        _, size = read(np.array([0, 5 + len(PADDING), 2**40]))
        assert size[0] == 1
