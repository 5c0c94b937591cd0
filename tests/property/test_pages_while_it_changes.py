"""Pages of a listing while events are applied: a segment that stays is shown once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata import paging
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
    tp,
)

if TYPE_CHECKING:
    from rlmm.metadata.paging import Page, PageKey

LABELS = st.integers(0, 11)
EPOCH_SETS = st.sampled_from([{0: 0}, {1: 0}, {0: 0, 1: 40}, {0: 0, 2: 50}])
EVENTS = st.one_of(
    st.builds(
        lambda label, start, epochs: started(label, start * 10, start * 10 + 99, epochs),
        LABELS,
        st.integers(0, 5),
        EPOCH_SETS,
    ),
    st.builds(finished, LABELS),
    st.builds(delete_started, LABELS),
    st.builds(delete_finished, LABELS),
)
RARELY = st.sampled_from([None] * 30 + [partition_delete(state) for state in PartitionDeleteState])
STEPS = st.lists(st.lists(st.one_of(EVENTS, EVENTS, EVENTS, RARELY), max_size=6), max_size=30)


def shown_of(page: Page) -> list[tuple[int, bytes]]:
    return [(segment.start_offset, segment.id.uuid) for segment in page.segments]


def listed_in(shard: PythonShard, epoch: int | None) -> set[tuple[int, bytes]]:
    found = shard.segments(tp()) if epoch is None else shard.segments_of_epoch(tp(), epoch)
    return {(segment.start_offset, segment.id.uuid) for segment in found}


@given(
    before=st.lists(EVENTS, max_size=60),
    steps=STEPS,
    epoch=st.sampled_from([None, 0, 1, 2]),
    limit=st.integers(1, 4),
    taken=st.integers(1, 5),
    chunk=st.integers(2, 6),
)
def test_pages_when_events_come_in_between_then_show_what_stays_once_and_in_order(
    before: list[object],
    steps: list[list[object]],
    epoch: int | None,
    limit: int,
    taken: int,
    chunk: int,
) -> None:
    """A segment that stays listed is shown once; pages show only segments that are there."""
    kept = paging.TAKEN_AT_A_TIME, paging.CHUNK_MAX
    paging.TAKEN_AT_A_TIME, paging.CHUNK_MAX = taken, chunk  # type: ignore[misc]
    try:
        shard = PythonShard(0)
        for event in before:
            shard.apply_event(event)  # type: ignore[arg-type]
        always, shown = listed_in(shard, epoch), []
        after: PageKey | None = None
        pending = iter(steps)
        while True:
            page = shard.page(tp(), epoch, after=after, limit=limit)
            now = listed_in(shard, epoch)
            assert set(shown_of(page)) <= now
            assert len(page.segments) <= limit
            shown += shown_of(page)
            if page.is_last:
                break
            after = page.after
            for event in next(pending, []):
                shard.apply_event(event)  # type: ignore[arg-type]
                always &= listed_in(shard, epoch)
            shard.page(tp(), epoch, limit=3)
            assert shard.validate() == []
    finally:
        paging.TAKEN_AT_A_TIME, paging.CHUNK_MAX = kept  # type: ignore[misc]
    assert shown == sorted(set(shown))
    assert always <= set(shown)
