"""The rebuild: lists the store, then reads the metadata: it has all that is being copied."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from rlmm.errors import NotPublishable
from rlmm.findings import tier_findings as kinds
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID
from spark_tiering.layout.custom_metadata import CUSTOM_METADATA_BYTES_MAX
from spark_tiering.layout.metadata_recovery import CustomFields
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.maintenance.json_lines import LineWriter, compressing, spaced_line
from spark_tiering.maintenance.new_file import new_file, require_free
from spark_tiering.maintenance.rebuild.bucket_reader import WAVE_SETS, BucketReader
from spark_tiering.maintenance.rebuild.decision import (
    PartitionDifference,
    RebuildFate,
    SegmentDecision,
    decide,
    overlaps,
)
from spark_tiering.maintenance.rebuild.deleted_segments import DeletedSegments, of_log, told_by
from spark_tiering.maintenance.rebuild.document import (
    EventsFileHeader,
    end_fields,
    entry_fields,
    entry_of,
    head_fields,
)
from spark_tiering.maintenance.rebuild.report import RebuildReport
from spark_tiering.reporting.progress import Meter
from spark_tiering.reporting.report import FindingSample
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.results import ObjectAbsent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.rebuild.bucket_reader import Wave
    from spark_tiering.maintenance.rebuild.deleted_segments import DeletionHistory
    from spark_tiering.maintenance.tier import Tier, TierMoment

PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    fields: CustomFields = CustomFields.NONE
    custom_bytes_max: int = CUSTOM_METADATA_BYTES_MAX
    pasts: Sequence[DeletionHistory] = ()
    wave_sets: int = WAVE_SETS


def rebuild(
    tier: Tier, path: Path | None, options: RebuildOptions, meter: Meter | None = None
) -> RebuildReport:
    """Compare the store with the metadata, and write missing segments to the new *path*."""
    if path is not None:
        require_free(path)
    return _Rebuild(tier, options, meter or Meter()).run(path)


class _Rebuild:
    def __init__(self, tier: Tier, options: RebuildOptions, meter: Meter) -> None:
        self._tier = tier
        self._options = options
        request = tier.request
        self._reader = BucketReader(
            tier.store,
            request.require_store,
            request.prefix,
            request.topics.wants_topic,
            options.fields,
            options.custom_bytes_max,
            options.wave_sets,
            meter,
        )
        self._report = RebuildReport(store=f"{store_name(tier)}, prefix {request.prefix!r}")
        self._seen: set[TopicIdPartition] = set()
        self._cluster = tier.cluster
        self._topics: dict[str, Uuid | None] = {}

    def run(self, path: Path | None) -> RebuildReport:
        began_s = time.monotonic()
        report = self._report
        with tempfile.TemporaryFile() as body:
            for wave in self._reader.waves(self._tier.engine):
                self._judge(wave, body)
            self._judge_unlisted()
            report.unknown_keys = self._reader.unknown_keys
            if path is not None:
                self._write(path, body)
                report.file = str(path)
        report.elapsed_s = time.monotonic() - began_s
        return report

    def _judge(self, wave: Wave, body: BinaryIO) -> None:
        moment = self._moment()
        deletions = {
            one.partition: one.delete.state for one in moment.partitions() if one.delete is not None
        }
        present = {partition: _present(moment, partition) for partition in wave}
        deleted = self._deleted(wave, present)
        for partition, found in wave.items():
            self._seen.add(partition)
            deletion = deletions.get(partition) or deleted.partitions.get(partition)
            difference = decide(
                partition,
                found,
                present.pop(partition),
                deleted.segments,
                "" if deletion is None else deletion.name,
                is_topic_known=self._is_known(partition),
            )
            self._tell(difference, body)

    def _moment(self) -> TierMoment:
        moment = self._tier.moment()
        identity = moment.identity
        is_known = identity.cluster_id != UNKNOWN_CLUSTER_ID
        self._report.identity = identity if is_known else None
        return moment

    def _deleted(
        self, wave: Wave, present: dict[TopicIdPartition, dict[SegmentId, SegmentMetadata]]
    ) -> DeletedSegments:
        """Return the known deletions of sets that the metadata does not have."""
        wanted = {
            one.segment_id
            for partition, found in wave.items()
            for one in found
            if one.segment_id not in present[partition]
        }
        if not wanted:
            return DeletedSegments()
        pasts: list[DeletionHistory] = list(self._options.pasts)
        if self._report.identity is not None:
            pasts.append(of_log(self._tier.log))
        return told_by(pasts, wanted)

    def _is_known(self, partition: TopicIdPartition) -> bool:
        if self._cluster is None:
            return True
        if partition.topic not in self._topics:
            found = self._cluster.topics([partition.topic]).get(partition.topic)
            self._topics[partition.topic] = None if found is None else found.topic_id
        return self._topics[partition.topic] == partition.topic_id

    def _judge_unlisted(self) -> None:
        """Judge partitions that the metadata has and the store does not."""
        moment = self._moment()
        self._report.found.join(FindingSample.of(moment.impossible()))
        for one in moment.partitions():
            if one.partition not in self._seen:
                self._tell(decide(one.partition, [], _present(moment, one.partition), {}), None)

    def _tell(self, difference: PartitionDifference, body: BinaryIO | None) -> None:
        report = self._report
        report.partitions += 1
        decided = [one for one in difference.decided if not self._is_there_by_now(one)]
        kept: list[SegmentDecision] = []
        for one in decided:
            judged = one if body is None else self._put(one, body)
            kept.append(judged)
            report.add(judged)
        for overlap in overlaps(PartitionDifference(difference.partition, kept)):
            report.add_overlap(overlap)

    def _put(self, one: SegmentDecision, body: BinaryIO) -> SegmentDecision:
        """Write its events into the file; a segment that no broker could decode is broken."""
        if one.fate is not RebuildFate.MISSING or one.segment is None:
            return one
        try:
            lines = entry_fields(entry_of(one.segment), self._tier.request.prefix)
        except NotPublishable as error:
            return one._replace(
                fate=RebuildFate.BROKEN, code=kinds.MANIFEST_MALFORMED.code, detail=str(error)
            )
        body.writelines(spaced_line(line) for line in lines)
        return one

    def _is_there_by_now(self, one: SegmentDecision) -> bool:
        """Return whether a segment that was not listed was copied since."""
        if one.fate is not RebuildFate.LOST:
            return False
        key = object_key(
            one.segment_id, one.start_offset, ObjectKind.MANIFEST, self._tier.request.prefix
        )
        return not isinstance(self._tier.store.head(key, is_sum_wanted=False), ObjectAbsent)

    def _write(self, path: Path, body: BinaryIO) -> None:
        report, request = self._report, self._tier.request
        head = EventsFileHeader(
            store_name(self._tier),
            request.prefix,
            str(self._options.fields),
            report.identity,
            self._tier.now_ms(),
            {str(fate): count for fate, count in sorted(report.counts.items())},
        )
        with new_file(path) as file, compressing(path, file) as write:
            lines = LineWriter(write, spaced_line)
            lines.put(head_fields(head))
            body.seek(0)
            while piece := body.read(PIECE_BYTES):
                lines.add(piece)
            lines.put(end_fields(2 * report.counts[RebuildFate.MISSING], lines.sha256))


def _present(moment: TierMoment, partition: TopicIdPartition) -> dict[SegmentId, SegmentMetadata]:
    return {segment.id: segment for segment in moment.segments(partition)}


def store_name(tier: Tier) -> str:
    """Return the store for people; it holds no credential."""
    settings = tier.request.require_store
    if isinstance(settings, LocalSettings):
        return str(settings.folder)
    return f"s3://{settings.bucket}"
