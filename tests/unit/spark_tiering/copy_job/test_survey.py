"""One look at source, cluster and metadata."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.planning import evidence_of, look_around, plan_now
from spark_tiering.copy_job.request import ClusterAccess
from spark_tiering.copy_plan.document import format_plan
from spark_tiering.copy_plan.inputs import OpenCopyEvidence, OpenCopyWriter, StoredObjects
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.job_registry.records import JobRecords
from spark_tiering.segment_sources.protocol import FoundPartition, ReplicaOrigin, UnusablePlace
from spark_tiering.segment_sources.survey import ClusterPartition
from tests.support.builders import tp
from tests.support.partitions.segments import example_partition
from tests.support.tier.job_parts import ORDERS, HeldMetadata, HeldSource, job_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.metadata.ids import TopicIdPartition

OTHER = tp("others", 1)
FACTS = ClusterPartition(
    is_tiered=True, log_start=7, last_stable_offset=130, high_watermark=257, retention_ms=None,
    leader=1,
)  # fmt: skip


@dataclass
class HeldCluster:
    facts: Mapping[TopicIdPartition, ClusterPartition]
    cluster_id: str = "cluster-1"
    asked: list[str] = field(default_factory=list)

    def partition_facts(
        self, wants_topic: Callable[[str], bool]
    ) -> Mapping[TopicIdPartition, ClusterPartition]:
        self.asked.append("facts")
        return {one: facts for one, facts in self.facts.items() if wants_topic(one.topic)}

    def epoch_ends(
        self, epochs: Mapping[TopicIdPartition, int]
    ) -> Mapping[TopicIdPartition, tuple[int, int]]:
        return {one: (epoch, 1_000) for one, epoch in epochs.items()}


def test_look_when_offline_then_source_and_metadata_are_seen() -> None:
    """An offline survey sees listed segments and the metadata of just their partitions."""
    metadata = HeldMetadata()
    unusable = UnusablePlace("somewhere", "torn")
    source = HeldSource({ORDERS: example_partition()}, [unusable])
    seen = look_around(job_parts(metadata=metadata, source=source))
    assert [one.partition for one in seen.sources] == [ORDERS]
    assert seen.unusable == (unusable,)
    assert seen.facts is None
    assert metadata.asked == [([ORDERS], {ORDERS: [4, 6]})]


def test_look_when_partitions_are_named_then_they_are_asked_about_as_well() -> None:
    """Named partitions of a plan are included in the survey although the source has lost them."""
    metadata = HeldMetadata()
    look_around(job_parts(metadata=metadata), [OTHER, ORDERS])
    assert metadata.asked[0][0] == [ORDERS, OTHER]


def test_look_when_a_topic_is_not_wanted_then_it_is_not_asked_about() -> None:
    """Filtered topics are read from neither files nor metadata."""
    metadata = HeldMetadata()
    seen = look_around(job_parts(metadata=metadata, filters=SegmentSelection(topics=("other*",))))
    assert not seen.sources
    assert metadata.asked[0][0] == []


def test_look_when_there_is_a_cluster_then_it_tells_what_is_stable_and_where_logs_begin() -> None:
    """A cluster's stable ends and log starts count; adopting asks about other brokers' too."""
    cluster = HeldCluster({ORDERS: FACTS, OTHER: FACTS})
    metadata = HeldMetadata(cluster_id="the archive's own")
    archive = look_around(job_parts(metadata=metadata, reached=cluster))
    assert archive.sources[0].last_stable_offset == 130
    assert archive.sources[0].log_start == 7
    assert metadata.asked[-1][0] == [ORDERS]
    access = ClusterAccess("broker:9092")
    look_around(job_parts(metadata=metadata, reached=cluster, mode=CopyMode.ADOPT, cluster=access))
    assert metadata.asked[-1][0] == [ORDERS, OTHER]


@dataclass
class Told(HeldSource):
    """Name the cluster of its segments, as a broker's folder does."""

    def partitions(self) -> tuple[list[FoundPartition], list[UnusablePlace]]:
        found, unusable = super().partitions()
        return [
            one._replace(origin=ReplicaOrigin("here", 1, "cluster-1")) for one in found
        ], unusable


@pytest.mark.parametrize("is_asked", [True, False], ids=["asked", "offline"])
def test_archive_when_the_metadata_is_its_clusters_own_then_is_refused(is_asked: bool) -> None:
    """An archive is refused on the cluster's own metadata: brokers would delete records."""
    cluster = HeldCluster({ORDERS: FACTS}) if is_asked else None
    source = None if is_asked else Told({ORDERS: example_partition()})
    metadata = HeldMetadata()
    with pytest.raises(ConfigError, match="a log of its own"):
        look_around(job_parts(metadata=metadata, source=source, reached=cluster))
    assert metadata.asked == []


def test_archive_when_the_metadata_is_a_log_of_its_own_then_is_looked_at() -> None:
    """An archive on a metadata log of its own may take segments of any broker."""
    source = Told({ORDERS: example_partition()})
    metadata = HeldMetadata(cluster_id="the archive's own")
    assert look_around(job_parts(metadata=metadata, source=source)).sources


def test_evidence_when_a_copy_is_open_then_says_who_started_it_and_what_is_there() -> None:
    """Open copies of this job's own plans are its own; objects of others are not read."""
    metadata = HeldMetadata()
    at = job_parts(metadata=metadata)
    plan = plan_now(at, look_around(at))
    copy = plan.in_turn()[0][1]
    ours = plan.started_event(ORDERS, copy, 1)
    foreign = replace(ours, id=SegmentId(ORDERS, Uuid.of(9, 9)))
    done = replace(
        ours, id=SegmentId(ORDERS, Uuid.of(9, 8)), state=SegmentState.COPY_SEGMENT_FINISHED
    )
    metadata.segments = [ours, foreign, done]
    JobRecords(at.jobs, at.job_id).write_plan(format_plan(plan))
    found = {one.segment_id: one for one in evidence_of(at, look_around(at))}
    assert found == {
        ours.id: OpenCopyEvidence(ours.id, OpenCopyWriter.ENDED, StoredObjects.NONE),
        foreign.id: OpenCopyEvidence(foreign.id, OpenCopyWriter.FOREIGN, StoredObjects.UNKNOWN),
    }
