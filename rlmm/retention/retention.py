"""
Kafka's retention of the segments of a user partition, now and later. Pure. A leader goes through
its epochs, each by rising start offset: it deletes segments below the log start offset, then those
older than the time limit, then those beyond the size limit, and stops at the first that stays or is
being copied. A segment exactly at the limit stays; segments outside the leader's log are skipped.
Unfinished copies do not count for the size (KAFKA-17062), and go when the scan reaches them,
because their writers are gone. Started deletions continue everywhere. Segments whose epochs all lie
before the log's first one come last. An unknown setting is not applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.metadata.segment import SegmentState
from rlmm.retention.segment_lineage import LogLeaderEpochs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rlmm.inspection.cluster_facts import PartitionOffsets, TopicFacts
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata

UNLIMITED = -1


class RetentionFate(StrEnum):
    """The decision of retention about a segment."""

    STAYS = "stays"
    BEFORE_LOG_START = "before-log-start"
    TIME = "time"
    SIZE = "size"
    SUPERSEDED = "superseded"
    """All its leader epochs are from before the log's first one: it goes whatever its age."""
    BEING_DELETED = "being-deleted"
    UNFINISHED = "unfinished"
    """A copy that is open, and that the scan does not come to."""

    @property
    def is_deleted(self) -> bool:
        return self not in {RetentionFate.STAYS, RetentionFate.UNFINISHED}


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """The settings that apply; None where they are not known."""

    retention_ms: int | None = None
    retention_bytes: int | None = None
    log_start: int | None = None
    only_local_bytes: int = 0
    """Bytes on the leader's disk that are not tiered yet; they count against the size limit."""

    @classmethod
    def of(
        cls, topic: TopicFacts | None, offsets: PartitionOffsets | None, only_local_bytes: int = 0
    ) -> RetentionSettings:
        return cls(
            None if topic is None else number(topic.setting("retention.ms")),
            None if topic is None else number(topic.setting("retention.bytes")),
            None if offsets is None else offsets.earliest,
            only_local_bytes,
        )

    @property
    def unknown(self) -> list[str]:
        told = {
            "retention.ms": self.retention_ms,
            "retention.bytes": self.retention_bytes,
            "log start": self.log_start,
        }
        return [name for name, value in told.items() if value is None]


@dataclass(frozen=True, slots=True)
class RetentionDecision:
    """The fate of one segment, and its time."""

    segment: SegmentMetadata
    fate: RetentionFate
    due_ms: int | None
    """When the time limit is reached, or None; earlier segments that stay longer keep it, too."""


def number(text: str | None) -> int | None:
    """Return the value of a numeric setting; None where there is none."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def due_of(
    segments: Sequence[SegmentMetadata],
    rules: RetentionSettings,
    now_ms: int,
    *,
    epochs: LogLeaderEpochs | None = None,
    being_copied: Collection[SegmentId] = (),
) -> list[RetentionDecision]:
    """
    Return the decision of retention at *now_ms* about all *segments*, in the order of the run.
    *epochs* are those of the leader's log, by default those of the segments. The scan stops at a
    segment *being_copied*.
    """
    known = epochs or LogLeaderEpochs.of_segments(segments)
    if rules.log_start is not None:
        known = known.from_start(rules.log_start)
    log = known.with_records()
    order = _listed(segments, log)
    scanned = {one.id for one in order}
    fates = _fates(order, rules, now_ms, log, being_copied)
    rest = sorted(
        (one for one in segments if one.id not in scanned),
        key=lambda one: (one.epochs[0][0], one.start_offset, one.id.uuid),
    )
    return [
        *(
            RetentionDecision(one, fate, _due_ms(one, rules))
            for one, fate in zip(order, fates, strict=True)
        ),
        *(
            RetentionDecision(one, _fate_outside(one, known, rules), _due_ms(one, rules))
            for one in rest
        ),
    ]


def start_after(dues: Iterable[RetentionDecision]) -> int | None:
    """Return where the leader lets the log begin then; None where it leaves that as it is."""
    ends = (
        one.segment.last_offset + 1
        for one in dues
        if one.fate in (RetentionFate.TIME, RetentionFate.SIZE)
    )
    return max(ends, default=None)


def _listed(segments: Sequence[SegmentMetadata], log: LogLeaderEpochs) -> list[SegmentMetadata]:
    by_epoch: dict[int, list[SegmentMetadata]] = {epoch: [] for epoch, _ in log.entries}
    for one in segments:
        first = next((epoch for epoch, _ in one.epochs if epoch in by_epoch), None)
        if first is not None:
            by_epoch[first].append(one)
    return [
        one
        for of_epoch in by_epoch.values()
        for one in sorted(of_epoch, key=lambda one: (one.start_offset, one.id.uuid))
    ]


def _fates(
    order: Sequence[SegmentMetadata],
    rules: RetentionSettings,
    now_ms: int,
    log: LogLeaderEpochs,
    being_copied: Collection[SegmentId],
) -> Iterator[RetentionFate]:
    debt = _debt(order, rules, log)
    before_ms = None
    if rules.retention_ms is not None and rules.retention_ms >= 0:
        before_ms = now_ms - rules.retention_ms
    is_over = False
    for one in order:
        is_over = is_over or one.id in being_copied
        if one.state is SegmentState.DELETE_SEGMENT_STARTED:
            # After its end, too: who begins to delete something sees to it that it goes.
            fate = RetentionFate.BEING_DELETED
        elif is_over:
            fate = _staying(one)
        elif _is_before(one, rules, log):
            fate = RetentionFate.BEFORE_LOG_START
        elif not log.holds(one):
            fate = _staying(one)
        elif before_ms is not None and before_ms >= 0 and one.max_timestamp_ms < before_ms:
            fate = RetentionFate.TIME
            debt = max(0, debt - one.size_bytes)
        elif debt >= one.size_bytes and debt > 0:
            fate = RetentionFate.SIZE
            debt -= one.size_bytes
        else:
            fate, is_over = _staying(one), True
        yield fate


def _debt(order: Sequence[SegmentMetadata], rules: RetentionSettings, log: LogLeaderEpochs) -> int:
    if rules.retention_bytes is None or rules.retention_bytes < 0:
        return 0
    counted = sum(
        one.size_bytes
        for one in order
        if one.state is SegmentState.COPY_SEGMENT_FINISHED and log.holds(one)
    )
    return max(0, counted + rules.only_local_bytes - rules.retention_bytes)


def _is_before(segment: SegmentMetadata, rules: RetentionSettings, log: LogLeaderEpochs) -> bool:
    if rules.log_start is None or log.earliest is None:
        return False
    return segment.last_offset < rules.log_start and segment.epochs[-1][0] <= log.earliest


def _staying(segment: SegmentMetadata) -> RetentionFate:
    is_open = segment.state is SegmentState.COPY_SEGMENT_STARTED
    return RetentionFate.UNFINISHED if is_open else RetentionFate.STAYS


def _fate_outside(
    segment: SegmentMetadata, known: LogLeaderEpochs, rules: RetentionSettings
) -> RetentionFate:
    if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
        return RetentionFate.BEING_DELETED
    if known.earliest is not None and segment.epochs[-1][0] < known.earliest:
        is_before = rules.log_start is not None and segment.last_offset < rules.log_start
        return RetentionFate.BEFORE_LOG_START if is_before else RetentionFate.SUPERSEDED
    return _staying(segment)


def _due_ms(segment: SegmentMetadata, rules: RetentionSettings) -> int | None:
    limit_ms = rules.retention_ms
    if limit_ms is None or limit_ms < 0 or segment.max_timestamp_ms < 0:
        return None
    return segment.max_timestamp_ms + limit_ms + 1
