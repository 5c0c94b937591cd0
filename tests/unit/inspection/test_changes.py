"""Differences between two states of a user partition."""

from __future__ import annotations

from rlmm.inspection.state_changes import ChangeKind, SegmentChange, WatermarkChange, changes_of
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
    tp,
)


def shard_of(*events: object) -> PythonShard:
    shard = PythonShard(0)
    for event in events:
        shard.apply_event(event)  # type: ignore[arg-type]
    return shard


BEFORE = (
    started("kept", 0, 9), finished("kept"), started("ends", 10, 19), finished("ends"),
    started("grows", 20, 29), started("goes", 30, 39), delete_started("goes"),
    started("moves", 40, 49),
)  # fmt: skip
AFTER = (
    *BEFORE, finished("grows"), delete_started("ends"), delete_finished("goes"),
    started("moves", 5, 49), started("new", 60, 69),
)  # fmt: skip


def test_changes_tell_each_segment_once_in_the_order_of_offsets() -> None:
    """The list has each changed segment once, at its former offset, and no unchanged one."""
    found = list(changes_of(shard_of(*BEFORE), shard_of(*AFTER), tp()))
    assert [
        (one.kind, one.segment.start_offset) for one in found if isinstance(one, SegmentChange)
    ] == [
        (ChangeKind.SEGMENT_BEING_DELETED, 10), (ChangeKind.SEGMENT_FINISHED, 20),
        (ChangeKind.SEGMENT_GONE, 30), (ChangeKind.SEGMENT_CHANGED, 5),
        (ChangeKind.SEGMENT_APPEARED, 60),
    ]  # fmt: skip
    assert [one for one in found if isinstance(one, WatermarkChange)] == [
        WatermarkChange(0, 19, 29)
    ]


def test_changes_of_equal_states_are_none() -> None:
    """Equal states have no change, and neither do two empty ones."""
    assert list(changes_of(shard_of(*AFTER), shard_of(*AFTER), tp())) == []
    assert list(changes_of(shard_of(), shard_of(), tp())) == []


def test_changes_of_a_deleted_partition_are_its_deletion_and_all_that_is_gone() -> None:
    """Watermarks go with it."""
    ended = partition_delete(PartitionDeleteState.DELETE_PARTITION_FINISHED)
    found = list(changes_of(shard_of(*BEFORE[:2]), shard_of(*BEFORE[:2], ended), tp()))
    assert [one.kind for one in found] == [
        ChangeKind.PARTITION_DELETE, ChangeKind.WATERMARK, ChangeKind.SEGMENT_GONE
    ]  # fmt: skip
    assert found[1] == WatermarkChange(0, 9, None)


def test_changes_of_a_new_partition_say_so_first() -> None:
    """The first change of a new partition is the partition itself."""
    found = list(changes_of(shard_of(), shard_of(*BEFORE[:1]), tp()))
    assert [one.kind for one in found] == [
        ChangeKind.PARTITION_APPEARED, ChangeKind.SEGMENT_APPEARED
    ]  # fmt: skip
