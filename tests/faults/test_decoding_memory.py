"""Memory of a decoder: little more than a log's bytes, whatever lengths they claim."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rlmm.records.compression import Compression, deflate
from rlmm.records.records import Record
from rlmm.records.writer import build_batch, records_of
from spark_tiering.decoding import BatchDecoder, DecodingFaultKind
from tests.support.datasource.decoded_rows import decode, in_small, wanted
from tests.support.records.batches import field, forge, record, varint

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE = build_batch(records_of([b"one"], 0, 1_000), 0)
CODECS = [pytest.param(codec, id=codec.name.lower()) for codec in Compression if codec]


class Memory:
    def begin(self) -> None:
        tracemalloc.start()
        self._arrow_bytes = pa.total_allocated_bytes()

    @property
    def peak_bytes(self) -> int:
        arrow_bytes: int = pa.total_allocated_bytes() - self._arrow_bytes
        return tracemalloc.get_traced_memory()[1] + arrow_bytes


@pytest.fixture
def memory() -> Iterator[Memory]:
    yield Memory()
    tracemalloc.stop()


def test_log_when_its_zeros_are_many_then_none_of_them_is_held(memory: Memory) -> None:
    """A gigabyte of preallocated zeros is not held in memory."""
    decoder, zeros = BatchDecoder(wanted()), bytes(1 << 20)
    assert len(list(decoder.feed(ONE))) == 1
    memory.begin()
    for _ in range(20):
        assert not list(decoder.feed(zeros))
    assert memory.peak_bytes < 3 << 20
    fault = decoder.finish()
    assert fault is not None
    assert fault.kind is DecodingFaultKind.ZEROS


@pytest.mark.parametrize("codec", CODECS)
def test_section_when_it_is_a_bomb_then_it_is_refused_within_the_limit(
    codec: Compression, memory: Memory
) -> None:
    """A small section that inflates to 32 MiB is refused with no more memory than the buffer."""
    bomb = forge(deflate(codec, bytes(32 << 20)), 1, attributes=codec, base_offset=1)
    memory.begin()
    with in_small(portion_bytes=100_000):
        found = decode(ONE + bomb, wanted(inflated_bytes_max=1_000_000))
    assert [row.value for row in found.rows] == [b"one"]
    assert found.fault is not None
    assert found.fault.kind is DecodingFaultKind.INFLATED_TOO_LARGE
    assert memory.peak_bytes < 6_000_000


@pytest.mark.parametrize(
    ("size", "is_read"), [(99_000, True), (101_000, False)], ids=["below", "above"]
)
@pytest.mark.parametrize("codec", CODECS)
def test_section_when_it_passes_the_limit_and_not_the_buffer_then_it_is_refused(
    codec: Compression, size: int, is_read: bool
) -> None:
    """A section beyond the caller's limit is refused although the buffer has room for it."""
    log = build_batch([Record(0, 0, None, bytes(size))], 0, compression=codec)
    found = decode(log, wanted(inflated_bytes_max=100_000))
    assert bool(found.rows) == is_read
    assert found.fault is None or found.fault.kind is DecodingFaultKind.INFLATED_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
def test_section_when_it_fits_the_limit_and_no_buffer_then_it_is_read(codec: Compression) -> None:
    """A batch larger than the buffer and within the limit is read."""
    large = build_batch([Record(1, 0, None, 700_000 * b"v")], 1, compression=codec)
    small = build_batch(records_of([b"two"], 2), 2, compression=codec)
    with in_small(portion_bytes=1_000):
        found = decode(ONE + large + small)
    assert [len(value or b"") for value in (row.value for row in found.rows)] == [3, 700_000, 3]


NO_ROOM = b"\x00\x00\x00" + field(None) + field(b"v") + varint(500_000) + b"\x00\x01"
ZEROS = forge(
    deflate(Compression.ZSTD, bytes(20_000_000)), 2**31 - 1,
    attributes=Compression.ZSTD, last_offset_delta=2**31 - 1,
)  # fmt: skip


@pytest.mark.parametrize(
    ("log", "bytes_max"),
    [(ZEROS, 8 * 20_000_000), (forge(varint(len(NO_ROOM)) + NO_ROOM, 1), 1_000_000)],
    ids=["records", "headers"],
)
def test_count_when_it_has_no_room_then_nothing_is_reserved(
    memory: Memory, log: bytes, bytes_max: int
) -> None:
    """A false count of records, before 20 MB of zeros, or of headers reserves no memory."""
    memory.begin()
    assert decode(log).fault is not None
    assert memory.peak_bytes < bytes_max


def test_records_when_they_are_as_small_as_can_be_then_rows_come_some_at_a_time(
    memory: Memory,
) -> None:
    """Batches of 50,000 empty records, without and with empty headers, come in portions."""
    count = 50_000
    for headers in (b"\x00", varint(3) + (field(b"") + field(None)) * 3):
        section = b"".join(record(at, None, headers=headers) for at in range(count))
        log = forge(section, count)
        memory.begin()
        decoder, sizes = BatchDecoder(wanted()), []
        for rows in decoder.feed(log):
            assert isinstance(rows, pa.RecordBatch)
            sizes.append(rows.num_rows)
        assert decoder.finish() is None
        assert sum(sizes) == count
        assert max(sizes) <= 32 * 1024
        assert memory.peak_bytes < 10_000_000 + 30 * len(section)
        tracemalloc.stop()


@pytest.mark.parametrize("count", [100_000, 600_000], ids=["allowed", "refused"])
def test_record_when_it_is_a_bomb_of_headers_then_memory_follows_its_bytes(
    memory: Memory, count: int
) -> None:
    """A record with more headers than the limit is refused, and memory follows its bytes."""
    headers = varint(count) + (field(b"") + field(None)) * count
    log = forge(record(0, b"v", headers=headers), 1)
    memory.begin()
    found = BatchDecoder(wanted())
    rows = list(found.feed(log))
    assert (found.fault is None) == (count == 100_000)
    assert len(rows) == 1
    assert memory.peak_bytes < 1_000_000 + 60 * len(log)
    tracemalloc.stop()


def test_window_when_it_is_large_then_rows_come_in_portions(memory: Memory) -> None:
    """The decoder holds a few windows of memory, however large its batches inflate."""
    records = [Record(at, 0, None, 1_000 * b"v") for at in range(1_000)]
    batches = [
        build_batch(
            [each._replace(offset=1_000 * number + each.offset) for each in records],
            1_000 * number, compression=Compression.ZSTD,
        )
        for number in range(30)
    ]  # fmt: skip
    log = b"".join(batches)
    decoder, count = BatchDecoder(wanted()), 0
    memory.begin()
    for rows in decoder.feed(log):
        assert isinstance(rows, pa.RecordBatch)
        count += rows.num_rows
    assert count == 30_000
    assert decoder.finish() is None
    assert memory.peak_bytes < 45_000_000
