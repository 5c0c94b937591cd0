"""Extents by hand."""

from __future__ import annotations

from itertools import pairwise

from rlmm.metadata.ids import TopicIdPartition, Uuid
from spark_tiering.data_source.extents import (
    ExtentObjects,
    MissingOffsets,
    PartitionListing,
    ReadExtent,
)

ORDERS = TopicIdPartition(Uuid(bytes(range(16))), "orders", 0)


def extent(
    first: int,
    behind: int,
    *,
    segment: tuple[int, int] | None = None,
    history_behind: int | None = None,
    log_bytes: int = 1_000_000,
    max_ms: int = -1,
    partition: TopicIdPartition = ORDERS,
    no_aborts: bool = True,
) -> ReadExtent:
    """Build the offsets [first, behind) of a segment of its own, or of *segment*."""
    low, high = segment or (first, behind)
    return ReadExtent(
        partition,
        first,
        behind - 1,
        low,
        high - 1,
        (history_behind or high) - 1,
        log_bytes,
        max_ms,
        no_aborts,
        ExtentObjects(f"{low}.log", f"{low}.indexes", f"{low}.rsm-manifest"),
    )


def held(
    *extents: ReadExtent, stable: int | None = None, first: int | None = None
) -> PartitionListing:
    missing = [
        MissingOffsets(one.next_offset, two.first_offset, "no segment of the tier has them")
        for one, two in pairwise(extents)
        if one.next_offset < two.first_offset
    ]
    begin = extents[0].first_offset if first is None else first
    return PartitionListing(
        extents[0].partition, begin, extents[-1].next_offset, extents, tuple(missing), stable
    )
