"""
What Kafka's retention does with the segments of a user partition, now and later. Pure.

As the leader does it, epoch by epoch of its lineage, oldest first: what ends before the log start
goes, then what is older than the time limit, then what is more than the size limit leaves room for;
and it stops at the first that stays. Strictly older goes, exactly at the limit stays. Copies that
are not finished count for nothing and go with what is around them. A setting that is not known is
not applied, and said to be unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.inspection.lineage import covered_by, finished_of, lineage_of
from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlmm.inspection.cluster import PartitionOffsets, TopicFacts
    from rlmm.inspection.lineage import Lineage
    from rlmm.metadata.segment import SegmentMetadata

UNLIMITED = -1


class Fate(StrEnum):
    """What retention does with a segment."""

    STAYS = "stays"
    BEFORE_LOG_START = "before-log-start"
    TIME = "time"
    SIZE = "size"
    SUPERSEDED = "superseded"
    """Its leader epochs were replaced: it goes whatever its age."""
    BEING_DELETED = "being-deleted"
    UNFINISHED = "unfinished"
    """A copy that is open: it counts for nothing, and waits for its own expiry."""

    @property
    def is_deleted(self) -> bool:
        """Whether the next run deletes it."""
        return self not in {Fate.STAYS, Fate.UNFINISHED}


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that apply; None where they are not known."""

    retention_ms: int | None = None
    retention_bytes: int | None = None
    log_start: int | None = None
    only_local_bytes: int = 0
    """Bytes on the leader's disk that are not tiered yet; they count against the size limit."""

    @classmethod
    def of(
        cls, topic: TopicFacts | None, offsets: PartitionOffsets | None, only_local_bytes: int = 0
    ) -> Rules:
        """As the cluster tells them."""
        return cls(
            None if topic is None else number(topic.setting("retention.ms")),
            None if topic is None else number(topic.setting("retention.bytes")),
            None if offsets is None else offsets.earliest,
            only_local_bytes,
        )

    @property
    def unknown(self) -> list[str]:
        """What nobody told."""
        told = {
            "retention.ms": self.retention_ms,
            "retention.bytes": self.retention_bytes,
            "log start": self.log_start,
        }
        return [name for name, value in told.items() if value is None]


@dataclass(frozen=True, slots=True)
class Due:
    """What becomes of one segment, and when."""

    segment: SegmentMetadata
    fate: Fate
    due_ms: int | None
    """When the time limit is reached; None where there is none, or none is known. Others before it
    that stay longer keep it, too."""


def number(text: str | None) -> int | None:
    """The value of a numeric setting; None where there is none."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def due_of(segments: Sequence[SegmentMetadata], rules: Rules, now_ms: int) -> list[Due]:
    """What a run of retention at *now_ms* does with all *segments*, in the order that it goes."""
    finished = finished_of(segments)
    lineage = lineage_of(finished)
    order = _in_lineage(finished, lineage)
    known = {one.id for one in order}
    fates = dict(zip((one.id for one in order), _fates(order, rules, now_ms), strict=True))
    rest = [one for one in segments if one.id not in known]
    return [
        *(Due(one, fates[one.id], _due_ms(one, rules)) for one in order),
        *(Due(one, _fate_outside(one, lineage), _due_ms(one, rules)) for one in rest),
    ]


def _fates(order: Sequence[SegmentMetadata], rules: Rules, now_ms: int) -> Iterator[Fate]:
    debt = 0
    if rules.retention_bytes is not None and rules.retention_bytes >= 0:
        total = sum(one.size_bytes for one in order) + rules.only_local_bytes
        debt = max(0, total - rules.retention_bytes)
    before_ms = None
    if rules.retention_ms is not None and rules.retention_ms >= 0:
        before_ms = now_ms - rules.retention_ms
    is_over = False
    for one in order:
        fate = Fate.STAYS
        if is_over:
            pass
        elif rules.log_start is not None and one.last_offset < rules.log_start:
            fate = Fate.BEFORE_LOG_START
        elif before_ms is not None and before_ms >= 0 and one.max_timestamp_ms < before_ms:
            fate = Fate.TIME
            debt = max(0, debt - one.size_bytes)
        elif debt >= one.size_bytes and debt > 0:
            fate = Fate.SIZE
            debt -= one.size_bytes
        is_over = is_over or fate is Fate.STAYS
        yield fate


def _in_lineage(finished: Sequence[SegmentMetadata], lineage: Lineage) -> list[SegmentMetadata]:
    """Those that belong to the lineage, as the leader lists them: by epoch, then by start."""
    found: dict[object, SegmentMetadata] = {}
    for epoch, _ in lineage.begins:
        of_epoch = [one for one in finished if any(e == epoch for e, _ in one.epochs)]
        for one in sorted(of_epoch, key=lambda one: (one.start_offset, one.id.uuid)):
            if any(True for stretch in covered_by(one) if stretch.epoch == epoch):
                found.setdefault(one.id, one)
    return list(found.values())


def _fate_outside(segment: SegmentMetadata, lineage: Lineage) -> Fate:
    if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
        return Fate.BEING_DELETED
    if segment.state is SegmentState.COPY_SEGMENT_STARTED:
        return Fate.UNFINISHED
    if all(epoch in lineage.superseded for epoch, _ in segment.epochs):
        return Fate.SUPERSEDED
    return Fate.STAYS


def _due_ms(segment: SegmentMetadata, rules: Rules) -> int | None:
    limit_ms = rules.retention_ms
    if limit_ms is None or limit_ms < 0 or segment.max_timestamp_ms < 0:
        return None
    return segment.max_timestamp_ms + limit_ms + 1
