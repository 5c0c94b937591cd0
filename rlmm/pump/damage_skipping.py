"""
Where a log goes on behind a batch that cannot be trusted. Pure.

What a damaged header says of its own offsets is not believed: a wrong number would skip history.
What stands behind it is: the next sound batch of the same record set, else the offset at which the
log itself says that the set ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from rlmm.records.damage import DamagedBatch
    from rlmm.records.record_set import RecordSet


def offset_behind(record_set: RecordSet, damage: DamagedBatch, position: int) -> int | None:
    """
    The first offset that is surely behind *damage*; `None` where nothing shows one.

    The shard stands at *position*. Without a sound batch behind, and without the end of the set,
    the caller reads on, or takes the log end offset.
    """
    if damage.stop is not None:
        for found in walk(record_set.data[damage.stop :]):
            if isinstance(found, Batch) and found.base_offset > position:
                return found.base_offset
    if record_set.next_offset is not None and record_set.next_offset > position:
        return record_set.next_offset
    return None
