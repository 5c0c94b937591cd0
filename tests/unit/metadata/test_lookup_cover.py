"""Look-ups find every offset that a finished segment covers and no other, in any history."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentState
from tests.support.builders import finished, segment_id, started, update
from tests.support.engine.shards import new_shard

Copy = tuple[str, int, int] | tuple[str, int, int, dict[int, int]]

ids = st.integers(0, 7)
offsets = st.integers(-2, 12)
epochs = st.dictionaries(st.integers(0, 2), offsets, min_size=1)
lives = st.lists(
    st.one_of(
        st.tuples(st.just("add"), ids, st.integers(0, 12), st.integers(0, 12), epochs),
        st.tuples(st.just("finish"), ids),
        st.tuples(st.just("finish"), ids),
        st.tuples(st.sampled_from(["DS", "DF"]), ids),
    ),
    max_size=60,
)


@given(lives)
def test_f75_data_that_a_finished_segment_covers_is_never_reported_absent(
    steps: list[tuple[str, int] | tuple[str, int, int, int, dict[int, int]]],
) -> None:
    """Any history: an offset is found exactly if some finished segment covers it in that epoch."""
    shard = new_shard()
    partition = TopicIdPartition(Uuid.of(0, 1), "t", 0)
    for step in steps:
        segment = segment_id(step[1], partition)
        if len(step) == 5:
            _, _, start, length, listed = step
            shard.apply_event(started(segment, start, start + length, listed))
        elif step[0] == "finish":
            shard.apply_event(finished(segment))
        else:
            shard.apply_event(update(segment, {"DS": DS, "DF": DF}[step[0]]))
        for epoch in range(3):
            for offset in range(-3, 26):
                found = shard.segment_for(partition, epoch, offset)
                covering = [
                    other
                    for other in shard.segments(partition)
                    if covers(other.state, other.epochs, other.last_offset, epoch, offset)
                ]
                assert (found in covering) if covering else (found is None)


_, CF, DS, DF = SegmentState


def covers(
    state: SegmentState, listed: tuple[tuple[int, int], ...], last: int, epoch: int, offset: int
) -> bool:
    if state is not CF or epoch not in dict(listed):
        return False
    later = [first - 1 for other, first in listed if other > epoch]
    return dict(listed)[epoch] <= offset <= (later[0] if later else last)
