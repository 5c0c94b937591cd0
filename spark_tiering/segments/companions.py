"""The files beside a log as they lie in the folder: opened for the judges, or read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.partition_log.names import EPOCH_CHECKPOINT, segment_file
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart
from spark_tiering.segments.leader_epochs import CHECKPOINT_BYTES_MAX, epochs_of_file
from spark_tiering.segments.partition_files import FileStream, SourceFileFacts, read_whole
from spark_tiering.segments.producer_state import SNAPSHOT_BYTES_MAX, ProducerEntry, parse_snapshot
from spark_tiering.segments.segment_listing import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.segments.leader_epochs import Epochs
    from spark_tiering.segments.partition_files import PartitionFiles


PART_BYTES_MAX = 64 * 1024 * 1024
"""Largest part beside the log that is read whole: far more than a broker lets one grow to."""


class StoredFiles:
    def __init__(self, files: PartitionFiles) -> None:
        self.source = files
        self.facts: Mapping[str, SourceFileFacts] = files.facts()

    def stream(self, name: str, part: SegmentPart) -> FileStream | None:
        """Return a stream of a file; None where there is no such file."""
        facts = self.facts.get(name)
        return None if facts is None else FileStream(self.source, name, facts.size_bytes, part)

    def snapshot(self, offset: int) -> dict[int, ProducerEntry] | SegmentFinding:
        """Read the producers below *offset* from their snapshot."""
        part, name = SegmentPart.PRODUCER_SNAPSHOT, segment_file(offset, SNAPSHOT)
        content = self._whole(name, part, SNAPSHOT_BYTES_MAX)
        if isinstance(content, SegmentFinding):
            return content
        entries = parse_snapshot(content)
        if isinstance(entries, str):
            return SegmentFinding(part, SegmentFindingKind.DAMAGED, f"{name}: {entries}")
        return entries

    def epochs(self) -> Epochs | SegmentFinding:
        part, name = SegmentPart.LEADER_EPOCHS, EPOCH_CHECKPOINT
        content = self._whole(name, part, CHECKPOINT_BYTES_MAX)
        return content if isinstance(content, SegmentFinding) else epochs_of_file(name, content)

    def _whole(self, name: str, part: SegmentPart, bytes_max: int) -> bytes | SegmentFinding:
        facts = self.facts.get(name)
        if facts is None:
            return SegmentFinding(part, SegmentFindingKind.MISSING, f"{name}: no such file")
        return read_whole(self.source, name, facts.size_bytes, part, bytes_max)
