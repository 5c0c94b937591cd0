"""Builders of events: equal labels mean the same segment, and defaults are neutral."""

from __future__ import annotations

from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import (
    TOPIC_ID,
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
    update,
)


def test_label_when_used_twice_then_is_the_same_segment() -> None:
    """A label names one segment of one partition."""
    assert segment_id("a") == segment_id("a", tp())
    assert segment_id("a") != segment_id("b")
    assert segment_id("a") != segment_id("a", tp(partition=8))
    assert segment_id(segment_id("a")) == segment_id("a")
    assert segment_id(segment_id("a"), tp("payments")) == segment_id("a", tp("payments"))


def test_label_when_a_number_then_sorts_as_it_does() -> None:
    """Numbers are the low half of the uuid, so a test can choose the order of ids."""
    assert segment_id(3).uuid == Uuid.of(0, 3)
    assert [segment_id(number).uuid for number in (1, 2, 300)] == sorted(
        segment_id(number).uuid for number in (300, 2, 1)
    )


def test_events_when_only_labelled_then_have_harmless_defaults() -> None:
    """A segment without more belongs to epoch 0 of the golden partition as a whole."""
    assert tp().topic_id == TOPIC_ID
    assert started("a", 5, 9).epochs == ((0, 5),)
    assert started("a").state is SegmentState.COPY_SEGMENT_STARTED
    assert started("a").id == finished("a").id
    assert partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED).partition == tp()


def test_updates_when_named_then_have_their_state() -> None:
    """The short forms update to the state in their name."""
    made = [finished("a"), delete_started("a"), delete_finished("a")]
    assert made == [update("a", state) for state in list(SegmentState)[1:]]
