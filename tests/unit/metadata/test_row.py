"""One segment as a row of bytes: its layout, its update, and its questions."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.encoding import encode_custom, encode_writer
from rlmm.metadata.row import (
    NOT_FINISHED,
    STARTED,
    STARTED_TXN_EMPTY,
    end_of,
    epoch_range,
    epoch_ranges,
    epochs_of,
    finish_of,
    pack_finish,
    packed_finish_of,
    row_of,
    same_content,
    segment_of,
    size_of,
    start_of,
    updated_row,
)
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.support.builders import finished, segment_id, started, update

if TYPE_CHECKING:
    from rlmm.metadata.events import SegmentUpdate

CS, CF, DS, DF = SegmentState

MANY = [(epoch, 10 * epoch) for epoch in range(-3, 300, 2)]

SEGMENTS = [
    pytest.param(started("a"), id="one-epoch"),
    pytest.param(started("a", 5, 2**63 - 1, {-1: 5}, txn_index_empty=True), id="extremes"),
    pytest.param(started("a", custom_metadata=b""), id="empty-custom"),
    pytest.param(started("a", custom_metadata=bytes(126)), id="custom-126"),
    pytest.param(started("a", custom_metadata=bytes(127)), id="custom-127"),
    pytest.param(started("a", 0, 99, {0: 0, 1: 50}, size_bytes=-7), id="two-epochs"),
    pytest.param(started("a", 0, 99, {0: 0, 1: 50}, custom_metadata=b"xy"), id="two-and-custom"),
    pytest.param(started("a", 0, 9_999, MANY, custom_metadata=bytes(300)), id="152-epochs"),
    pytest.param(started("a", state=CF, broker_id=-1, event_timestamp_ms=-5), id="finished"),
    pytest.param(started("a", state=DS, max_timestamp_ms=-(2**63)), id="delete-started"),
]


def test_row_when_made_then_has_the_documented_layout() -> None:
    """Every field has the documented place, as in Kafka's record form."""
    segment = started(
        "a",
        5,
        99,
        {0: 5, 1: 50},
        broker_id=42,
        max_timestamp_ms=100,
        event_timestamp_ms=123,
        size_bytes=4096,
        custom_metadata=b"\x01\x02",
        state=CF,
        txn_index_empty=True,
    )
    assert row_of(segment, 77).hex(" ", -1) == bytes.fromhex(
        "01" "01" "000000000000004d"
        "0000002a" "000000000000007b" "0000000000000005" "0000000000000063" "0000000000000064"
        "03" "00000000" "0000000000000005" "00" "00000001" "0000000000000032" "00"
        "00001000" "03" "0102"
    ).hex(" ", -1)  # fmt: skip


@pytest.mark.parametrize("segment", SEGMENTS)
def test_row_when_read_back_then_is_the_segment(segment: SegmentMetadata) -> None:
    """The row reads back as the same segment and answers each question like it."""
    row = row_of(segment, 12)
    assert segment_of(segment.id, row) == segment
    assert finish_of(row) == 12
    assert packed_finish_of(row) == pack_finish(12)
    assert finish_of(row_of(segment)) == NOT_FINISHED == -1
    assert (start_of(row), end_of(row)) == (segment.start_offset, segment.last_offset)
    assert size_of(row) == segment.size_bytes
    assert epochs_of(row) == segment.epochs


@pytest.mark.parametrize("segment", SEGMENTS)
@pytest.mark.parametrize(
    "event",
    [
        pytest.param(finished("a", broker_id=9, event_timestamp_ms=-2), id="finish"),
        pytest.param(finished("a", custom_metadata=b""), id="finish-empty-custom"),
        pytest.param(update("a", DS, custom_metadata=bytes(127)), id="delete-long-custom"),
        pytest.param(update("a", DS, custom_metadata=b"abc"), id="delete-custom"),
    ],
)
def test_row_when_updated_is_the_segments(segment: SegmentMetadata, event: SegmentUpdate) -> None:
    """A row cut at both ends equals the row of the updated segment."""
    row = updated_row(
        row_of(segment, 3),
        event.state,
        encode_writer(event.broker_id, event.event_timestamp_ms),
        encode_custom(event.custom_metadata),
        pack_finish(44),
    )
    assert row == row_of(segment.updated(event), 44)


@pytest.mark.parametrize(
    ("row_head", "txn_index_empty"),
    [pytest.param(STARTED, False, id="indexed"), pytest.param(STARTED_TXN_EMPTY, True, id="empty")],
)
def test_row_of_a_started_copy_begins_as_if_cut(row_head: bytes, txn_index_empty: bool) -> None:
    """The prefix of a cut first record equals that of its decoded form."""
    row = row_of(started("a", broker_id=4, txn_index_empty=txn_index_empty))
    assert row.startswith(row_head + bytes.fromhex("00000004"))
    assert len(row_head) == 10


@pytest.mark.parametrize(
    ("epochs", "ranges"),
    [
        pytest.param({4: 10}, [(4, 10, 99)], id="one"),
        pytest.param({0: 10, 1: 50}, [(0, 10, 49), (1, 50, 99)], id="two"),
        pytest.param(
            {0: 10, 1: 50, 2: 50}, [(0, 10, 49), (1, 50, 49), (2, 50, 99)], id="empty-epoch"
        ),
        pytest.param({0: 90, 1: 50}, [(0, 90, 49), (1, 50, 99)], id="falling"),
        pytest.param({0: 500}, [(0, 500, 99)], id="behind-the-end"),
        pytest.param({-2: 0, -1: 5, 7: 9}, [(-2, 0, 4), (-1, 5, 8), (7, 9, 99)], id="negative"),
        pytest.param({0: 10, 1: -(2**63)}, [(0, 10, 2**63 - 1), (1, -(2**63), 99)], id="wraps"),
    ],
)
def test_epochs_when_asked_for_ranges_then_each_ends_before_the_next_begins(
    epochs: dict[int, int], ranges: list[tuple[int, int, int]]
) -> None:
    """An epoch of a segment ends where the next one that it lists begins, as in Kafka."""
    row = row_of(started("a", 10, 99, epochs))
    assert epoch_ranges(row) == ranges
    assert [(epoch, *(epoch_range(row, epoch) or ())) for epoch in epochs] == ranges
    for absent in (-9, 3, 99):
        assert epoch_range(row, absent) is None


def test_epoch_when_one_of_many_then_is_found_among_them() -> None:
    """Each listed epoch has its range, and every other one has none."""
    row = row_of(started("a", 0, 9_999, MANY))
    listed = {epoch: (first, last) for epoch, first, last in epoch_ranges(row)}
    assert listed.keys() == dict(MANY).keys()
    for epoch in range(-6, 305):
        assert epoch_range(row, epoch) == listed.get(epoch), epoch


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(row_of(started("a"), 9), True, id="other-finish"),
        pytest.param(row_of(started("b"), 1), True, id="other-id"),
        pytest.param(row_of(started("a", state=CF), 1), False, id="other-state"),
        pytest.param(row_of(started("a", txn_index_empty=True), 1), False, id="other-flag"),
        pytest.param(row_of(started("a", broker_id=2), 1), False, id="other-broker"),
        pytest.param(row_of(started("a", event_timestamp_ms=2), 1), False, id="other-time"),
        pytest.param(row_of(started("a", size_bytes=2), 1), False, id="other-size"),
        pytest.param(row_of(started("a", custom_metadata=b""), 1), False, id="other-custom"),
    ],
)
def test_rows_when_compared_then_the_finish_does_not_count(other: bytes, same: bool) -> None:
    """Two events said the same if the rows agree in all that events say."""
    assert same_content(row_of(started("a"), 1), other) is same


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"\xff" * 4 + b"\x7f", id="more-than-32-bits"),
        pytest.param(b"\xff" * 5 + b"\x01", id="six-bytes"),
        pytest.param(b"\x80" * 100_000 + b"\x01", id="a-hundred-thousand-bytes"),
    ],
)
def test_row_when_its_epoch_count_is_absurd_then_reading_it_fails_at_once(tail: bytes) -> None:
    """A count of more than five bytes, or of more than the row holds, is an ordinary error."""
    with pytest.raises((ValueError, IndexError, struct.error)):
        segment_of(segment_id("a"), row_of(started("a"))[:46] + tail)
