"""The log read with a state of it, and searched without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument, LogTruncated, LogUnavailable, NotReady, UnknownPartition
from rlmm.inspection.history import HistorySubject
from rlmm.inspection.log_scan import LogScan, PartitionMention, find_mention
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import PartitionReplay, replay
from rlmm.metadata.encoding import encode, encode_any
from rlmm.metadata.events import SegmentSnapshot
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Applied, Rejected, RejectReason, Undecodable, UndecodableReason
from rlmm.records.compression import Compression
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    segment_id,
    started,
    tp,
)
from tests.support.cli.metadata_history import START_MS, History
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.shards import batch_of
from tests.support.records.record_sets import broken

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

EVENTS = (
    started("a", 0, 99), finished("a"), started("b", 100, 199), finished("b"), finished("nobody"),
    delete_started("a"), delete_finished("a"),
)  # fmt: skip


async def the_history() -> tuple[History, int]:
    history = History()
    (place, _), *_ = await history.add(*EVENTS)
    return history, place


@pytest.mark.parametrize("last", range(-1, len(EVENTS)))
@pytest.mark.parametrize("at_once", [1, len(EVENTS)])
async def test_replay_when_bounded_by_offset_or_time_then_is_the_state_of_what_lies_before(
    last: int, at_once: int
) -> None:
    """The state is that of the records before the bound, in single batches or in one."""
    history = History()
    place = metadata_partition_for(tp().topic_id, tp().partition, 3)
    if at_once == 1:
        await history.add(*EVENTS)
    else:
        history.topic.write(history.topic.partitions[place], [encode(event) for event in EVENTS])
    expected = ChosenShard(place)
    for event in EVENTS[: last + 1]:
        expected.apply_event(event)
    found = await replay(history.log, [place], ReplayEnd({place: last}), timeout_s=5)
    assert found.replays[place].shard.image() == expected.image()
    if at_once == 1:
        at_ms = START_MS + 1_000 * last
        found = await replay(history.log, [place], ReplayEnd(time_ms=at_ms), timeout_s=5)
        assert found.replays[place].shard.image() == expected.image()


async def test_happened_when_read_then_has_place_time_and_verdict_of_each() -> None:
    """Each event has place, time and verdict, with the reason or the bytes."""
    history, place = await the_history()
    await history.add(b"\x01\xff", place=place)
    one = PartitionReplay(history.log, place, ReplayEnd(), timeout_s=5)
    told = [each async for chunk in one.chunks() for each in chunk.happened()]
    assert [each.offset for each in told] == list(range(len(EVENTS) + 1))
    assert [each.timestamp_ms for each in told] == [START_MS + 1_000 * n for n in range(len(told))]
    assert [each.event for each in told] == [*EVENTS, None]
    assert isinstance(told[0].verdict, Applied)
    rejected = told[4].verdict
    assert isinstance(rejected, Rejected)
    assert rejected.reason is RejectReason.UNKNOWN_SEGMENT
    assert isinstance(told[-1].verdict, Undecodable)
    assert told[-1].value == b"\x01\xff"


async def test_moment_when_asked_then_tells_partitions_segments_and_who_is_unknown() -> None:
    """The same words as any other source."""
    history, place = await the_history()
    moment = await history.moment()
    (summary,) = await moment.user_partitions()
    assert (summary.partition, summary.metadata_partition) == (tp(), place)
    assert (summary.started, summary.finished, summary.being_deleted) == (0, 1, 0)
    pages = [page async for page in moment.segments(tp())]
    assert [[one.start_offset for one in page] for page in pages] == [[100]]
    assert (await moment.state(tp())).segment_for(tp(), 0, 150) is not None
    with pytest.raises(UnknownPartition):
        await moment.state(tp("nobody"))


async def test_f65_state_before_the_log_begins_is_refused_not_shown_empty() -> None:
    """A moment before the log start is refused, and the kept records count as before."""
    history, place = await the_history()
    history.topic.partitions[place].truncate_head(3)
    for bound in (
        ReplayEnd({place: 2}),
        ReplayEnd({place: 0}),
        ReplayEnd(time_ms=START_MS + 2_500),
    ):
        with pytest.raises(LogTruncated, match="begins at offset 3") as refused:
            await replay(history.log, [place], bound, timeout_s=5)
        assert refused.value.log_start == 3
    found = await replay(history.log, [place], ReplayEnd({place: 3}), timeout_s=5)
    assert found.positions == {place: 4}
    assert found.replays[place].log_start == 3


async def test_replay_when_the_log_begins_at_its_beginning_then_may_be_asked_before_all() -> None:
    """A moment before the first record of a complete log is an empty state."""
    history, place = await the_history()
    found = await replay(history.log, [place], ReplayEnd(time_ms=START_MS - 1), timeout_s=5)
    assert found.positions == {place: 0}
    assert await found.user_partitions() == []


@pytest.mark.parametrize(
    ("change", "end", "error", "said"),
    [
        (None, 2, InvalidArgument, "the second moment before the first"),
        ("truncate_head", None, LogTruncated, "offset 4 is reached"),
        ("truncate_tail", None, LogTruncated, "offset 4 is reached"),
    ],
    ids=["earlier-moment", "head", "tail"],
)
async def test_replay_when_it_cannot_go_on_then_refuses(
    change: str | None, end: int | None, error: type[Exception], said: str
) -> None:
    """The replay cannot take back events, and needs its own position in the log."""
    history, place = await the_history()
    one = PartitionReplay(history.log, place, ReplayEnd({place: 3}), timeout_s=5)
    await one.run()
    if change is not None:
        getattr(history.topic.partitions[place], change)({"truncate_head": 5}.get(change, 1))
    one.go_on(ReplayEnd() if end is None else ReplayEnd({place: end}))
    with pytest.raises(error, match=said):
        await one.run()


async def test_replay_where_a_hole_reaches_beyond_the_bound_then_ends_at_the_bound() -> None:
    """A position is part of the state: the same moment has the same image, however it is read."""
    history, place = await the_history()
    held = history.topic.partitions[place]
    left = list(held.batches)
    held.store(batch_of(EVENTS[:4], held.next_offset), 4)
    held.replace(left)  # as compaction leaves it: the offsets are there, and no batch
    one = PartitionReplay(history.log, place, ReplayEnd({place: len(EVENTS) + 2}), timeout_s=5)
    shard = await one.run()
    assert shard.position == one.end == len(EVENTS) + 3


async def test_replay_where_what_was_lost_reaches_beyond_the_bound_then_tells_its_part() -> None:
    """The replay reports the lost part below the bound."""
    history, place = await the_history()
    held = history.topic.partitions[place]
    held.store(broken(batch_of(EVENTS[:4], held.next_offset)), 4)
    one = PartitionReplay(history.log, place, ReplayEnd({place: len(EVENTS) + 1}), timeout_s=5)
    told = [each async for chunk in one.chunks() for each in chunk.happened()]
    assert (told[-1].offset, told[-1].next_offset) == (len(EVENTS), len(EVENTS) + 2)
    assert isinstance(told[-1].verdict, Undecodable)
    assert one.shard.statistics().tally.undecodable == 2


async def test_happened_when_bytes_are_wanted_then_decodes_no_others() -> None:
    """The filter decodes only records that contain the bytes, and passes on lost ones."""
    history, place = await the_history()
    held = history.topic.partitions[place]
    held.store(broken(batch_of(EVENTS[:2], held.next_offset)), 2)
    one = PartitionReplay(history.log, place, ReplayEnd(), timeout_s=5)
    wanted = bytes(segment_id("b").uuid)
    told = [each async for chunk in one.chunks() for each in chunk.happened(lambda v: wanted in v)]
    assert [each.offset for each in told] == [2, 3, len(EVENTS)]


async def test_replay_when_bounded_in_a_metadata_partition_that_is_not_there_then_refused() -> None:
    """The replay refuses a bound in an absent metadata partition."""
    history, place = await the_history()
    with pytest.raises(InvalidArgument, match="0 to 2, got 3"):
        await replay(history.log, [place], ReplayEnd({3: 1}), timeout_s=5)


A, B = segment_id("a"), segment_id("b")
OTHER = tp("other", 1)
SNAPSHOT = SegmentSnapshot(
    A.uuid, 0, 9, 1, -1, 0, ((0, 0),), 10, None, SegmentState.COPY_SEGMENT_FINISHED
)


FIRST = started(B), encode_any(SNAPSHOT), finished(segment_id("a", OTHER)), started(A)
POISON = encode(finished(A))[:-3]
OF_A, OF_B = HistorySubject(segment=A.uuid), HistorySubject(segment=B.uuid)
BY_NAME = HistorySubject(topic="other", partition=1)


@pytest.mark.parametrize(
    ("sought", "events", "last", "expected"),
    [
        pytest.param(OF_A, FIRST, 99, PartitionMention(0, OTHER), id="first-event"),
        pytest.param(OF_A, FIRST, 1, PartitionMention(0, None), id="snapshot-record"),
        pytest.param(OF_A, FIRST, 0, None, id="before-it"),
        pytest.param(OF_A, (started(B), POISON), 9, PartitionMention(0, None), id="poison"),
        pytest.param(OF_B, (POISON,), 9, None, id="poison-of-another"),
        pytest.param(BY_NAME, FIRST[2:3], 9, PartitionMention(0, OTHER), id="by-name"),
        pytest.param(BY_NAME, (started(segment_id(1, tp("other", 2))),), 9, None, id="number"),
        pytest.param(BY_NAME, (started(segment_id(1, tp("another", 1))),), 9, None, id="name"),
    ],
)
async def test_mention_names_the_partition_of_the_first_event_below_the_bound(
    sought: HistorySubject, events: tuple[Event | bytes, ...], last: int,
    expected: PartitionMention | None,
) -> None:  # fmt: skip
    """Undecodable bytes name no partition; another number or a longer name is another one."""
    history = History(1)
    await history.add(*events, place=0)
    bound = ReplayEnd({0: last})
    assert await find_mention(history.log, 0, sought, bound, timeout_s=5) == expected


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])
async def test_mention_in_a_compressed_batch_is_found(codec: Compression) -> None:
    """The scan decompresses batches to find the id."""
    history = History(1)
    values = [encode(started(segment_id(n))) for n in range(1, 30)] + [encode(started(A))]
    history.topic.write(history.topic.partitions[0], values, compression=codec)
    found = await find_mention(history.log, 0, OF_A, ReplayEnd(), timeout_s=5)
    assert found == PartitionMention(0, tp())


async def test_mention_in_a_damaged_batch_is_one() -> None:
    """A damaged batch counts as a mention, because it may hold events of the segment."""
    history = History(1)
    history.topic.partitions[0].store(broken(batch_of([started(A)], 0)), 1)
    found = await find_mention(history.log, 0, OF_A, ReplayEnd(), timeout_s=5)
    assert found == PartitionMention(0, None)


async def test_scan_tells_progress_up_to_the_end() -> None:
    """The scan reports its progress up to the end of the log."""
    history = History(1)
    await history.add(started(A), finished(A), place=0)
    heard: list[tuple[int, int, int]] = []
    await find_mention(
        history.log, 0, HistorySubject(segment=B.uuid), ReplayEnd(), timeout_s=5,
        progress=lambda *told: heard.append(told),
    )  # fmt: skip
    assert heard[0][0] == 0
    assert heard[-1] == (0, 2, 2)


async def test_scan_when_begun_at_an_offset_then_reads_from_there_and_goes_on() -> None:
    """The scan reads no record before its offset, and the next call reads appended ones."""
    history = History(1)
    await history.add(started(1), started(2), b"\x01\xff", place=0)
    scan = LogScan(history.log, 0, ReplayEnd(), timeout_s=5, first=1, bytes_max=1)
    told = [one async for one in scan.happened()]
    assert [one.offset for one in told] == [1, 2]
    assert isinstance(told[1].verdict, Undecodable)
    assert (scan.position, scan.log_start) == (3, 0)
    await history.add(started(3), place=0)
    scan.go_on()
    assert [one.offset async for one in scan.happened()] == [3]


async def test_scan_of_damage_tells_what_was_lost_as_the_engine_does() -> None:
    """The scan reports the damage as one piece with its bytes, up to the next sound batch."""
    history = History(1)
    held = history.topic.partitions[0]
    damaged = broken(batch_of([started(1), started(2)], 0))
    held.store(damaged, 2)
    held.store(batch_of([started(3)], 2), 1)
    told = [one async for one in LogScan(history.log, 0, ReplayEnd(), timeout_s=5).happened()]
    assert [(one.offset, one.next_offset) for one in told] == [(0, 2), (2, 3)]
    assert isinstance(told[0].verdict, Undecodable)
    assert told[0].verdict.reason is UndecodableReason.DAMAGED_BATCH
    assert told[0].value == damaged


async def test_scan_when_the_log_gives_nothing_then_is_not_ready() -> None:
    """The scan answers not ready for a silent log, and passes on the log's errors."""
    history = History(1)
    await history.add(started(1), place=0)
    held = history.topic.partitions[0]
    held.is_stalled = True
    with pytest.raises(NotReady, match="nothing came"):
        _ = [one async for one in LogScan(history.log, 0, ReplayEnd(), timeout_s=0.01).happened()]
    held.fault = LogUnavailable, "away"
    with pytest.raises(LogUnavailable):
        _ = [one async for one in LogScan(history.log, 0, ReplayEnd(), timeout_s=0.01).happened()]
