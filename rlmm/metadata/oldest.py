"""The oldest open copy, found without cost per event: open copies are unreferenced ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.row import STATE_AT, event_timestamp_of
from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlmm.metadata.partition_state import PartitionState

_STARTED = SegmentState.COPY_SEGMENT_STARTED.value


def oldest_started_ms(states: Iterable[PartitionState]) -> int | None:
    """Event timestamp of the oldest copy in state COPY_SEGMENT_STARTED; `None` without any."""
    return min(
        (event_timestamp_of(row) for state in states for row in _open_rows(state)), default=None
    )


def _open_rows(state: PartitionState) -> Iterator[bytes]:
    seen: set[bytes] = set()
    for entry in reversed(state.epochs.values()):
        if len(seen) == state.counts[_STARTED]:
            return
        # Displaced copies may be many; they are finished and shadowed, and looked at as one set.
        shadowed = entry.shadowed
        for uuid in entry.unreferenced - shadowed if shadowed else entry.unreferenced:
            row = state.rows[uuid]
            if row[STATE_AT] == _STARTED and uuid not in seen:
                seen.add(uuid)
                yield row
