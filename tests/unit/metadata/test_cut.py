"""The fast way into a record: it takes only the common form, and never says other than `decode`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode_any, encode_custom, encode_writer
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.fast_decoding import cut
from rlmm.metadata.row import row_of
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.support.builders import finished, segment_id, started, tp, update
from tests.support.records import golden, value_bytes
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

UNCOMMON = {
    "seg_custom_empty_state3",  # a first record that is not COPY_SEGMENT_STARTED
    "upd_custom_127",  # a length of two bytes
    "upd_custom_128",
    "partition_delete_marked",
    "pdel_finished",
    "pdel_name249",
    "snapshot",
    "snapshot_txn",
}


TAGS_128 = b"\x01\x05\x7d" + bytes(125)
"""An unknown tag that is as long as custom metadata of length 0x81 would be."""


LIKE_127_EPOCHS = b"\xff\x0c" + bytes(6) + b"".join(epoch(17 + n, 0) for n in range(127)) + bytes(5)
"""Custom metadata of 1,662 bytes that reads as epochs when the count before it is misread."""


def expected(value: bytes) -> tuple[object, ...] | None:
    event = decode(value)
    if isinstance(event, SegmentMetadata):
        return event.id.partition.key, bytes(event.id.uuid), row_of(event)
    if isinstance(event, SegmentUpdate):
        writer = encode_writer(event.broker_id, event.event_timestamp_ms)
        custom = encode_custom(event.custom_metadata)
        return (event.id.partition.key, bytes(event.id.uuid), event.state.value, writer, custom)
    return None


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in golden.ALL])
def test_cut_when_kafka_made_the_value_then_says_what_decode_says(one: Golden) -> None:
    """Each golden value of the common form is cut into the row that decoding gives."""
    if one.name in UNCOMMON:
        assert cut(one.value) is None
    else:
        assert cut(one.value) == expected(one.value)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(started("a", 0, 2**63 - 1), id="largest-offset"),
        pytest.param(started("a", 7, 7, {-(2**31): -(2**63)}), id="extreme-epoch"),
        pytest.param(started("a", 0, 99, [(n, n) for n in range(126)]), id="126-epochs"),
        pytest.param(started("a", 0, 99, {-(2**31): 0, 2**31 - 1: 9}), id="widest-epochs"),
        pytest.param(started("a", custom_metadata=b"", txn_index_empty=True), id="empty-custom"),
        pytest.param(started("a", custom_metadata=bytes(126)), id="longest-custom"),
        pytest.param(started(segment_id("a", tp(126 * "n"))), id="longest-name"),
        pytest.param(started(segment_id("a", tp(""))), id="empty-name"),
        pytest.param(started(segment_id("a", tp("\u20ac"))), id="wide-name"),
        pytest.param(started("a", size_bytes=-1, broker_id=-(2**31)), id="negative-numbers"),
        *(pytest.param(update("a", state), id=f"update-{state.name}") for state in SegmentState),
        pytest.param(finished("a", custom_metadata=bytes(126)), id="update-longest-custom"),
        pytest.param(finished(segment_id("a", tp(126 * "n"))), id="update-longest-name"),
    ],
)
def test_cut_when_the_form_is_common_then_takes_it(event: SegmentMetadata | SegmentUpdate) -> None:
    """The whole width of the common form goes the fast way."""
    value = encode_any(event)
    parts = cut(value)
    assert parts is not None
    assert parts == expected(value)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x01\x00\x00", id="head-only"),
        pytest.param(b"\x01\x01\x00", id="update-head-only"),
        pytest.param(segment_value(head=b"\x02\x00\x00"), id="frame-version"),
        pytest.param(segment_value(head=b"\x01\x00\x01"), id="record-version-1"),
        pytest.param(segment_value(head=b"\x81\x00\x00\x00"), id="frame-not-minimal"),
        pytest.param(update_value(head=b"\x01\x81\x00\x00"), id="api-key-not-minimal"),
        pytest.param(segment_value(name=b"\x00"), id="null-name"),
        pytest.param(segment_value(name=b"\x87\x00orders"), id="name-length-not-minimal"),
        pytest.param(segment_value(name=b"\x80\x01" + 127 * b"n"), id="long-name"),
        pytest.param(update_value(name=b"\x80\x01" + 127 * b"n"), id="update-long-name"),
        pytest.param(segment_value(partition_tags=b"\x01\x05\x00"), id="partition-tags"),
        pytest.param(update_value(partition_tags=b"\x01\x05\x00"), id="update-partition-tags"),
        pytest.param(segment_value(partition_tags=b"\x80\x00"), id="tag-count-not-minimal"),
        pytest.param(segment_value(id_tags=b"\x01\x05\x00"), id="id-tags"),
        pytest.param(update_value(id_tags=b"\x01\x05\x00"), id="update-id-tags"),
        pytest.param(segment_value(epochs=b"\x00"), id="epochs-null"),
        pytest.param(segment_value(epochs=b"\x01"), id="epochs-empty"),
        pytest.param(segment_value(epochs=b"\x82\x00" + epoch(0, 0)), id="count-not-minimal"),
        pytest.param(segment_value(epochs=epochs(epoch(0, 0, b"\x01\x05\x00"))), id="epoch-tags"),
        pytest.param(
            segment_value(epochs=epochs(epoch(0, 0), epoch(1, 5, b"\x01\x05\x00"))),
            id="epoch-tags-of-two",
        ),
        pytest.param(segment_value(epochs=epochs(epoch(1, 0), epoch(0, 5))), id="epochs-falling"),
        pytest.param(segment_value(epochs=epochs(epoch(1, 0), epoch(1, 5))), id="epoch-twice"),
        pytest.param(segment_value(epochs=b"\x03" + epoch(0, 0)), id="epoch-missing"),
        pytest.param(
            segment_value(epochs=b"\x80\x01" + b"".join(epoch(n, n) for n in range(127))),
            id="127-epochs",
        ),
        pytest.param(
            segment_value(epochs=b"\x82\x00" + epoch(0, 0), custom=LIKE_127_EPOCHS),
            id="count-looks-like-129",
        ),
        pytest.param(segment_value(start=-1), id="negative-start"),
        pytest.param(segment_value(start=-2, end=-1), id="both-negative"),
        pytest.param(segment_value(start=0, end=-1), id="negative-end"),
        pytest.param(segment_value(start=256, end=255), id="end-before-start"),
        pytest.param(segment_value(custom=b"\x80\x00"), id="custom-not-minimal"),
        pytest.param(segment_value(custom=b"\x80\x01" + bytes(127)), id="long-custom"),
        pytest.param(segment_value(custom=b"\x81\x00", tags=TAGS_128), id="custom-looks-long"),
        pytest.param(segment_value(custom=b"\x05abc"), id="custom-too-long"),
        pytest.param(update_value(custom=b"\x80\x00"), id="update-custom-not-minimal"),
        pytest.param(update_value(custom=b"\x81\x00", tags=TAGS_128), id="update-looks-long"),
        pytest.param(update_value(custom=b"\x05abc"), id="update-custom-too-long"),
        pytest.param(segment_value(state=b"\x01"), id="first-record-not-started"),
        pytest.param(segment_value(state=b"\xff"), id="state-minus-1"),
        pytest.param(update_value(state=b"\x04"), id="update-state-4"),
        pytest.param(update_value(state=b"\xff"), id="update-state-minus-1"),
        pytest.param(segment_value(tags=b"\x01\x05\x00"), id="unknown-tag"),
        pytest.param(update_value(tags=b"\x01\x05\x00"), id="update-unknown-tag"),
        pytest.param(segment_value(tags=b"\x01\x00\x01\x00"), id="tag-0-false"),
        pytest.param(segment_value(tags=b"\x01\x00\x01\xff"), id="tag-0-ff"),
        pytest.param(segment_value(tags=b"\x01\x00\x00\x01"), id="tag-0-of-size-0"),
        pytest.param(segment_value(tags=b"\x02\x00\x01\x01\x00\x01\x01"), id="tag-0-twice"),
        pytest.param(segment_value(tags=b"\x80\x00"), id="tag-count-in-two-bytes"),
        pytest.param(segment_value() + b"\x00", id="one-byte-after"),
        pytest.param(update_value() + b"\x00", id="update-one-byte-after"),
        pytest.param(partition_delete_value(), id="partition-delete"),
        pytest.param(snapshot_value(), id="snapshot"),
    ],
)
def test_cut_when_the_form_is_not_the_common_one_then_leaves_it_to_decode(value: bytes) -> None:
    """The cutter leaves every other form, good or bad, to the decoder."""
    assert cut(value) is None


VALUES = [
    pytest.param(value, id=name)
    for name, value in {
        "segment": golden.ADD_WITH_CUSTOM.value,
        "segment-one-epoch": golden.LIFE[0].value,
        "segment-three-epochs": golden.SEGMENT_THREE_EPOCHS.value,
        "update": golden.UPDATE_FINISH.value,
        "update-custom": value_bytes.update_value(custom=b"\x04abc"),
        "update-unicode": golden.UPDATE_UNICODE_EXTREME.value,
    }.items()
]


@pytest.mark.parametrize("value", VALUES)
def test_cut_when_one_byte_changes_then_agrees_with_decode_or_abstains(value: bytes) -> None:
    """A changed byte leads to the same result in both ways, or the cutter abstains."""
    for at, before in enumerate(value):
        flipped = {before ^ 1 << bit for bit in range(8)}
        for byte in sorted(flipped | {0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF}):
            other = value[:at] + bytes((byte,)) + value[at + 1 :]
            parts = cut(other)
            if parts is None:
                continue
            wanted = expected(other)
            assert wanted is not None, other.hex()
            assert parts[1:] == wanted[1:], other.hex()
            if _is_utf8(parts[0][1:-20]):
                assert parts[0] == wanted[0], other.hex()


@pytest.mark.parametrize("value", VALUES)
def test_cut_when_the_value_is_cut_off_or_goes_on_then_stays_silent(value: bytes) -> None:
    """The cutter leaves truncated values and values with a tail to the decoder."""
    assert not [size for size in range(len(value)) if cut(value[:size]) is not None]
    assert cut(value + b"\x00") is None
    assert cut(value + value) is None


def test_cut_when_the_name_is_malformed_then_gives_a_key_that_no_partition_has() -> None:
    """A malformed name is cut into a key that no partition has."""
    raw = b"\x07or\xffers"
    value = segment_value(name=raw)
    parts = cut(value)
    event = decode(value)
    assert parts is not None
    assert isinstance(event, SegmentMetadata)
    assert parts[0] == raw + value_bytes.TOPIC_ID + value_bytes.PARTITION
    assert parts[0] != event.id.partition.key
    assert event.id.partition == replace(tp(), topic="or\ufffders")


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
