"""Values for operators on the wire: written ones are read, and others are refused."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.errors import InvalidArgument, LogUnavailable, NotReady, ProtocolError
from rlmm.metadata.ids import NAME_BYTES_MAX, TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.wire.errors import error_value
from rlmm.wire.messages import packed, read_answer
from rlmm.wire.operator_queries import (
    KEY_BYTES_MAX,
    ImageHead,
    LogEnds,
    LogPiece,
    PartitionCounts,
    SummaryPage,
    image_head_value,
    log_ends_value,
    log_piece_value,
    read_image_head,
    read_log_ends,
    read_log_piece,
    read_places,
    read_summary_key,
    read_summary_page,
    summary_page_value,
)
from tests.support.builders import partition_delete, tp

TOPIC = Uuid(b"t" * 16)
DELETE = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, tp("b"))
PAGE = SummaryPage(
    7,
    True,
    [PartitionCounts(tp("a"), 1, 2, 3, -4, None), PartitionCounts(tp("b"), 0, 0, 0, 2**62, DELETE)],
    b"k",
)


def sent(value: object) -> Any:
    return read_answer(b"\x93\x01\xc0" + packed(value)).result


def test_values_then_are_read_as_they_were_written() -> None:
    """Every form is read as written, with and without optional fields."""
    for page in (PAGE, PAGE._replace(after=None, is_whole=False, summaries=[])):
        assert read_summary_page(sent(summary_page_value(page))) == page
    head = ImageHead(1, 2, b"xy")
    assert read_image_head(sent(image_head_value(head))) == head
    piece = LogPiece(b"", 9, 0)
    assert read_log_piece(sent(log_piece_value(piece))) == piece
    assert read_log_piece(sent(log_piece_value(None))) is None
    topic_id, ends = read_log_ends(
        sent(log_ends_value(TOPIC, [LogEnds(1, 2), LogUnavailable("away")])), 2
    )
    assert (topic_id, ends[0], str(ends[1])) == (TOPIC, LogEnds(1, 2), "away")
    assert isinstance(ends[1], LogUnavailable)


def test_summary_when_sent_then_is_no_larger_than_it_is_reckoned_with() -> None:
    """The size estimate of a summary is never below its size on the wire."""
    widest = Uuid(b"\xff" * 16)
    for name in ("", "orders", "\u00e9" * 100, "n" * NAME_BYTES_MAX):
        one = TopicIdPartition(widest, name, 2**31 - 1)
        most, least = 2**63 - 1, -(2**63)
        delete = partition_delete(
            PartitionDeleteState.DELETE_PARTITION_FINISHED, one,
            broker_id=-(2**31), event_timestamp_ms=least,
        )  # fmt: skip
        summary = PartitionCounts(one, most, most, most, least, delete)
        page: Any = summary_page_value(PAGE._replace(summaries=[summary]))
        assert len(packed(page[2][0])) <= summary.wire_bytes


def test_key_when_of_any_partition_then_is_taken() -> None:
    """The longest name makes the longest key."""
    longest = TopicIdPartition(TOPIC, "n" * NAME_BYTES_MAX, 2**31 - 1).key
    assert read_summary_key(longest) == longest
    assert read_summary_key(None) is None
    assert len(longest) <= KEY_BYTES_MAX
    for odd in ("key", 1, bytes(KEY_BYTES_MAX + 1)):
        with pytest.raises(InvalidArgument):
            read_summary_key(odd)


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (read_summary_page, [1, True, []]),
        (read_summary_page, [-1, True, [], None]),
        (read_summary_page, [1, 1, [], None]),
        (read_summary_page, [1, True, [[None] * 6], None]),
        (read_summary_page, [1, True, [], "next"]),
        (read_image_head, [1, 2, "xy"]),
        (read_image_head, [1, None, b"xy"]),
        (read_log_piece, [b"", 1]),
        (read_log_piece, [None, 1, 0]),
        (read_log_piece, [b"", 1, -1]),
        (lambda value: read_log_ends(value, 1), [TOPIC, []]),
        (lambda value: read_log_ends(value, 1), [b"short", [[None, 0, 0]]]),
        (lambda value: read_log_ends(value, 1), [TOPIC, [[None, 0, None]]]),
        (lambda value: read_places(value, 2), [1, 2, 3]),
        (lambda value: read_places(value, 2), [True]),
    ],
)
def test_values_when_of_another_form_then_are_refused(read: Any, value: object) -> None:
    """A value of another form is refused with the reason."""
    with pytest.raises(InvalidArgument):
        read(value)


def test_bounds_when_they_tell_what_no_log_says_then_are_no_answer() -> None:
    """An error of another kind has no place there."""
    with pytest.raises(ProtocolError, match="of a log 'not-ready' is said"):
        read_log_ends([TOPIC, [[error_value(NotReady("no")), 0, 0]]], 1)
