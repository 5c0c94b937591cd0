"""Events of several metadata partitions as one stream, and waiting at its end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogTruncated, LogUnavailable
from rlmm.inspection import event_stream as streaming
from rlmm.inspection.event_stream import followed, merged, readers_of
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import READ_BYTES
from rlmm.metadata.verdicts import Rejected
from tests.support.builders import finished, segment_id, started
from tests.support.cli.metadata_history import START_MS, History

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from rlmm.inspection.event_record import EventRecord
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
        sizes = {reader._replay._bytes_max for reader in readers.values()}  # type: ignore[attr-defined]
        assert sizes == {min(READ_BYTES, max(65_536, 16 * 1024 * 1024 // count))}


@pytest.mark.parametrize("places", [(0,), (0, 1)])
async def test_followed_tells_what_is_appended_with_its_verdict(
    places: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The follower lets the log wait for one metadata partition and polls several for growth."""
    monkeypatch.setattr(streaming, "POLL_S", 0.05)
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


async def test_followed_without_verdicts_begins_where_it_is_told() -> None:
    """Without verdicts the follower reads no record before its start."""
    history = await a_history()
    readers = readers_of(history.log, {0: NOWHERE, 1: NOWHERE}, timeout_s=5, firsts={0: 2, 1: 3})
    async with aclosing(followed(history.log, readers, timeout_s=5, look_s=0.001)) as coming:
        first = await anext(coming)
        assert (first.metadata_partition, first.offset) == (0, 2)
        await history.add(started(77), place=1)
        second = await anext(coming)
        assert (second.metadata_partition, second.offset) == (1, 3)


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
    monkeypatch.setattr(streaming, "AWAY_S", 0.0)
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
