"""Which events are meant."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from rlmm.inspection.event_filter import (
    VERDICT_WORDS,
    EventFilter,
    EventKind,
    kind_of,
    verdict_words,
    words_of,
)
from rlmm.inspection.event_record import EventRecord
from rlmm.inspection.selectors import partition_filter
from rlmm.metadata.events import SegmentSnapshot
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import (
    APPLIED,
    DUPLICATE,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Undecodable,
    UndecodableReason,
)
from tests.support.builders import finished, partition_delete, segment_id, started, tp

CF = SegmentState.COPY_SEGMENT_FINISHED
REJECTED = Rejected(RejectReason.UNKNOWN_SEGMENT, None, CF)
POISON = Undecodable(UndecodableReason.TRUNCATED)
STARTED = EventRecord(0, 0, 1, 5, started(1), APPLIED, b"")
FINISHED = EventRecord(0, 1, 2, 5, finished(1, broker_id=2), REJECTED, b"")
DISPLACING = EventRecord(0, 2, 3, 5, finished(2), Applied(Remark.DISPLACED_ANOTHER_SEGMENT), b"")
DELETE = EventRecord(
    0, 3, 4, 5, partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, tp("other", 1)),
    DUPLICATE, b"",
)  # fmt: skip
SNAPSHOT = EventRecord(
    0, 4, 5, 5, SegmentSnapshot(segment_id(3).uuid, 0, 9, 1, -1, 0, ((0, 0),), 10, None, CF),
    Rejected(RejectReason.SNAPSHOT_RECORD, None, CF), b"",
)  # fmt: skip
LOST = EventRecord(0, 5, 6, 5, None, POISON, b"\x01")
ALL = (STARTED, FINISHED, DISPLACING, DELETE, SNAPSHOT, LOST)


def test_kinds_and_words_of_every_event() -> None:
    """Each event has one kind, one verdict, and perhaps a reason."""
    assert [kind_of(one) for one in ALL] == [
        EventKind.SEGMENT, EventKind.UPDATE, EventKind.UPDATE, EventKind.PARTITION_DELETE,
        EventKind.SNAPSHOT, EventKind.UNREADABLE,
    ]  # fmt: skip
    assert [words_of(one) for one in ALL] == [
        ("applied", None), ("rejected", "unknown-segment"),
        ("applied", "displaced-another-segment"), ("duplicate", None),
        ("rejected", "snapshot-record"), ("undecodable", "truncated"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "offsets"),
    [
        pytest.param(EventFilter(), [0, 1, 2, 3, 4, 5], id="everything"),
        pytest.param(EventFilter(kinds=frozenset([EventKind.UPDATE])), [1, 2], id="kind"),
        pytest.param(
            EventFilter(states=frozenset(["COPY_SEGMENT_FINISHED"])), [1, 2, 4], id="state"
        ),
        pytest.param(EventFilter(verdicts=frozenset(["rejected"])), [1, 4], id="verdict"),
        pytest.param(
            EventFilter(verdicts=frozenset(["unknown-segment", "undecodable"])), [1, 5], id="reason"
        ),
        pytest.param(
            EventFilter(verdicts=frozenset(["displaced-another-segment"])), [2], id="remark"
        ),
        pytest.param(EventFilter(brokers=frozenset([2])), [1], id="broker"),
        pytest.param(EventFilter(segment=segment_id(1).uuid), [0, 1], id="segment"),
        pytest.param(EventFilter(partition_filter("other", None)), [3], id="topic"),
        pytest.param(
            EventFilter(partition_filter("orders", None), frozenset([EventKind.SEGMENT])), [0],
            id="several",
        ),
    ],
)  # fmt: skip
def test_filter_allows_what_all_of_it_allows(wanted: EventFilter, offsets: list[int]) -> None:
    """An event passes when every part of the filter matches, and a missing field matches none."""
    assert [one.offset for one in ALL if wanted.allows(one)] == offsets


def test_filter_by_verdict_needs_to_know_verdicts_unless_bytes_alone_say_it() -> None:
    """A filter for undecodable or truncated records needs no state."""
    assert not EventFilter().needs_verdicts
    assert not EventFilter(verdicts=frozenset(["undecodable", "truncated"])).needs_verdicts
    assert EventFilter(verdicts=frozenset(["undecodable", "rejected"])).needs_verdicts


def test_verdict_word_that_there_is_not_is_refused() -> None:
    """The filter refuses an unknown verdict."""
    assert verdict_words(sorted(VERDICT_WORDS)) == VERDICT_WORDS
    with pytest.raises(InvalidArgument, match="no verdict is 'refused'"):
        verdict_words(["applied", "refused"])
