"""Derived parts of a user partition's state: made anew from rows, slots and strays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.epoch_state import NOTHING_SHADOWED
from rlmm.metadata.row import STATE_AT, TXN_INDEX_EMPTY_AT, epoch_ranges, size_of
from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from rlmm.metadata.partition_state import PartitionState

_FINISHED = SegmentState.COPY_SEGMENT_FINISHED.value


def derive(state: PartitionState) -> None:
    """Fill in counts, sizes, unreferenced and shadowed ids. The cost grows with the partition."""
    state.counts, state.size_bytes = [0, 0, 0], 0
    slots = {}
    for epoch, entry in state.epochs.items():
        slots[epoch] = set(entry.slots.ids())
        entry.unreferenced, entry.shadowed = set(), NOTHING_SHADOWED
        entry.size_bytes = entry.indexed_count = 0
        entry.cover = entry.skips = None
    for uuid, row in state.rows.items():
        finished = row[STATE_AT] == _FINISHED
        size = size_of(row)
        state.counts[row[STATE_AT]] += 1
        state.size_bytes += size
        for epoch, _, _ in epoch_ranges(row):
            entry = state.epochs[epoch]
            entry.size_bytes += size
            entry.indexed_count += finished and not row[TXN_INDEX_EMPTY_AT]
            if uuid not in slots[epoch]:
                entry.unreferenced.add(uuid)
                if finished:
                    entry.shadow((uuid,))
        for epoch in state.strays.get(uuid, ()):
            state.epochs[epoch].unreferenced.add(uuid)
            state.epochs[epoch].size_bytes += size
    for entry in state.epochs.values():
        entry.derive_overlaps(state.rows)
        if entry.slots.is_long:
            entry.find_skips(state.rows)
