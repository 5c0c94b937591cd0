"""The batches of a record set: the walk over them, one header unpacked and one CRC for each."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import google_crc32c

from rlmm.records.compression import (
    INFLATED_BYTES_MAX,
    Compression,
    DecompressionFault,
    inflating,
    last_of,
)
from rlmm.records.damage import DamagedBatch, DamagedRecords, DamageReason, PartialTail
from rlmm.records.header import (
    BATCH_BYTES_MAX,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_FROM,
    HEADER,
    HEADER_BYTES,
    LENGTH_FROM,
    LENGTH_MIN,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    OFFSET_MAX,
    TRANSACTIONAL_BIT,
    BatchMark,
    claimed_next_offset,
    judge_header,
    judge_start,
)
from rlmm.records.records import (
    PADDING_BYTES,
    BatchValues,
    Record,
    RecordSection,
    compiled_records,
    compiled_values,
    reading_values,
    strict_records,
    strict_values,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

SMALL_BYTES_MAX = 128 * 1024
SMALL_RECORDS_MAX = 2_000
"""The records part of a small batch is read at once, in a few milliseconds; others in steps."""

_PADDING = bytes(PADDING_BYTES)
_CODECS = {codec.value: codec for codec in Compression}


class TimestampType(IntEnum):
    """The source of a batch's record times: the producer, or the broker."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Batch:
    """
    One batch whose header makes sense, at bytes [start, stop) of the record set. *last_offset* is
    that of the batch, which compaction keeps: the last record may lie before it.
    """

    __slots__ = ("_header", "_set", "base_offset", "last_offset", "start", "stop")

    def __init__(
        self,
        record_set: memoryview,
        start: int,
        stop: int,
        header: tuple[int, ...],
        last_offset: int,
    ) -> None:
        self._set = record_set
        self._header = header
        self.start = start
        self.stop = stop
        self.base_offset = header[0]
        self.last_offset = last_offset

    def __repr__(self) -> str:
        offsets = f"{self.base_offset}-{self.last_offset}"
        return f"Batch(offsets {offsets}, bytes {self.start}-{self.stop})"

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def leader_epoch(self) -> int:
        """Epoch of the leader that appended the batch, -1 when none did; not covered by the CRC."""
        return self._header[2]

    @property
    def mark(self) -> BatchMark:
        return BatchMark(self.base_offset, self.last_offset, self._header[2], self._header[4])

    @property
    def is_control(self) -> bool:
        return self._header[5] & CONTROL_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self._header[5] & TRANSACTIONAL_BIT != 0

    @property
    def compression(self) -> Compression | None:
        """Codec of the records part; None for an id that the format does not define."""
        return _CODECS.get(self._header[5] & CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType(self._header[5] & LOG_APPEND_TIME_BIT != 0)

    @property
    def base_timestamp_ms(self) -> int:
        return self._header[7]

    @property
    def max_timestamp_ms(self) -> int:
        return self._header[8]

    @property
    def producer_id(self) -> int:
        return self._header[9]

    @property
    def producer_epoch(self) -> int:
        return self._header[10]

    @property
    def base_sequence(self) -> int:
        return self._header[11]

    @property
    def record_count(self) -> int:
        """Return how many records the header claims; never negative, not otherwise checked."""
        return self._header[12]

    def values(self, *, inflated_bytes_max: int = INFLATED_BYTES_MAX) -> BatchValues:
        """Read the values alone: a replay has no use for keys, times and headers."""
        batch = self._readable(inflated_bytes_max)
        if isinstance(batch, DamagedRecords):
            return BatchValues([], [], batch)
        found = compiled_values(batch, self.base_offset, self.last_offset)
        return strict_values(self._section(batch)) if found is None else found

    def reading_values(
        self, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
    ) -> Generator[None, None, BatchValues]:
        """
        Read as `values` does, in steps of some milliseconds, whatever the bytes are: the caller may
        pause between two. A small batch takes one.
        """
        batch = yield from self._inflating(inflated_bytes_max)
        if isinstance(batch, DamagedRecords):
            return BatchValues([], [], batch)
        if len(batch) <= SMALL_BYTES_MAX and self.record_count <= SMALL_RECORDS_MAX:
            found = compiled_values(batch, self.base_offset, self.last_offset)
            if found is not None:
                return found
        yield
        return (yield from reading_values(self._section(batch)))

    def records(
        self, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
    ) -> Iterator[Record | DamagedRecords]:
        """Yield the records; when some cannot be trusted, the lost ones come last."""
        batch = self._readable(inflated_bytes_max)
        if isinstance(batch, DamagedRecords):
            return iter((batch,))
        section = self._section(batch)
        found = compiled_records(section)
        return strict_records(section) if found is None else iter(found)

    def _readable(self, inflated_bytes_max: int) -> memoryview | DamagedRecords:
        return last_of(self._inflating(inflated_bytes_max))

    def _inflating(
        self, inflated_bytes_max: int
    ) -> Generator[None, None, memoryview | DamagedRecords]:
        if self._header[5] & CODEC_MASK:
            return (yield from self._inflated(inflated_bytes_max))
        batch = self._set[self.start : self.stop]
        if self.stop + PADDING_BYTES > len(self._set):
            return _padded(batch)
        return batch

    def _section(self, batch: memoryview) -> RecordSection:
        header = self._header
        append_timestamp_ms = header[8] if header[5] & LOG_APPEND_TIME_BIT else None
        return RecordSection(
            batch, self.base_offset, self.last_offset, header[12], header[7], append_timestamp_ms
        )

    def _inflated(
        self, inflated_bytes_max: int
    ) -> Generator[None, None, memoryview | DamagedRecords]:
        compression = self.compression
        if compression is None:
            number = self._header[5] & CODEC_MASK
            return self._all_lost(DamageReason.UNKNOWN_COMPRESSION, f"codec id {number}")
        section = self._set[self.start + HEADER_BYTES : self.stop]
        if self.record_count == 0 and not section:
            return _padded(self._cleared_header())
        inflated = yield from inflating(compression, section, inflated_bytes_max)
        if isinstance(inflated, DecompressionFault):
            return self._all_lost(inflated.reason, inflated.detail)
        if len(inflated) > SMALL_BYTES_MAX:
            yield
        return _padded(self._cleared_header(), inflated)

    def _cleared_header(self) -> bytes:
        """Return the header as it would be without compression, but for length and CRC."""
        header = list(self._header)
        header[5] &= ~CODEC_MASK
        return HEADER.pack(*header)

    def _all_lost(self, reason: DamageReason, detail: str) -> DamagedRecords:
        return DamagedRecords(reason, 0, self.base_offset, self.next_offset, detail)


def _padded(*parts: bytes | bytearray | memoryview) -> memoryview:
    return memoryview(b"".join((*parts, _PADDING)))[:-PADDING_BYTES]


def walk(
    data: bytes, start: int = 0, *, verify_crc: bool = True, batch_bytes_max: int = BATCH_BYTES_MAX
) -> Iterator[Batch | DamagedBatch | PartialTail]:
    """
    Yield what *data* holds from byte *start* on, in order and without a gap.

    A batch must begin at *start*. Behind a damaged batch whose length is plausible the walk goes
    on; else it ends there. It ends cleanly at the end of *data*, or with the `PartialTail` of a
    batch that is cut off, or of a preallocated file. Callers compare offsets with their own
    position: the base offset lies outside the CRC. Without *verify_crc* only headers are checked.
    """
    size = len(data)
    record_set = memoryview(data)
    crc32c = google_crc32c.value
    length_max = batch_bytes_max - LENGTH_FROM
    while start < size:
        found: Batch | DamagedBatch | PartialTail | None = None
        if size - start >= HEADER_BYTES:
            header = HEADER.unpack_from(data, start)
            base_offset, length, _, magic, crc, _, last_delta, _, _, _, _, _, record_count = header
            stop = start + LENGTH_FROM + length
            if magic == MAGIC and LENGTH_MIN <= length <= length_max and stop <= size:
                last_offset = base_offset + last_delta
                if verify_crc and crc32c(data[start + CRC_FROM : stop]) != crc:
                    found = _crc_mismatch(start, stop, header)
                elif 0 <= base_offset <= last_offset <= OFFSET_MAX and record_count >= 0:
                    yield Batch(record_set, start, stop, header, last_offset)
                    start = stop
                    continue
                else:
                    found = judge_header(start, stop, header)
        if found is None:
            found = judge_start(data, start, batch_bytes_max)
        yield found
        if isinstance(found, PartialTail) or found.stop is None:
            return
        start = found.stop


def _crc_mismatch(start: int, stop: int, header: tuple[int, ...]) -> DamagedBatch:
    detail = f"CRC-32C of {stop - start - CRC_FROM} bytes is not {header[4]:08x}"
    next_offset = claimed_next_offset(header)
    return DamagedBatch(DamageReason.CRC_MISMATCH, start, stop, header[0], next_offset, detail)
