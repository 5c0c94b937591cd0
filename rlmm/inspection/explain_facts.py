"""Facts about a user partition beside its state, None where unknown, and their findings. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.findings.finding import Finding
from rlmm.inspection.explain_findings import PARTITION_UNKNOWN
from rlmm.inspection.stuck import TOPIC_GONE
from rlmm.inspection.verify import HISTORY_TRIMMED, TOPIC_RECREATED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.findings.finding import FindingKind
    from rlmm.inspection.cluster_facts import PartitionOffsets, TopicFacts
    from rlmm.inspection.offset_history import OffsetHistory
    from rlmm.metadata.ids import TopicIdPartition


@dataclass(frozen=True, slots=True)
class ExplainFacts:
    now_ms: int
    story: OffsetHistory | None = None
    """What the log tells; None where it was not read."""
    log_start: int | None = None
    topic: TopicFacts | None = None
    is_cluster_known: bool = False
    """Whether the cluster was asked; a topic that is None is then not there."""
    offsets: PartitionOffsets | None = None
    same_name: tuple[TopicIdPartition, ...] = ()
    """Other user partitions of that name, by another topic id."""


def of_topic(partition: TopicIdPartition, facts: ExplainFacts) -> Iterator[Finding]:
    label = f"{partition.topic}-{partition.partition}"
    topic = facts.topic
    if facts.is_cluster_known and (topic is None or topic.topic_id != partition.topic_id):
        now = "has no such topic" if topic is None else f"has one with the id {topic.topic_id}"
        detail = f"the cluster {now}, these events are of topic id {partition.topic_id}"
        fields = {"topic": partition.topic, "topic_id": str(partition.topic_id)}
        yield Finding(TOPIC_GONE, label, detail, fields=fields)
    if facts.same_name:
        others = sorted(str(one.topic_id) for one in facts.same_name)
        detail = f"explained is topic id {partition.topic_id}; there are events of "
        yield Finding(
            TOPIC_RECREATED, label, detail + ", ".join(others),
            fields={"topic": partition.topic, "topic_ids": [str(partition.topic_id), *others]},
        )  # fmt: skip


def of_unknown(label: str, offset: int, facts: ExplainFacts) -> Iterator[Finding]:
    topic = facts.topic
    if not facts.is_cluster_known:
        detail = "whether the cluster has the topic is not known"
    elif topic is None:
        detail = "the cluster has no such topic"
    elif not topic.is_tiered:
        detail = "remote.storage.enable is not true for the topic, or not told"
    else:
        detail = "the topic is tiered, and nothing of this partition was copied yet"
    yield Finding(PARTITION_UNKNOWN, f"{label}@{offset}", detail)
    if facts.log_start:
        detail = f"it begins at offset {facts.log_start}: what was before is not known"
        yield Finding(HISTORY_TRIMMED, "__remote_log_metadata", detail)


def finding(
    kind: FindingKind, partition: TopicIdPartition, offset: int, detail: str, **fields: object
) -> Finding:
    where = {
        "topic": partition.topic,
        "topic_id": str(partition.topic_id),
        "partition": partition.partition,
        "offset": offset,
    }
    label = f"{partition.topic}-{partition.partition}@{offset}"
    return Finding(kind, label, detail, fields={**where, **fields})
