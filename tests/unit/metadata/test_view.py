"""User partitions as one reader sees them: loaded or not, initialised or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import NotReady, UnknownPartition
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.metadata.verdicts import APPLIED, Applied, Remark
from rlmm.metadata.view import PartitionViews
from tests.support.builders import finished, partition_delete, started, tp
from tests.support.engine.shards import batch_of, new_shard, record_set

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard

FINISHED = PartitionDeleteState.DELETE_PARTITION_FINISHED

QUESTIONS: dict[str, tuple[tuple[int, ...], object]] = {
    "segment_for": ((0, 5), None),
    "next_segment_with_txn_index": ((0, 5), None),
    "highest_offset": ((0,), None),
    "segments": ((), []),
    "segments_of_epoch": ((0,), []),
    "size_of_epoch": ((0,), 0),
}
"""The arguments behind the partition, and the answer of an empty partition."""


def ask(owner: PartitionViews | Shard, name: str, partition: TopicIdPartition) -> object:
    return getattr(owner, name)(partition, *QUESTIONS[name][0])


def views_of_one_copy() -> PartitionViews:
    views = PartitionViews(new_shard())
    views.apply(record_set(batch_of([started("s"), finished("s")])))
    return views


def test_views_then_ask_every_question_through_the_same_gate() -> None:
    """The table has every public question, and each passes the same gate."""
    others = {"load", "clear", "mark_initialized", "is_loaded", "is_ready", "apply", "apply_event"}
    public = {name for name in vars(PartitionViews) if not name.startswith("_")}
    assert public - others == set(QUESTIONS)


@pytest.mark.parametrize("name", QUESTIONS)
def test_f83_question_then_is_unknown_not_ready_or_empty(name: str) -> None:
    """Not loaded is unknown, not initialised is not ready, known without segments is empty."""
    views = views_of_one_copy()
    with pytest.raises(UnknownPartition, match="orders-7"):
        ask(views, name, tp())
    assert (views.is_ready(tp()), views.is_loaded(tp())) == (False, False)
    views.load(tp())
    with pytest.raises(NotReady, match=r"orders-7 in metadata partition 3 .* up to offset 2,"):
        ask(views, name, tp())
    assert (views.is_ready(tp()), views.is_loaded(tp())) == (False, True)
    views.load(tp("empty"))
    views.mark_initialized(tp("empty"))
    assert views.is_ready(tp("empty"))
    assert ask(views, name, tp("empty")) == QUESTIONS[name][1]


@pytest.mark.parametrize("name", QUESTIONS)
def test_question_about_a_ready_partition_then_is_the_shards_answer(name: str) -> None:
    """The answer of the view equals that of the shard."""
    shard = new_shard()
    views = PartitionViews(shard)
    views.load(tp())
    views.apply(record_set(batch_of([started("s"), finished("s")])))
    views.mark_initialized(tp())
    asked = ask(shard, name, tp())
    assert ask(views, name, tp()) == asked
    assert asked not in (None, [], 0)


def test_f24_partition_when_cleared_and_loaded_again_then_is_not_ready() -> None:
    """A cleared partition that is loaded again is not ready, even without an event."""
    views = PartitionViews(new_shard())
    views.load(tp())
    views.mark_initialized(tp())
    views.clear(tp())
    views.apply(record_set(batch_of([started("s"), finished("s")])))
    views.load(tp())
    with pytest.raises(NotReady):
        views.segments(tp())
    views.mark_initialized(tp())
    assert len(views.segments(tp())) == 1


def test_f81_partition_whose_deletion_finished_then_is_not_loaded_any_more() -> None:
    """The finished deletion unloads its partition and no other, from a set or one event."""
    for alone in (True, False):
        views = views_of_one_copy()
        for partition in (tp(), tp("other")):
            views.load(partition)
            views.mark_initialized(partition)
        end = partition_delete(FINISHED)
        if alone:
            views.apply_event(end)
        else:
            views.apply(record_set(batch_of([end], 2)))
        assert (views.is_loaded(tp()), views.is_ready(tp("other"))) == (False, True)
        with pytest.raises(UnknownPartition):
            views.segments(tp())


def test_f81_event_after_the_end_of_a_loaded_partition_then_neither_fails_nor_loads_it() -> None:
    """Kafka's consumer stops on this; here it is applied, remarked, and changes no readiness."""
    views = views_of_one_copy()
    views.load(tp())
    views.apply_event(partition_delete(FINISHED))
    verdict = views.apply_event(started("late"))
    assert verdict == Applied(Remark.PARTITION_WAS_DELETED)
    assert not views.is_loaded(tp())
    views.load(tp())
    views.mark_initialized(tp())
    assert [segment.start_offset for segment in views.segments(tp())] == [0]
    assert views.apply_event(finished("late")) == APPLIED
