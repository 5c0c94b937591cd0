"""Record sets for tests of shards: short lives, markers, holes and damage, in one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.records.control import ControlType
from rlmm.records.writer import Producer, build_batch, build_control_batch, records_of
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
    tp,
)
from tests.support.engine.shards import batch_of, values_of

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

CS, CF, DS, DF = SegmentState

FINISHED = PartitionDeleteState.DELETE_PARTITION_FINISHED


def life(label: str | int, start: int = 0) -> list[Event]:
    return [
        started(label, start, start + 9),
        finished(label),
        delete_started(label),
        delete_finished(label),
    ]


def marker(base_offset: int, kind: ControlType = ControlType.COMMIT) -> bytes:
    producer = Producer(id=7, epoch=0, is_transactional=True)
    return build_control_batch(kind, base_offset, producer=producer, timestamp_ms=0)


def hole_batch(events: dict[int, Event], base_offset: int, last_offset: int) -> bytes:
    """Build a batch as compaction leaves it, with records at some of its offsets only."""
    records = [
        found._replace(offset=offset)
        for offset, event in events.items()
        for found in records_of(values_of([event]), offset)
    ]
    return build_batch(records, base_offset, last_offset=last_offset)


def broken(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def mixed_data() -> bytes:
    a, b, c = life("a"), life("b", 10), life("c", 20)
    return b"".join(
        (
            batch_of(a),
            marker(4),
            build_batch([], 5, last_offset=6),
            batch_of([b[0], b"junk", b[3], b[1], None], 7),
            hole_batch({14: c[0], 17: c[1]}, 13, 18),
            batch_of([partition_delete(FINISHED, tp("other"))], 19),
            batch_of([c[2]], 20),
        )
    )
