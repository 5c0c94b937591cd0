"""
The trace of a look-up: its steps, and what a stock broker would answer. Pure. A stock broker uses
the slots alone and misses a segment that only the rule `cover-lookup` finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.metadata.ids import INT64_MAX, INT64_MIN, SegmentId
from rlmm.retention.segment_lineage import EpochStretch, covered_by, lineage_of, not_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import EpochLookup, Shard


class LookupRule(StrEnum):
    SLOT = "slot"
    """The slot at or before the offset, as in a stock broker."""
    COVER_LOOKUP = "cover-lookup"
    """A finished segment without that slot; a stock broker answers nothing."""
    NONE = "none"


class LookupMiss(StrEnum):
    """Tells where the slots end without an answer."""

    FOUND = "found"
    EPOCH_UNKNOWN = "epoch-unknown"
    """No segment lists the leader epoch."""
    NOTHING_FINISHED = "nothing-finished"
    """Segments list it, and no copy was ever finished."""
    ABOVE_HIGHEST = "above-highest"
    """No finished copy of the epoch ever reached the offset."""
    NO_SLOT = "no-slot"
    """No segment that holds a slot begins at or before the offset."""
    SLOT_ENDS_BEFORE = "slot-ends-before"
    """The one that begins there ends in this epoch before the offset."""


@dataclass(frozen=True, slots=True)
class LookUp:
    epoch: int
    offset: int
    rule: LookupRule
    why: LookupMiss
    found: SegmentMetadata | None
    highest: int | None
    """The largest offset of the epoch that any finished copy reached."""
    slot_offset: int | None = None
    """The offset of the slot that was looked at, and the segment in it."""
    slot_segment: SegmentMetadata | None = None
    slot_last: int | None = None
    """Where that segment ends in this epoch, inclusive."""

    @property
    def stock(self) -> SegmentMetadata | None:
        return self.found if self.rule is LookupRule.SLOT else None


def look_up(shard: Shard, partition: TopicIdPartition, epoch: int, offset: int) -> LookUp:
    """Ask *shard*, and say how it came to its answer."""
    found = shard.segment_for(partition, epoch, offset)
    view = shard.epoch_view(partition, epoch)
    highest = None if view is None else view.highest
    why = _before_slots(view, offset)
    if view is None or why is not None:
        rule = LookupRule.NONE if found is None else LookupRule.COVER_LOOKUP
        return LookUp(epoch, offset, rule, why or LookupMiss.EPOCH_UNKNOWN, found, highest)
    slot = max((first for first in view.slots if first <= offset), default=None)
    if slot is None:
        rule = LookupRule.NONE if found is None else LookupRule.COVER_LOOKUP
        return LookUp(epoch, offset, rule, LookupMiss.NO_SLOT, found, highest)
    holder = shard.segment(SegmentId(partition, view.slots[slot]))
    assert holder is not None, "who has a slot is there"
    last = last_in_epoch(holder, epoch)
    is_held = offset <= last
    rule = (
        LookupRule.SLOT
        if is_held
        else LookupRule.NONE
        if found is None
        else LookupRule.COVER_LOOKUP
    )
    why = LookupMiss.FOUND if is_held else LookupMiss.SLOT_ENDS_BEFORE
    return LookUp(epoch, offset, rule, why, found, highest, slot, holder, last)


def last_in_epoch(segment: SegmentMetadata, epoch: int) -> int:
    """Return the last offset of *segment* in *epoch*; Java's greatest is before the least."""
    for other, offset in segment.epochs:
        if other > epoch:
            return offset - 1 if offset > INT64_MIN else INT64_MAX
    return segment.last_offset


def _before_slots(view: EpochLookup | None, offset: int) -> LookupMiss | None:
    if view is None:
        return LookupMiss.EPOCH_UNKNOWN
    if view.highest is None:
        return LookupMiss.NOTHING_FINISHED
    return LookupMiss.ABOVE_HIGHEST if offset > view.highest else None


def forgotten_of(
    hidden: Sequence[SegmentMetadata],
    finished: Sequence[SegmentMetadata],
    superseded: Collection[int],
) -> list[SegmentMetadata]:
    """Return *hidden* segments in replaced epochs alone, which stock brokers do not list."""
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
    Return the parts that *finished* segments hold and slots do not give. The part before the first
    slot only counts if *is_front_judged*: retention, which deletes from the front, leaves it for a
    moment.
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
    """Yield the answers of the slots of *epoch*, each up to the next one."""
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
