"""Shards with many segments, and listings of them by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tests.support.builders import started, tp

if TYPE_CHECKING:
    from rlmm.metadata.paging import Page, PageKey
    from rlmm.metadata.shard import Shard

AnyShard = TypeVar("AnyShard", bound="Shard")


def of_epochs(shard: AnyShard, epochs: range, count: int) -> AnyShard:
    """Start *count* segments of each of *epochs* in *shard*; return it."""
    for epoch in epochs:
        for number in range(count):
            shard.apply_event(started(f"{epoch}-{number}", number, number + 9, {epoch: number}))
    return shard


def next_page(
    shard: Shard, epoch: int | None = None, after: PageKey | None = None, limit: int = 100
) -> Page:
    """Ask until the segments are sorted."""
    while True:
        page = shard.page(tp(), epoch, after=after, limit=limit)
        if page.segments or page.is_last:
            return page
        assert page.after == after
