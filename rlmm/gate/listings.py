"""Listings of any length, made on the event loop with turns for other tasks in between."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rlmm.gate.reads import PartitionQueries
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.paging import Page, PageKey
    from rlmm.metadata.segment import SegmentMetadata

PIECE: Final = 250
"""Segments of a listing that are made between two turns of the event loop."""


async def whole_listing(
    reads: PartitionQueries, partition: TopicIdPartition, epoch: int | None
) -> list[SegmentMetadata]:
    """Return the listing of this moment, however much changes while it is made."""
    listing = reads.listing(partition, epoch)
    found: list[SegmentMetadata] = []
    while (piece := listing.take(PIECE)) is not None:
        found += piece
        if len(piece) in {0, PIECE}:
            await asyncio.sleep(0)
    return found


async def next_page(
    reads: PartitionQueries,
    partition: TopicIdPartition,
    epoch: int | None,
    after: PageKey | None,
    limit: int,
) -> Page:
    """Return the page after *after*; empty only where it is the last."""
    while True:
        page = reads.page(partition, epoch, after=after, limit=limit)
        if page.segments or page.is_last:
            return page
        await asyncio.sleep(0)
