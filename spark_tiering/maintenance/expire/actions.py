"""Actions of an expire job outside its process; a `str` says why one failed, an error ends all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rlmm.errors import RlmmError, StoreError
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from spark_tiering.copy_job.request import NO_BROKER
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.executor.object_deletion import delete_objects
from spark_tiering.executor.tasks import one_line
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.stores.opening import process_store
from spark_tiering.stores.results import ObjectAbsent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
    from spark_tiering.job_registry.claims import Claims
    from spark_tiering.maintenance.expire.decision import ExpireOptions
    from spark_tiering.maintenance.tier import Tier
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore


class RemovalTarget(NamedTuple):
    segment_id: SegmentId
    start_offset: int
    was_finished: bool
    """Its copy was finished: none of its objects can be half-written."""


@dataclass(frozen=True, slots=True)
class RemovalTask:
    store: StoreSettings
    prefix: str
    old_prefixes: tuple[str, ...]
    targets: tuple[RemovalTarget, ...]


class RemovalResult(NamedTuple):
    """Where a removal is not done, some objects may still exist, and *detail* says why."""

    segment_id: SegmentId
    is_done: bool
    was_there: bool
    detail: str = ""


def remove(task: RemovalTask) -> list[RemovalResult]:
    """Delete each target's objects, if any (F118); after a failure of the store skip the rest."""
    removals: list[RemovalResult] = []
    failure = ""
    for target in task.targets:
        if failure:
            removals.append(RemovalResult(target.segment_id, False, False, failure))
            continue
        try:
            removal = _remove(process_store(task.store), target, task)
        except RlmmError as error:
            removal = RemovalResult(target.segment_id, False, False, one_line(str(error)))
        failure = "" if removal.is_done else removal.detail or "the store failed"
        removals.append(removal)
    return removals


def _remove(store: ObjectStore, target: RemovalTarget, task: RemovalTask) -> RemovalResult:
    was_there = _has_manifest(store, target, task.prefix)
    # Objects under the present prefix were written there alone. A segment whose manifest is
    # not there may have been begun there, or be elsewhere: all places then.
    for place in [task.prefix] if was_there else [task.prefix, *task.old_prefixes]:
        if place != task.prefix:
            was_there = was_there or _has_manifest(store, target, place)
        deletion = delete_objects(
            store,
            target.segment_id,
            target.start_offset,
            place,
            with_uploads=not target.was_finished,
        )
        if not deletion.is_done:
            return RemovalResult(target.segment_id, False, was_there, one_line(deletion.detail))
    return RemovalResult(target.segment_id, True, was_there)


def _has_manifest(store: ObjectStore, target: RemovalTarget, prefix: str) -> bool:
    key = object_key(target.segment_id, target.start_offset, ObjectKind.MANIFEST, prefix)
    return not isinstance(store.head(key, is_sum_wanted=False), ObjectAbsent)


CLAIM_AGE_MS: Final = 5_000
"""The age at which the answer that a topic is still claimed is asked for again."""
UNIT_SEGMENTS: Final = 16
"""Segments of one unit: each takes a few requests, and sending a unit to its worker costs more."""
UNITS_OF_SLOT: Final = 4


class ExpireActions(Protocol):
    @property
    def wave(self) -> int:
        """Segments that are deleted at once."""

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        """Return why the job may no longer touch *partition*; empty where it may."""

    def look(self, segment_id: SegmentId) -> SegmentMetadata | str | None: ...

    def move(self, segments: Sequence[SegmentMetadata], state: SegmentState) -> list[str]:
        """Publish that *segments* are in *state*; return why each failed, or ""."""

    def remove(self, targets: Sequence[RemovalTarget]) -> list[RemovalResult]:
        """Delete the objects of each target; return the results in the same order."""

    def move_partition(self, partition: TopicIdPartition, state: PartitionDeleteState) -> str:
        """Publish that a partition's deletion is in *state*; return why it failed, or ""."""

    def is_empty(self, partition: TopicIdPartition) -> bool | str:
        """Return whether the metadata has no segment of the partition any more."""


class TierExpireActions:
    """The actions on a tier. For the one thread that publishes."""

    def __init__(
        self, tier: Tier, store: StoreSettings, options: ExpireOptions, claims: Claims
    ) -> None:
        self._tier = tier
        self._store = store
        self._options = options
        self._claims = claims
        self._old_prefixes = tuple(
            one for one in dict.fromkeys(options.old_prefixes) if one != tier.request.prefix
        )

    @property
    def wave(self) -> int:
        """A wave fills every slot, and is small: a driver that dies leaves little begun."""
        return max(1, self._tier.engine().slots) * UNITS_OF_SLOT * UNIT_SEGMENTS

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        topic = JobTopic(partition.topic, partition.topic_id)
        try:
            is_ours = self._claims.check(topic, younger_ms=CLAIM_AGE_MS)
        except StoreError as error:
            return f"topic {partition.topic}: the store does not say whether it is claimed: {error}"
        return "" if is_ours else f"topic {partition.topic} is not this run's any more"

    def look(self, segment_id: SegmentId) -> SegmentMetadata | str | None:
        try:
            return self._tier.writer().segment(segment_id, self._options.publish_s)
        except RlmmError as error:
            return _text(error)

    def move(self, segments: Sequence[SegmentMetadata], state: SegmentState) -> list[str]:
        """The events repeat the custom metadata, which would be erased otherwise (F104)."""
        now_ms = self._tier.now_ms()
        events = [
            SegmentUpdate(one.id, NO_BROKER, now_ms, one.custom_metadata, state) for one in segments
        ]
        if not events:
            return []
        errors = self._tier.writer().publish_all(events, self._options.publish_s)
        return [_text(one) if isinstance(one, RlmmError) else "" for one in errors]

    def remove(self, targets: Sequence[RemovalTarget]) -> list[RemovalResult]:
        """A unit that did not return may have removed nothing."""
        groups = [
            tuple(targets[at : at + UNIT_SEGMENTS]) for at in range(0, len(targets), UNIT_SEGMENTS)
        ]
        prefix = self._tier.request.prefix
        units = [RemovalTask(self._store, prefix, self._old_prefixes, one) for one in groups]
        removals: list[RemovalResult] = []
        outcomes = self._tier.engine().run_units(units, remove) if units else []
        for group, outcome in zip(groups, outcomes, strict=True):
            if isinstance(outcome, UnitLost):
                why = one_line(outcome.why)
                removals += [RemovalResult(one.segment_id, False, False, why) for one in group]
            else:
                removals += outcome
        return removals

    def move_partition(self, partition: TopicIdPartition, state: PartitionDeleteState) -> str:
        event = PartitionDelete(partition, NO_BROKER, self._tier.now_ms(), state)
        try:
            self._tier.writer().put_partition_delete(event, self._options.publish_s)
        except RlmmError as error:
            return _text(error)
        return ""

    def is_empty(self, partition: TopicIdPartition) -> bool | str:
        try:
            image = self._tier.writer().image([partition], {}, self._options.publish_s)
        except RlmmError as error:
            return _text(error)
        return not any(one.segments for one in image.partitions)


def _text(error: RlmmError) -> str:
    return one_line(f"{error.code}: {error}")
