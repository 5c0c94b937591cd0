"""Reading odd input: as tolerant as Kafka's decoder, and a reason for everything else."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.metadata.decoding import decode
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.record_layout import VALUE_BYTES_MAX
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import Undecodable, UndecodableReason
from tests.support.records import golden
from tests.support.records.value_bytes import (
    epoch,
    epochs,
    partition_delete_value,
    segment_value,
    snapshot_value,
    update_value,
)

if TYPE_CHECKING:
    from tests.support.records.golden import Golden

R = UndecodableReason

ORDERS = TopicIdPartition(Uuid.of(0, 0xCA), "orders", 7)
ID = SegmentId(ORDERS, Uuid.of(0, 0xFE))
SEGMENT = SegmentMetadata(
    ID, 0, 99, 1, 100, 123, ((0, 0),), 4096, None, SegmentState.COPY_SEGMENT_STARTED
)
EMPTY_INDEX = replace(SEGMENT, txn_index_empty=True)
UPDATE = SegmentUpdate(ID, 1, 123, None, SegmentState.COPY_SEGMENT_FINISHED)
DELETE = PartitionDelete(ORDERS, 1, 123, PartitionDeleteState.DELETE_PARTITION_MARKED)
SNAPSHOT = SegmentSnapshot(
    ID.uuid, 0, 99, 1, 100, 123, ((0, 0),), 4096, None, SegmentState.COPY_SEGMENT_FINISHED
)

UNKNOWN_TAG = b"\x01\x05\x03abc"
"""One tag, number 5, three bytes."""
TWO_UNKNOWN_TAGS = b"\x02\x09\x00\x05\x03abc"
"""Two tags in falling order, one of them empty."""
KIP_1266_TAG = b"\x01\x01\x04\x00\x00\x00\x07"
"""Tag 1, four bytes: the broker leader epoch that KIP-1266 proposes."""
MINUS_ONE = b"\xff\xff\xff\xff\x0f"
HUGE = b"\xff\xff\xff\xff\x07"
"""The varint 2,147,483,647: as a count or length one less."""
OVERLONG = b"\xff\xff\xff\xff\xff\x01"


def name_of(raw: bytes) -> bytes:
    size = len(raw) + 1
    return (bytes((size,)) if size < 128 else bytes((size & 0x7F | 0x80, size >> 7))) + raw


def renamed(name: str) -> SegmentMetadata:
    partition = replace(ORDERS, topic=name)
    return replace(SEGMENT, id=replace(ID, partition=partition))


ACCEPTED = {
    "sound-segment": (segment_value(), SEGMENT),
    "sound-update": (update_value(), UPDATE),
    "sound-partition-delete": (partition_delete_value(), DELETE),
    "sound-snapshot": (snapshot_value(), SNAPSHOT),
    "frame-version-not-minimal": (segment_value(head=b"\x81\x00\x00\x00"), SEGMENT),
    "frame-version-in-five-bytes": (segment_value(head=b"\x81\x80\x80\x80\x00\x00\x00"), SEGMENT),
    "api-key-not-minimal": (update_value(head=b"\x01\x81\x00\x00"), UPDATE),
    "record-version-not-minimal": (update_value(head=b"\x01\x01\x80\x00"), UPDATE),
    "frame-version-0x80000001": (segment_value(head=b"\x81\x80\x80\x80\x08\x00\x00"), SEGMENT),
    "api-key-0x80000001": (update_value(head=b"\x01\x81\x80\x80\x80\x08\x00"), UPDATE),
    "record-version-0xffff0000": (segment_value(head=b"\x01\x00\x80\x80\xfc\xff\x0f"), SEGMENT),
    "frame-version-with-bits-over-32": (
        segment_value(head=b"\x81\x80\x80\x80\x70\x00\x00"),
        SEGMENT,
    ),
    "empty-name": (segment_value(name=b"\x01"), renamed("")),
    "name-length-not-minimal": (segment_value(name=b"\x87\x00orders"), SEGMENT),
    "malformed-name": (segment_value(name=name_of(b"or\xffers")), renamed("or\ufffders")),
    "surrogate-in-name": (segment_value(name=name_of(b"\xed\xa0\x80")), renamed("\ufffd")),
    "update-to-started": (
        update_value(state=b"\x00"),
        replace(UPDATE, state=SegmentState.COPY_SEGMENT_STARTED),
    ),
    "first-record-not-started": (
        segment_value(state=b"\x02"),
        replace(SEGMENT, state=SegmentState.DELETE_SEGMENT_STARTED),
    ),
    "same-epoch-twice": (
        segment_value(epochs=epochs(epoch(3, 1), epoch(0, 0), epoch(3, 9), epoch(0, 5))),
        replace(SEGMENT, epochs=((0, 5), (3, 9))),
    ),
    "epochs-falling": (
        segment_value(epochs=epochs(epoch(2, 0), epoch(1, 50), epoch(-1, 70))),
        replace(SEGMENT, epochs=((-1, 70), (1, 50), (2, 0))),
    ),
    "epoch-count-not-minimal": (segment_value(epochs=b"\x82\x00" + epoch(0, 0)), SEGMENT),
    "custom-metadata-empty": (segment_value(custom=b"\x01"), replace(SEGMENT, custom_metadata=b"")),
    "custom-metadata-null-in-two-bytes": (segment_value(custom=b"\x80\x00"), SEGMENT),
    "custom-metadata-length-negative": (segment_value(custom=MINUS_ONE), SEGMENT),
    "unknown-tag-in-segment": (segment_value(tags=UNKNOWN_TAG), SEGMENT),
    "unknown-tag-in-update": (update_value(tags=UNKNOWN_TAG), UPDATE),
    "unknown-tag-in-partition-delete": (partition_delete_value(tags=UNKNOWN_TAG), DELETE),
    "unknown-tag-in-snapshot": (snapshot_value(tags=UNKNOWN_TAG), SNAPSHOT),
    "unknown-tag-in-partition": (segment_value(partition_tags=UNKNOWN_TAG), SEGMENT),
    "unknown-tag-in-partition-of-a-delete": (
        partition_delete_value(partition_tags=UNKNOWN_TAG),
        DELETE,
    ),
    "unknown-tag-in-segment-id": (segment_value(id_tags=UNKNOWN_TAG), SEGMENT),
    "unknown-tag-in-segment-id-of-an-update": (update_value(id_tags=UNKNOWN_TAG), UPDATE),
    "unknown-tag-in-epoch": (
        segment_value(epochs=epochs(epoch(0, 0, UNKNOWN_TAG), epoch(1, 50, UNKNOWN_TAG))),
        replace(SEGMENT, epochs=((0, 0), (1, 50))),
    ),
    "unknown-tags-everywhere": (
        segment_value(
            partition_tags=TWO_UNKNOWN_TAGS,
            id_tags=TWO_UNKNOWN_TAGS,
            epochs=epochs(epoch(0, 0, TWO_UNKNOWN_TAGS)),
            tags=TWO_UNKNOWN_TAGS,
        ),
        SEGMENT,
    ),
    "tag-0-where-none-is-known": (
        update_value(
            partition_tags=b"\x01\x00\x01\x01", id_tags=b"\x01\x00\x02zz", tags=b"\x01\x00\x00"
        ),
        UPDATE,
    ),
    "tag-count-negative": (segment_value(tags=MINUS_ONE), SEGMENT),
    "tag-count-negative-in-partition": (segment_value(partition_tags=MINUS_ONE), SEGMENT),
    "tag-count-negative-in-epoch": (segment_value(epochs=epochs(epoch(0, 0, MINUS_ONE))), SEGMENT),
    "tag-0-false": (segment_value(tags=b"\x01\x00\x01\x00"), SEGMENT),
    "tag-0-true": (segment_value(tags=b"\x01\x00\x01\x01"), EMPTY_INDEX),
    "tag-0-ff-is-true": (segment_value(tags=b"\x01\x00\x01\xff"), EMPTY_INDEX),
    "tag-0-true-in-snapshot": (
        snapshot_value(tags=b"\x01\x00\x01\x80"),
        replace(SNAPSHOT, txn_index_empty=True),
    ),
    "tag-0-of-size-0": (segment_value(tags=b"\x01\x00\x00\x01"), EMPTY_INDEX),
    "tag-0-of-size-5-and-one-byte": (segment_value(tags=b"\x01\x00\x05\x01"), EMPTY_INDEX),
    "tag-0-of-negative-size": (segment_value(tags=b"\x01\x00" + MINUS_ONE + b"\x01"), EMPTY_INDEX),
    "tag-0-twice-last-is-false": (segment_value(tags=b"\x02\x00\x01\x01\x00\x01\x00"), SEGMENT),
    "tag-0-twice-last-is-true": (segment_value(tags=b"\x02\x00\x01\x00\x00\x01\x01"), EMPTY_INDEX),
    "tag-0-behind-an-unknown-one": (segment_value(tags=b"\x02\x05\x01x\x00\x01\x01"), EMPTY_INDEX),
    "kip-1266-tag-in-version-0": (segment_value(tags=KIP_1266_TAG), SEGMENT),
    "kip-1266-tags-of-an-update-in-version-0": (
        update_value(tags=b"\x02\x00\x04\x00\x00\x00\x07\x01\x08" + bytes(8)),
        UPDATE,
    ),
    "snapshot-with-impossible-offsets": (
        snapshot_value(start=-5, end=-9),
        replace(SNAPSHOT, start_offset=-5, last_offset=-9),
    ),
}

REFUSED = {
    "null-value": (None, R.TOMBSTONE),
    "empty-value": (b"", R.EMPTY_VALUE),
    "frame-version-0": (segment_value(head=b"\x00\x00\x00"), R.UNKNOWN_FRAME_VERSION),
    "frame-version-2": (segment_value(head=b"\x02\x00\x00"), R.UNKNOWN_FRAME_VERSION),
    "frame-version-0xffffffff": (
        segment_value(head=MINUS_ONE + b"\x00\x00"),
        R.UNKNOWN_FRAME_VERSION,
    ),
    "frame-version-32768": (segment_value(head=b"\x80\x80\x02\x00\x00"), R.UNKNOWN_FRAME_VERSION),
    "frame-version-65537": (segment_value(head=b"\x81\x80\x04\x00\x00"), R.UNKNOWN_FRAME_VERSION),
    "frame-version-of-six-bytes": (segment_value(head=OVERLONG + b"\x00\x00"), R.BAD_VARINT),
    "api-key-4": (segment_value(head=b"\x01\x04\x00"), R.UNKNOWN_API_KEY),
    "api-key-negative": (segment_value(head=b"\x01" + MINUS_ONE + b"\x00"), R.UNKNOWN_API_KEY),
    "api-key-65536": (segment_value(head=b"\x01\x80\x80\x04\x00"), R.UNKNOWN_API_KEY),
    "api-key-4-version-1": (segment_value(head=b"\x01\x04\x01"), R.UNKNOWN_API_KEY),
    "record-version-2": (segment_value(head=b"\x01\x00\x02"), R.UNKNOWN_RECORD_VERSION),
    "record-version-negative": (
        update_value(head=b"\x01\x01" + MINUS_ONE),
        R.UNKNOWN_RECORD_VERSION,
    ),
    "record-version-65536": (update_value(head=b"\x01\x01\x80\x80\x04"), R.UNKNOWN_RECORD_VERSION),
    "segment-version-1": (
        segment_value(head=b"\x01\x00\x01", tags=KIP_1266_TAG),
        R.RECORD_VERSION_1,
    ),
    "update-version-1": (update_value(head=b"\x01\x01\x01"), R.RECORD_VERSION_1),
    "partition-delete-version-1": (
        partition_delete_value(head=b"\x01\x02\x01"),
        R.RECORD_VERSION_1,
    ),
    "snapshot-version-1": (snapshot_value(head=b"\x01\x03\x01"), R.UNKNOWN_RECORD_VERSION),
    "nothing-but-a-head": (b"\x01\x00\x00", R.TRUNCATED),
    "one-byte-short": (segment_value()[:-1], R.TRUNCATED),
    "one-byte-after-segment": (segment_value() + b"\x00", R.TRAILING_BYTES),
    "one-byte-after-update": (update_value() + b"\x00", R.TRAILING_BYTES),
    "one-byte-after-partition-delete": (partition_delete_value() + b"\x00", R.TRAILING_BYTES),
    "one-byte-after-snapshot": (snapshot_value() + b"\x00", R.TRAILING_BYTES),
    "null-name": (segment_value(name=b"\x00"), R.NULL_NAME),
    "null-name-in-partition-delete": (partition_delete_value(name=b"\x00"), R.NULL_NAME),
    "name-length-negative": (segment_value(name=MINUS_ONE), R.NULL_NAME),
    "name-of-32768-bytes": (segment_value(name=b"\x81\x80\x02" + 32_768 * b"n"), R.NAME_TOO_LONG),
    "name-length-2147483646": (segment_value(name=HUGE), R.NAME_TOO_LONG),
    "name-longer-than-the-value": (b"\x01\x00\x00\x7forders", R.TRUNCATED),
    "name-length-of-six-bytes": (segment_value(name=OVERLONG), R.BAD_VARINT),
    "segment-state-9": (segment_value(state=b"\x09"), R.UNKNOWN_STATE),
    "segment-state-4": (segment_value(state=b"\x04"), R.UNKNOWN_STATE),
    "segment-state-minus-1": (segment_value(state=b"\xff"), R.UNKNOWN_STATE),
    "update-state-9": (update_value(state=b"\x09"), R.UNKNOWN_STATE),
    "update-state-minus-1": (update_value(state=b"\xff"), R.UNKNOWN_STATE),
    "partition-delete-state-3": (partition_delete_value(state=b"\x03"), R.UNKNOWN_STATE),
    "partition-delete-state-minus-1": (partition_delete_value(state=b"\xff"), R.UNKNOWN_STATE),
    "snapshot-state-9": (snapshot_value(state=b"\x09"), R.UNKNOWN_STATE),
    "epochs-null": (segment_value(epochs=b"\x00"), R.NULL_EPOCHS),
    "epochs-null-in-snapshot": (snapshot_value(epochs=b"\x00"), R.NULL_EPOCHS),
    "epoch-count-negative": (segment_value(epochs=MINUS_ONE), R.NULL_EPOCHS),
    "epochs-empty": (segment_value(epochs=b"\x01"), R.NO_EPOCHS),
    "epochs-empty-in-snapshot": (snapshot_value(epochs=b"\x01"), R.NO_EPOCHS),
    "epoch-count-2147483646": (segment_value(epochs=HUGE + epoch(0, 0)), R.TRUNCATED),
    "epoch-count-2147483647": (
        segment_value(epochs=b"\x80\x80\x80\x80\x08" + epoch(0, 0)),
        R.TRUNCATED,
    ),
    "epoch-count-one-too-many": (segment_value(epochs=b"\x03" + epoch(0, 0)), R.TRUNCATED),
    "epoch-count-of-six-bytes": (segment_value(epochs=OVERLONG), R.BAD_VARINT),
    "start-offset-negative": (segment_value(start=-1), R.NEGATIVE_START_OFFSET),
    "end-before-start": (segment_value(start=10, end=9), R.END_BEFORE_START),
    "custom-metadata-too-long": (segment_value(custom=b"\x7fabc"), R.TRUNCATED),
    "custom-metadata-length-2147483646": (update_value(custom=HUGE), R.TRUNCATED),
    "unknown-tag-longer-than-the-rest": (segment_value(tags=b"\x01\x05\x09abc"), R.TRUNCATED),
    "unknown-tag-longer-than-the-rest-in-partition": (
        partition_delete_value(partition_tags=b"\x01\x05\x7f"),
        R.TRUNCATED,
    ),
    "unknown-tag-of-negative-size": (update_value(tags=b"\x01\x05" + MINUS_ONE), R.TRUNCATED),
    "tag-count-beyond-the-tags": (update_value(tags=b"\x02\x05\x00"), R.TRUNCATED),
    "tag-count-2147483647": (update_value(tags=HUGE), R.TRUNCATED),
    "tag-0-of-size-2": (segment_value(tags=b"\x01\x00\x02\x01\x01"), R.TRAILING_BYTES),
    "tag-0-without-data": (segment_value(tags=b"\x01\x00\x00"), R.TRUNCATED),
    "tag-number-of-six-bytes": (update_value(tags=b"\x01" + OVERLONG), R.BAD_VARINT),
    "larger-than-any-record": (update_value() + bytes(VALUE_BYTES_MAX), R.OVERSIZED),
}


@pytest.mark.parametrize(
    ("value", "event"), [pytest.param(*case, id=name) for name, case in ACCEPTED.items()]
)
def test_f64_value_when_kafka_reads_it_tolerantly_then_so_do_we(value: bytes, event: Any) -> None:
    """The decoder reads odd values as Kafka's decoder does."""
    assert decode(value) == event


@pytest.mark.parametrize(
    ("value", "reason"), [pytest.param(*case, id=name) for name, case in REFUSED.items()]
)
def test_f62_value_when_kafkas_decoder_fails_then_becomes_a_reason(
    value: bytes | None, reason: UndecodableReason
) -> None:
    """A value on which Kafka's consumer stops becomes a reason with its place."""
    verdict = decode(value)
    assert isinstance(verdict, Undecodable)
    assert verdict.reason is reason
    assert verdict.detail


def test_f62_reasons_when_listed_then_each_is_met_by_a_value() -> None:
    """Each reason, except damage to a batch, comes from a value of this table."""
    assert {reason for _, reason in REFUSED.values()} == set(R) - {R.DAMAGED_BATCH}


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in golden.ALL])
def test_f62_value_when_cut_off_anywhere_then_is_truncated(one: Golden) -> None:
    """Each prefix of a record is truncated."""
    assert decode(b"") == Undecodable(R.EMPTY_VALUE, "0 bytes")
    for size in range(1, len(one.value)):
        verdict = decode(one.value[:size])
        assert isinstance(verdict, Undecodable), size
        assert verdict.reason is R.TRUNCATED, size


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in golden.ALL])
def test_f62_value_when_something_follows_it_then_is_refused(one: Golden) -> None:
    """Two records in one value are none."""
    for tail in (b"\x00", b"\xff", one.value):
        verdict = decode(one.value + tail)
        assert isinstance(verdict, Undecodable)
        assert verdict.reason is R.TRAILING_BYTES


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(segment_value(epochs=HUGE + epoch(0, 0)), id="epoch-count"),
        pytest.param(segment_value(name=HUGE), id="name-length"),
        pytest.param(segment_value(custom=HUGE), id="custom-metadata-length"),
        pytest.param(segment_value(tags=HUGE), id="tag-count"),
        pytest.param(segment_value(tags=b"\x01\x05" + HUGE), id="tag-size"),
        pytest.param(segment_value(partition_tags=HUGE), id="tag-count-in-partition"),
    ],
)
def test_f62_value_when_it_claims_two_gigabytes_then_allocates_nothing_of_it(value: bytes) -> None:
    """The decoder allocates nothing for a count that claims two gigabytes."""
    decode(value)  # whatever is made once is made here
    tracemalloc.start()
    try:
        assert isinstance(decode(value), Undecodable)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000


def test_f62_epochs_when_there_cannot_be_so_many_then_none_is_read() -> None:
    """The decoder refuses a count of epochs that the value cannot hold, reading none."""
    for count, field in ((2, b"\x03"), (2_147_483_646, HUGE)):
        verdict = decode(snapshot_value(epochs=field)[: 3 + 16 + 36 + len(field)])
        assert verdict == Undecodable(R.TRUNCATED, f"{count} epochs in 0 bytes")


def test_f62_value_when_layout_and_content_are_wrong_then_the_layout_is_named() -> None:
    """A record is read to its end before its content is judged, as Kafka does."""
    verdict = decode(segment_value(start=-1, epochs=b"\x01", state=b"\x09") + b"\x00")
    assert isinstance(verdict, Undecodable)
    assert verdict.reason is R.TRAILING_BYTES
