"""The protocol of segment sources, for the driver; their files are picklable. No I/O here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from rlmm.metadata.ids import UUID_BYTES, Uuid

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.segments.partition_files import PartitionFiles

UNKNOWN_TOPIC_ID = Uuid(bytes(UUID_BYTES))
"""Stands for the topic's id where a source does not tell it; Kafka gives it to no topic."""

OWN_TOPICS = frozenset(
    {
        "__cluster_metadata",
        "__consumer_offsets",
        "__remote_log_metadata",
        "__share_group_state",
        "__transaction_state",
    }
)
"""The topics that Kafka keeps for itself: no source gives them."""


def is_user_topic(name: str) -> bool:
    return name not in OWN_TOPICS


class ReplicaOrigin(NamedTuple):
    """Tells where a replica was found, and its broker as far as the place tells."""

    place: str = ""
    node_id: int | None = None
    cluster_id: str = ""


class FoundPartition(NamedTuple):
    """A replica at a source, with the high watermark and topic id (or none) of its broker."""

    partition: TopicIdPartition
    files: PartitionFiles
    origin: ReplicaOrigin = ReplicaOrigin()
    high_watermark: int | None = None


class UnusablePlace(NamedTuple):
    place: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"


@runtime_checkable
class StableOffsetFiles(Protocol):
    """Serves files whose server asks the cluster how far they are stable."""

    def last_stable_offset(self) -> int | None:
        """Return the last stable offset of the partition; None where it is unknown."""
        ...


class SegmentSource(Protocol):
    """
    Lists segments; raises never for one partition alone. `ConfigError`: a place is no source,
    `LogNotPermitted`: an operator must act, `LogUnavailable`: wait.
    """

    def partitions(self) -> tuple[list[FoundPartition], list[UnusablePlace]]:
        """Return every replica of users' topics, as it is now, and unusable places."""
        ...

    def close(self) -> None:
        """Release all resources; files that were given stay readable."""
        ...
