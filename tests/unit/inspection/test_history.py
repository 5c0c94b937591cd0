"""The history of a segment, a user partition or one offset: every event and its effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.inspection.history import SLOTS_MAX, EventHistory, HistoryPart, HistorySubject
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.offset_history import COPIES_MAX, LINES_MAX, REFUSED_MAX, OffsetHistory
from rlmm.inspection.replay import PartitionReplay
from rlmm.metadata.encoding import encode, encode_any
from rlmm.metadata.events import SegmentSnapshot
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import Rejected, RejectReason
from tests.support.builders import (
    TOPIC_ID,
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
    from rlmm.inspection.history import HistoryLine
    from rlmm.metadata.events import Event

CS, CF, DS, DF = SegmentState
A, B = segment_id("a"), segment_id("b")
OTHER = tp("other", 1)


async def lines_of(sought: HistorySubject, *events: Event | bytes) -> list[HistoryLine]:
    history = History(1)
    await history.add(*events, place=0)
    chronicle = EventHistory(sought)
    replay = PartitionReplay(history.log, 0, ReplayEnd(), timeout_s=5)
    found = [
        chronicle.tell(one)
        async for chunk in replay.chunks()
        for one in chunk.happened(chronicle.wanted)
    ]
    return [line for line in found if line is not None]


async def test_history_of_a_segment_tells_each_event_and_the_state_around_it() -> None:
    """The history has each event of the segment with its deletion, and no other segment."""
    lines = await lines_of(
        HistorySubject.of(tp(), A.uuid),
        started("a", 0, 99), started("b", 100, 199), finished("a"),
        started(segment_id("a", OTHER)), delete_started("a"), delete_finished("a"),
    )  # fmt: skip
    assert [line.happened.offset for line in lines] == [0, 2, 4, 5]
    assert [(line.before, line.after) for line in lines] == [
        (None, CS), (CS, CF), (CF, DS), (DS, None)
    ]  # fmt: skip
    assert {line.part for line in lines} == {HistoryPart.OWN}
    assert [line.displaced for line in lines] == [{}] * 4


async def test_f78_history_of_a_segment_shows_what_was_refused_with_its_reason() -> None:
    """A rejected event is in the history and changes no state."""
    lines = await lines_of(
        HistorySubject.of(tp(), A.uuid),
        finished("a"), started("a"), delete_finished("a"), finished("a"),
    )  # fmt: skip
    verdicts = [line.happened.verdict for line in lines]
    refused = {at: one.reason for at, one in enumerate(verdicts) if isinstance(one, Rejected)}
    assert refused == {0: RejectReason.UNKNOWN_SEGMENT, 2: RejectReason.ILLEGAL_TRANSITION}
    assert [(line.before, line.after) for line in lines] == [
        (None, None), (None, CS), (CS, CS), (CS, CF)
    ]  # fmt: skip


async def test_history_tells_who_lost_its_place_to_whom() -> None:
    """KAFKA-20932: 0-100 and 101-200 are finished, then 0-150 takes the place of the first."""
    events = (
        started("a", 0, 100), finished("a"), started("b", 101, 200), finished("b"),
        started("c", 0, 150, {0: 0, 1: 120}), finished("c"),
    )  # fmt: skip
    last = (await lines_of(HistorySubject.of(tp()), *events))[-1]
    assert last.displaced == {A.uuid: (0,)}
    mine = await lines_of(HistorySubject.of(tp(), A.uuid), *events)
    assert [(line.happened.offset, line.part) for line in mine] == [
        (0, HistoryPart.OWN), (1, HistoryPart.OWN), (5, HistoryPart.DISPLACED)
    ]  # fmt: skip
    assert mine[-1].displaced == {A.uuid: (0,)}
    assert len(await lines_of(HistorySubject.of(tp(), B.uuid), *events)) == 2


async def test_f79_history_of_a_repeated_finish_tells_whom_it_has_displaced() -> None:
    """The repeated finish is a duplicate, and the history names the displaced segment."""
    events = (
        started("a", 0, 100), finished("a"), started("b", 0, 200), finished("b"), finished("a"),
    )  # fmt: skip
    lines = await lines_of(HistorySubject.of(tp(), B.uuid), *events)
    assert [(line.happened.offset, line.part) for line in lines] == [
        (2, HistoryPart.OWN), (3, HistoryPart.OWN), (4, HistoryPart.DISPLACED)
    ]  # fmt: skip
    assert lines[1].displaced == {A.uuid: (0,)}


async def test_history_where_an_epoch_has_too_many_slots_does_not_say_who_lost_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With too many slots the replaced segments are unknown, which differs from none."""
    monkeypatch.setattr("rlmm.inspection.history.SLOTS_MAX", 0)
    assert SLOTS_MAX > 0
    lines = await lines_of(
        HistorySubject.of(tp()),
        started("a", 0, 100),
        finished("a"),
        started("b", 0, 200),
        finished("b"),
    )
    assert [line.displaced for line in lines] == [{}, {}, {}, None]


async def test_history_of_a_segment_tells_when_its_whole_partition_was_deleted() -> None:
    """The history has the deletion of the whole partition, from its first event to its end."""
    marked, begun, ended = PartitionDeleteState
    lines = await lines_of(
        HistorySubject.of(tp(), A.uuid),
        partition_delete(marked), started("a"), partition_delete(begun), partition_delete(ended),
        partition_delete(ended),
    )  # fmt: skip
    assert [(line.happened.offset, line.part) for line in lines] == [
        (1, HistoryPart.OWN), (2, HistoryPart.PARTITION_DELETED), (3, HistoryPart.PARTITION_DELETED)
    ]  # fmt: skip
    assert [(line.before, line.after) for line in lines[1:]] == [(marked, begun), (begun, ended)]
    whole = await lines_of(HistorySubject.of(tp()), partition_delete(marked), started("a"))
    assert [line.part for line in whole] == [HistoryPart.OWN, HistoryPart.OWN]


async def test_history_shows_poison_that_names_what_is_sought() -> None:
    """The history shows undecodable records that contain the id."""
    poison = encode(finished("a"))[:-3]
    lines = await lines_of(HistorySubject.of(tp(), A.uuid), started("a"), poison, b"\x01\xff")
    assert [(line.happened.offset, line.part) for line in lines] == [
        (0, HistoryPart.OWN), (1, HistoryPart.MENTIONED)
    ]  # fmt: skip
    assert lines[1].happened.value == poison


async def test_history_shows_snapshot_records_of_the_segment() -> None:
    """Snapshot records of the segment are in the history as rejected."""
    snapshot = SegmentSnapshot(A.uuid, 0, 9, 1, -1, 0, ((0, 0),), 10, None, CF)
    other = SegmentSnapshot(B.uuid, 0, 9, 1, -1, 0, ((0, 0),), 10, None, CF)
    lines = await lines_of(HistorySubject.of(tp(), A.uuid), encode_any(snapshot), encode_any(other))
    assert [line.happened.offset for line in lines] == [0]
    verdict = lines[0].happened.verdict
    assert isinstance(verdict, Rejected)
    assert verdict.reason is RejectReason.SNAPSHOT_RECORD


@pytest.mark.parametrize(
    ("sought", "offsets"),
    [
        pytest.param(HistorySubject(topic="orders", partition=7), [0, 1], id="by name"),
        pytest.param(HistorySubject(topic_id=TOPIC_ID, partition=7), [0, 2], id="by topic id"),
        pytest.param(HistorySubject.of(tp()), [0], id="wholly"),
        pytest.param(HistorySubject(segment=segment_id(2).uuid), [2], id="by segment alone"),
        pytest.param(HistorySubject(topic="orders", partition=8), [], id="another partition"),
        pytest.param(HistorySubject(topic="order", partition=7), [], id="a part of the name"),
    ],
)
async def test_sought_when_partly_known_then_means_all_that_may_be_it(
    sought: HistorySubject, offsets: list[int]
) -> None:
    """A topic that was made again has the same name and another id."""
    again = tp(topic_id=Uuid.of(7, 7))
    lines = await lines_of(
        sought, started(segment_id(0)), started(segment_id(1, again)),
        started(segment_id(2, tp("renamed"))),
    )  # fmt: skip
    assert [line.happened.offset for line in lines] == offsets


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
    own = [HistoryPart.OWN] * 2
    parts = [[line.part for line in copy.events] for copy in story.copies.values()]
    assert parts == [[*own, HistoryPart.DISPLACED], own]


async def test_story_of_a_deleted_partition_ends_every_copy() -> None:
    """The deletion of the partition ends every copy in the story."""
    deletes = [partition_delete(state) for state in PartitionDeleteState]
    story = await story_of(50, started("a", 0, 99), finished("a"), *deletes)
    assert [copy.is_there for copy in story.copies.values()] == [False]
    assert len(story.deletes) == 3


async def test_story_of_many_copies_or_refused_updates_keeps_a_bounded_number() -> None:
    """The story keeps the last copies and a few rejected updates, and counts all of these."""
    story = await story_of(5, *(started(n, 0, 9) for n in range(COPIES_MAX + 3)))
    assert list(story.copies) == [segment_id(n).uuid for n in range(3, COPIES_MAX + 3)]
    assert REFUSED_MAX > 0
    story = await story_of(5, *(finished(n) for n in range(REFUSED_MAX + 5)))
    assert (story.without_base, len(story._refused)) == (REFUSED_MAX + 5, REFUSED_MAX)


async def test_story_of_endless_repeats_keeps_the_first_and_the_last_events() -> None:
    """The story counts the repeats that it leaves out."""
    repeats = 3 * LINES_MAX
    story = await story_of(50, started("a", 0, 99), *[finished("a")] * repeats)
    (copy,) = story.copies.values()
    kept = [line.happened.offset for line in copy.events]
    assert (len(kept), kept[0], kept[-1]) == (LINES_MAX, 0, repeats)
    assert copy.events.left_out == repeats + 1 - LINES_MAX
