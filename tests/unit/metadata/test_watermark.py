"""The highest offset of an epoch: relative to the epoch, and it only rises."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.ids import INT64_MAX, INT64_MIN
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import partition_delete, started, tp, update
from tests.support.engine.shards import Tier, new_shard


def test_f76_highest_offset_of_an_epoch_that_ends_inside_a_segment_then_is_its_own_end() -> None:
    """The tail that belongs to a later epoch does not count for the earlier one."""
    tier = Tier()
    tier.copy("s", 0, 100, {0: 0, 1: 20, 2: 80})
    assert [tier.highest(epoch) for epoch in range(4)] == [19, 79, 100, None]


def test_f76_highest_offset_after_deletions_then_stays() -> None:
    """Neither the start nor the end of a segment's deletion lowers the highest offset."""
    tier = Tier()
    tier.copy("a", 0, 99)
    tier.copy("b", 100, 199)
    tier.begin_delete("b")
    assert tier.highest(0) == 199
    tier.delete("a", "b")
    assert tier.highest(0) == 199
    assert tier.listed() == []


def test_highest_offset_before_any_finish_then_is_unknown() -> None:
    """Started and aborted copies do not count."""
    tier = Tier()
    tier.start("s")
    assert tier.highest(0) is None
    tier.delete("s")
    assert tier.highest(0) is None


def test_highest_offset_after_a_smaller_segment_then_stays() -> None:
    """A later finish below it changes nothing, whether it takes a slot or not."""
    tier = Tier()
    tier.copy("long", 0, 200)
    tier.copy("short", 0, 100)
    tier.copy("inner", 50, 60)
    assert tier.highest(0) == 200


def test_highest_offset_beyond_a_hole_then_says_so() -> None:
    """A copy that finished out of order counts although those before it are still open."""
    tier = Tier()
    tier.start("first", 0, 99)
    tier.copy("second", 100, 199)
    assert tier.highest(0) == 199
    assert tier.at(0, 50) is None


def test_highest_offset_of_an_epoch_without_records_then_lies_below_its_own_start() -> None:
    """Kafka's arithmetic: the epoch ends before the next begins, even where that is before it."""
    tier = Tier()
    tier.copy("s", 0, 100, {0: 0, 1: 50, 2: 50})
    assert [tier.highest(epoch) for epoch in range(3)] == [49, 49, 100]


def test_highest_offset_where_the_next_epoch_is_listed_at_the_least_offset_then_wraps() -> None:
    """One below the least offset is the largest, as in Java, and the state can be stored."""
    tier = Tier()
    tier.copy("s", 0, 9, {0: 0, 1: INT64_MIN, 2: -3})
    assert [tier.highest(epoch) for epoch in range(3)] == [INT64_MAX, -4, 9]
    assert PythonShard.from_image(tier.shard.image()).highest_offset(tp(), 0) == INT64_MAX


def test_highest_offset_after_a_restore_then_is_what_it_was() -> None:
    """The image holds the highest offset apart from the segments."""
    tier = Tier()
    tier.copy("a", 0, 99)
    tier.delete("a")
    assert PythonShard.from_image(tier.shard.image()).highest_offset(tp(), 0) == 99


def test_highest_offset_of_a_deleted_partition_then_is_forgotten() -> None:
    """The one event that lowers it takes the whole partition away."""
    tier = Tier()
    tier.copy("a", 0, 99)
    tier.event(partition_delete(PartitionDeleteState.DELETE_PARTITION_FINISHED))
    assert tier.highest(0) is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.integers(0, 9),
            st.integers(0, 9),
            st.dictionaries(st.integers(0, 2), st.integers(0, 18), min_size=1),
            st.sampled_from(SegmentState),
        ),
        max_size=40,
    )
)
def test_highest_offset_then_never_goes_down(
    steps: list[tuple[int, int, int, dict[int, int], SegmentState]],
) -> None:
    """No event and no restore lowers the highest offset."""
    shard = new_shard()
    before: list[int | None] = [None] * 3
    for number, start, length, epochs, state in steps:
        if state is SegmentState.COPY_SEGMENT_STARTED:
            shard.apply_event(started(number, start, start + length, epochs))
        else:
            shard.apply_event(update(number, state))
        after = [shard.highest_offset(tp(), epoch) for epoch in range(3)]
        for old, new in zip(before, after, strict=True):
            assert old is None or (new is not None and new >= old)
        before = after
        shard = PythonShard.from_image(shard.image())
