"""
Safety of letting brokers copy beside the tier: before copying is on again, and afterwards. Pure.

The first run of a broker's copy task, after copying was off, a restart or a change of leaders:

- makes the start of the lowest listed copy, finished or not, the log start: it deletes below.
- counts the highest offset ever finished as tiered: local records below it may be deleted,
  whether the tier has them or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from spark_tiering.adopt.outcomes import AdoptionRefusal, RefusedTopic
from spark_tiering.copy_plan.lineage import CopiedTier

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from spark_tiering.copy_job.report import EndReceipt
    from spark_tiering.copy_plan.inputs import PartitionImage
    from spark_tiering.segments.leader_epochs import Epochs


SHOWN_MAX: Final = 5


class AdoptedPartition(NamedTuple):
    """One partition by metadata, leader and source; None for a fact that could not be read."""

    partition: TopicIdPartition
    image: PartitionImage | None
    log_start: int | None
    history: Epochs | None
    local_start: int | None = None

    @property
    def digest(self) -> str | None:
        return None if self.image is None else self.image.digest


def why_not_enabled(seen: AdoptedPartition) -> RefusedTopic | None:
    """Return the data that a copy task would destroy if it ran now; None where there is none."""
    partition = seen.partition
    if seen.log_start is None:
        return RefusedTopic(
            AdoptionRefusal.NO_LEADER, f"{partition}: no leader tells where its log begins"
        )
    if seen.image is None:
        return RefusedTopic(
            AdoptionRefusal.METADATA_ABSENT, f"{partition}: its metadata could not be read"
        )
    if not seen.image.segments:
        return None
    if not seen.history:
        return RefusedTopic(
            AdoptionRefusal.SOURCE_LACKS_PARTITION, f"{partition}: the tier has some of it"
        )
    first = _first_listed(seen.image, seen.history)
    if first is not None and first > seen.log_start:
        detail = f"{partition}: its first copy begins at {first}, its log at {seen.log_start}"
        return RefusedTopic(AdoptionRefusal.LONE_COPY, detail)
    tier = CopiedTier(seen.image, seen.history)
    hole = tier.hole_below(seen.log_start, tier.next_offset(seen.log_start))
    if hole is not None:
        return RefusedTopic(AdoptionRefusal.TIER_HAS_HOLE, f"{partition}: {hole}")
    return None


def highest_tiered(seen: AdoptedPartition) -> int | None:
    """Return the offset that the leader will know to be tiered; None where there is none."""
    if seen.image is None or seen.log_start is None or not seen.history:
        return None
    next_offset = CopiedTier(seen.image, seen.history).next_offset(seen.log_start)
    return next_offset - 1 if next_offset > seen.log_start else None


def _first_listed(image: PartitionImage, history: Epochs) -> int | None:
    """Return the log start offset of a broker: the lowest copy of the oldest epoch with any."""
    for epoch, _ in history:
        starts = [
            segment.start_offset
            for segment in image.segments
            if any(own == epoch for own, _ in segment.epochs)
        ]
        if starts:
            return min(starts)
    return None


class QuietWatch:
    """
    Compares digests of partitions over time, since a copy that a broker interrupted may end late.
    Open copies need not be closed: a copy in which a broker was interrupted stays open for ever.
    """

    def __init__(self, quiet_ms: int) -> None:
        self._quiet_ms = quiet_ms
        self._seen: dict[TopicIdPartition, str | None] | None = None
        self._since_ms = 0

    def saw(self, now_ms: int, digests: Mapping[TopicIdPartition, str | None]) -> bool:
        """Return whether the metadata is quiet; None, unreadable, is not. The clock never steps."""
        seen = dict(digests)
        if seen != self._seen or None in seen.values():
            self._seen, self._since_ms = seen, now_ms
        return None not in seen.values() and now_ms - self._since_ms >= self._quiet_ms

    @property
    def unread(self) -> list[TopicIdPartition]:
        """Partitions whose metadata could not be read at the last look."""
        return [] if self._seen is None else [one for one, seen in self._seen.items() if not seen]


def moved_starts(seen: Iterable[AdoptedPartition], log_starts: Mapping[int, int]) -> list[str]:
    """Return the partitions whose log start offset has moved: nothing expires in a window."""
    return [
        f"{one.partition}: its log began at {before}, it begins at {one.log_start}"
        for one in seen
        if (before := log_starts.get(one.partition.partition)) is not None
        and one.log_start is not None
        and one.log_start > before
    ]


def copied_twice(
    before: Iterable[AdoptedPartition], seen: Iterable[AdoptedPartition], ours: Collection[Uuid]
) -> list[str]:
    """Return copies, begun since *before*, of records that are copied already."""
    known = {segment.id for one in before if one.image for segment in one.image.segments}
    found: list[str] = []
    for partition_seen in seen:
        segments = () if partition_seen.image is None else partition_seen.image.segments
        copied = [segment for segment in segments if segment.id.uuid in ours]
        for segment in segments:
            if segment.id in known or segment.id.uuid in ours:
                continue
            start, last = segment.start_offset, segment.last_offset
            if any(one.start_offset <= last and start <= one.last_offset for one in copied):
                where = f"{partition_seen.partition}: {start}-{last}"
                found.append(f"{where} is copied once more: {segment.id.uuid}")
    return found


def end_text(one: EndReceipt) -> str:
    where = f"{one.partition} {one.start_offset}-{one.last_offset}"
    return f"{where}: {one.fate}: {one.detail or one.why}: {one.uuid}"


def few(texts: Sequence[str]) -> str:
    more = len(texts) - SHOWN_MAX
    text = "; ".join(texts[:SHOWN_MAX])
    return f"{text}; and {more} more" if more > 0 else text
