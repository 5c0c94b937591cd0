"""The order of leader epochs: whether those that a segment lists fit its offsets. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.findings.finding import Finding, error, note, of_partition
from rlmm.retention.segment_lineage import began_behind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

EPOCH_ORDER = error(
    "EPOCH-ORDER",
    "a segment whose leader epochs do not fit its offsets",
    "look-ups go by epoch: such a segment is found for the wrong offsets, or not at all",
    "have its range copied again by a broker; then delete this segment",
)
BEGINS_LATE = note(
    "BEGINS-LATE",
    "a segment whose first offsets are in no leader epoch",
    "so a leader copies it after `kafka-delete-records`: the log began behind them already, and "
    "no look-up asks for them",
    "nothing to do; with --bootstrap-server it is EPOCH-ORDER where the log begins before that",
)
KINDS = (EPOCH_ORDER, BEGINS_LATE)


def epoch_order(
    partition: TopicIdPartition, segments: Sequence[SegmentMetadata], log_start: int | None
) -> list[Finding]:
    """Return segments whose leader epochs contradict the others; *log_start* may be unknown."""
    found = []
    for one in segments:
        why, kind, late = _epoch_fault(one), EPOCH_ORDER, began_behind(one)
        if late is not None and not why:
            why = f"it begins at {one.start_offset}, its first epoch at {late}"
            if log_start is None or log_start >= late:
                kind = BEGINS_LATE
        if why:
            found.append(
                of_partition(
                    kind, partition, f"segment {one.id.uuid}: {why}",
                    segment_id=str(one.id.uuid),
                )
            )  # fmt: skip
    return found


def _epoch_fault(segment: SegmentMetadata) -> str:
    offsets = [offset for _, offset in segment.epochs]
    if offsets[0] < segment.start_offset:
        return f"it begins at {segment.start_offset}, its first epoch at {offsets[0]}"
    if any(one > other for one, other in pairwise(offsets)):
        return f"its epochs begin at {', '.join(map(str, offsets))}"
    if offsets[-1] > segment.last_offset:
        return f"its last epoch begins at {offsets[-1]}, behind its end {segment.last_offset}"
    return ""
