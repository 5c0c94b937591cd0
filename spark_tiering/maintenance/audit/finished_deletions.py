"""Finished deletions in the log of the metadata, whose state forgets them. I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.errors import LogError
from rlmm.metadata.cut import cut
from rlmm.metadata.decoding import decode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.opened import INFLATED_BYTES_MAX
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentState
from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rlmm.metadata.ids import SegmentId
    from spark_tiering.maintenance.tier import Tier

AT_ONCE_MAX: Final = 200_000
"""The audit looks for so many segments; those beyond stay unproven."""
_UPDATE_PARTS = 5
_FINISHED = SegmentState.DELETE_SEGMENT_FINISHED
_Known = tuple[bytes, bytes]


def find_deleted(
    tier: Tier, wanted: Collection[SegmentId], why_stop: Callable[[], str] = lambda: ""
) -> set[SegmentId]:
    """Return those of *wanted* whose deletion was finished, by the log of the metadata."""
    if not wanted:
        return set()
    log = tier.log
    count = log.identity().partition_count
    by_place: dict[int, dict[_Known, SegmentId]] = {}
    for one in list(wanted)[:AT_ONCE_MAX]:
        partition = one.partition
        place = metadata_partition_for(partition.topic_id, partition.partition, count)
        by_place.setdefault(place, {})[partition.key, bytes(one.uuid)] = one
    found: set[SegmentId] = set()
    for place, bounds in log.bounds(sorted(by_place)).items():
        if isinstance(bounds, LogError):
            raise bounds
        position = bounds.log_start_offset
        while position < bounds.high_watermark and not why_stop():
            record_set = log.read(place, position)
            if record_set is None:
                break
            found |= _deleted_in(record_set.data, by_place[place])
            following = record_set.next_offset
            if following is None or following <= position:
                break
            position = following
    return found


def _deleted_in(data: bytes, wanted: dict[_Known, SegmentId]) -> set[SegmentId]:
    found = set()
    for batch in walk(data):
        if not isinstance(batch, Batch) or batch.is_control:
            continue
        for _, value in batch.values(inflated_bytes_max=INFLATED_BYTES_MAX):
            known = None if value is None else _deleted_by(value)
            if known in wanted:
                found.add(wanted[known])
    return found


def _deleted_by(value: bytes) -> _Known | None:
    parts = cut(value)
    if parts is not None:
        is_end = len(parts) == _UPDATE_PARTS and parts[2] == _FINISHED
        return (bytes(parts[0]), bytes(parts[1])) if is_end else None
    event = decode(value)
    if isinstance(event, SegmentUpdate) and event.state is _FINISHED:
        return event.id.partition.key, bytes(event.id.uuid)
    return None
