"""The log searched without making a state of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogUnavailable, NotReady
from rlmm.inspection.history import HistorySubject
from rlmm.inspection.log_scan import LogScan, PartitionMention, find_mention
from rlmm.inspection.moment import ReplayEnd
from rlmm.metadata.encoding import encode, encode_any
from rlmm.metadata.events import SegmentSnapshot
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Undecodable, UndecodableReason
from rlmm.records.compression import Compression
from tests.support.builders import finished, segment_id, started, tp
from tests.support.cli.metadata_history import History
from tests.support.engine.shards import batch_of
from tests.support.records.record_sets import broken

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

A, B = segment_id("a"), segment_id("b")
OTHER = tp("other", 1)
SNAPSHOT = SegmentSnapshot(
    A.uuid, 0, 9, 1, -1, 0, ((0, 0),), 10, None, SegmentState.COPY_SEGMENT_FINISHED
)


async def mention(
    sought: HistorySubject, *events: Event | bytes, last: int = 99
) -> PartitionMention | None:
    history = History(1)
    await history.add(*events, place=0)
    return await find_mention(history.log, 0, sought, ReplayEnd({0: last}), timeout_s=5)


async def test_mention_of_a_segment_names_the_partition_of_its_first_event() -> None:
    """The mention has the partition of the segment's first event below the bound."""
    sought = HistorySubject(segment=A.uuid)
    events = (started(B), encode_any(SNAPSHOT), finished(segment_id("a", OTHER)), started(A))
    assert await mention(sought, *events) == PartitionMention(0, OTHER)
    assert await mention(sought, *events, last=1) == PartitionMention(0, None)
    assert await mention(sought, *events, last=0) is None


async def test_mention_in_what_nobody_understands_names_no_partition() -> None:
    """A mention in undecodable bytes has no partition."""
    poison = encode(finished(A))[:-3]
    assert await mention(HistorySubject(segment=A.uuid), started(B), poison) == PartitionMention(
        0, None
    )
    assert await mention(HistorySubject(segment=B.uuid), poison) is None


async def test_mention_of_a_partition_by_name_is_of_that_partition() -> None:
    """Another number, or a name with the same beginning, is another one."""
    sought = HistorySubject(topic="other", partition=1)
    assert await mention(sought, started(segment_id(1, OTHER))) == PartitionMention(0, OTHER)
    assert await mention(sought, started(segment_id(1, tp("other", 2)))) is None
    assert await mention(sought, started(segment_id(1, tp("another", 1)))) is None


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])
async def test_mention_in_a_compressed_batch_is_found(codec: Compression) -> None:
    """The scan decompresses batches to find the id."""
    history = History(1)
    values = [encode(started(segment_id(n))) for n in range(1, 30)] + [encode(started(A))]
    history.topic.write(history.topic.partitions[0], values, compression=codec)
    found = await find_mention(
        history.log, 0, HistorySubject(segment=A.uuid), ReplayEnd(), timeout_s=5
    )
    assert found == PartitionMention(0, tp())


async def test_mention_in_a_damaged_batch_is_one() -> None:
    """A damaged batch counts as a mention, because it may hold events of the segment."""
    history = History(1)
    history.topic.partitions[0].store(broken(batch_of([started(A)], 0)), 1)
    found = await find_mention(
        history.log, 0, HistorySubject(segment=A.uuid), ReplayEnd(), timeout_s=5
    )
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
