"""Bounded replays equal a naive replay in state, position and outcomes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis import given

from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import PartitionReplay
from rlmm.metadata.verdicts import Undecodable, UndecodableReason
from tests.support.logs.logs_of_every_kind import LOGS, LOST, START_MS, MixedLog, NaiveEntry

if TYPE_CHECKING:
    from rlmm.inspection.event_record import EventRecord

SIZES = st.sampled_from((1, 200, 1_000, 1 << 20))
"""How many bytes the log hands over at a time."""
TIMES = st.integers(START_MS - 1_000, START_MS + 1_000_000)


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


async def read(replay: PartitionReplay) -> list[EventRecord]:
    return [one async for chunk in replay.chunks() for one in chunk.happened()]


def check(
    replay: PartitionReplay, entries: list[NaiveEntry], written: MixedLog, end: int, begin: int = 0
) -> None:
    shard, expected = written.naive(end)
    assert entries == [one for one in expected if one.next_offset > begin]
    assert replay.shard.position == replay.end == end
    assert replay.shard.image() == shard.image()


@given(LOGS, st.integers(-1, 80), SIZES)
def test_replay_when_bounded_by_offset_then_equals_one_record_after_the_other(
    written: MixedLog, last: int, bytes_max: int
) -> None:
    """A replay bounded by offset equals a replay record by record, through holes and losses."""
    replay = PartitionReplay(written.log, 0, ReplayEnd({0: last}), timeout_s=5, bytes_max=bytes_max)
    entries = told_of(asyncio.run(read(replay)))
    check(replay, entries, written, written.end_at(last + 1))


@given(LOGS, TIMES, SIZES)
def test_replay_when_bounded_by_time_then_ends_before_the_first_later_record(
    written: MixedLog, limit_ms: int, bytes_max: int
) -> None:
    """A replay bounded by time ends before the first later record; markers do not end it."""
    replay = PartitionReplay(
        written.log, 0, ReplayEnd(time_ms=limit_ms), timeout_s=5, bytes_max=bytes_max
    )
    entries = told_of(asyncio.run(read(replay)))
    check(replay, entries, written, written.end_at(limit_ms=limit_ms))


@given(LOGS, st.lists(st.integers(0, 80), min_size=2, max_size=2).map(sorted), SIZES)
def test_replay_when_read_on_to_a_second_bound_then_equals_one_replay(
    written: MixedLog, lasts: list[int], bytes_max: int
) -> None:
    """The replay reports each event once."""
    replay = PartitionReplay(
        written.log, 0, ReplayEnd({0: lasts[0]}), timeout_s=5, bytes_max=bytes_max
    )
    between = written.end_at(lasts[0] + 1)
    happened = asyncio.run(read(replay))
    check(replay, told_of(happened), written, between)
    replay.go_on(ReplayEnd({0: lasts[1]}))
    happened += asyncio.run(read(replay))
    check(replay, told_of(happened), written, written.end_at(lasts[1] + 1))


@given(LOGS, st.integers(0, 80), SIZES)
def test_tally_of_a_bound_counts_offsets_once(written: MixedLog, last: int, bytes_max: int) -> None:
    """A bounded tally counts every offset once, also in a partly counted batch."""
    replay = PartitionReplay(written.log, 0, ReplayEnd({0: last}), timeout_s=5, bytes_max=bytes_max)
    happened = asyncio.run(read(replay))
    tally = replay.shard.statistics().tally
    lost = sum(
        one.next_offset - one.offset for one in happened if isinstance(one.verdict, Undecodable)
    )
    assert tally.offsets == replay.end
    assert tally.undecodable == lost
