"""The decision which segments of a partition go: by retention, begun deletions, options. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import ConfigError
from rlmm.metadata.segment import SegmentState
from rlmm.retention.retention import RetentionFate, due_of, start_after
from spark_tiering.maintenance.expire.topic_ownership import TopicOwner

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.retention.retention import RetentionDecision, RetentionSettings

_CS, _CF, _DS = (
    SegmentState.COPY_SEGMENT_STARTED,
    SegmentState.COPY_SEGMENT_FINISHED,
    SegmentState.DELETE_SEGMENT_STARTED,
)


class ExpireReason(StrEnum):
    TIME = "retention-ms"
    SIZE = "retention-bytes"
    LOG_START = "log-start"
    OLD_EPOCHS = "old-epochs"
    """Later leader epochs replaced all of its epochs."""
    BEGUN = "deletion-begun"
    """Another process began to delete it and did not finish."""
    OPEN_COPY = "open-copy"
    """Its copy was started, and no writer works on it any more."""
    PARTITION_DELETED = "partition-deleted"
    """The metadata says that the whole partition is being deleted."""
    TOPIC_DELETED = "topic-deleted"


_OF_RULE: Final = {
    RetentionFate.TIME: ExpireReason.TIME,
    RetentionFate.SIZE: ExpireReason.SIZE,
    RetentionFate.BEFORE_LOG_START: ExpireReason.LOG_START,
    RetentionFate.BEING_DELETED: ExpireReason.BEGUN,
}


class ExpiredSegment(NamedTuple):
    segment: SegmentMetadata
    reason: ExpireReason


class SegmentAmount(NamedTuple):
    segments: int = 0
    size_bytes: int = 0

    @classmethod
    def of(cls, segments: Iterable[SegmentMetadata]) -> SegmentAmount:
        sizes = [one.size_bytes for one in segments]
        return cls(len(sizes), sum(sizes))


@dataclass(frozen=True, slots=True)
class PartitionExpirePlan:
    """*doomed* is in the order of deletion."""

    partition: TopicIdPartition
    standing: TopicOwner
    rules: RetentionSettings
    doomed: tuple[ExpiredSegment, ...]
    kept: SegmentAmount
    waiting: SegmentAmount
    """Open copies that stay: a writer may work on them, or the operator did not ask to end them."""
    replaced: SegmentAmount
    start_before: int | None
    """The lowest offset of a finished segment; None without any."""
    start_after: int | None
    """The start of the tiered log afterwards; None where nothing is left."""
    last_event_ms: int
    """The time of the last event of all segments; 0 without any."""
    delete: PartitionDelete | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether nothing of the partition stays."""
        return self.delete is not None or self.standing is TopicOwner.DELETED

    @property
    def amount(self) -> SegmentAmount:
        return SegmentAmount.of(one.segment for one in self.doomed)

    def by_reason(self) -> Mapping[str, int]:
        return dict(sorted(Counter(one.reason.value for one in self.doomed).items()))

    @property
    def is_idle(self) -> bool:
        """Return whether the job has nothing to do."""
        return self.standing.is_refused or (not self.doomed and self.delete is None)


def may_be_at_work(
    segments: Iterable[SegmentMetadata], alive: Collection[SegmentId], open_for_ms: int, now_ms: int
) -> set[SegmentId]:
    """Return the open copies that may have a writer: by an *alive* job, or by their age."""
    return {
        one.id
        for one in segments
        if one.state is _CS and (one.id in alive or now_ms - one.event_timestamp_ms <= open_for_ms)
    }


def decide(
    partition: TopicIdPartition,
    segments: Sequence[SegmentMetadata],
    *,
    standing: TopicOwner,
    rules: RetentionSettings,
    options: ExpireOptions,
    now_ms: int,
    at_work: Collection[SegmentId] = (),
    delete: PartitionDelete | None = None,
) -> PartitionExpirePlan:
    """
    Return the plan for *partition*, given all of its *segments* at one moment. Copies *at_work* may
    have a writer: they stay, and as in Kafka retention does not pass them. *delete* is the
    unfinished deletion of the partition.
    """
    after: int | None = None
    replaced: list[SegmentMetadata] = []
    if standing.is_refused:
        doomed: list[ExpiredSegment] = []
    elif delete is not None or standing is TopicOwner.DELETED:
        why = ExpireReason.TOPIC_DELETED if delete is None else ExpireReason.PARTITION_DELETED
        doomed = [
            ExpiredSegment(one, ExpireReason.BEGUN if one.state is _DS else why)
            for one in sorted(segments, key=lambda one: (one.start_offset, one.id.uuid))
            if one.id not in at_work
        ]
    elif standing is TopicOwner.GONE:
        doomed = [ExpiredSegment(one, ExpireReason.BEGUN) for one in segments if one.state is _DS]
    else:
        dues = due_of(segments, rules, now_ms, being_copied=at_work)
        doomed = [*_doomed(dues, at_work, options)]
        after = start_after(dues)
        replaced = [one.segment for one in dues if one.fate is RetentionFate.SUPERSEDED]
    going = {one.segment.id for one in doomed}
    staying = [one for one in segments if one.id not in going]
    kept = [one for one in staying if one.state is _CF]
    lowest = min((one.start_offset for one in kept), default=None)
    return PartitionExpirePlan(
        partition,
        standing,
        rules,
        tuple(doomed),
        SegmentAmount.of(kept),
        SegmentAmount.of(one for one in staying if one.state is _CS),
        SegmentAmount.of(one for one in replaced if one.id not in going),
        min((one.start_offset for one in segments if one.state is _CF), default=None),
        # As a leader reckons: the log may begin inside a segment that stays.
        lowest if lowest is None or after is None else max(lowest, after),
        max((one.event_timestamp_ms for one in segments), default=0),
        delete,
    )


def _doomed(
    dues: Iterable[RetentionDecision], at_work: Collection[SegmentId], options: ExpireOptions
) -> Iterable[ExpiredSegment]:
    for one in dues:
        if one.segment.id in at_work:
            continue
        reason = _OF_RULE.get(one.fate)
        if one.fate is RetentionFate.SUPERSEDED and options.drops_old_epochs:
            reason = ExpireReason.OLD_EPOCHS
        if one.segment.state is _CS and reason is None and options.ends_open_copies:
            reason = ExpireReason.OPEN_COPY
        if reason is not None:
            yield ExpiredSegment(one.segment, reason)


DAY_MS: Final = 86_400_000

PartitionName = tuple[str, int]
"""The name of a topic and the number of a partition."""


@dataclass(frozen=True, slots=True)
class ExpireOptions:
    """Limits precede the cluster's; without any the job only finishes begun deletions."""

    retention_ms: int | None = None
    """-1: no limit, whatever the cluster has."""
    retention_bytes: int | None = None
    log_starts: Mapping[PartitionName, int] = field(default_factory=dict)
    asks_log_start: bool = False
    """Use the cluster's log start offset for an archive, too, which then ends with the log."""
    open_for_ms: int = DAY_MS
    """A copy with a younger last event may still have a writer."""
    ends_open_copies: bool = False
    """Delete open copies without a writer, also above the limits."""
    drops_old_epochs: bool = False
    """Delete segments whose leader epochs were all replaced, by the other segments."""
    drops_deleted_topics: bool = False
    """Delete the rest of topics that the cluster deleted, where the metadata is its own."""
    max_delete: int | None = None
    old_prefixes: tuple[str, ...] = ()
    """Prefixes to look under for segments that are not under the present one."""
    is_without_objects: bool = False
    """The objects are already deleted: delete the metadata although no object is found."""
    is_offline: bool = False
    """The caller guarantees that no broker expires these topics."""
    publish_s: float = 30.0

    def __post_init__(self) -> None:
        if self.max_delete is not None and self.max_delete < 1:
            raise ConfigError(f"a run that deletes {self.max_delete} segments at most deletes none")
        if self.open_for_ms < 0:
            raise ConfigError(f"a copy is open for a time, not for {self.open_for_ms} ms")
