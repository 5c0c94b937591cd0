"""
What a finished segment loses when another one takes its slot: look-ups, or the broker's memory of
it. Pure.

A stock broker has one slot for each offset at which a segment begins in an epoch, and looks no
further than there. Who takes a slot puts the one before it aside, from where retention still finds
it, unless a copy has reached farther before: then it is overwritten, and forgotten (KAFKA-20932).
The first is what every change of leaders may do, and harms nobody.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.inspection.lookup_trace import last_in_epoch
from rlmm.metadata.ids import INT64_MAX, SegmentId
from rlmm.retention.segment_lineage import EpochStretch, covered_by, lineage_of, not_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard


def forgotten_of(
    hidden: Sequence[SegmentMetadata],
    finished: Sequence[SegmentMetadata],
    superseded: Collection[int],
) -> list[SegmentMetadata]:
    """
    Return the *hidden* segments that a stock broker does not list any more: they are in replaced
    epochs alone. Copies ended in the order of their times.
    """
    by_epoch: dict[int, list[SegmentMetadata]] = {}
    wanted = {epoch for one in hidden for epoch, _ in one.epochs}
    for one in finished if wanted else ():
        for epoch, _ in one.epochs:
            if epoch in wanted:
                by_epoch.setdefault(epoch, []).append(one)
    return [
        one
        for one in hidden
        if all(
            _is_overwritten(one, epoch, first, by_epoch[epoch])
            for epoch, first in one.epochs
            if epoch not in superseded
        )
    ]


def _is_overwritten(
    segment: SegmentMetadata, epoch: int, first: int, others: Sequence[SegmentMetadata]
) -> bool:
    """Return whether another copy took its slot in *epoch* after one had reached farther."""
    ended_ms = segment.event_timestamp_ms
    for taker in others:
        if taker.id == segment.id or (epoch, first) not in taker.epochs:
            continue
        if taker.event_timestamp_ms < ended_ms:
            continue
        last, taken_ms = last_in_epoch(taker, epoch), taker.event_timestamp_ms
        if any(
            last_in_epoch(one, epoch) > last and one.event_timestamp_ms <= taken_ms
            for one in others
        ):
            return True
    return False


def shadowed_in(
    shard: Shard, partition: TopicIdPartition, finished: Sequence[SegmentMetadata], *,
    is_front_judged: bool,
) -> list[EpochStretch]:  # fmt: skip
    """
    Return the parts of the lineage that *finished* segments hold and slots do not give. The part
    before the first slot is left out unless *is_front_judged*: retention, which deletes from the
    front, leaves it for a moment.
    """
    held: dict[int, list[EpochStretch]] = {}
    for one in finished:
        for stretch in covered_by(one):
            held.setdefault(stretch.epoch, []).append(stretch)
    found, is_front = list[EpochStretch](), not is_front_judged
    for wanted in lineage_of(finished).stretches():
        given = list(_given(shard, partition, wanted.epoch))
        lacking = list(not_in(wanted, held.get(wanted.epoch, ())))
        for gap in not_in(wanted, given):
            if not is_front or any(one.first <= gap.first for one in given):
                found += not_in(gap, lacking)
        is_front = is_front and not given
    return found


def _given(shard: Shard, partition: TopicIdPartition, epoch: int) -> Iterator[EpochStretch]:
    """Yield what the slots of *epoch* give, each up to the next one."""
    view = shard.epoch_view(partition, epoch)
    if view is None or not view.slots:
        return
    ends = [*sorted(view.slots), INT64_MAX]
    for first, behind in pairwise(ends):
        holder = shard.segment(SegmentId(partition, view.slots[first]))
        assert holder is not None, "who has a slot is there"
        last = min(last_in_epoch(holder, epoch), behind - 1)
        if last >= first:
            yield EpochStretch(epoch, first, last)
