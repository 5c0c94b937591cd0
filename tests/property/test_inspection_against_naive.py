"""Bounded replays, diffs and histories of any log equal those of a naive reader."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from rlmm.inspection.history import EventHistory, HistoryPart, HistorySubject
from rlmm.inspection.log_scan import find_mention
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.moment_diff import (
    ChangeKind,
    DeleteChange,
    NewPartition,
    SegmentChange,
    WatermarkChange,
    changes_of,
    compare,
)
from rlmm.inspection.replay import PartitionReplay
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import Undecodable, UndecodableReason
from tests.support.logs.logs_of_every_kind import (
    LOGS,
    LOST,
    START_MS,
    MixedLog,
    NaiveEntry,
    written,
)
from tests.support.records.histories import PARTITIONS, UUIDS, DenseHistory
from tests.support.records.kafka_cache_model import LiteralStates

if TYPE_CHECKING:
    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.history import HistoryLine
    from rlmm.inspection.moment_diff import Change
    from rlmm.metadata.ids import TopicIdPartition, Uuid

    Expected = tuple[int, HistoryPart, object, object, dict[Uuid, tuple[int, ...]] | None]

SIZES = st.sampled_from((1, 200, 1_000, 1 << 20))
"""How many bytes the log hands over at a time."""


class Bound(NamedTuple):
    end: ReplayEnd
    next_offset: int | None = None
    limit_ms: int | None = None

    def offset_in(self, written: MixedLog) -> int:
        return written.end_at(self.next_offset, self.limit_ms)


def before_offset(last: int) -> Bound:
    return Bound(ReplayEnd({0: last}), last + 1)


BOUNDS = {
    "offsets": st.lists(st.integers(-1, 80), min_size=2, max_size=2).map(
        lambda pair: [before_offset(last) for last in sorted(pair)]
    ),
    "times": st.lists(
        st.integers(START_MS - 1_000, START_MS + 1_000_000), min_size=2, max_size=2
    ).map(lambda pair: [Bound(ReplayEnd(time_ms=at), limit_ms=at) for at in sorted(pair)]),
}


def replay_of(written: MixedLog, end: ReplayEnd, bytes_max: int) -> PartitionReplay:
    return PartitionReplay(written.log, 0, end, timeout_s=5, bytes_max=bytes_max)


def told_of(happened: list[EventRecord]) -> list[NaiveEntry]:
    entries: list[NaiveEntry] = []
    for one in happened:
        verdict = one.verdict
        if isinstance(verdict, Undecodable) and verdict.reason is UndecodableReason.DAMAGED_BATCH:
            last = entries[-1] if entries else None
            if last is not None and last.verdict is LOST and last.next_offset == one.offset:
                entries[-1] = last._replace(next_offset=one.next_offset)
            else:
                entries.append(NaiveEntry(one.offset, one.next_offset, -1, None, LOST))
        else:
            entries.append(
                NaiveEntry(one.offset, one.next_offset, one.timestamp_ms, one.event, verdict)
            )
    return entries


async def read_records(replay: PartitionReplay) -> list[EventRecord]:
    return [one async for chunk in replay.chunks() for one in chunk.happened()]


def check_replay(
    replay: PartitionReplay, happened: list[EventRecord], written: MixedLog, end: int
) -> None:
    shard, expected = written.naive(end)
    assert told_of(happened) == expected
    assert replay.shard.position == replay.end == end
    assert replay.shard.image() == shard.image()
    tally = replay.shard.statistics().tally
    lost = [one for one in happened if isinstance(one.verdict, Undecodable)]
    assert tally.offsets == end
    assert tally.undecodable == sum(one.next_offset - one.offset for one in lost)


@pytest.mark.parametrize("kind", BOUNDS)
@given(LOGS, st.data(), SIZES)
def test_replay_when_bounded_then_equals_one_record_after_the_other(
    kind: str, written: MixedLog, data: st.DataObject, bytes_max: int
) -> None:
    """A replay up to a bound, and on to a second one, reports and counts each record once."""
    first, second = data.draw(BOUNDS[kind])
    replay = replay_of(written, first.end, bytes_max)
    happened = asyncio.run(read_records(replay))
    check_replay(replay, happened, written, first.offset_in(written))
    replay.go_on(second.end)
    happened += asyncio.run(read_records(replay))
    check_replay(replay, happened, written, second.offset_in(written))


def states_at(written: MixedLog, end: int) -> LiteralStates:
    states = LiteralStates()
    for entry in written.naive(end)[1]:
        if entry.event is not None:
            states.apply(entry.event)
    return states


def expected_kind(old: SegmentMetadata | None, new: SegmentMetadata | None) -> ChangeKind:
    if old is None:
        return ChangeKind.SEGMENT_APPEARED
    if new is None:
        return ChangeKind.SEGMENT_GONE
    if new.state is SegmentState.DELETE_SEGMENT_STARTED and old.state is not new.state:
        return ChangeKind.SEGMENT_BEING_DELETED
    if (old.state, new.state) == tuple(SegmentState)[:2]:
        return ChangeKind.SEGMENT_FINISHED
    return ChangeKind.SEGMENT_CHANGED


def check_diff(written: MixedLog, bounds: list[Bound], bytes_max: int) -> None:
    before_end, after_end = bounds
    replay = replay_of(written, before_end.end, bytes_max)
    compared = asyncio.run(compare(replay, 0, after_end.end))
    first, end = (bound.offset_in(written) for bound in bounds)
    assert (compared.first_offset, compared.next_offset) == (first, end)
    found: list[tuple[TopicIdPartition, Change]] = [
        (both.partition, change)
        for both in compared.both(lambda _: True)
        for change in changes_of(both.before, both.after, both.partition)
    ]
    before, after = states_at(written, first), states_at(written, end)
    old, new = before.segments(), after.segments()
    segments = [one for _, one in found if isinstance(one, SegmentChange)]
    assert len({one.segment.id for one in segments}) == len(segments)
    assert {one.segment.id: (one.kind, one.before, one.after) for one in segments} == {
        one: (expected_kind(old.get(one), new.get(one)), old.get(one), new.get(one))
        for one in old.keys() | new.keys()
        if old.get(one) != new.get(one)
    }
    marks = {
        (partition, one.epoch): (one.before, one.after)
        for partition, one in found
        if isinstance(one, WatermarkChange)
    }
    low, high = before.watermarks(), after.watermarks()
    assert marks == {
        key: (low.get(key), high.get(key))
        for key in low.keys() | high.keys()
        if low.get(key) != high.get(key)
    }
    assert {
        partition: (one.before, one.after)
        for partition, one in found
        if isinstance(one, DeleteChange)
    } == {
        one: (before.deletes.get(one), delete)
        for one, delete in after.deletes.items()
        if before.deletes.get(one) != delete
    }
    naive_before, naive_after = (written.naive(at)[0] for at in (first, end))
    assert {p for p, one in found if isinstance(one, NewPartition)} == {
        p for p in naive_after.partitions() if not naive_before.knows(p)
    }
    entries = written.naive(end)[1]
    counted = sum(
        one.next_offset - max(one.offset, first) for one in entries if one.next_offset > first
    )
    assert sum(compared.verdicts.values()) == counted


@pytest.mark.parametrize("kind", BOUNDS)
@given(LOGS, st.data(), SIZES)
def test_diff_between_two_moments_equals_that_of_two_dictionaries(
    kind: str, written: MixedLog, data: st.DataObject, bytes_max: int
) -> None:
    """The diff names segments, watermarks, deletions and new partitions, each once."""
    check_diff(written, data.draw(BOUNDS[kind]), bytes_max)


@pytest.mark.parametrize("seed", range(12))
def test_diff_in_a_dense_history_equals_that_of_two_dictionaries(seed: int) -> None:
    """In a dense history of returning ids and deletions, the diff equals two dictionaries'."""
    rng = random.Random(seed)
    history = DenseHistory(rng)
    log = written([history.event() for _ in range(60)], rng)
    lasts = sorted(rng.choices(range(-1, len(log.lines)), k=2))
    check_diff(log, [before_offset(last) for last in lasts], rng.choice((1, 500)))


async def read_history(
    written: MixedLog, sought: HistorySubject, last: int, bytes_max: int
) -> list[HistoryLine]:
    replay = replay_of(written, ReplayEnd({0: last}), bytes_max)
    chronicle = EventHistory(sought)
    found = [
        chronicle.tell(one)
        async for chunk in replay.chunks()
        for one in chunk.happened(chronicle.wanted)
    ]
    return [line for line in found if line is not None]


def expected(
    written: MixedLog, end: int, partition: TopicIdPartition, uuid: Uuid | None
) -> list[Expected]:
    states = LiteralStates()
    lines: list[Expected] = []
    for entry in written.naive(end)[1]:
        event = entry.event
        if isinstance(event, PartitionDelete):
            before, is_there = states.deletes.get(event.partition), False
            if uuid is not None:
                is_there = SegmentId(partition, uuid) in states.segments()
            states.apply(event)
            if event.partition == partition and (uuid is None or is_there):
                part = HistoryPart.OWN if uuid is None else HistoryPart.PARTITION_DELETED
                now = None if before is None else before.state
                lines.append((entry.offset, part, now, event.state, None))
        elif isinstance(event, SegmentMetadata | SegmentUpdate):
            old, holders = states.segments().get(event.id), states.holders(event.id.partition)
            states.apply(event)
            new = states.segments().get(event.id)
            lost = holders - states.holders(event.id.partition)
            displaced = (
                {
                    one: tuple(sorted(epoch for epoch, label in lost if label == str(one)))
                    for one in UUIDS
                    if one != event.id.uuid and str(one) in {label for _, label in lost}
                }
                if event.state.name == "COPY_SEGMENT_FINISHED"
                else {}
            )
            around = (
                None if old is None else old.state, None if new is None else new.state, displaced
            )  # fmt: skip
            if event.id.partition != partition:
                continue
            if uuid is None or event.id.uuid == uuid:
                lines.append((entry.offset, HistoryPart.OWN, *around))
            elif uuid in displaced:
                lines.append((entry.offset, HistoryPart.DISPLACED, *around))
    return lines


def check_history(
    log: MixedLog, partition: TopicIdPartition, uuid: Uuid | None, last: int, bytes_max: int
) -> None:
    lines = asyncio.run(read_history(log, HistorySubject.of(partition, uuid), last, bytes_max))
    end = log.end_at(last + 1)
    shown = [
        (line.happened.offset, line.part, line.before, line.after, line.displaced)
        for line in lines
        if line.happened.event is not None
    ]
    assert shown == expected(log, end, partition, uuid)
    verdicts = {one.offset: one.verdict for one in log.naive(end)[1]}
    for line in lines:
        if line.happened.event is not None:
            assert line.happened.verdict == verdicts[line.happened.offset]


@given(
    LOGS, st.sampled_from(PARTITIONS), st.none() | st.sampled_from(UUIDS), st.integers(0, 80), SIZES
)
def test_history_equals_every_record_looked_at_one_by_one(
    written: MixedLog, partition: TopicIdPartition, uuid: Uuid | None, last: int, bytes_max: int
) -> None:
    """The history equals that of the naive reader for any log in any batches."""
    check_history(written, partition, uuid, last, bytes_max)


@pytest.mark.parametrize("seed", range(12))
def test_history_in_a_dense_log_equals_every_record_looked_at_one_by_one(seed: int) -> None:
    """The history equals the naive reader's where segments displace each other all the time."""
    rng = random.Random(seed)
    history = DenseHistory(rng)
    log = written([history.event() for _ in range(60)], rng)
    for uuid in (None, *UUIDS):
        check_history(
            log, PARTITIONS[0], uuid, rng.randrange(len(log.lines)), rng.choice((1, 1 << 20))
        )


@given(LOGS, st.sampled_from(UUIDS), st.integers(0, 80))
def test_mention_of_a_segment_is_found_anywhere(written: MixedLog, uuid: Uuid, last: int) -> None:
    """The first event of a segment names its partition, in compressed batches too."""
    found = asyncio.run(
        find_mention(
            written.log, 0, HistorySubject(segment=uuid), ReplayEnd({0: last}), timeout_s=5
        )
    )
    about = [
        one.event.id.partition
        for one in written.naive(written.end_at(last + 1))[1]
        if isinstance(one.event, SegmentMetadata | SegmentUpdate) and one.event.id.uuid == uuid
    ]
    if about:
        assert found is not None
        assert found.partition == about[0]
    else:
        assert found is None or found.partition is None
