"""
The partitions of log folders as a listing, up to the checkpointed high watermark, since records
above it may still be truncated; without that checkpoint as far as rolled segments go.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.base.private_files import read_regular
from rlmm.errors import TierUnreadable
from rlmm.partition_log.checkpoints import CheckpointFault, parse_offsets
from rlmm.partition_log.names import LOG, parse_folder
from spark_tiering.data_source.extents import (
    LogFolderSegment,
    PartitionListing,
    ReadExtent,
    TierListing,
)
from spark_tiering.data_source.listing_tier import require_one_id
from spark_tiering.data_source.options import Isolation
from spark_tiering.segment_sources.logdir import LogDirSource
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.segments.log_folder import PartitionFolder
from spark_tiering.segments.segment_listing import TXN_INDEX, list_segments
from spark_tiering.segments.state_before import last_stable_offset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.data_source.options import Subscription
    from spark_tiering.segment_sources.protocol import FoundPartition
    from spark_tiering.segments.partition_files import SourceFileFacts
    from spark_tiering.segments.segment_listing import ListedSegment

LOG_STARTS = "log-start-offset-checkpoint"
UNKNOWN_TIME = -1
"""The newest record of such a segment was not looked up."""


def list_folders(
    folders: Sequence[str], subscription: Subscription, isolation: Isolation
) -> TierListing:
    """List the log folders of brokers; of several replicas the one that reaches furthest."""
    found, unusable = LogDirSource(LogDirSettings(tuple(folders))).partitions()
    replicas: dict[tuple[str, int], list[PartitionListing]] = {}
    for one in found:
        partition = one.partition
        wanted_id = subscription.topic_ids.get(partition.topic)
        is_wanted = wanted_id is None or wanted_id == str(partition.topic_id)
        if is_wanted and subscription.wants(partition.topic, partition.partition):
            name = (partition.topic, partition.partition)
            replicas.setdefault(name, []).append(_held(one, isolation))
    held = tuple(_farthest(several) for _, several in sorted(replicas.items()))
    return TierListing(held, warnings=tuple(str(one) for one in unusable))


def _farthest(replicas: list[PartitionListing]) -> PartitionListing:
    ids = {str(one.partition.topic_id) for one in replicas}
    require_one_id(replicas[0].partition.topic, ids)
    return max(replicas, key=lambda one: (one.next_offset, -one.first_offset))


def _held(one: FoundPartition, isolation: Isolation) -> PartitionListing:
    files = one.files
    assert isinstance(files, PartitionFolder), "log folders are read as folders"
    facts = files.facts()
    segments = list_segments(facts)
    if not segments:
        return PartitionListing(one.partition, 0, 0, ())
    first = max(segments[0].base_offset, _log_start(Path(files.path)))
    extents = tuple(
        cut
        for extent in _extents(one.partition, files.path, segments, facts, one.high_watermark)
        if (cut := extent.cut(first, extent.next_offset)) is not None
    )
    # Segments of a folder follow one another: nothing is missing between them.
    behind = max([first, *(extent.next_offset for extent in extents)])
    stable = None
    if isolation is Isolation.COMMITTED and extents:
        stable = _stable_offset(one, files, behind)
    return PartitionListing(one.partition, first, behind, extents, stable_offset=stable)


def _extents(
    partition: TopicIdPartition,
    folder: str,
    segments: Sequence[ListedSegment],
    facts: Mapping[str, SourceFileFacts],
    high_watermark: int | None,
) -> Iterator[ReadExtent]:
    for segment in segments:
        base, behind = segment.base_offset, segment.next_offset
        if high_watermark is not None:
            behind = high_watermark if behind is None else min(behind, high_watermark)
        if behind is None or behind <= base:
            return
        segment_last = (segment.next_offset or behind) - 1
        aborts = facts.get(segment.file(TXN_INDEX))
        yield ReadExtent(
            partition,
            base,
            behind - 1,
            base,
            segment_last,
            segment_last,
            facts[segment.file(LOG)].size_bytes,
            UNKNOWN_TIME,
            aborts is None or not aborts.size_bytes,
            LogFolderSegment(folder, base, segment.next_offset),
        )


_CHECKPOINT_BYTES_MAX = 64 * 1024 * 1024
"""Of a file with a line for each partition of a broker."""


def _log_start(folder: Path) -> int:
    path, name = folder.parent / LOG_STARTS, parse_folder(folder.name)
    try:
        content = read_regular(path, _CHECKPOINT_BYTES_MAX)
    except OSError:
        return 0
    noted = parse_offsets(content)
    return 0 if isinstance(noted, CheckpointFault) or name is None else noted.get(name, 0)


def _stable_offset(one: FoundPartition, files: PartitionFolder, behind: int) -> int:
    found = last_stable_offset(files, high_watermark=one.high_watermark)
    if found.offset is None:
        msg = (
            f"{files.path}: the last stable offset is not known: {found.detail}; "
            "isolationLevel=read_uncommitted does not need it"
        )
        raise TierUnreadable(msg)
    return min(found.offset, behind)
