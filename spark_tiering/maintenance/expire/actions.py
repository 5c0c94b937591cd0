"""
What carrying out reaches outside with: events, objects, and whether the run may go on.

Failures are values: a `str` says why something was not done. What is raised ends the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from rlmm.errors import RlmmError, StoreError
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from spark_tiering.copy_job.request import NO_BROKER
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.executor.tasks import one_line
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.maintenance.expire.object_removal import RemovalResult, RemovalTask, remove

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
    from spark_tiering.job_registry.claims import Claims
    from spark_tiering.maintenance.expire.object_removal import RemovalTarget
    from spark_tiering.maintenance.expire.options import ExpireOptions
    from spark_tiering.maintenance.tier import Tier
    from spark_tiering.stores.opening import StoreSettings


CLAIM_AGE_MS: Final = 5_000
"""How old the answer may be that a topic is still ours."""
UNIT_SEGMENTS: Final = 16
"""Of one unit: each is a handful of requests, and a unit's way to its worker costs more."""
UNITS_OF_SLOT: Final = 4


class ExpireActions(Protocol):
    """See `TierExpireActions`."""

    @property
    def wave(self) -> int:
        """Segments that are on their way at once."""

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        """Why nothing may be done to *partition* any more; empty where it may."""

    def look(self, segment_id: SegmentId) -> SegmentMetadata | str | None: ...

    def move(self, segments: Sequence[SegmentMetadata], state: SegmentState) -> list[str]:
        """That *segments* have come to *state*: why it is not heard of each, empty where it is."""

    def remove(self, targets: Sequence[RemovalTarget]) -> list[RemovalResult]:
        """Take away the objects of each; in the order of *targets*."""

    def move_partition(self, partition: TopicIdPartition, state: PartitionDeleteState) -> str:
        """That the deletion of a whole partition has come to *state*; why not, or nothing."""

    def is_empty(self, partition: TopicIdPartition) -> bool | str:
        """Whether the metadata has no segment of it any more."""


class TierExpireActions:
    """The hands of a real run; for the one thread that publishes."""

    def __init__(
        self, tier: Tier, store: StoreSettings, wish: ExpireOptions, claims: Claims
    ) -> None:
        self._tier = tier
        self._store = store
        self._wish = wish
        self._claims = claims
        self._old_prefixes = tuple(
            one for one in dict.fromkeys(wish.old_prefixes) if one != tier.request.prefix
        )

    @property
    def wave(self) -> int:
        """Enough for every slot, few enough that a driver that dies leaves little begun."""
        return max(1, self._tier.engine().slots) * UNITS_OF_SLOT * UNIT_SEGMENTS

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        """See `ExpireActions.why_not_ours`; where the store cannot say, nothing is done."""
        topic = JobTopic(partition.topic, partition.topic_id)
        try:
            is_ours = self._claims.check(topic, younger_ms=CLAIM_AGE_MS)
        except StoreError as error:
            return f"nobody can say whether topic {partition.topic} is still this run's: {error}"
        return "" if is_ours else f"topic {partition.topic} is not this run's any more"

    def look(self, segment_id: SegmentId) -> SegmentMetadata | str | None:
        try:
            return self._tier.writer().segment(segment_id, self._wish.publish_s)
        except RlmmError as error:
            return _text(error)

    def move(self, segments: Sequence[SegmentMetadata], state: SegmentState) -> list[str]:
        """See `ExpireActions.move`; custom metadata is repeated, else it would be erased (F104)."""
        now_ms = self._tier.now_ms()
        events = [
            SegmentUpdate(one.id, NO_BROKER, now_ms, one.custom_metadata, state) for one in segments
        ]
        if not events:
            return []
        told = self._tier.writer().publish_all(events, self._wish.publish_s)
        return [_text(one) if isinstance(one, RlmmError) else "" for one in told]

    def remove(self, targets: Sequence[RemovalTarget]) -> list[RemovalResult]:
        """See `ExpireActions.remove`; a unit that did not return has removed nothing for sure."""
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
            self._tier.writer().put_partition_delete(event, self._wish.publish_s)
        except RlmmError as error:
            return _text(error)
        return ""

    def is_empty(self, partition: TopicIdPartition) -> bool | str:
        try:
            image = self._tier.writer().image([partition], {}, self._wish.publish_s)
        except RlmmError as error:
            return _text(error)
        return not any(one.segments for one in image.partitions)


def _text(error: RlmmError) -> str:
    return one_line(f"{error.code}: {error}")
