"""
The survey of a source: with the cluster's facts it becomes the input of a plan; nothing is read. Of
several replicas the leader's log is taken, else the one that reaches furthest; either counts only
as far as the leader agrees with it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import ConfigError, InvalidArgument, LogError
from rlmm.metadata.ids import TopicIdPartition
from rlmm.partition_log.names import LOG, PARTITION_METADATA
from spark_tiering.copy_plan.inputs import SourcePartition, SourceSegment
from spark_tiering.segment_sources.protocol import (
    UNKNOWN_TOPIC_ID,
    StableOffsetFiles,
    UnusablePlace,
)
from spark_tiering.segments.companions import StoredFiles
from spark_tiering.segments.findings import SegmentFinding
from spark_tiering.segments.segment_inspection import USUAL_RULES, InspectionRules
from spark_tiering.segments.segment_listing import list_segments
from spark_tiering.segments.state_before import last_stable_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rlmm.metadata.ids import Uuid
    from spark_tiering.segment_sources.protocol import FoundPartition, SegmentSource
    from spark_tiering.segments.leader_epochs import Epochs
    from spark_tiering.segments.partition_files import PartitionFiles

    EpochEnds = Callable[
        [Mapping[TopicIdPartition, int]], Mapping[TopicIdPartition, tuple[int, int]]
    ]
    """Asks leaders where one epoch of each partition ends, see `TierCluster.epoch_ends`."""


class ReplicaAgreement:
    """
    Compares one replica's *history* with its leader's: while `asks` is an epoch, the caller passes
    the leader's answer to `hear`; then `next_offset` is where both differ, or None.
    """

    def __init__(self, history: Epochs) -> None:
        self.asks: int | None = history[-1][0] if history else None
        self.next_offset: int | None = None
        self._history = history

    def hear(self, epoch: int, next_offset: int) -> None:
        """Take the leader's largest epoch up to the asked one and its end offset; -1: none."""
        asked, self.asks = self.asks, None
        if asked is None or not 0 <= epoch <= asked or next_offset < 0:
            return
        # What was written under an epoch that the leader never had is nobody else's.
        above = [start for own, start in self._history if own > epoch]
        below = [own for own, _ in self._history if own <= epoch]
        if not below:
            self.next_offset = above[0]
        elif below[-1] != epoch:
            self.asks = below[-1]  # the leader has had one that this replica never heard of
        else:
            self.next_offset = min([next_offset, *above[:1]])


@dataclass(frozen=True, slots=True)
class ClusterPartition:
    """Holds the cluster's facts on a partition; None for an unknown fact."""

    is_tiered: bool
    log_start: int | None
    last_stable_offset: int | None
    high_watermark: int | None
    retention_ms: int | None
    """`None` means without a limit."""
    leader: int | None
    local_start: int | None = None
    """The first offset on the leader's own disk; asked of tiered topics only."""
    latest_tiered: int | None = None
    """The highest offset that the leader of a tiered topic knows to be tiered, -1 for none."""
    is_compacted: bool = False
    """Whether `cleanup.policy` has compact."""
    index_interval_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SurveyedPartition:
    """A partition as a plan takes it, and the files that its segments are read from."""

    source: SourcePartition
    files: PartitionFiles
    rules: InspectionRules = USUAL_RULES
    cluster_id: str = ""
    """Whose segments they are, by their own word; empty where nothing says."""


class _Replica(NamedTuple):
    partition: TopicIdPartition
    found: FoundPartition
    segments: tuple[SourceSegment, ...]
    history: Epochs | None


def survey(
    source: SegmentSource,
    facts: Mapping[TopicIdPartition, ClusterPartition] | None,
    wants_topic: Callable[[str], bool],
    *,
    cluster_id: str = "",
    epoch_ends: EpochEnds | None = None,
    with_compacted: bool = False,
) -> tuple[list[SurveyedPartition], list[UnusablePlace]]:
    """
    Return every partition of a wanted topic at the source, and the unusable places of the source.

    Without *facts*, offline, the last stable offset comes from the server of the files, or from a
    read of the records behind the newest producer snapshot, and *with_compacted* says that any
    topic may be compacted, so that offsets without a batch are no damage. With *epoch_ends* nothing
    counts as stable behind the offset where a replica differs from its leader's log. Raises like
    `SegmentSource`.
    """
    found, unusable = source.partitions()
    ids = {(one.topic, one.partition): one.topic_id for one in facts or ()}
    replicas: defaultdict[TopicIdPartition, list[FoundPartition]] = defaultdict(list)
    for one in found:
        if not wants_topic(one.partition.topic):
            continue
        partition = _identified(one, None if facts is None else ids, cluster_id)
        if isinstance(partition, UnusablePlace):
            unusable.append(partition)
        else:
            replicas[partition].append(one)
    taken: list[_Replica] = []
    for partition in sorted(replicas, key=_by_name):
        leader = None if facts is None else facts[partition].leader
        replica, others = _chosen(partition, replicas[partition], leader)
        unusable += others
        taken += [] if replica is None else [replica]
    agreed = None if epoch_ends is None else _agreed(taken, epoch_ends)
    surveyed: list[SurveyedPartition] = []
    for replica in taken:
        known = None if facts is None else facts[replica.partition]
        made = _surveyed(replica, known, agreed, _rules(known, with_compacted=with_compacted))
        if isinstance(made, UnusablePlace):
            unusable.append(made)
        else:
            surveyed.append(made)
    return surveyed, unusable


def _by_name(partition: TopicIdPartition) -> tuple[str, int, Uuid]:
    return partition.topic, partition.partition, partition.topic_id


def _identified(
    found: FoundPartition, ids: Mapping[tuple[str, int], Uuid] | None, cluster_id: str
) -> TopicIdPartition | UnusablePlace:
    partition = found.partition
    topic, number, own_id = partition.topic, partition.partition, partition.topic_id
    of_cluster = found.origin.cluster_id
    if cluster_id and of_cluster and of_cluster != cluster_id:
        return _no_use(found, f"it is of the cluster {of_cluster}, asked was {cluster_id}")
    if ids is None:
        if own_id == UNKNOWN_TOPIC_ID:
            why = f"it does not say its topic's id ({PARTITION_METADATA}), and no cluster was asked"
            return _no_use(found, why)
        return partition
    known_id = ids.get((topic, number))
    if known_id is None:
        why = f"the cluster does not tell this user of a partition {number} of topic {topic}"
        return _no_use(found, why)
    if own_id == UNKNOWN_TOPIC_ID:
        return TopicIdPartition(known_id, topic, number)
    if own_id != known_id:
        why = f"it is of the topic with id {own_id}: in the cluster {topic} has the id {known_id}"
        return _no_use(found, why)
    return partition


def _chosen(
    partition: TopicIdPartition, found: Iterable[FoundPartition], leader: int | None
) -> tuple[_Replica | None, list[UnusablePlace]]:
    unusable: list[UnusablePlace] = []
    readable: list[_Replica] = []
    # Of several from one node, as of a folder and its copy, the one that reaches furthest counts.
    for is_leaders in (True, False):
        for one in found:
            if (leader is not None and one.origin.node_id == leader) is is_leaders:
                listed = _listed(partition, one)
                if isinstance(listed, UnusablePlace):
                    unusable.append(listed)
                else:
                    readable.append(listed)
        if readable:
            return max(readable, key=_reach), unusable
    return None, unusable


def _reach(replica: _Replica) -> tuple[int, int]:
    active = replica.segments[-1]
    return active.listed.base_offset, active.size_bytes


def _listed(partition: TopicIdPartition, found: FoundPartition) -> _Replica | UnusablePlace:
    try:
        stored = StoredFiles(found.files)
        listed = list_segments(stored.facts)
        epochs = stored.epochs()
    except (ConfigError, LogError) as error:
        return _no_use(found, str(error))
    if not listed:
        return _no_use(found, "there is no segment in it")
    segments = tuple(
        SourceSegment(segment, stored.facts[segment.file(LOG)].size_bytes) for segment in listed
    )
    return _Replica(
        partition, found, segments, None if isinstance(epochs, SegmentFinding) else epochs
    )


def _agreed(
    replicas: Iterable[_Replica], epoch_ends: EpochEnds
) -> dict[TopicIdPartition, int | None]:
    """Compare each replica with its leader's log; None where no broker could answer."""
    agreements = {one.partition: ReplicaAgreement(one.history or ()) for one in replicas}
    while asked := {
        partition: one.asks for partition, one in agreements.items() if one.asks is not None
    }:
        told = epoch_ends(asked)
        for partition in asked:
            agreements[partition].hear(*told.get(partition, (-1, -1)))
    return {partition: one.next_offset for partition, one in agreements.items()}


def _surveyed(
    replica: _Replica,
    facts: ClusterPartition | None,
    agreed: Mapping[TopicIdPartition, int | None] | None,
    rules: InspectionRules,
) -> SurveyedPartition | UnusablePlace:
    found = replica.found
    try:
        stable = _stable(found, rules) if facts is None else facts.last_stable_offset
        if agreed is not None:
            until = agreed[replica.partition]
            stable = None if stable is None or until is None else min(stable, until)
        source = SourcePartition(
            replica.partition,
            replica.segments,
            replica.history,
            stable,
            is_tiered=facts is not None and facts.is_tiered,
            log_start=None if facts is None else facts.log_start,
            retention_ms=None if facts is None else facts.retention_ms,
            is_compacted=rules.allows_holes,
        )
    except (ConfigError, InvalidArgument, LogError) as error:
        return _no_use(found, str(error))
    return SurveyedPartition(source, found.files, rules, found.origin.cluster_id)


def _rules(facts: ClusterPartition | None, *, with_compacted: bool) -> InspectionRules:
    if facts is None:
        return InspectionRules(allows_holes=with_compacted)
    interval_bytes = facts.index_interval_bytes
    if interval_bytes is None:
        interval_bytes = USUAL_RULES.index_interval_bytes
    return InspectionRules(interval_bytes, allows_holes=facts.is_compacted)


def _stable(found: FoundPartition, rules: InspectionRules) -> int | None:
    if isinstance(found.files, StableOffsetFiles):
        told = found.files.last_stable_offset()
        if told is None or found.high_watermark is None:
            return told
        return min(told, found.high_watermark)
    return last_stable_offset(
        found.files, high_watermark=found.high_watermark, allows_holes=rules.allows_holes
    ).offset


def _no_use(found: FoundPartition, why: str) -> UnusablePlace:
    return UnusablePlace(found.origin.place or str(found.partition), why)
