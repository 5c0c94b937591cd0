"""Histories of a partition or segment equal the log read naively and the model of Kafka's cache."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given

from rlmm.inspection.history import EventHistory, HistoryPart, HistorySubject
from rlmm.inspection.log_scan import find_mention
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import PartitionReplay
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId
from rlmm.metadata.segment import SegmentMetadata
from tests.support.logs.logs_of_every_kind import LOGS, MixedLog, written
from tests.support.records.histories import PARTITIONS, UUIDS, DenseHistory
from tests.support.records.kafka_cache_model import LiteralStates

if TYPE_CHECKING:
    from rlmm.inspection.history import HistoryLine
    from rlmm.metadata.ids import TopicIdPartition, Uuid

    Expected = tuple[int, HistoryPart, object, object, dict[Uuid, tuple[int, ...]] | None]

SIZES = st.sampled_from((1, 500, 1 << 20))


async def read(
    written: MixedLog, sought: HistorySubject, last: int, bytes_max: int
) -> list[HistoryLine]:
    replay = PartitionReplay(written.log, 0, ReplayEnd({0: last}), timeout_s=5, bytes_max=bytes_max)
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


def check(
    log: MixedLog, partition: TopicIdPartition, uuid: Uuid | None, last: int, bytes_max: int
) -> None:
    lines = asyncio.run(read(log, HistorySubject.of(partition, uuid), last, bytes_max))
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
    check(written, partition, uuid, last, bytes_max)


@pytest.mark.parametrize("seed", range(12))
def test_history_in_a_dense_log_equals_every_record_looked_at_one_by_one(seed: int) -> None:
    """The history equals the naive reader's where segments displace each other all the time."""
    rng = random.Random(seed)
    history = DenseHistory(rng)
    log = written([history.event() for _ in range(60)], rng)
    for uuid in (None, *UUIDS):
        check(log, PARTITIONS[0], uuid, rng.randrange(len(log.lines)), rng.choice((1, 1 << 20)))


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
