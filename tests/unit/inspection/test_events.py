"""Events of several metadata partitions as one stream, and which of them are meant."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogTruncated, LogUnavailable
from rlmm.inspection import event_stream
from rlmm.inspection.event_filter import (
    VERDICT_WORDS,
    EventFilter,
    EventKind,
    kind_of,
    verdict_words,
    words_of,
)
from rlmm.inspection.event_record import EventRecord
from rlmm.inspection.event_stream import followed, merged, readers_of
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import READ_BYTES
from rlmm.inspection.selectors import partition_filter
from rlmm.metadata.events import SegmentSnapshot
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import (
    APPLIED,
    DUPLICATE,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Undecodable,
    UndecodableReason,
)
from tests.support.builders import finished, partition_delete, segment_id, started, tp
from tests.support.cli.metadata_history import START_MS, History

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from rlmm.inspection.event_stream import EventReader

NOWHERE = ReplayEnd()


async def a_history() -> History:
    history = History(2)
    for number in range(3):
        await history.add(started(number), place=0)
        await history.add(started(10 + number), place=1)
    return history


def streams_of(readers: Sequence[EventReader]) -> list[AsyncGenerator[EventRecord]]:
    async def stream(reader: EventReader) -> AsyncGenerator[EventRecord]:
        async for one in reader.happened():
            yield one

    return [stream(reader) for reader in readers]


async def test_merged_streams_are_in_the_order_of_their_records_times() -> None:
    """The merged stream is ordered by time, and each partition keeps its own order."""
    history = await a_history()
    readers = readers_of(history.log, {0: NOWHERE, 1: NOWHERE}, timeout_s=5)
    async with aclosing(merged(streams_of(list(readers.values())))) as stream:
        told = [(one.metadata_partition, one.offset, one.timestamp_ms) async for one in stream]
    assert told == [
        (place, offset, START_MS + 1_000 * (2 * offset + place))
        for offset in range(3)
        for place in range(2)
    ]


async def test_merged_where_times_go_back_keeps_each_partition_in_its_own_order() -> None:
    """The stream keeps the order of each partition, and times only choose between partitions."""
    history = History(2)
    await history.add(started(1), place=0)
    history.clock.at_ms -= 10_000
    await history.add(started(2), place=0)
    await history.add(started(3), place=1)
    readers = readers_of(history.log, {0: NOWHERE, 1: NOWHERE}, timeout_s=5)
    async with aclosing(merged(streams_of(list(readers.values())))) as stream:
        told = [(one.metadata_partition, one.offset) async for one in stream]
    assert told == [(1, 0), (0, 0), (0, 1)]


def test_readers_of_many_partitions_hold_little_of_each() -> None:
    """The memory of the merged readers does not grow with the number of partitions."""
    log = History(1).log
    for count in (1, 50, 5_000):
        readers = readers_of(log, dict.fromkeys(range(count), NOWHERE), timeout_s=5)
        sizes = {reader._replay._bytes_max for reader in readers.values()}  # type: ignore[union-attr]
        assert sizes == {min(READ_BYTES, max(65_536, 16 * 1024 * 1024 // count))}


@pytest.mark.parametrize("places", [(0,), (0, 1)])
async def test_followed_tells_what_is_appended_with_its_verdict(
    places: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The follower lets the log wait for one metadata partition and polls several for growth."""
    monkeypatch.setattr(event_stream, "POLL_S", 0.05)
    history = await a_history()
    readers = readers_of(history.log, dict.fromkeys(places, NOWHERE), timeout_s=5)
    for reader in readers.values():
        _ = [one async for one in reader.happened()]
    async with aclosing(followed(history.log, readers, timeout_s=5, look_s=0.001)) as coming:
        waiting = asyncio.ensure_future(anext(coming))
        await asyncio.sleep(0)
        await history.add(finished(0), place=0)
        first = await waiting
        assert (first.metadata_partition, first.offset) == (0, 3)
        await history.add(finished(0), finished(segment_id("nobody")), place=places[-1])
        second, third = [await anext(coming), await anext(coming)]
        assert second.metadata_partition == places[-1]
        assert isinstance(third.verdict, Rejected)


async def test_followed_when_the_log_is_away_then_waits_for_it() -> None:
    """The follower waits for the log and goes on at its position."""
    history = await a_history()
    readers = readers_of(history.log, {0: NOWHERE, 1: NOWHERE}, timeout_s=5)
    for reader in readers.values():
        _ = [one async for one in reader.happened()]
    history.topic.fault = LogUnavailable, "brokers away"
    async with aclosing(followed(history.log, readers, timeout_s=5, look_s=0.001)) as coming:
        waiting = asyncio.ensure_future(anext(coming))
        await asyncio.sleep(0)
        assert not waiting.done()
        history.topic.fault = None
        await history.add(started(5), place=1)
        assert (await waiting).offset == 3


async def test_followed_when_the_log_stays_away_then_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The follower reports a log that cannot be read."""
    monkeypatch.setattr(event_stream, "AWAY_S", 0.0)
    history = await a_history()
    readers = readers_of(history.log, {0: NOWHERE, 1: NOWHERE}, timeout_s=5)
    history.topic.fault = LogUnavailable, "brokers away"
    async with aclosing(followed(history.log, readers, timeout_s=5)) as coming:
        with pytest.raises(LogUnavailable):
            await anext(coming)


@pytest.mark.parametrize("knows_verdicts", [True, False])
@pytest.mark.parametrize("end", ["head", "tail"])
async def test_followed_when_the_log_was_cut_then_says_so(knows_verdicts: bool, end: str) -> None:
    """The follower reports a log that was truncated below or trimmed above its position."""
    history = await a_history()
    firsts = None if knows_verdicts else {0: 0, 1: 0}
    readers = readers_of(history.log, {0: NOWHERE, 1: NOWHERE}, timeout_s=5, firsts=firsts)
    for reader in readers.values():
        _ = [one async for one in reader.happened()]
    held = history.topic.partitions[0]
    if end == "tail":
        held.truncate_tail(1)
    else:
        await history.add(started(7), started(8), place=0)
        held.truncate_head(4)
    async with aclosing(followed(history.log, readers, timeout_s=5, look_s=0.001)) as coming:
        with pytest.raises(LogTruncated):
            await asyncio.wait_for(anext(coming), 5)


CF = SegmentState.COPY_SEGMENT_FINISHED
REJECTED = Rejected(RejectReason.UNKNOWN_SEGMENT, None, CF)
POISON = Undecodable(UndecodableReason.TRUNCATED)
STARTED = EventRecord(0, 0, 1, 5, started(1), APPLIED, b"")
FINISHED = EventRecord(0, 1, 2, 5, finished(1, broker_id=2), REJECTED, b"")
DISPLACING = EventRecord(0, 2, 3, 5, finished(2), Applied(Remark.DISPLACED_ANOTHER_SEGMENT), b"")
DELETE = EventRecord(
    0, 3, 4, 5, partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, tp("other", 1)),
    DUPLICATE, b"",
)  # fmt: skip
SNAPSHOT = EventRecord(
    0, 4, 5, 5, SegmentSnapshot(segment_id(3).uuid, 0, 9, 1, -1, 0, ((0, 0),), 10, None, CF),
    Rejected(RejectReason.SNAPSHOT_RECORD, None, CF), b"",
)  # fmt: skip
LOST = EventRecord(0, 5, 6, 5, None, POISON, b"\x01")
ALL = (STARTED, FINISHED, DISPLACING, DELETE, SNAPSHOT, LOST)


def test_kinds_and_words_of_every_event() -> None:
    """Each event has one kind, one verdict, and perhaps a reason."""
    assert [kind_of(one) for one in ALL] == [
        EventKind.SEGMENT, EventKind.UPDATE, EventKind.UPDATE, EventKind.PARTITION_DELETE,
        EventKind.SNAPSHOT, EventKind.UNREADABLE,
    ]  # fmt: skip
    assert [words_of(one) for one in ALL] == [
        ("applied", None), ("rejected", "unknown-segment"),
        ("applied", "displaced-another-segment"), ("duplicate", None),
        ("rejected", "snapshot-record"), ("undecodable", "truncated"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "offsets"),
    [
        pytest.param(EventFilter(), [0, 1, 2, 3, 4, 5], id="everything"),
        pytest.param(EventFilter(kinds=frozenset([EventKind.UPDATE])), [1, 2], id="kind"),
        pytest.param(
            EventFilter(states=frozenset(["COPY_SEGMENT_FINISHED"])), [1, 2, 4], id="state"
        ),
        pytest.param(EventFilter(verdicts=frozenset(["rejected"])), [1, 4], id="verdict"),
        pytest.param(
            EventFilter(verdicts=frozenset(["unknown-segment", "undecodable"])), [1, 5], id="reason"
        ),
        pytest.param(
            EventFilter(verdicts=frozenset(["displaced-another-segment"])), [2], id="remark"
        ),
        pytest.param(EventFilter(brokers=frozenset([2])), [1], id="broker"),
        pytest.param(EventFilter(segment=segment_id(1).uuid), [0, 1], id="segment"),
        pytest.param(EventFilter(partition_filter("other", None)), [3], id="topic"),
        pytest.param(
            EventFilter(partition_filter("orders", None), frozenset([EventKind.SEGMENT])), [0],
            id="several",
        ),
    ],
)  # fmt: skip
def test_filter_allows_what_all_of_it_allows(wanted: EventFilter, offsets: list[int]) -> None:
    """An event passes when every part of the filter matches, and a missing field matches none."""
    assert [one.offset for one in ALL if wanted.allows(one)] == offsets


def test_filter_by_verdict_needs_to_know_verdicts_unless_bytes_alone_say_it() -> None:
    """A filter for undecodable or truncated records needs no state."""
    assert not EventFilter().needs_verdicts
    assert not EventFilter(verdicts=frozenset(["undecodable", "truncated"])).needs_verdicts
    assert EventFilter(verdicts=frozenset(["undecodable", "rejected"])).needs_verdicts
    assert verdict_words(sorted(VERDICT_WORDS)) == VERDICT_WORDS
