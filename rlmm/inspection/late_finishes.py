"""
Copies that a lost leader finished late, over the copy of its successor. Pure. Only the log tells
which of two segments was begun first and ended last. Kafka looks up by the copy that ended last, so
look-ups find the segment of the replaced leader.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.findings.finding import Finding, warning
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import Applied, Duplicate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rlmm.inspection.event_record import EventRecord
    from rlmm.metadata.ids import SegmentId
    from rlmm.retention.segment_lineage import EpochStretch

    Pair = tuple[SegmentMetadata, SegmentMetadata, EpochStretch]
    """Two finished segments with the same offsets, see `lineage.overlaps_in`."""

LATE_FINISH = warning(
    "LATE-FINISH",
    "a copy was finished late, over the copy of another broker",
    "a leader that was replaced ended its upload after its successor had copied the same: look-ups "
    "find the late segment, and stock brokers nothing where it is shorter (KAFKA-20932); one of "
    "the two is an orphan that is paid for",
    "nothing is lost as long as both are kept: delete none of the objects by hand; brokers that "
    "write by `rlmm serve` are refused such an end before it is written (`copied-by-another`)",
)
KINDS = (LATE_FINISH,)


@dataclass(slots=True)
class _Copy:
    started: int | None = None
    finished: int | None = None
    """The offset of its last end: one that is repeated counts as the newest as well."""


@dataclass(slots=True)
class CopyTimes:
    """Collects begin and end of the copies of *ids*, from the events of a metadata partition."""

    ids: Collection[SegmentId]
    _copies: dict[SegmentId, _Copy] = field(default_factory=dict)

    def tell(self, happened: EventRecord) -> None:
        event = happened.event
        if not isinstance(event, SegmentMetadata | SegmentUpdate) or event.id not in self.ids:
            return
        if not isinstance(happened.verdict, Applied | Duplicate):
            return
        copy = self._copies.setdefault(event.id, _Copy())
        if isinstance(event, SegmentUpdate):
            if event.state is SegmentState.COPY_SEGMENT_FINISHED:
                copy.finished = happened.offset
        else:
            copy.started = happened.offset

    def late(self, pairs: Iterable[Pair]) -> list[Finding]:
        """Return segments of *pairs* that one broker started first and finished last."""
        found: dict[SegmentId, Finding] = {}
        for one, other, both in pairs:
            for late, earlier in ((one, other), (other, one)):
                if late.id not in found and self._is_late(late, earlier):
                    found[late.id] = self._finding(late, earlier, both)
        return list(found.values())

    def _is_late(self, late: SegmentMetadata, earlier: SegmentMetadata) -> bool:
        if late.broker_id == earlier.broker_id:
            return False
        mine, its = self._copies.get(late.id, _Copy()), self._copies.get(earlier.id, _Copy())
        if mine.started is None or its.started is None:
            return False
        if mine.finished is None or its.finished is None:
            return False
        return mine.started < its.started and its.finished < mine.finished

    def _finding(
        self, late: SegmentMetadata, earlier: SegmentMetadata, both: EpochStretch
    ) -> Finding:
        mine, its = self._copies[late.id], self._copies[earlier.id]
        partition = late.id.partition
        return Finding(
            LATE_FINISH,
            f"{partition.topic}-{partition.partition}",
            f"segment {late.id.uuid} of broker {late.broker_id}, begun at offset {mine.started} of "
            f"the metadata partition and finished at {mine.finished}, has offsets {both.first} to "
            f"{both.last} like {earlier.id.uuid}, which broker {earlier.broker_id} had finished at "
            f"{its.finished}",
            fields={
                "topic": partition.topic,
                "topic_id": str(partition.topic_id),
                "partition": partition.partition,
                "segment_id": str(late.id.uuid),
                "broker_id": late.broker_id,
                "other_segment_id": str(earlier.id.uuid),
                "other_broker_id": earlier.broker_id,
                "epoch": both.epoch,
                "first_offset": both.first,
                "last_offset": both.last,
                "started_at": mine.started,
                "other_finished_at": its.finished,
                "finished_at": mine.finished,
            },
        )
