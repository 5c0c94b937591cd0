"""
The skipping of damage: where a log goes on behind a batch that cannot be trusted. Pure. A damaged
header may give wrong offsets, which would skip history: the next sound batch counts, or the end
that the log gives for the record set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from rlmm.records.damage import DamagedBatch
    from rlmm.records.record_set import RecordSet


class DamagedReads:
    """The position of the batch that was found damaged last, and how often it was read."""

    def __init__(self, reads_max: int) -> None:
        self.position = -1
        self._reads = 0
        self._reads_max = reads_max

    def is_last(self, position: int) -> bool:
        """Count a read of a damaged batch at *position*; return whether it is not read again."""
        self._reads = self._reads + 1 if position == self.position else 1
        self.position = position
        return self._reads >= self._reads_max


def offset_behind(record_set: RecordSet, damage: DamagedBatch, position: int) -> int | None:
    """
    Return the first offset that is surely behind *damage*, of a shard at *position*. `None` without
    a sound batch behind and the end of the set: the caller reads on, or takes the log end offset.
    """
    if damage.stop is not None:
        for found in walk(record_set.data[damage.stop :]):
            if isinstance(found, Batch) and found.base_offset > position:
                return found.base_offset
    if record_set.next_offset is not None and record_set.next_offset > position:
        return record_set.next_offset
    return None
