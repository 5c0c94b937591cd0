"""The lag of copies, and what depends on the tier before a move or a deletion, by hand."""

from __future__ import annotations

import pytest

from rlmm.inspection.cluster_facts import LogDir, PartitionOffsets
from rlmm.inspection.lag import disks, lag_of, local_sizes
from rlmm.inspection.moment_diff import ChangeKind, SegmentChange, WatermarkChange, changes_of
from rlmm.inspection.preflight import before_deletion, before_reassignment, targets_without_tier
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
    tp,
)
from tests.support.engine.chosen import ChosenShard

CF = SegmentState.COPY_SEGMENT_FINISHED
ENDS = PartitionOffsets(
    earliest=0, earliest_local=150, latest=400, last_stable=390, latest_tiered=199
)
WINDOW = (1_000, 11_000)
SEGMENTS = [
    started("a", 0, 99, size_bytes=700, max_timestamp_ms=1_000, state=CF),
    started("b", 100, 199, size_bytes=500, max_timestamp_ms=6_000, state=CF),
    started("c", 200, 299, size_bytes=900, max_timestamp_ms=9_000),
]


def test_lag_is_what_is_stable_and_in_no_finished_segment() -> None:
    """The lag counts stable records in no finished segment; the rate counts all."""
    lag = lag_of(tp(), SEGMENTS, ENDS, 1_000, WINDOW)
    assert lag.lag_offsets == 190
    assert (lag.tier_start, lag.tier_end, lag.open_copies) == (0, 199, 1)
    assert (lag.last_copied_ms, lag.rate_bytes_s) == (6_000, 130.0)
    assert lag.only_local_bytes == 800
    assert not lag.is_told_otherwise


@pytest.mark.parametrize(
    ("window", "local_bytes", "expected"),
    [
        ((1_000, 11_000), None, 50.0),
        # Nothing was copied in the window: what waits came evenly since the last that was.
        ((96_000, 106_000), 1_000, 8.0),
        ((0, 6_000), 1_000, (1_200 + 800) / 6),
    ],
)
def test_lag_when_copies_stand_still_then_what_waits_is_the_rate(
    window: tuple[int, int], local_bytes: int | None, expected: float
) -> None:
    """The rate counts waiting records even if copies stand still."""
    lag = lag_of(tp(), SEGMENTS, ENDS, local_bytes, window)
    assert lag.rate_bytes_s == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        # Nothing was produced since the last copy: an idle partition is not behind.
        (PartitionOffsets(earliest=0, latest=200, last_stable=200), 0),
        # One record more, and it is one.
        (PartitionOffsets(earliest=0, latest=201, last_stable=201), 1),
        # The log was cut behind the tier's end.
        (PartitionOffsets(earliest=0, latest=150, last_stable=150), 0),
        # The log begins behind it.
        (PartitionOffsets(earliest=250, latest=300, last_stable=300), 50),
        # Where transactions are not told the high watermark has to do.
        (PartitionOffsets(earliest=0, latest=230), 30),
        (PartitionOffsets(), None),
        (None, None),
    ],
)
def test_lag_of_idle_short_and_trimmed_partitions(
    ends: PartitionOffsets | None, expected: int | None
) -> None:
    """Single records and empty ends, where brokers' own figures have been wrong."""
    assert lag_of(tp(), SEGMENTS, ends, None, WINDOW).lag_offsets == expected


def test_lag_of_a_partition_without_a_copy_is_all_that_is_stable() -> None:
    """The lag counts from the log start up to the last stable offset."""
    lag = lag_of(tp(), [], PartitionOffsets(earliest=10, latest=50, last_stable=50), 7, WINDOW)
    assert (lag.lag_offsets, lag.tier_end, lag.last_copied_ms, lag.rate_bytes_s) == (
        40, None, None, 0.0
    )  # fmt: skip
    assert lag.only_local_bytes is None


@pytest.mark.parametrize(
    ("told", "differs"), [(199, False), (299, True), (-1, True), (None, False)]
)
def test_lag_when_the_leader_believes_in_another_end_then_says_so(
    told: int | None, differs: bool
) -> None:
    """The lag shows that the leader's tiered end differs from the metadata."""
    ends = PartitionOffsets(earliest=0, latest=400, latest_tiered=told)
    assert lag_of(tp(), SEGMENTS, ends, None, WINDOW).is_told_otherwise is differs


DIRS = [
    LogDir(1, "/a", 10_000, 1_000, {("orders", 7): 600, ("plain", 0): 50}),
    LogDir(2, "/b", None, None, {("orders", 7): 900}),
]


def test_disk_is_full_when_what_comes_in_has_used_up_what_is_free() -> None:
    """The time follows from all tiered partitions on the disk, else it is unknown."""
    one, two = disks(DIRS, {("orders", 7): 50.0})
    assert (one.tiered_bytes, one.rate_bytes_s, one.full_in_s) == (600, 50.0, 20.0)
    assert (two.usable_bytes, two.full_in_s) == (None, None)
    assert disks(DIRS, {})[0].full_in_s is None


def test_local_size_is_the_leaders_else_the_largest() -> None:
    """The local size is the leader's, or the largest replica's when the leader's is unknown."""
    key = ("orders", 7)
    assert local_sizes(DIRS, {key: 1})[key] == 600
    assert local_sizes(DIRS[::-1], {key: 1})[key] == 600
    assert local_sizes(DIRS, {})[key] == 900


def shard_of(*events: object) -> ChosenShard:
    shard = ChosenShard(0)
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


WHOLE = [started("a", 0, 99, {0: 0}, state=CF), started("b", 100, 199, {3: 100}, state=CF)]


@pytest.mark.parametrize(
    ("local", "leader_epoch", "codes"),
    [
        (200, 3, []),
        (150, 3, []),
        (0, 3, []),
        # The range before the local start was copied by nobody, or by a leader yet to come.
        (250, 3, ["NO-STATE-BEFORE-LOCAL"]),
        (200, 2, ["NO-STATE-BEFORE-LOCAL"]),
        (100, 2, []),
        (200, None, []),
    ],
)
def test_reassignment_needs_the_segment_right_before_the_local_start(
    local: int, leader_epoch: int | None, codes: list[str]
) -> None:
    """The segment before the local start is needed in an epoch that the leader has."""
    ends = PartitionOffsets(earliest=0, earliest_local=local, latest=300, last_stable=200)
    found = before_reassignment(tp(), WHOLE, ends, leader_epoch)
    assert [one.kind.code for one in found] == codes


def test_reassignment_when_copies_are_open_or_behind_then_says_so() -> None:
    """Open copies and lag are notes, and do not prevent a reassignment."""
    segments = [*WHOLE, started("open", 200, 299, {3: 200})]
    ends = PartitionOffsets(earliest=0, earliest_local=150, latest=400, last_stable=350)
    found = before_reassignment(tp(), segments, ends, 3)
    assert [one.kind.code for one in found] == ["COPY-UNDER-WAY", "COPIES-BEHIND"]
    assert found[1].fields["offsets"] == 150
    unknown = before_reassignment(tp(), segments, None, None)
    assert [one.kind.code for one in unknown] == ["LOCAL-START-UNKNOWN", "COPY-UNDER-WAY"]
    assert [one.kind.code for one in before_reassignment(tp(), [], ends, 3)] == ["NOT-TIERED"]


def test_reassignment_to_a_broker_that_does_not_tier_is_an_error() -> None:
    """A broker without tiering is an error, and an unknown one is not judged."""
    found = targets_without_tier({1: True, 2: False, 3: None}, [1, 2, 3, 4])
    assert [one.subject for one in found] == ["broker 2"]


def test_deletion_names_what_only_the_tier_has_and_what_would_stay_behind() -> None:
    """Data that is local as well goes, too, and is not named."""
    ends = PartitionOffsets(earliest=0, earliest_local=150, latest=400)
    found = before_deletion("orders", [(WHOLE, ends)])
    assert [one.kind.code for one in found] == ["DATA-ONLY-REMOTE"]
    assert (found[0].fields["segments"], found[0].fields["size_bytes"]) == (1, 1_024)
    both = before_deletion("orders", [(WHOLE, None), ([started("open", 200, 299)], ends)])
    assert [one.kind.code for one in both] == ["DATA-ONLY-REMOTE", "LEFTOVERS-LIKELY"]
    assert both[0].fields["segments"] == 2
    assert [one.kind.code for one in before_deletion("orders", [([], ends)])] == ["NOT-TIERED"]
