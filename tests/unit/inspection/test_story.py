"""The log's events about one offset: every copy that held it, and every refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.inspection import offset_history as story_module
from rlmm.inspection.history import EventHistory, HistoryPart, HistorySubject
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.offset_history import COPIES_MAX, LINES_MAX, REFUSED_MAX, OffsetHistory
from rlmm.inspection.replay import PartitionReplay
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.cli.metadata_history import History

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

CS, CF, DS, DF = SegmentState


async def story_of(offset: int, *events: Event) -> OffsetHistory:
    history = History(1)
    await history.add(*events, place=0)
    chronicle, story = EventHistory(HistorySubject.of(tp())), OffsetHistory(offset)
    async for chunk in PartitionReplay(history.log, 0, ReplayEnd(), timeout_s=5).chunks():
        for one in chunk.happened(chronicle.wanted):
            line = chronicle.tell(one)
            if line is not None:
                story.hear(line)
    return story


async def test_story_tells_each_copy_that_ever_held_the_offset() -> None:
    """The story has every copy that held the offset, deleted ones with their end."""
    story = await story_of(
        50,
        started("a", 0, 99), finished("a"), started("b", 100, 199), finished("b"),
        delete_started("a", broker_id=7), delete_finished("a", broker_id=8), started("c", 50, 50),
    )  # fmt: skip
    assert list(story.copies) == [segment_id("a").uuid, segment_id("c").uuid]
    gone, there = story.copies.values()
    assert (gone.is_there, there.is_there) == (False, True)
    ended = gone.last_to(DF)
    assert ended is not None
    assert ended.happened.event is not None
    assert ended.happened.event.broker_id == 8
    assert gone.last_to(CF) is not None
    assert there.last_to(CF) is None
    assert story.events == 7


async def test_f80_story_remembers_a_finish_that_came_before_its_copy() -> None:
    """The story has a finish that was refused because it came before its start."""
    story = await story_of(50, finished("a"), finished("b"), started("a", 0, 99))
    (copy,) = story.copies.values()
    early = copy.refused_finish
    assert early is not None
    assert early.happened.offset == 0
    assert [line.happened.offset for line in copy.events] == [0, 2]
    assert story.without_base == 2


async def test_story_tells_who_lost_its_place() -> None:
    """The stories of both segments have the displacement."""
    story = await story_of(
        50, started("a", 0, 99), finished("a"), started("b", 0, 150), finished("b")
    )
    first, second = story.copies.values()
    assert [line.part for line in first.events] == [
        HistoryPart.OWN,
        HistoryPart.OWN,
        HistoryPart.DISPLACED,
    ]
    assert [line.part for line in second.events] == [HistoryPart.OWN, HistoryPart.OWN]


async def test_story_of_a_deleted_partition_ends_every_copy() -> None:
    """The deletion of the partition ends every copy in the story."""
    marked, begun, ended = PartitionDeleteState
    story = await story_of(
        50, started("a", 0, 99), finished("a"),
        partition_delete(marked), partition_delete(begun), partition_delete(ended),
    )  # fmt: skip
    (copy,) = story.copies.values()
    assert not copy.is_there
    assert len(story.deletes) == 3


async def test_story_of_endless_repeats_keeps_the_first_and_the_last_events() -> None:
    """The story counts the repeats that it leaves out."""
    repeats = 3 * LINES_MAX
    story = await story_of(50, started("a", 0, 99), *[finished("a")] * repeats)
    (copy,) = story.copies.values()
    kept = [line.happened.offset for line in copy.events]
    assert len(kept) == LINES_MAX
    assert kept[0] == 0
    assert kept[-1] == repeats
    assert copy.events.left_out == repeats + 1 - LINES_MAX


async def test_story_of_many_copies_keeps_the_last_ones() -> None:
    """The story keeps the last copies up to a maximum."""
    story = await story_of(5, *(started(n, 0, 9) for n in range(COPIES_MAX + 3)))
    assert len(story.copies) == COPIES_MAX
    assert segment_id(2).uuid not in story.copies
    assert segment_id(COPIES_MAX + 2).uuid in story.copies


async def test_story_of_many_refused_updates_counts_all_and_keeps_few() -> None:
    """The story counts all rejected updates and keeps a few of them."""
    assert REFUSED_MAX > 0
    story = await story_of(5, *(finished(n) for n in range(REFUSED_MAX + 5)))
    assert story.without_base == REFUSED_MAX + 5
    assert len(story._refused) == story_module.REFUSED_MAX
