"""Walking record sets: headers, the next position, and the end."""

from __future__ import annotations

import pytest

from rlmm.records.batch import Batch, TimestampType, walk
from rlmm.records.compression import Compression
from rlmm.records.damage import DamagedBatch, DamageReason, PartialTail
from rlmm.records.record_set import RecordSet
from rlmm.records.records import PADDING_BYTES, Record
from rlmm.records.singles import single_values
from rlmm.records.writer import build_batch
from tests.support.records.batches import forge, record

GOLDEN = bytes.fromhex(
    "000000000000002a"  # base offset 42
    "0000004b"  # length 75
    "00000007"  # leader epoch 7
    "02"  # magic
    "b45ef91e"  # CRC-32C
    "0010"  # attributes: transactional
    "00000004"  # last offset delta 4
    "0000018bcfe56800"  # base timestamp 1700000000000
    "0000018bcfe56be8"  # max timestamp 1700000001000
    "0000000000000fa1"  # producer id 4001
    "0002"  # producer epoch 2
    "00000064"  # base sequence 100
    "00000002"  # two records
    "14"  # record of 10 bytes
    "00"
    "00"
    "00"  # attributes, timestamp delta 0, offset delta 0
    "02"
    "6b"  # key of 1 byte: k
    "06"
    "6f6e65"  # value of 3 bytes: one
    "00"  # no headers
    "1c"  # record of 14 bytes
    "00"
    "d00f"
    "06"  # attributes, timestamp delta 1000, offset delta 3
    "01"
    "01"  # no key, no value: a tombstone
    "04"  # two headers
    "02"
    "68"
    "02"
    "76"  # h: v
    "02"
    "67"
    "01"  # g: null
)


def test_walk_when_given_a_golden_batch_then_every_field_is_read() -> None:
    """Each field of header and records is read from its place in Kafka's format."""
    (batch,) = walk(GOLDEN)
    assert isinstance(batch, Batch)
    assert (batch.start, batch.stop) == (0, len(GOLDEN))
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (42, 46, 47)
    assert batch.leader_epoch == 7
    assert batch.compression is Compression.NONE
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert (batch.is_transactional, batch.is_control) == (True, False)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (
        1_700_000_000_000,
        1_700_000_001_000,
    )
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (4001, 2, 100)
    assert batch.record_count == 2
    assert list(batch.values()) == [(42, b"one"), (45, None)]
    assert list(batch.records()) == [
        Record(42, 1_700_000_000_000, b"k", b"one"),
        Record(45, 1_700_000_001_000, None, None, (("h", b"v"), ("g", None))),
    ]


def test_walk_when_nothing_is_there_then_ends() -> None:
    """An empty record set is a clean end."""
    assert list(walk(b"")) == []
    assert list(walk(GOLDEN, len(GOLDEN))) == []


def test_walk_when_started_behind_a_batch_then_begins_there() -> None:
    """A walk resumes at any batch's stop, with positions counted from the set's first byte."""
    data = GOLDEN + forge(record(0, b"x"), 1, base_offset=47)
    first, second = walk(data)
    assert isinstance(first, Batch)
    assert isinstance(second, Batch)
    (again,) = walk(data, first.stop)
    assert isinstance(again, Batch)
    assert (again.start, again.stop, again.base_offset) == (second.start, len(data), 47)


def test_walk_when_the_crc_is_not_asked_for_then_a_wrong_one_passes() -> None:
    """A walk without the CRC check passes a batch with a wrong CRC."""
    data = forge(record(0, b"x"), 1, crc=0)
    assert [type(found) for found in walk(data)] == [DamagedBatch]
    assert [type(found) for found in walk(data, verify_crc=False)] == [Batch]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param(0x00, (Compression.NONE, 0, False, False), id="plain"),
        pytest.param(0x01, (Compression.GZIP, 0, False, False), id="gzip"),
        pytest.param(0x02, (Compression.SNAPPY, 0, False, False), id="snappy"),
        pytest.param(0x03, (Compression.LZ4, 0, False, False), id="lz4"),
        pytest.param(0x04, (Compression.ZSTD, 0, False, False), id="zstd"),
        pytest.param(0x05, (None, 0, False, False), id="unknown-codec"),
        pytest.param(0x08, (Compression.NONE, 1, False, False), id="log-append-time"),
        pytest.param(0x10, (Compression.NONE, 0, True, False), id="transactional"),
        pytest.param(0x30, (Compression.NONE, 0, True, True), id="transaction-marker"),
        pytest.param(0x40, (Compression.NONE, 0, False, False), id="delete-horizon"),
    ],
)
def test_batch_when_attribute_bits_are_set_then_each_says_its_own(
    attributes: int, expected: tuple[Compression | None, int, bool, bool]
) -> None:
    """Codec, timestamp type, transaction and control come from their own bits."""
    (batch,) = walk(forge(b"", 0, attributes=attributes))
    assert isinstance(batch, Batch)
    assert expected == (
        batch.compression,
        batch.timestamp_type,
        batch.is_transactional,
        batch.is_control,
    )


def test_batch_when_compacted_then_holes_stay_between_its_offsets() -> None:
    """Compaction takes records away and leaves the batch its offsets."""
    section = record(1, b"a") + record(4, b"b")
    (batch,) = walk(forge(section, 2, base_offset=100, last_offset_delta=9))
    assert isinstance(batch, Batch)
    values = batch.values()
    assert (values.offsets, values.values, values.damage) == ([101, 104], [b"a", b"b"], None)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (100, 109, 110)


def test_batch_when_empty_then_only_its_offsets_are_left() -> None:
    """An empty batch moves the position and has no record, whatever its codec."""
    for attributes in (0x00, 0x01, 0x02, 0x03, 0x04):
        (batch,) = walk(forge(b"", 0, base_offset=5, last_offset_delta=3, attributes=attributes))
        assert isinstance(batch, Batch)
        values = batch.values()
        assert (list(values), len(values), values.damage) == ([], 0, None)
        assert list(batch.records()) == []
        assert batch.next_offset == 9


@pytest.mark.parametrize("behind", [0, 1, PADDING_BYTES - 1, PADDING_BYTES, 500])
def test_batch_when_near_the_end_of_the_set_then_owned_bytes_lie_behind_it(behind: int) -> None:
    """The compiled reader gets only slices with padding of ours behind them."""
    data = GOLDEN + bytes(behind)
    batch = next(iter(walk(data)))
    assert isinstance(batch, Batch)
    readable = batch._readable(0)
    assert isinstance(readable, memoryview)
    assert readable == GOLDEN
    assert isinstance(readable.obj, bytes)
    assert len(readable.obj) >= len(readable) + PADDING_BYTES


def test_batch_when_printed_then_says_where_it_is() -> None:
    """A batch in a message can be found again."""
    (batch,) = walk(GOLDEN)
    assert repr(batch) == f"Batch(offsets 42-46, bytes 0-{len(GOLDEN)})"


@pytest.mark.parametrize(
    ("lie", "reason", "next_offset"),
    [
        ({"length": 0}, DamageReason.LENGTH_TOO_SMALL, None),
        ({"length": 48}, DamageReason.LENGTH_TOO_SMALL, None),
        ({"length": -1}, DamageReason.LENGTH_TOO_SMALL, None),
        ({"length": 2**31 - 1}, DamageReason.LENGTH_TOO_LARGE, None),
        ({"magic": 0}, DamageReason.OLD_FORMAT, 8),
        ({"magic": 1}, DamageReason.OLD_FORMAT, 8),
        ({"magic": 3}, DamageReason.UNSUPPORTED_MAGIC, None),
        ({"magic": -1}, DamageReason.UNSUPPORTED_MAGIC, None),
        ({"crc": 1}, DamageReason.CRC_MISMATCH, 8),
        ({"last_offset_delta": -1}, DamageReason.BAD_OFFSETS, None),
        ({"base_offset": -1}, DamageReason.BAD_OFFSETS, None),
        ({"base_offset": 2**63 - 1}, DamageReason.BAD_OFFSETS, None),
        ({"base_offset": 2**63 - 5, "last_offset_delta": 9}, DamageReason.BAD_OFFSETS, None),
        ({"record_count": -1, "last_offset_delta": 0}, DamageReason.BAD_RECORD_COUNT, 8),
    ],
    ids=str,
)
def test_walk_when_a_header_lies_then_the_batch_is_damaged_and_what_follows_is_found(
    lie: dict[str, int], reason: DamageReason, next_offset: int | None
) -> None:
    """A plausible length is followed, an implausible one ends the walk; the reason is named."""
    arguments = {"record_count": 1, "base_offset": 7, **lie}
    damaged = forge(record(0, b"x"), **arguments)
    good = forge(record(0, b"y"), 1, base_offset=8)
    found = list(walk(damaged + good))
    first = found[0]
    assert isinstance(first, DamagedBatch)
    assert (first.reason, first.start) == (reason, 0)
    assert first.base_offset == arguments["base_offset"]
    assert first.next_offset == next_offset
    assert first.detail
    if "length" not in lie:
        assert first.stop == len(damaged)
        (second,) = found[1:]
        assert isinstance(second, Batch)
        assert list(second.values()) == [(8, b"y")]
    else:
        assert first.stop is None
        assert found[1:] == []


def test_walk_when_messages_are_of_the_old_format_then_each_is_named_on_its_own() -> None:
    """Messages of 26 bytes, smaller than a header of today, are stepped over one by one."""
    old = b"".join(
        n.to_bytes(8, "big") + (14).to_bytes(4, "big") + bytes(4) + b"\x01" + bytes(9)
        for n in range(3)
    )
    found = list(walk(old))
    assert [type(each) for each in found] == [DamagedBatch] * 3
    assert [(f.reason, f.next_offset) for f in found if isinstance(f, DamagedBatch)] == [
        (DamageReason.OLD_FORMAT, n) for n in (1, 2, 3)
    ]
    assert list(walk(old[:20])) == [PartialTail(0, 20, is_zeros=False)]


def test_walk_when_a_cut_batch_cannot_have_been_sound_then_it_is_damaged() -> None:
    """A cut tail with an impossible header is damage, not an incomplete batch."""
    for lie, reason in (
        ({"last_offset_delta": -1}, DamageReason.BAD_OFFSETS),
        ({"magic": 9}, DamageReason.UNSUPPORTED_MAGIC),
    ):
        cut = forge(record(0, b"x"), 1, **lie)[:-1]
        (found,) = walk(cut)
        assert isinstance(found, DamagedBatch)
        assert (found.reason, found.stop) == (reason, None)


def test_walk_when_a_batch_is_larger_than_believed_then_it_is_damaged() -> None:
    """The largest believable batch is the caller's to choose."""
    data = forge(record(0, bytes(100)), 1)
    (whole,) = walk(data, batch_bytes_max=len(data))
    assert isinstance(whole, Batch)
    (found,) = walk(data, batch_bytes_max=len(data) - 1)
    assert isinstance(found, DamagedBatch)
    assert found.reason is DamageReason.LENGTH_TOO_LARGE


def test_record_set_when_the_log_does_not_know_its_end_then_says_none() -> None:
    """The position behind a set is optional: a file holds batches, no high watermark."""
    assert RecordSet(3, GOLDEN).next_offset is None
    assert RecordSet(3, GOLDEN, 47) == RecordSet(partition=3, data=GOLDEN, next_offset=47)


VALUES = [b"", b"x", bytes(57), bytes(58), bytes(300), bytes(range(256)) * 30]
FIRST = 40


def single(offset: int, value: bytes | None, key: bytes | None = None) -> bytes:
    return build_batch([Record(offset, 1_700_000_000_000, key, value)], offset)


def run_of(values: list[bytes]) -> bytes:
    return b"".join(single(offset, value) for offset, value in enumerate(values, FIRST))


def test_run_of_singles_gives_what_the_walk_gives() -> None:
    """Values of every length of varint are those that the batches themselves read."""
    data = run_of(VALUES[1:])
    walked = [
        value for batch in walk(data) if isinstance(batch, Batch) for _, value in batch.values()
    ]
    last = len(run_of(VALUES[1:-1]))
    assert single_values(data, 0, FIRST, 100) == (walked, last, len(data))


def test_run_when_enough_is_read_ends_before_the_next_batch() -> None:
    """The run returns at most the wanted values and the next byte."""
    data = run_of(VALUES[1:4])
    first, both = len(run_of(VALUES[1:2])), len(run_of(VALUES[1:3]))
    assert single_values(data, 0, FIRST, 2) == (VALUES[1:3], first, both)
    assert single_values(data, 0, FIRST, 0) == ([], 0, 0)


@pytest.mark.parametrize(
    "follower",
    [
        pytest.param(single(FIRST + 1, None), id="tombstone"),
        pytest.param(single(FIRST + 1, b"v", key=b"k"), id="key"),
        pytest.param(
            build_batch([Record(FIRST + 1, 1, None, b"v", (("h", b""),))], FIRST + 1), id="header"
        ),
        pytest.param(single(FIRST + 2, b"v"), id="gap"),
        pytest.param(single(FIRST, b"v"), id="the same offset"),
        pytest.param(single(FIRST + 1, bytes(10_000)), id="length of three bytes"),
        pytest.param(
            build_batch(
                [Record(FIRST + 1, 1, None, b"v")], FIRST + 1, compression=Compression.GZIP
            ),
            id="compressed",
        ),
        pytest.param(
            build_batch([Record(FIRST + 1 + at, 1, None, b"v") for at in range(2)], FIRST + 1),
            id="two records",
        ),
        pytest.param(single(FIRST + 1, b"value")[:-1], id="cut off"),
        pytest.param(single(FIRST + 1, b"value")[:-2] + b"E\x00", id="wrong CRC"),
        pytest.param(b"\xff" * 100, id="no batch"),
    ],
)
def test_run_ends_in_front_of_whatever_has_another_form(follower: bytes) -> None:
    """The fast reader stops before a batch of another form or a damaged one."""
    data = single(FIRST, b"first") + follower
    assert single_values(data, 0, FIRST, 100) == ([b"first"], 0, len(single(FIRST, b"first")))
    assert single_values(follower, 0, FIRST + 1, 100) == ([], 0, 0)
