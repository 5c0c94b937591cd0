"""The inputs of a plan, as values: metadata at one moment, source, evidence on open copies."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import SegmentId
from rlmm.metadata.partitioner import metadata_partition_for
from spark_tiering.layout.object_names import main_key
from spark_tiering.segments.findings import SegmentPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata
    from spark_tiering.segments.leader_epochs import Epochs
    from spark_tiering.segments.segment_listing import ListedSegment
    from spark_tiering.segments.segment_parts import SegmentReport

LABEL_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """Metadata of one user partition; *watermarks*: (epoch, highest offset ever finished)."""

    partition: TopicIdPartition
    segments: tuple[SegmentMetadata, ...] = ()
    watermarks: tuple[tuple[int, int], ...] = ()
    delete: PartitionDeleteState | None = None

    def __post_init__(self) -> None:
        uuids = {segment.id.uuid for segment in self.segments}
        if len(uuids) != len(self.segments):
            msg = f"{self.partition}: a segment stands twice in one image"
            raise InvalidArgument(msg)
        if any(segment.id.partition != self.partition for segment in self.segments):
            msg = f"{self.partition}: a segment of another partition in its image"
            raise InvalidArgument(msg)

    @property
    def digest(self) -> str:
        rows = sorted(
            (
                (
                    str(segment.id.uuid),
                    segment.start_offset,
                    segment.last_offset,
                    segment.broker_id,
                    segment.max_timestamp_ms,
                    segment.event_timestamp_ms,
                    segment.epochs,
                    segment.size_bytes,
                    segment.custom_metadata,
                    int(segment.state),
                    segment.txn_index_empty,
                )
                for segment in self.segments
            ),
            key=lambda row: row[0],
        )
        delete = None if self.delete is None else int(self.delete)
        said = repr((self.partition.key, rows, sorted(self.watermarks), delete))
        return hashlib.sha256(said.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Metadata of some user partitions at the next offsets *positions* (failure scenario F113)."""

    cluster_id: str
    topic_id: Uuid
    partition_count: int
    positions: Mapping[int, int]
    partitions: tuple[PartitionImage, ...]

    def __post_init__(self) -> None:
        if (
            not self.cluster_id.isprintable()
            or not 0 < len(self.cluster_id) <= LABEL_CHARACTERS_MAX
        ):
            msg = f"no cluster has the id {self.cluster_id[:LABEL_CHARACTERS_MAX]!r}"
            raise InvalidArgument(msg)
        if len({image.partition for image in self.partitions}) != len(self.partitions):
            msg = "a partition stands twice in one image"
            raise InvalidArgument(msg)
        for image in self.partitions:
            if self.positions.get(self.metadata_partition_of(image.partition), -1) < 0:
                msg = f"{image.partition}: no position of its metadata partition"
                raise InvalidArgument(msg)

    def metadata_partition_of(self, partition: TopicIdPartition) -> int:
        return metadata_partition_for(partition.topic_id, partition.partition, self.partition_count)


@dataclass(frozen=True, slots=True)
class SegmentDetails:
    """Holds the details of a segment that only reading it tells; see `details_of`."""

    epochs: Epochs
    max_timestamp_ms: int
    txn_index_empty: bool
    indexes_bytes: int
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceSegment:
    """A segment at the source; *details* are those of its inspection, None before it was read."""

    listed: ListedSegment
    size_bytes: int
    details: SegmentDetails | None = None


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """Describes a partition at its source; *log_start* counts the tier's part, None is unknown."""

    partition: TopicIdPartition
    segments: tuple[SourceSegment, ...]
    history: Epochs | None
    last_stable_offset: int | None
    is_tiered: bool
    log_start: int | None = None
    retention_ms: int | None = None
    """How long brokers keep a segment behind its newest record; None for ever, or unknown."""
    is_compacted: bool = False
    """Whether brokers compact the topic, or may as far as is known: then segments may be empty."""

    def __post_init__(self) -> None:
        main_key(SegmentId(self.partition, self.partition.topic_id), 0)
        for (epoch, start), (later, begin) in pairwise(((-1, -1), *(self.history or ()))):
            if later <= epoch or begin <= start:
                msg = f"{self.partition}: leader epoch {later} from {begin} follows {epoch}"
                raise InvalidArgument(msg)
        for segment, following in pairwise(self.segments):
            if segment.listed.next_offset != following.listed.base_offset:
                msg = f"{self.partition}: {following.listed} follows {segment.listed}"
                raise InvalidArgument(msg)
        for segment in self.segments:
            base_offset, next_offset = segment.listed
            if base_offset < 0 or segment.size_bytes < 0 or (next_offset or 2**63) <= base_offset:
                msg = f"{self.partition}: {segment.listed} with {segment.size_bytes} bytes"
                raise InvalidArgument(msg)


class OpenCopyWriter(StrEnum):
    ENDED = "ended"
    """A job of ours that has surely ended, or the one that plans."""
    ALIVE = "alive"
    """A job of ours that may still be at work."""
    FOREIGN = "foreign"


class StoredObjects(StrEnum):
    NONE = "none"
    PARTIAL = "partial"
    """Some of its objects; those are right, and there is no manifest."""
    WHOLE = "whole"
    """All of them: manifest, lengths and checksums agree with each other and with the metadata."""
    DAMAGED = "damaged"
    """Something is there under its names that is not right."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OpenCopyEvidence:
    segment_id: SegmentId
    writer: OpenCopyWriter
    objects: StoredObjects


def details_of(report: SegmentReport) -> SegmentDetails:
    return SegmentDetails(
        report.epochs,
        report.max_timestamp_ms,
        report.txn_index_empty,
        sum(part.size_bytes for name, part in report.parts.items() if name is not SegmentPart.LOG),
        tuple(str(found) for found in report.blockers),
    )


def evidence_by_id(evidence: Iterable[OpenCopyEvidence]) -> dict[SegmentId, OpenCopyEvidence]:
    """Raise `InvalidArgument` where evidence contradicts itself."""
    found: dict[SegmentId, OpenCopyEvidence] = {}
    for one in evidence:
        if found.setdefault(one.segment_id, one) != one:
            msg = f"{one.segment_id}: evidence that contradicts other evidence"
            raise InvalidArgument(msg)
    return found
