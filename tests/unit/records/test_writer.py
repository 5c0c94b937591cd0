"""Writing batches: impossible values are refused, and all others are read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.record import default_records

from rlmm.errors import InvalidArgument
from rlmm.records import writer
from rlmm.records.batch import Batch, TimestampType, walk
from rlmm.records.compression import Compression
from rlmm.records.control import ControlType, control_key, control_type
from rlmm.records.header import OFFSET_MAX
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch, build_control_batch, records_of

if TYPE_CHECKING:
    from collections.abc import Callable

TRANSACTIONAL = Producer(1, 0, 0, is_transactional=True)
PURE_PYTHON = vars(default_records)["_DefaultRecordBatchBuilderPy"]


def batch_of(data: bytes) -> Batch:
    (batch,) = walk(data)
    assert isinstance(batch, Batch)
    return batch


def test_records_of_when_given_values_then_offsets_rise_by_one() -> None:
    """The usual records of a metadata log: a value, no key, no headers."""
    assert records_of([b"a", None], 7, 5) == [Record(7, 5, None, b"a"), Record(8, 5, None, None)]


def test_build_batch_when_times_begin_without_one_then_each_record_keeps_its_own() -> None:
    """A first record without a time does not shift the times of the others."""
    records = [Record(0, -1, None, b"a"), Record(1, 500, None, b"b"), Record(2, 100, None, b"c")]
    batch = batch_of(build_batch(records, 0))
    assert list(batch.records()) == records
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (-1, 500)


def test_build_batch_when_the_broker_stamps_then_its_time_is_everyones() -> None:
    """Log append time is in the header once."""
    data = build_batch(
        records_of([b"a", b"b"], 0, 100),
        0,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_timestamp_ms=999,
    )
    batch = batch_of(data)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [r.timestamp_ms for r in batch.records() if isinstance(r, Record)] == [999, 999]


def test_build_batch_when_compacted_then_offsets_are_kept() -> None:
    """Holes at the begin, in the middle and at the end of a batch."""
    records = [Record(12, 0, None, b"a"), Record(15, 0, None, b"b")]
    batch = batch_of(build_batch(records, 10, last_offset=19))
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (10, 19, 2)
    assert list(batch.values()) == [(12, b"a"), (15, b"b")]


def test_build_batch_when_empty_then_has_a_header_only() -> None:
    """A batch without records is only a header, as compaction leaves it."""
    producer = Producer(5, 1, 3)
    data = build_batch(
        [], 10, last_offset=19, max_timestamp_ms=77, compression=Compression.ZSTD, producer=producer
    )
    batch = batch_of(data)
    assert len(data) == 61
    assert (batch.base_offset, batch.next_offset, batch.record_count) == (10, 20, 0)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (77, 77)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 1, 3)
    assert batch.compression is Compression.NONE


def test_build_batch_when_base_offset_and_epoch_differ_then_the_crc_does_not() -> None:
    """The CRC does not cover base offset and epoch, which the broker sets."""
    records = records_of([b"a"], 0)
    moved = [Record(9, -1, None, b"a")]
    first, second = build_batch(records, 0), build_batch(moved, 9, leader_epoch=6)
    assert first[16:] == second[16:]
    assert batch_of(second).leader_epoch == 6


def test_build_batch_without_the_extension_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiokafka's pure-Python builder makes the batch that its compiled one makes."""
    records = [
        Record(3, -1, b"k", None, (("h", b"v"), ("g", None))),
        Record(9, 2**60, None, bytes(300)),
    ]
    expected = build_batch(records, 2)
    monkeypatch.setattr(writer, "compiled_builder", lambda: PURE_PYTHON)
    assert build_batch(records, 2) == expected


@pytest.mark.parametrize(
    ("records", "arguments"),
    [
        pytest.param([], {}, id="empty-without-last-offset"),
        pytest.param([Record(1, 0, None, b"")], {"base_offset": 2}, id="before-base"),
        pytest.param([Record(0, 0, None, b""), Record(0, 0, None, b"")], {}, id="offset-repeated"),
        pytest.param([Record(5, 0, None, b"")], {"last_offset": 4}, id="behind-last"),
        pytest.param([], {"base_offset": -1, "last_offset": 0}, id="base-negative"),
        pytest.param([], {"base_offset": 1, "last_offset": 0}, id="last-before-base"),
        pytest.param([], {"last_offset": 2**31}, id="delta-too-large"),
        pytest.param(
            [], {"base_offset": OFFSET_MAX + 1, "last_offset": OFFSET_MAX + 1}, id="no-next-offset"
        ),
        pytest.param([Record(0, -2, None, b"")], {}, id="time-negative"),
        pytest.param([Record(0, 2**63, None, b"")], {}, id="time-too-large"),
        pytest.param(
            [Record(0, -1, None, b""), Record(1, 2**63 - 1, None, b"")],
            {},
            id="times-too-far-apart",
        ),
        pytest.param([Record(0, 0, None, b"")], {"max_timestamp_ms": 9}, id="time-not-the-callers"),
        pytest.param([Record(0, 0, None, b"")], {"leader_epoch": -2}, id="epoch-negative"),
        pytest.param([Record(0, 0, None, b"")], {"leader_epoch": 2**31}, id="epoch-too-large"),
        pytest.param([Record(0, 0, None, "text")], {}, id="value-no-bytes"),  # type: ignore[arg-type]
        pytest.param([Record(0, 0, 5, b"")], {}, id="key-no-bytes"),  # type: ignore[arg-type]
        pytest.param(
            [Record(0, 0, None, b"", ((b"h", b""),))],  # type: ignore[arg-type]
            {},
            id="header-key-no-string",
        ),
        pytest.param([Record(0, 0, None, b"", (("\ud800", b""),))], {}, id="header-key-surrogate"),
        pytest.param(
            [Record(0, 0, None, b"", (("h", "v"),))],  # type: ignore[arg-type]
            {},
            id="header-value-no-bytes",
        ),
    ],
)
def test_build_batch_when_an_argument_cannot_be_meant_then_refuses_it(
    records: list[Record], arguments: dict[str, Any]
) -> None:
    """The writer refuses arguments that would make a damaged batch."""
    arguments = {"base_offset": 0, **arguments}
    with pytest.raises(InvalidArgument):
        build_batch(records, **arguments)


def test_build_batch_beyond_a_readers_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds for one record and for many."""
    monkeypatch.setattr(writer, "INFLATED_BYTES_MAX", 200)
    assert build_batch(records_of([bytes(150)], 0), 0)
    for values in ([bytes(300)], [bytes(80)] * 4):
        with pytest.raises(InvalidArgument, match="passes 200 bytes"):
            build_batch(records_of(values, 0), 0)


MARKER = {"kind": ControlType.COMMIT, "base_offset": 0, "producer": TRANSACTIONAL}


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (Producer, {"id": -2}),
        (Producer, {"id": 2**63}),
        (Producer, {"id": 1, "epoch": 2**15}),
        (Producer, {"id": 1, "epoch": 0, "base_sequence": 2**31}),
        (Producer, {"is_transactional": True}),
        (build_control_batch, MARKER | {"timestamp_ms": 0, "kind": ControlType.OTHER}),
        (build_control_batch, MARKER | {"timestamp_ms": 0, "producer": Producer(1, 0, 0)}),
        (build_control_batch, MARKER | {"timestamp_ms": 0, "base_offset": -1}),
        (build_control_batch, MARKER | {"timestamp_ms": -2}),
        (build_control_batch, MARKER | {"timestamp_ms": 0, "leader_epoch": -2}),
        (build_control_batch, MARKER | {"timestamp_ms": 0, "coordinator_epoch": -2}),
    ],
    ids=lambda value: next(reversed(value)) if isinstance(value, dict) else value.__name__,
)
def test_producer_or_marker_when_it_cannot_be_meant_then_is_refused(
    make: Callable[..., object], arguments: dict[str, Any]
) -> None:
    """A producer's numbers fit the header, and a marker ends a transaction of a producer."""
    with pytest.raises(InvalidArgument):
        make(**arguments)


ABORT_MARKER = bytes.fromhex(
    "00000000000000fa" "00000042" "00000004" "02" "778202ea" "0030" "00000000"
    "0000018bcfe68140" "0000018bcfe68140" "0000000000000fa1" "0001" "ffffffff" "00000001"
    "20" "00" "00" "00"  # record of 16 bytes: attributes, two deltas
    "08" "0000" "0000"  # key of 4 bytes: version 0, type 0
    "0c" "0000" "00000007"  # value of 6 bytes: version 0, coordinator epoch 7
    "00"
)  # fmt: skip
"""The abort marker of producer 4001, as a broker wrote it at offset 250."""


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(control_key(ControlType.ABORT), ControlType.ABORT, id="abort-made"),
        pytest.param(control_key(ControlType.COMMIT), ControlType.COMMIT, id="commit-made"),
        pytest.param(b"\x00\x00\x00\x00", ControlType.ABORT, id="abort"),
        pytest.param(b"\x00\x00\x00\x01", ControlType.COMMIT, id="commit"),
        pytest.param(b"\x00\x07\x00\x01", ControlType.COMMIT, id="later-version"),
        pytest.param(b"\x00\x00\x00\x01\x09", ControlType.COMMIT, id="longer-key"),
        pytest.param(b"\x00\x00\x00\x02", ControlType.OTHER, id="leader-change"),
        pytest.param(b"\x00\x00\xff\xff", ControlType.OTHER, id="unknown"),
        pytest.param(b"\xff\xff\x00\x01", ControlType.OTHER, id="negative-version"),
        pytest.param(b"\x00\x00\x01", ControlType.OTHER, id="short"),
        pytest.param(None, ControlType.OTHER, id="null"),
    ],
)
def test_control_type_names_the_kind_of_a_key(key: bytes | None, expected: ControlType) -> None:
    """The kind is the second number of the key, and an unreadable key is another kind."""
    assert control_type(key) is expected


def test_marker_is_the_brokers_byte_for_byte_and_read_as_abort() -> None:
    """A broker's marker equals ours, and is read from its bytes to its kind."""
    producer = Producer(4001, 1, is_transactional=True)
    assert (
        build_control_batch(
            ControlType.ABORT,
            250,
            producer=producer,
            timestamp_ms=0x18BCFE68140,
            leader_epoch=4,
            coordinator_epoch=7,
        )
        == ABORT_MARKER
    )
    (batch,) = walk(ABORT_MARKER)
    assert isinstance(batch, Batch)
    assert batch.is_control
    assert batch.is_transactional
    (found,) = batch.records()
    assert isinstance(found, Record)
    assert control_type(found.key) is ControlType.ABORT
