"""Actions of a real job: its metadata, its engine, its store, and its claims."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from rlmm.errors import RlmmError, StoreError
from rlmm.metadata.ids import SegmentId
from spark_tiering.copy_job.publishing import CopyEventPublisher
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.executor.object_deletion import delete_objects
from spark_tiering.executor.segment_copy import copy_segment
from spark_tiering.executor.tasks import CopyTask
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.job_registry.records import JobRecords
from spark_tiering.segments.segment_inspection import USUAL_RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_job.planning import CopyJobState
    from spark_tiering.copy_job.protocols import EventPublisher
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.plan import CopyPlan, PlannedCopy, PlannedEnd
    from spark_tiering.executor.tasks import CopyResult
    from spark_tiering.job_registry.claims import Claims
    from spark_tiering.segments.partition_files import SourceFileFacts

_log = logging.getLogger(__name__)

CLAIM_AGE_MS: Final = 5_000
"""How old a claim's confirmation may be without brokers: a request an event would cost too much."""


class NoFiles:
    """Files of a partition that the source does not have; copies that are whole read none."""

    def facts(self) -> Mapping[str, SourceFileFacts]:
        return {}

    def read(self, name: str, start: int, size: int) -> bytes:
        return b""


class CopyJobActions:
    def __init__(
        self, at: CopyJobContext, plan: CopyPlan, seen: CopyJobState, claims: Claims
    ) -> None:
        request = at.request
        self.publisher: EventPublisher = CopyEventPublisher(
            at.metadata, plan.rules.broker_id, at.now_ms, request.waits.publish_s
        )
        self._at = at
        self._plan = plan
        self._seen = seen
        self._claims = claims
        self._opened = {one.id: one for image in seen.image.partitions for one in image.segments}
        self._records = JobRecords(at.jobs, at.job_id)
        self._claim_age_ms = 0 if plan.rules.mode is CopyMode.ADOPT else CLAIM_AGE_MS

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        """Return why; where the store does not answer, nothing is published."""
        topic = JobTopic(partition.topic, partition.topic_id)
        try:
            is_ours = self._claims.check(topic, younger_ms=self._claim_age_ms)
        except StoreError as error:
            return f"topic {partition.topic}: the store did not tell whose it is: {error}"
        return "" if is_ours else f"topic {partition.topic} is not this job's any more"

    def started_event(self, partition: TopicIdPartition, copy: PlannedCopy) -> SegmentMetadata:
        opened = self._opened.get(SegmentId(partition, copy.uuid))
        return opened or self._plan.started_event(partition, copy, self._at.now_ms())

    def unit(
        self, partition: TopicIdPartition, copy: PlannedCopy, event: SegmentMetadata
    ) -> CopyTask:
        request, surveyed = self._at.request, self._seen.surveyed.get(partition)
        return CopyTask(
            segment=self._plan.started_event(partition, copy, event.event_timestamp_ms),
            files=NoFiles() if surveyed is None else surveyed.files,
            log_start=None if surveyed is None else surveyed.source.log_start,
            store=request.store,
            prefix=self._plan.rules.prefix,
            job_id=self._at.job_id,
            options=request.options,
            pace=request.pace.share(max(1, self._at.engine().slots)),
            deadline_s=request.waits.unit_s,
            action=copy.action,
            rules=USUAL_RULES if surveyed is None else surveyed.rules,
            pause_key=self._records.pause_key,
        )

    def copy(
        self, units: Sequence[CopyTask], on_result: Callable[[Uuid, CopyResult | str], None]
    ) -> None:
        by_unit_id = {unit.unit_id: unit.segment.id.uuid for unit in units}

        def came_back(result: CopyResult | UnitLost) -> None:
            if isinstance(result, UnitLost):
                on_result(units[result.index].segment.id.uuid, result.why)
            else:
                on_result(by_unit_id[result.unit_id], result)

        if units:
            self._at.engine().run_units(units, copy_segment, came_back)

    def stop_units(self, why: str) -> None:
        try:
            self._records.ask_to_stop(why)
        except RlmmError as error:
            _log.warning("%s: copies that wait cannot be told, and are made: %s", why, error)

    def delete_objects(self, partition: TopicIdPartition, copy: PlannedCopy | PlannedEnd) -> str:
        segment_id = SegmentId(partition, copy.uuid)
        prefix = self._plan.rules.prefix
        found = delete_objects(self._at.store, segment_id, copy.start_offset, prefix)
        return "" if found.is_done else found.detail or "they could not be deleted"
