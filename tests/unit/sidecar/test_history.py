"""The part of a log that one answer holds: the same at every call."""

from __future__ import annotations

from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from rlmm.sidecar.log_queries import _whole

FIRST = build_batch(records_of([b"a" * 500, b"b"], 10), 10)
SECOND = build_batch(records_of([b"c"], 12), 12)
BOTH = RecordSet(0, FIRST + SECOND, 15)


def test_record_set_when_it_fits_then_is_taken_as_it_is() -> None:
    """A set that fits is unchanged, with the next position that the log names."""
    assert _whole(BOTH, len(BOTH.data)) == (BOTH.data, 15)
    assert _whole(RecordSet(0, b"", 15), 1) == (b"", 15)


def test_record_set_when_more_than_asked_for_then_is_cut_to_whole_batches() -> None:
    """A longer set is cut to whole batches, so that the pieces of a large batch stay the same."""
    assert _whole(BOTH, len(BOTH.data) - 1) == (FIRST, 12)
    for size in (1, len(FIRST) - 1, len(FIRST)):
        assert _whole(BOTH, size) == (FIRST, 12)
        assert _whole(RecordSet(0, FIRST, 12), size) == (FIRST, 12)


def test_record_set_when_it_begins_with_what_is_no_batch_then_is_taken_whole() -> None:
    """A record set that begins with damage is sent whole, so its reader finds the damage."""
    damaged = RecordSet(0, b"\xff" * 80 + SECOND, 15)
    assert _whole(damaged, 10) == (damaged.data, 15)
