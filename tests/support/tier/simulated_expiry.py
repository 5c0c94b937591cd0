"""The lives of segments in an embedded log."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rlmm.log.protocol import LogBounds
from rlmm.metadata.decoding import decode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.records.batch import Batch, walk
from rlmm.records.records import Record
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.ids import SegmentId


def lives_in(archive: Path, places: int) -> dict[SegmentId, list[SegmentState]]:
    """Return the states of each segment in an embedded log, in its order."""
    lives: dict[SegmentId, list[SegmentState]] = defaultdict(list)
    with open_tier(CareRequest(embedded=archive)) as tier:
        log = tier.log
        for place, bounds in log.bounds(range(places)).items():
            assert isinstance(bounds, LogBounds)
            position = bounds.log_start_offset
            while position < bounds.high_watermark:
                found = log.read(place, position)
                assert found is not None
                for batch in walk(found.data):
                    assert isinstance(batch, Batch)
                    position = batch.last_offset + 1
                    for record in batch.records():
                        assert isinstance(record, Record)
                        event = decode(record.value)
                        if isinstance(event, SegmentMetadata | SegmentUpdate):
                            lives[event.id].append(event.state)
    return lives
