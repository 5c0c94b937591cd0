"""The survey: from a source and the cluster's facts to the input of a plan, in memory."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError, LogUnavailable
from rlmm.metadata.ids import TopicIdPartition, Uuid
from spark_tiering.segment_sources.protocol import (
    UNKNOWN_TOPIC_ID,
    FoundPartition,
    ReplicaOrigin,
    UnusablePlace,
)
from spark_tiering.segment_sources.survey import ClusterPartition, SurveyedPartition, survey
from spark_tiering.segments.segment_inspection import USUAL_RULES, InspectionRules
from spark_tiering.segments.segment_listing import ListedSegment
from tests.support.partitions.segments import MemoryFiles, changed, example_partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.segments.partition_files import SourceFileFacts

ID, OTHER_ID = Uuid(bytes(range(16))), Uuid(bytes(range(1, 17)))
ORDERS = TopicIdPartition(ID, "orders", 3)
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
FACTS = ClusterPartition(
    is_tiered=True, log_start=0, last_stable_offset=251, high_watermark=257, retention_ms=1000,
    leader=1,
)  # fmt: skip


class MadeSource:
    def __init__(self, *found: FoundPartition, unusable: tuple[UnusablePlace, ...] = ()) -> None:
        self._found = found
        self._unusable = unusable

    def partitions(self) -> tuple[list[FoundPartition], list[UnusablePlace]]:
        return list(self._found), list(self._unusable)

    def close(self) -> None:
        pass


class Gone(MemoryFiles):
    def __init__(self, error: Exception) -> None:
        super().__init__({})
        self._error = error

    def facts(self) -> dict[str, SourceFileFacts]:
        raise self._error


def found(
    files: MemoryFiles | None = None,
    partition: TopicIdPartition = ORDERS,
    node_id: int | None = None,
    cluster_id: str = "",
    high_watermark: int | None = None,
) -> FoundPartition:
    origin = ReplicaOrigin(f"place of {node_id}", node_id, cluster_id)
    return FoundPartition(partition, files or example_partition(), origin, high_watermark)


def surveyed(
    *replicas: FoundPartition,
    facts: Mapping[TopicIdPartition, ClusterPartition] | None = None,
    **options: Any,
) -> tuple[list[SurveyedPartition], list[UnusablePlace]]:
    return survey(MadeSource(*replicas), facts, lambda _: True, **options)


def shorter(files: MemoryFiles) -> MemoryFiles:
    return files.without("251.log")


def test_partition_when_it_is_surveyed_then_has_segments_history_and_facts() -> None:
    """A surveyed partition has its segments, the checkpoint's epochs and the cluster's facts."""
    files = example_partition()
    (one,), unusable = surveyed(found(files), facts={ORDERS: FACTS})
    assert unusable == []
    assert one.files is files
    source = one.source
    assert source.partition == ORDERS
    assert [segment.listed for segment in source.segments] == [
        ListedSegment(0, 120),
        ListedSegment(120, 251),
        ListedSegment(251, None),
    ]
    assert [segment.size_bytes for segment in source.segments] == [14_052, 14_842, 1_249]
    assert {segment.details for segment in source.segments} == {None}
    assert source.history == ((4, 0), (6, 251))
    assert (source.is_tiered, source.log_start, source.retention_ms) == (True, 0, 1000)
    assert source.last_stable_offset == 251
    assert set(files.bytes_read) == {"leader-epoch-checkpoint"}  # no segment is read for that


NO_FACTS = ClusterPartition(False, None, None, None, None, None)
BARE = example_partition().without(".snapshot", "0000.log")


@pytest.mark.parametrize(
    ("replica", "facts", "expected"),
    [
        (found(), None, 257),
        (found(high_watermark=130), None, 130),
        (found(BARE), None, None),
        (found(), {ORDERS: NO_FACTS}, None),
    ],
    ids=["files", "replicated", "files do not tell", "cluster does not tell"],
)
def test_last_stable_offset_is_the_clusters_or_else_of_the_files(
    replica: FoundPartition, facts: dict[Any, Any] | None, expected: int | None
) -> None:
    """Offline the files tell what is stable, up to the high watermark; else the cluster alone."""
    (one,), _ = surveyed(replica, facts=facts)
    assert one.source.last_stable_offset == expected
    source = one.source
    assert (source.is_tiered, source.log_start, source.retention_ms) == (False, None, None)


def test_topic_when_it_is_not_wanted_then_is_not_looked_at() -> None:
    """The survey does not read the files of an unwanted topic and reports no error of them."""
    source = MadeSource(found(Gone(LogUnavailable("away"))))
    assert survey(source, {}, lambda topic: topic != "orders") == ([], [])


OTHER = TopicIdPartition(OTHER_ID, "orders", 3)
MISFITS = {
    "another topic of that name": (found(), {OTHER: FACTS}, f"{ID}.*orders has the id {OTHER_ID}"),
    "no such partition": (found(), {}, "not tell this user of a partition 3 of topic orders"),
    "another cluster": (
        found(cluster_id="BBBBBBBBBBBBBBBBBBBBBB"),
        {ORDERS: FACTS},
        f"of the cluster BBBBBBBBBBBBBBBBBBBBBB, asked was {CLUSTER}",
    ),
    "no id, offline": (
        found(partition=TopicIdPartition(UNKNOWN_TOPIC_ID, "orders", 3)),
        None,
        "no cluster was asked",
    ),
    "no segment": (found(MemoryFiles({})), {ORDERS: FACTS}, "no segment"),
    "away": (found(Gone(LogUnavailable("asleep"))), {ORDERS: FACTS}, "asleep"),
    "vanished": (found(Gone(ConfigError("no partition's folder"))), None, "no partition's folder"),
}


@pytest.mark.parametrize(("replica", "facts", "why"), MISFITS.values(), ids=MISFITS)
def test_partition_when_it_does_not_fit_then_is_of_no_use(
    replica: FoundPartition, facts: Mapping[TopicIdPartition, ClusterPartition] | None, why: str
) -> None:
    """An inconsistent partition is reported with place and reason; the others are surveyed."""
    neighbour = found(partition=TopicIdPartition(ID, "orders", 4))
    told = None if facts is None else {**facts, neighbour.partition: FACTS}
    (one,), unusable = surveyed(replica, neighbour, facts=told, cluster_id=CLUSTER)
    assert one.source.partition == neighbour.partition
    assert [misfit.place for misfit in unusable] == ["place of None"]
    assert re.search(why, unusable[0].why)


def test_partition_when_it_has_no_topic_id_then_takes_the_clusters() -> None:
    """A partition without topic id takes the one that the cluster gives for its name."""
    replica = found(partition=TopicIdPartition(UNKNOWN_TOPIC_ID, "orders", 3), cluster_id=CLUSTER)
    (one,), unusable = surveyed(replica, facts={ORDERS: FACTS}, cluster_id=CLUSTER)
    assert (one.source.partition, unusable) == (ORDERS, [])


def test_unusable_when_the_source_tells_of_it_then_stays_told() -> None:
    """Folders that the source could not use stay in the survey's list of unusable partitions."""
    torn = UnusablePlace("elsewhere", "torn")
    source = MadeSource(found(), unusable=(torn,))
    _, unusable = survey(source, {}, lambda _: True)
    assert unusable[0] == torn
    assert len(unusable) == 2
    assert str(torn) == "elsewhere: torn"


def test_partition_when_its_leaders_are_not_known_then_has_no_history() -> None:
    """A partition whose checkpoint is missing or damaged has no history."""
    for content in (None, b"0\n1\ntorn"):
        files = changed(example_partition(), checkpoint=content)
        (one,), unusable = surveyed(found(files), facts={ORDERS: FACTS})
        assert (one.source.history, unusable) == (None, [])


CHOICES: dict[str, tuple[list[FoundPartition], int]] = {
    "the leader's, though it is shorter": (
        [found(node_id=2), found(shorter(example_partition()), node_id=1)],
        1,
    ),
    "the one that reaches furthest": (
        [found(shorter(example_partition()), node_id=2), found(node_id=3)],
        1,
    ),
    "the longer active segment": (
        [
            found(MemoryFiles({**example_partition().contents, "00000000000000000251.log": b""})),
            found(node_id=3),
        ],
        1,
    ),
    "another one, where the leader's is gone": (
        [found(node_id=2), found(Gone(LogUnavailable("asleep")), node_id=1)],
        0,
    ),
    "of the leader's two the longer": (
        [found(shorter(example_partition()), node_id=1), found(node_id=1), found(node_id=2)],
        1,
    ),
}


@pytest.mark.parametrize(("replicas", "expected"), CHOICES.values(), ids=CHOICES)
def test_f113_one_of_several_replicas(replicas: list[FoundPartition], expected: int) -> None:
    """Of several replicas the survey takes the leader's log, or else the longest."""
    (one,), unusable = surveyed(*replicas, facts={ORDERS: FACTS})
    assert [replica.files is one.files for replica in replicas].index(True) == expected
    gone = [replica for replica in replicas if isinstance(replica.files, Gone)]
    assert [misfit.place for misfit in unusable] == [replica.origin.place for replica in gone]


def test_f113_replica_when_it_differs_then_counts_as_far_as_both_agree() -> None:
    """A replica's records that differ from the leader's log are never stable."""
    asked: list[Mapping[TopicIdPartition, int]] = []

    def epoch_ends(epochs: Mapping[TopicIdPartition, int]) -> dict[TopicIdPartition, Any]:
        asked.append(dict(epochs))
        return {ORDERS: (4, 200)}

    facts = {ORDERS: FACTS}
    (one,), _ = surveyed(found(node_id=2), facts=facts, epoch_ends=epoch_ends)
    assert one.source.last_stable_offset == 200
    assert asked == [{ORDERS: 6}]
    (same,), _ = surveyed(found(), facts=facts, epoch_ends=lambda _: {ORDERS: (6, 900)})
    assert same.source.last_stable_offset == FACTS.last_stable_offset


def test_f113_replica_when_it_cannot_be_held_to_its_leader_then_nothing_of_it_is_stable() -> None:
    """A replica that cannot be compared with its leader has no stable records."""
    (one,), _ = surveyed(found(), facts={ORDERS: FACTS}, epoch_ends=lambda _: {})
    assert one.source.last_stable_offset is None
    files = changed(example_partition(), checkpoint=None)
    (unknown,), _ = surveyed(found(files), facts={ORDERS: FACTS}, epoch_ends=lambda _: {})
    assert unknown.source.last_stable_offset is None


def test_partitions_when_they_are_surveyed_then_stand_in_order() -> None:
    """Partitions of a survey stand in order of topic and number."""
    partitions = [
        TopicIdPartition(ID, name, number) for name, number in (("b", 0), ("a", 10), ("a", 9))
    ]
    found_, _ = surveyed(*(found(partition=one) for one in partitions))
    assert [one.source.partition for one in found_] == sorted(
        partitions, key=lambda one: (one.topic, one.partition)
    )


def test_compacted_topic_when_surveyed_then_its_segments_may_have_holes() -> None:
    """Segments of a compacted topic may have holes, as the cluster says, or offline the caller."""
    facts = replace(FACTS, is_compacted=True, index_interval_bytes=100)
    (one,), _ = surveyed(found(), facts={ORDERS: facts}, with_compacted=True)
    assert one.source.is_compacted
    assert one.rules == InspectionRules(100, allows_holes=True)
    (one,), _ = surveyed(found(), facts={ORDERS: FACTS}, with_compacted=True)
    assert not one.source.is_compacted
    assert one.rules == USUAL_RULES
    (one,), _ = surveyed(found(), with_compacted=True)
    assert one.rules == InspectionRules(allows_holes=True)
    (one,), _ = surveyed(found())
    assert one.rules == USUAL_RULES


def test_last_stable_offset_when_offline_and_compacted_then_is_found_behind_a_hole() -> None:
    """Offline, the last stable offset of a compacted log is found behind a hole."""
    log = example_partition().contents["00000000000000000120.log"]
    files = changed(
        example_partition().without("251.snapshot", "120.snapshot"),
        log=log[: 1171 * 3] + log[1171 * 4 :],
    )
    (one,), _ = surveyed(found(files))
    assert one.source.last_stable_offset is None
    (one,), _ = surveyed(found(files), with_compacted=True)
    assert one.source.last_stable_offset == 257
