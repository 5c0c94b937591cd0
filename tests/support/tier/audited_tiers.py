"""A tier in memory that is audited; its events are ten days older than the audit by default."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from rlmm.base.closing import ClosedByWith
from rlmm.base.loop_thread import LoopThread
from rlmm.inspection.cluster_facts import PartitionOffsets, TopicFacts
from rlmm.inspection.replay import replay
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.execution.in_process import InProcess
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.audit.object_set_verdict import DAY_MS, USUAL_PROOFS, SetVerdict
from spark_tiering.maintenance.audit.orphan_deletion import OrphanDeletion
from spark_tiering.maintenance.tier import CareRequest, Tier
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import process_store
from tests.support.builders import started, tp, update
from tests.support.cli.metadata_history import START_MS, History
from tests.support.kafka.fake_cluster import FakeCluster
from tests.support.stores.memory_store import MemoryStore
from tests.support.stores.segment_objects import contents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.inspection.moment import Moment
    from rlmm.inspection.replay import EventLog
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.audit.orphan_deletion import OrphanDeletionResult
    from spark_tiering.maintenance.audit.report import AuditReport
    from spark_tiering.maintenance.audit.unknown_sets import UnknownObjectSet
    from spark_tiering.maintenance.tier import TierMoment
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore

NOW_MS = START_MS + 10 * DAY_MS
ORDERS = tp("orders", 3)
GONE = tp("gone", 0, Uuid.of(7, 7))
"""Of a topic that clusters here do not know."""
STORE = LocalSettings(Path("/nowhere"))
ALL = tuple(ObjectKind)
CS, CF, DS, DF = SegmentState
MARKED, STARTED, FINISHED = PartitionDeleteState


def segment_of(
    label: int, start: int = 0, last: int = 99, partition: TopicIdPartition = ORDERS, **more: Any
) -> SegmentMetadata:
    made = started(label, start, last, **{"event_timestamp_ms": START_MS, **more})
    return replace(made, id=SegmentId(partition, made.id.uuid))


class AuditedTier(ClosedByWith):
    def __init__(
        self, prefix: str = "tier/", cluster: FakeCluster | None = None, **request: Any
    ) -> None:
        self.thread = LoopThread("audited-tier")
        self.store = MemoryStore()
        self.history = History()
        self.cluster = cluster
        self.prefix = prefix
        self.now_ms = NOW_MS
        self.request = CareRequest(**{"store": STORE, "prefix": prefix, **request})
        if cluster is not None:
            self.history.topic.cluster_id = "told"

    def close(self) -> None:
        self.thread.close()

    def say(self, *events: Event) -> None:
        self.thread.wait(self.history.add(*events))

    def put(
        self,
        segment: SegmentMetadata,
        kinds: tuple[ObjectKind, ...] = ALL,
        prefix: str | None = None,
        modified_ms: int = START_MS,
        start: int | None = None,
    ) -> None:
        objects = contents(segment)
        for kind in kinds:
            at = segment.start_offset if start is None else start
            key = object_key(segment.id, at, kind, self.prefix if prefix is None else prefix)
            self.store.objects[key] = objects[kind]
            self.store.modified_ms[key] = modified_ms

    def bring(self, segment: SegmentMetadata, state: SegmentState, **objects: Any) -> None:
        self.say(segment, *(
            update(segment.id, one, event_timestamp_ms=segment.event_timestamp_ms,
                   custom_metadata=segment.custom_metadata)
            for one in SegmentState if CS < one <= state
        ))  # fmt: skip
        if objects.get("kinds") != ():
            self.put(segment, **objects)

    def end_partition(self, state: PartitionDeleteState, partition: TopicIdPartition) -> None:
        for one in PartitionDeleteState:
            if one <= state:
                self.say(PartitionDelete(partition, 1, START_MS, one))

    def remove(self, segment: SegmentMetadata, *kinds: ObjectKind) -> None:
        for kind in kinds or ALL:
            self.store.objects.pop(object_key(segment.id, segment.start_offset, kind, self.prefix))

    @contextmanager
    def opened(self) -> Iterator[Tier]:
        async def moment() -> Moment:
            return await replay(self.history.log, timeout_s=5)

        async def log() -> EventLog:
            return self.history.log

        async def cluster() -> Any:
            return self.cluster

        def store_of(settings: StoreSettings) -> ObjectStore:
            # Inventories lie elsewhere.
            return self.store if settings == STORE else process_store(settings)

        with (
            patch("spark_tiering.store_listing.listing_tasks.process_store", store_of),
            patch("spark_tiering.maintenance.audit.shard_join.process_store", store_of),
        ):
            tier = Tier(
                self.request,
                now_ms=lambda: self.now_ms,
                thread=self.thread,
                open_store=lambda: self.store,
                open_engine=InProcess,
                open_writer=nobody_publishes,
                take_moment=moment,
                open_log=log,
                find_cluster=cluster,
            )
            ask = tier.moment

            def told() -> TierMoment:
                self.store.before("moment", "")
                return ask()

            with patch.object(tier, "moment", told):
                yield tier

    def audit(self, **options: Any) -> AuditReport:
        with self.opened() as tier, Audit(tier, AuditOptions(**options)) as audit:
            report = audit.run()
            self.orphans: list[UnknownObjectSet] = [] if report.stopped else list(audit.orphans())
            self.rules = audit.rules
            return report

    def delete(self, **options: Any) -> OrphanDeletionResult:
        said = {"proofs": USUAL_PROOFS, "is_dry": False, **options}
        with self.opened() as tier:
            return OrphanDeletion(tier, self.rules, **said).run(lambda: iter(self.orphans))


def nobody_publishes() -> Any:
    raise AssertionError("an audit publishes nothing")


def verdicts(report: AuditReport) -> dict[SetVerdict, int]:
    found = {verdict: report.amount(verdict) for verdict in SetVerdict}
    return {verdict: one.sets or one.objects for verdict, one in found.items() if one.objects}


def codes(report: AuditReport) -> dict[str, int]:
    return {
        kind.code: count
        for kind, count in report.findings.counts.items()
        if kind.code != "TIER-SMALL-SEGMENTS"
    }


def told_cluster(
    *partitions: TopicIdPartition, log_start: int = 0, local_start: int | None = None
) -> FakeCluster:
    topics = {one.topic: TopicFacts(one.topic, one.topic_id, {}) for one in partitions}
    ends = {
        one: PartitionOffsets(
            earliest=log_start,
            earliest_local=log_start if local_start is None else local_start,
            latest=10**6,
        )
        for one in partitions
    }
    return FakeCluster(topics, ends)


def with_cluster(tier: AuditedTier, **ends: int) -> AuditedTier:
    tier.cluster = told_cluster(ORDERS, **ends)
    tier.history.topic.cluster_id = "told"
    return tier
