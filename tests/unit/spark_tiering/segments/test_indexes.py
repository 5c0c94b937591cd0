"""Offset and time indexes, judged by the look-ups they give."""

from __future__ import annotations

import struct

import pytest

from spark_tiering.segments import indexes
from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.indexes import OffsetIndexJudge, TimeIndexJudge
from spark_tiering.segments.log_walk import LogBatch
from spark_tiering.segments.partition_files import FileStream
from tests.support.partitions.segments import MemoryFiles

BASE = 100
BATCHES = [
    LogBatch(
        1000 * n, 1000, BASE + 10 * n, BASE + 10 * n + 9, 0, ms, -1, -1, -1, False, False, None
    )
    for n, ms in enumerate((5, 9, 7, 20, 20))
]
"""Five batches of ten offsets and 1000 bytes, their largest times 5, 9, 7, 20, 20."""


def offset_index(*rows: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *row) for row in rows)


def time_index(*rows: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *row) for row in rows)


def judge_offsets(content: bytes, *, told: int | None = None) -> SegmentFinding | None:
    size = len(content) if told is None else told
    stream = FileStream(MemoryFiles({"i": content}), "i", size, SegmentPart.OFFSET_INDEX)
    judge = OffsetIndexJudge(stream, BASE)
    for batch in BATCHES:
        judge.note(batch)
    return judge.finish()


def judge_times(content: bytes, batches: list[LogBatch] = BATCHES) -> SegmentFinding | None:
    stream = FileStream(MemoryFiles({"t": content}), "t", len(content), SegmentPart.TIME_INDEX)
    judge = TimeIndexJudge(stream, BASE)
    for batch in batches:
        judge.note(batch)
    return judge.finish()


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        pytest.param(b"", None, "", id="empty"),
        pytest.param(
            offset_index((19, 1000), (29, 2000), (39, 3000), (49, 4000)), None, "", id="every batch"
        ),
        pytest.param(offset_index((39, 3000)), None, "", id="one"),
        pytest.param(offset_index((39, 1000), (49, 4000)), None, "", id="the append's last offset"),
        pytest.param(offset_index((10, 1000)), None, "", id="the batch's first offset"),
        pytest.param(offset_index((9, 0), (19, 1000)), None, "", id="the first batch too"),
        pytest.param(offset_index((19, 1000))[:-1], Kind.TORN, "7 bytes", id="torn"),
        pytest.param(bytes(8), Kind.UNTRIMMED, "zeros", id="zeros alone"),
        pytest.param(offset_index((19, 1000)) + bytes(800), Kind.UNTRIMMED, "entry 1", id="zeros"),
        pytest.param(offset_index((39, 3000), (19, 1000)), Kind.UNORDERED, "entry 1", id="swapped"),
        pytest.param(
            offset_index((19, 1000), (19, 2000)), Kind.UNORDERED, "(19, 2000)", id="twice"
        ),
        pytest.param(
            offset_index((19, 1000), (29, 1000)), Kind.UNORDERED, "(29, 1000)", id="one byte"
        ),
        pytest.param(offset_index((-3, 1000)), Kind.UNORDERED, "-3", id="negative offset"),
        pytest.param(offset_index((19, -1)), Kind.UNORDERED, "-1", id="negative position"),
        pytest.param(
            offset_index((25, 1001)), Kind.WRONG, "begins at byte 1001", id="no batch there"
        ),
        pytest.param(offset_index((19, 2000)), Kind.WRONG, "offset 119", id="begins too late"),
        pytest.param(offset_index((49, 5000)), Kind.OUTSIDE, "byte 5000", id="behind"),
        pytest.param(offset_index((50, 4000)), Kind.OUTSIDE, "offset 150", id="offset"),
        pytest.param(bytes(8) + offset_index((19, 1000)), Kind.WRONG, "zeros", id="zeros first"),
    ],
)
def test_offset_index_is_judged(content: bytes, kind: Kind | None, text: str) -> None:
    """An offset index is right when every look-up begins early enough, else one fault is named."""
    found = judge_offsets(content)
    assert (None if found is None else found.kind) is kind
    assert found is None or text in found.detail


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        pytest.param(time_index((20, 39)), None, "", id="closing alone"),
        pytest.param(time_index((5, 9), (9, 19), (20, 39)), None, "", id="every change"),
        pytest.param(
            time_index((5, 9), (9, 29), (20, 39)), None, "", id="a later batch of that time"
        ),
        pytest.param(
            time_index((9, 19), (15, 29), (20, 49)), None, "", id="a time that no record has"
        ),
        pytest.param(time_index((5, 9), (20, 33)), None, "", id="an offset within the batch"),
        pytest.param(b"", Kind.WRONG, "largest time is 20", id="empty"),
        pytest.param(time_index((20, 39))[:-1], Kind.TORN, "11 bytes", id="torn"),
        pytest.param(bytes(120), Kind.UNTRIMMED, "zeros", id="zeros alone"),
        pytest.param(time_index((20, 39)) + bytes(24), Kind.UNTRIMMED, "entry 1", id="zeros"),
        pytest.param(time_index((9, 19)), Kind.WRONG, "has 9", id="not closed"),
        pytest.param(time_index((21, 49)), Kind.WRONG, "has 21", id="closed too late"),
        pytest.param(time_index((20, 39), (9, 49)), Kind.UNORDERED, "(9, 49)", id="backwards"),
        pytest.param(time_index((5, 9), (20, 8)), Kind.UNORDERED, "(20, 8)", id="offsets"),
        pytest.param(time_index((-1, 9), (20, 39)), Kind.UNORDERED, "-1", id="no time"),
        pytest.param(time_index((5, -1), (20, 39)), Kind.UNORDERED, "-1", id="below base"),
        pytest.param(time_index((5, 19), (20, 39)), Kind.WRONG, "there is 9", id="later"),
        pytest.param(time_index((20, 50)), Kind.OUTSIDE, "offset 150", id="behind"),
    ],
)
def test_time_index_is_judged(content: bytes, kind: Kind | None, text: str) -> None:
    """A time index is right when no later record lies before an entry, else one fault is named."""
    found = judge_times(content)
    assert (None if found is None else found.kind) is kind
    assert found is None or text in found.detail


def test_time_index_when_no_record_has_a_time_then_is_empty() -> None:
    """A time index is empty when all times are -1, while a time of 0 is one."""
    timeless = [batch._replace(max_timestamp_ms=-1) for batch in BATCHES]
    assert judge_times(b"", timeless) is None
    single = BATCHES[0]._replace(last_offset=BASE, max_timestamp_ms=0)
    assert judge_times(bytes(12), [single]) is None


def test_index_when_it_is_large_then_is_read_in_pieces() -> None:
    """A large index is read in pieces and checked against its announced size."""
    content = offset_index((19, 1000)) + bytes(10 * 2**20)
    files = MemoryFiles({"i": content})
    stream = FileStream(files, "i", len(content), SegmentPart.OFFSET_INDEX)
    judge = OffsetIndexJudge(stream, BASE)
    for batch in BATCHES:
        judge.note(batch)
    found = judge.finish()
    assert found is not None
    assert found.kind is Kind.UNTRIMMED
    assert files.largest_read == 8 * indexes.ENTRIES_AT_ONCE


@pytest.mark.parametrize("told", [8, 24, 2**28])
def test_index_when_its_size_was_told_wrong_then_is_not_trusted(told: int) -> None:
    """An index with fewer or more entries than announced is one finding."""
    found = judge_offsets(offset_index((19, 1000), (29, 2000)), told=told)
    assert found is not None
    assert found.kind is Kind.CHANGED


def test_index_when_it_is_larger_than_any_then_is_not_read() -> None:
    """An index announced larger than any index can be is not read."""
    files = MemoryFiles({"i": offset_index((19, 1000))})
    judge = OffsetIndexJudge(FileStream(files, "i", 2**62, SegmentPart.OFFSET_INDEX), BASE)
    found = judge.finish()
    assert found is not None
    assert found.kind is Kind.TOO_LARGE
    assert files.bytes_read == {}
