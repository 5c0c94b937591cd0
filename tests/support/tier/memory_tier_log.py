"""
A metadata topic in memory, asked by plain calls as `spark_tiering.maintenance.tier.TierLog` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.log.protocol import LogBounds, LogIdentity
from rlmm.metadata.assignment import place_of
from rlmm.metadata.encoding import encode_any
from rlmm.records.record_set import RecordSet
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from tests.support.tier.read_plans import CLUSTER, METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.errors import LogError
    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.segment import SegmentMetadata

PLACES = 3


class MemoryTierLog:
    def __init__(self, cluster_id: str = CLUSTER, places: int = PLACES) -> None:
        self._identity = LogIdentity(cluster_id, METADATA_TOPIC, places)
        self._batches: dict[int, list[bytes]] = {place: [] for place in range(places)}
        self.log_start = 0

    def put(self, *events: SegmentMetadata | SegmentUpdate) -> None:
        for event in events:
            batches = self._batches[place_of(event.id.partition, len(self._batches))]
            record = Record(len(batches), 0, None, encode_any(event))
            batches.append(build_batch([record], record.offset))

    def cut(self) -> None:
        for batches in self._batches.values():
            batches.clear()

    def identity(self) -> LogIdentity:
        return self._identity

    def bounds(self, places: Collection[int]) -> Mapping[int, LogBounds | LogError]:
        return {one: LogBounds(self._start(one), len(self._batches[one])) for one in places}

    def _start(self, place: int) -> int:
        return min(self.log_start, len(self._batches[place]))

    def read(self, place: int, position: int, *, bytes_max: int = 1 << 20) -> RecordSet | None:
        assert bytes_max > 0
        batches = self._batches[place]
        return RecordSet(place, b"".join(batches[position:]), len(batches))
