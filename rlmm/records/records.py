"""
The records of one batch: aiokafka's compiled reader where it is safe, else a reader of our own.

The compiled reader is ten times as fast and not bounds-safe. Why it may still get hostile bytes:

- It may decode varints up to 20 bytes past the end (a header value of negative length and the next
  header's key). A batch is therefore a slice of a buffer with `PADDING_BYTES` or more behind it.
- It checks copies against the end first. With a length near 2^63 that check overflows, and the copy
  fails with OverflowError or MemoryError before a byte is read.
- Its position never goes back, and it succeeds only at the exact end after the counted records.
- When it fails, its output is thrown away and our reader, which trusts nothing, reads the batch.
- It makes objects of headers, at worst 32 bytes of memory for each byte of input. Batches above
  `COMPILED_BYTES_MAX` are left to our reader, which does not.

Our reader reads as Kafka does where they differ: a record's attributes are one byte, not a varint,
and a header key that is no UTF-8 is no damage.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from rlmm.records.compression import last_of
from rlmm.records.damage import DamagedRecords, DamageReason
from rlmm.records.header import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from aiokafka.record.default_records import DefaultRecordBatch

PADDING_BYTES = 64
"""Bytes of ours that must lie behind a batch given to the compiled reader; it may touch 20."""
COMPILED_BYTES_MAX = 1024 * 1024
"""Largest batch, after decompression, that is given to the compiled reader."""
RECORD_HEADERS_MAX = COMPILED_BYTES_MAX // 2
"""Most headers of one record; a batch for the compiled reader cannot hold more."""

_STEP = 500
"""Records, or headers of one record, that our reader reads in one step: about a millisecond."""

_VARINT_BYTES_MAX = 10
_INT64_MASK = 2**64 - 1
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

# What a reader of untrusted bytes may raise; CorruptRecordException is a RuntimeError.
_READER_ERRORS = (ArithmeticError, LookupError, MemoryError, RuntimeError, ValueError)


@cache
def compiled_reader() -> type[DefaultRecordBatch]:
    """Import aiokafka with the first batch that needs its reader: a start needs none."""
    from aiokafka.record.default_records import DefaultRecordBatch  # noqa: PLC0415  # not for a start

    return DefaultRecordBatch


class Record(NamedTuple):
    """Holds one record; *timestamp_ms* is -1 when it has none, *value* None in a tombstone."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class BatchValues:
    """The record values of one batch with their offsets, rising; `damage` covers lost records."""

    __slots__ = ("damage", "offsets", "values")

    def __init__(
        self, offsets: list[int], values: list[bytes | None], damage: DamagedRecords | None = None
    ) -> None:
        self.offsets = offsets
        self.values = values
        self.damage = damage

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[int, bytes | None]]:
        return zip(self.offsets, self.values, strict=True)


class RecordSection(NamedTuple):
    """
    An uncompressed batch and the fields of its header that reading its records depends on. *batch*
    is the header with the codec bits cleared, followed by the records part and at least
    `PADDING_BYTES` bytes of the same buffer.
    """

    batch: memoryview
    base_offset: int
    last_offset: int
    record_count: int
    base_timestamp_ms: int
    append_timestamp_ms: int | None
    """The batch's own time, which stands for that of every record, when the broker stamped it."""


def compiled_values(batch: memoryview, base_offset: int, last_offset: int) -> BatchValues | None:
    """
    Read the values of *batch*, padded as in `RecordSection`, the fast way. None when anything is
    wrong with it, or it is too large: then `strict_values` has the answer.
    """
    if len(batch) > COMPILED_BYTES_MAX:
        return None
    offsets: list[int] = []
    values: list[bytes | None] = []
    previous = base_offset - 1
    try:
        for record in compiled_reader()(batch):
            offset = record.offset
            if not previous < offset <= last_offset:
                return None
            previous = offset
            offsets.append(offset)
            values.append(record.value)
    except _READER_ERRORS:
        return None
    return BatchValues(offsets, values)


def compiled_records(section: RecordSection) -> list[Record] | None:
    if len(section.batch) > COMPILED_BYTES_MAX:
        return None
    records: list[Record] = []
    previous = section.base_offset - 1
    try:
        for record in compiled_reader()(section.batch):
            if not previous < record.offset <= section.last_offset:
                return None
            previous, timestamp_ms = record.offset, record.timestamp
            if not _INT64_MIN <= timestamp_ms <= _INT64_MAX:  # the pure-Python form has no width
                return None
            headers = tuple(record.headers)
            records.append(Record(previous, timestamp_ms, record.key, record.value, headers))
    except _READER_ERRORS:
        return None
    return records


def strict_values(section: RecordSection) -> BatchValues:
    """Read every value that can be trusted, without the compiled reader."""
    return last_of(reading_values(section))


def reading_values(section: RecordSection) -> Generator[None, None, BatchValues]:
    """Read as `strict_values` does, and pause between steps of about a millisecond."""
    offsets: list[int] = []
    values: list[bytes | None] = []
    for record in _strict_steps(section, with_headers=False):
        if record is None:
            yield
        elif isinstance(record, DamagedRecords):
            return BatchValues(offsets, values, record)
        else:
            offsets.append(record.offset)
            values.append(record.value)
            if len(values) % _STEP == 0:
                yield
    return BatchValues(offsets, values)


class _BadRecord(Exception):
    """Ends the reading of a batch; it never leaves this module."""

    def __init__(self, reason: DamageReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def _bad(detail: str) -> _BadRecord:
    return _BadRecord(DamageReason.BAD_RECORD, detail)


def strict_records(
    section: RecordSection, *, with_headers: bool = True
) -> Iterator[Record | DamagedRecords]:
    """
    Yield every record that can be trusted, without the compiled reader. Slower, never beyond the
    end; damage comes last, at most once. Headers are checked in any case; without *with_headers*
    the records go without them.
    """
    for found in _strict_steps(section, with_headers=with_headers):
        if found is not None:
            yield found


def _strict_steps(
    section: RecordSection, *, with_headers: bool
) -> Iterator[Record | DamagedRecords | None]:
    """Yield what `strict_records` does, and `None` after each step through many headers."""
    data = bytes(section.batch[HEADER_BYTES:])
    position = 0
    records_read = 0
    next_offset = section.base_offset
    try:
        while records_read < section.record_count:
            record, stop, position = _read_record(data, position, section)
            if data[position] == 0:
                position += 1
            else:
                headers, position = yield from _headers(data, position, with_headers=with_headers)
                record = record._replace(headers=headers)
            if position != stop:
                raise _bad(f"ends at byte {position}, its length says {stop}")
            _check_offset(record.offset, next_offset, section.last_offset)
            yield record
            next_offset = record.offset + 1
            records_read += 1
        _check_consumed(position, len(data))
    except _BadRecord as bad:
        reason, detail = bad.reason, bad.detail
    except IndexError:
        reason, detail = DamageReason.BAD_RECORD, f"cut off at byte {len(data)}"
    else:
        return
    detail = f"record {records_read} of {section.record_count}: {detail}"
    yield DamagedRecords(reason, records_read, next_offset, section.last_offset + 1, detail)


def _check_offset(offset: int, next_offset: int, last_offset: int) -> None:
    if not next_offset <= offset <= last_offset:
        detail = f"offset {offset}, expected {next_offset} to {last_offset}"
        raise _BadRecord(DamageReason.RECORD_OUT_OF_ORDER, detail)


def _check_consumed(position: int, size: int) -> None:
    if position != size:
        detail = f"not the last, {size - position} bytes follow"
        raise _BadRecord(DamageReason.TRAILING_BYTES, detail)


def _read_record(data: bytes, position: int, section: RecordSection) -> tuple[Record, int, int]:
    """
    Read the record at *position* up to its headers; return where it ends and where those begin.
    IndexError when it reaches past the end.
    """
    length, position = _varint(data, position)
    stop = position + length
    timestamp_delta, position = _varint(data, position + 1)  # behind the attributes, all unused
    offset_delta, position = _varint(data, position)
    key, position = _nullable_bytes(data, position)
    value, position = _nullable_bytes(data, position)
    timestamp_ms = section.append_timestamp_ms
    if timestamp_ms is None:
        timestamp_ms = section.base_timestamp_ms + timestamp_delta
        if not _INT64_MIN <= timestamp_ms <= _INT64_MAX:
            timestamp_ms = ((timestamp_ms - _INT64_MIN) & _INT64_MASK) + _INT64_MIN  # as Kafka adds
    record = Record(section.base_offset + offset_delta, timestamp_ms, key, value)
    return record, stop, position


def _headers(
    data: bytes, position: int, *, with_headers: bool
) -> Generator[None, None, tuple[tuple[tuple[str, bytes | None], ...], int]]:
    header_count, position = _varint(data, position)
    if not 0 <= header_count <= min(RECORD_HEADERS_MAX, len(data) - position):
        raise _bad(f"{header_count} headers in {len(data) - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for number in range(1, header_count + 1):
        if number % _STEP == 0:
            yield
        key, position = _nullable_bytes(data, position)
        if key is None:
            raise _bad(f"header without a key at byte {position}")
        value, position = _nullable_bytes(data, position)
        if with_headers:
            headers.append((key.decode("utf-8", "replace"), value))
    return tuple(headers), position


def _nullable_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Any negative length is null, as in Kafka."""
    length, position = _varint(data, position)
    if length < 0:
        return None, position
    stop = position + length
    if stop > len(data):
        raise _bad(f"field of {length} bytes at byte {position} of {len(data)}")
    return data[position:stop], stop


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Decode a zigzag varint, cut to 64 bits; IndexError when it reaches past the end."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value = byte & 0x7F
    byte = data[position + 1]
    if byte < 0x80:
        value |= byte << 7
        return (value >> 1) ^ -(value & 1), position + 2
    value |= (byte & 0x7F) << 7
    for count in range(2, _VARINT_BYTES_MAX):
        byte = data[position + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            value &= _INT64_MASK
            return (value >> 1) ^ -(value & 1), position + count + 1
    raise _bad(f"varint of more than {_VARINT_BYTES_MAX} bytes at byte {position}")
