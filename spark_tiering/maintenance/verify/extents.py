"""
Extents of segments by metadata alone: gaps, overlaps, and leader epochs that do not rise. Pure.

Brokers look up by leader epoch: offsets of a replaced epoch are history, and readers never ask for
offsets below the log start offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.findings import tier_findings as tier_kinds
from rlmm.inspection.epoch_order import EPOCH_ORDER, epoch_order
from rlmm.retention.segment_lineage import began_behind, gaps_in, lineage_of, overlaps_in, wanted_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata


class ExtentFault(NamedTuple):
    code: str
    detail: str
    lost: tuple[tuple[int, int], ...] = ()
    segment_ids: tuple[str, ...] = ()


def judge_extents(
    partition: TopicIdPartition,
    finished: Sequence[SegmentMetadata],
    earliest: int | None = None,
) -> Iterator[ExtentFault]:
    """Return the faults; *earliest* is the log start offset, None where it is unknown."""
    lineage = lineage_of(finished)
    log_start = max((earliest or 0, *(began_behind(one) or 0 for one in finished)))
    for gap in wanted_of(gaps_in(lineage, finished), log_start):
        detail = f"offsets {gap.first} to {gap.last} of leader epoch {gap.epoch} are in no segment"
        yield ExtentFault(tier_kinds.EXTENT_GAP.code, detail, ((gap.first, gap.last),))
    for one, other, both in overlaps_in(finished):
        if both.last < log_start:
            continue
        where = f"offsets {both.first} to {both.last} of leader epoch {both.epoch}"
        ids = (str(one.id.uuid), str(other.id.uuid))
        detail = f"{where} are in {ids[0]} and in {ids[1]}"
        yield ExtentFault(tier_kinds.EXTENT_OVERLAP.code, detail, (), ids)
    for found in epoch_order(partition, finished, earliest):
        if found.kind is EPOCH_ORDER:
            name = str(found.fields["segment_id"])
            yield ExtentFault(tier_kinds.EPOCH_ORDER.code, found.detail, (), (name,))
