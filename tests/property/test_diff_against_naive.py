"""Differences between two moments equal those of two dictionaries, for any log and batches."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given

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
from rlmm.metadata.segment import SegmentState
from tests.support.logs.logs_of_every_kind import LOGS, START_MS, MixedLog, written
from tests.support.records.histories import DenseHistory
from tests.support.records.kafka_cache_model import LiteralStates

if TYPE_CHECKING:
    from rlmm.inspection.moment_diff import Change, MomentDiff
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

SIZES = st.sampled_from((1, 500, 1 << 20))
OFFSETS = st.lists(st.integers(-1, 80), min_size=2, max_size=2).map(sorted)
TIMES = st.lists(st.integers(START_MS - 1_000, START_MS + 1_000_000), min_size=2, max_size=2).map(
    sorted
)


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


def check(compared: MomentDiff, written: MixedLog, first: int, end: int) -> None:
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


@given(LOGS, OFFSETS, SIZES)
def test_diff_between_two_offsets_equals_that_of_two_dictionaries(
    written: MixedLog, lasts: list[int], bytes_max: int
) -> None:
    """The diff names segments, watermarks, deletions and new partitions, each once."""
    replay = PartitionReplay(
        written.log, 0, ReplayEnd({0: lasts[0]}), timeout_s=5, bytes_max=bytes_max
    )
    compared = asyncio.run(compare(replay, 0, ReplayEnd({0: lasts[1]})))
    first, end = (written.end_at(last + 1) for last in lasts)
    check(compared, written, first, end)


@given(LOGS, TIMES, SIZES)
def test_diff_between_times_equals_dictionaries(
    written: MixedLog, times: list[int], bytes_max: int
) -> None:
    """The diff between two times, up to the first later record, equals that of two dictionaries."""
    replay = PartitionReplay(
        written.log, 0, ReplayEnd(time_ms=times[0]), timeout_s=5, bytes_max=bytes_max
    )
    compared = asyncio.run(compare(replay, 0, ReplayEnd(time_ms=times[1])))
    first, end = (written.end_at(limit_ms=limit_ms) for limit_ms in times)
    check(compared, written, first, end)


@pytest.mark.parametrize("seed", range(12))
def test_diff_in_a_dense_history_equals_that_of_two_dictionaries(seed: int) -> None:
    """In a dense history of returning ids and deletions, the diff equals two dictionaries'."""
    rng = random.Random(seed)
    history = DenseHistory(rng)
    log = written([history.event() for _ in range(60)], rng)
    lasts = sorted(rng.choices(range(-1, len(log.lines)), k=2))
    replay = PartitionReplay(
        log.log, 0, ReplayEnd({0: lasts[0]}), timeout_s=5, bytes_max=rng.choice((1, 500))
    )
    compared = asyncio.run(compare(replay, 0, ReplayEnd({0: lasts[1]})))
    check(compared, log, log.end_at(lasts[0] + 1), log.end_at(lasts[1] + 1))
