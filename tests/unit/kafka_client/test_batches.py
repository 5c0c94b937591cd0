"""Where the whole batches of an answer end."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.kafka_client.fetch.partition_reads import WholeBatches, whole_batches
from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch, records_of

FIRST = build_batch(records_of([b"a", b"b"], 5), 5, leader_epoch=2)
SECOND = build_batch(records_of([b"c"], 7), 7, leader_epoch=3)
HOLE = build_batch(records_of([b"d"], 8), 8, last_offset=19, leader_epoch=3)
OLD = struct.pack(">qi", 4, 14) + bytes(4) + b"\x01" + bytes(9)
SMALL = struct.pack(">qi", 4, 14) + bytes(4) + b"\x02" + bytes(9)
ABSURD = struct.pack(">qi", 9, -1) + bytes(60)
HUGE = struct.pack(">qi", 9, 2**30) + bytes(60)

CASES = {
    "nothing": (b"", WholeBatches(0, None, -1, 0, None)),
    "one": (FIRST, WholeBatches(len(FIRST), 7, 2, 0, None)),
    "two": (FIRST + SECOND, WholeBatches(len(FIRST + SECOND), 8, 3, 0, None)),
    "a hole at the end": (HOLE, WholeBatches(len(HOLE), 20, 3, 0, None)),
    "the second cut off": (FIRST + SECOND[:-1], WholeBatches(len(FIRST), 7, 2, len(SECOND), None)),
    "the second's length cut off": (FIRST + SECOND[:11], WholeBatches(len(FIRST), 7, 2, 0, None)),
    "only the begin of one": (FIRST[:30], WholeBatches(0, None, -1, len(FIRST), None)),
    "a message of an old format": (OLD, WholeBatches(len(OLD), 5, -1, 0, None)),
    "a batch smaller than its own header": (SMALL, WholeBatches(len(SMALL), 5, -1, 0, None)),
    "a length that none can have": (
        FIRST + ABSURD,
        WholeBatches(len(FIRST), 7, 2, 0, "a batch at offset 9 claims a length of -1"),
    ),
    "a length beyond all limits": (
        HUGE,
        WholeBatches(0, None, -1, 0, "a batch at offset 9 claims a length of 1073741824"),
    ),
}


@pytest.mark.parametrize(("data", "found"), CASES.values(), ids=CASES)
def test_batches_when_whole_then_are_told_from_the_rest(data: bytes, found: WholeBatches) -> None:
    """The parser returns the whole batches, the next position, and the bytes behind them."""
    assert whole_batches(data) == found
    assert whole_batches(memoryview(data)) == found


@given(st.binary(max_size=300))
def test_batches_when_the_bytes_are_any_then_nothing_is_raised(data: bytes) -> None:
    """Arbitrary bytes make no error, and nothing beyond them is whole."""
    assert 0 <= whole_batches(data).size <= len(data)


@given(st.lists(st.integers(1, 4), max_size=6), st.integers(0, 400))
def test_batches_when_cut_anywhere_then_agree_with_the_walk(counts: list[int], cut: int) -> None:
    """Wherever the answer ends, the same batches are whole that the walk of records finds."""
    data, offset = b"", 0
    for count in counts:
        data += build_batch(records_of([b"x"] * count, offset), offset)
        offset += count
    data = data[: max(len(data) - cut, 0)]
    batches = [batch for batch in walk(data) if isinstance(batch, Batch)]
    found = whole_batches(data)
    assert found.size == (batches[-1].stop if batches else 0)
    assert found.next_offset == (batches[-1].next_offset if batches else None)
