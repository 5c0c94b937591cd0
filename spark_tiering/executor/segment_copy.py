"""
The copy of one segment: read and judged, written, verified, then described by its manifest.

    inspected once, which also gives the sums of the log      nothing is written before
    the other files summed up, the source looked at again     the bytes are of one moment
    log, indexes                                              each verified when it is there
    the source looked at once more                            the source is unchanged
    manifest                                                  from here on the segment is there

Every failure is the unit's outcome. Of two attempts at once one wins, the other finds its objects.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError, StoreError
from rlmm.partition_log.names import LOG, segment_file
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.limited_io import LimitedFiles, LimitedStore, UnitEnd, UnitLimits
from spark_tiering.executor.object_check import examine
from spark_tiering.executor.segment_inspection import inspect_with_state, is_lost
from spark_tiering.executor.segment_writer import (
    LogToWrite,
    PartSource,
    SegmentWriter,
    StoredSegment,
    read_indexes,
)
from spark_tiering.executor.stop_mark import require_not_paused
from spark_tiering.executor.tasks import CopyResult, UnitOutcome, one_line
from spark_tiering.executor.throttle import throttle_of
from spark_tiering.layout.digests import StreamDigest
from spark_tiering.layout.manifest import SegmentDescription
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.segment_listing import list_segments
from spark_tiering.segments.segment_parts import StoredPart
from spark_tiering.stores.opening import process_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.executor.tasks import CopyTask
    from spark_tiering.segments.segment_listing import ListedSegment
    from spark_tiering.segments.segment_parts import RebuiltPart, SegmentReport
    from spark_tiering.stores.protocol import ObjectStore

_OUTCOME_OF_SEEN: Mapping[StoredObjects, UnitOutcome] = {
    StoredObjects.WHOLE: UnitOutcome.FOUND,
    StoredObjects.UNKNOWN: UnitOutcome.UNKNOWN,
    StoredObjects.NONE: UnitOutcome.CONFLICT,
    StoredObjects.PARTIAL: UnitOutcome.CONFLICT,
    StoredObjects.DAMAGED: UnitOutcome.CONFLICT,
}
"""Of a copy that was whole when it was planned to be completed."""


def copy_segment(task: CopyTask) -> CopyResult:
    watch = UnitLimits(task.deadline_s, throttle_of(task.job_id, task.pace))
    try:
        store = process_store(task.store)
    except (StoreError, ConfigError) as error:
        detail = one_line(str(error))
        return CopyResult(task.unit_id, UnitOutcome.STORE_FAILED, detail, seconds=watch.seconds)
    return carry_out(task, store, watch)


def carry_out(task: CopyTask, store: ObjectStore, watch: UnitLimits) -> CopyResult:
    copy = _Copy(task, LimitedStore(store, task.store, watch), watch)
    result = CopyResult(task.unit_id, UnitOutcome.COPIED, "", attempt_id=uuid.uuid4().hex)
    try:
        require_not_paused(task.pause_key, store, watch)
        done = copy.run()
    except UnitEnd as ended:
        result = replace(result, outcome=ended.outcome, detail=one_line(ended.detail))
    except (StoreError, ConfigError) as error:
        result = replace(result, outcome=UnitOutcome.STORE_FAILED, detail=one_line(str(error)))
    else:
        result = replace(
            result,
            outcome=UnitOutcome.COPIED if done.is_new else UnitOutcome.FOUND,
            log_bytes=task.segment.size_bytes,
            stored_bytes=done.stored_bytes,
            log_crc64nvme=done.log_crc64nvme,
        )
        copy.findings += done.findings
    findings = tuple(one_line(found) for found in copy.findings)
    return replace(result, findings=findings, requests=watch.requests, seconds=watch.seconds)


class _Copy:
    """Runs one attempt; *findings* holds its remarks so far."""

    def __init__(self, task: CopyTask, store: ObjectStore, watch: UnitLimits) -> None:
        self.findings: list[str] = []
        self._task = task
        self._store = store
        self._files = LimitedFiles(task.files, watch, segment_file(task.segment.start_offset, LOG))

    def run(self) -> StoredSegment:
        task = self._task
        if task.action is SegmentAction.COMPLETE:
            return self._verified()
        listed = self._planned_segment()
        digest = StreamDigest()
        segments = list_segments(self._files.facts())
        report = inspect_with_state(
            self._files, listed, segments, task.log_start, task.rules, digest.add
        )
        self._judge(report)
        indexes = read_indexes(
            {
                part: self._source_of(part, content)
                for part, content in report.parts.items()
                if part is not SegmentPart.LOG
            }
        )
        self._look_again(report)
        writer = SegmentWriter(
            self._store,
            task.segment,
            task.prefix,
            task.options,
            task.job_id,
            looks_first=task.action is SegmentAction.RESUME,
        )
        log = self._source_of(SegmentPart.LOG, report.parts[SegmentPart.LOG])
        writer.put_log(LogToWrite(digest.digest(), lambda: iter(log.pieces())))
        writer.put_indexes(indexes)
        self._look_again(report, only_log=True)
        return writer.put_manifest()

    def _verified(self) -> StoredSegment:
        """Verify the objects by their own manifest; the source is not asked."""
        task = self._task
        seen = examine(self._store, task.segment, task.prefix, is_sure=True)
        outcome = _OUTCOME_OF_SEEN[seen.objects]
        if outcome is not UnitOutcome.FOUND:
            raise UnitEnd(outcome, f"{seen.objects}: {'; '.join(seen.findings)}")
        crc64nvme = seen.facts[ObjectKind.LOG].crc64nvme
        described = seen.manifest.described if seen.manifest is not None else None
        if isinstance(described, SegmentDescription) and described.note is not None:
            crc64nvme = described.note.log_object.crc64nvme
        return StoredSegment(seen.stored_bytes, crc64nvme, False, seen.findings)

    def _planned_segment(self) -> ListedSegment:
        planned, facts = self._task.segment, self._files.facts()
        found = next(
            (one for one in list_segments(facts) if one.base_offset == planned.start_offset), None
        )
        if found is None:
            detail = f"there is no segment {planned.start_offset} any more"
            raise UnitEnd(UnitOutcome.SOURCE_GONE, detail)
        size_bytes = facts[found.file(LOG)].size_bytes
        expected = (planned.last_offset + 1, planned.size_bytes)
        if (found.next_offset, size_bytes) != expected:
            now = f"the next is {found.next_offset}, and it has {size_bytes} bytes"
            detail = f"segment {planned.start_offset}: {now}, planned with {expected}"
            raise UnitEnd(UnitOutcome.SOURCE_CHANGED, detail)
        return found

    def _judge(self, report: SegmentReport) -> None:
        planned = self._task.segment
        lost = [found for found in report.blockers if is_lost(found)]
        if lost:
            self._files.end_changed(SegmentPart.LOG, str(lost[0]))
        self.findings += map(str, report.findings)
        if report.blockers:
            detail = "; ".join(map(str, report.blockers))
            raise UnitEnd(UnitOutcome.BLOCKED, detail)
        if not report.size_bytes:
            raise UnitEnd(UnitOutcome.BLOCKED, f"segment {planned.start_offset} has no batches")
        read = (report.epochs, report.max_timestamp_ms, report.txn_index_empty)
        expected = (planned.epochs, planned.max_timestamp_ms, planned.txn_index_empty)
        if read != expected:
            names = "leader epochs, newest record, no transaction index"
            detail = f"segment {planned.start_offset}: {names}: {read}, planned {expected}"
            raise UnitEnd(UnitOutcome.SOURCE_CHANGED, detail)

    def _source_of(self, part: SegmentPart, content: StoredPart | RebuiltPart) -> PartSource:
        if isinstance(content, StoredPart):
            name, size_bytes = content.name, content.size_bytes
            return PartSource(size_bytes, lambda: self._files.pieces(name, size_bytes, part))
        return PartSource(content.size_bytes, lambda: iter((content.content,)))

    def _look_again(self, report: SegmentReport, *, only_log: bool = False) -> None:
        first, now = self._files.facts(), self._files.look_again()
        for part in SegmentPart:
            content = report.parts.get(part)
            if not isinstance(content, StoredPart) or (only_log and part is not SegmentPart.LOG):
                continue
            if now.get(content.name) != first[content.name]:
                detail = f"{now.get(content.name, 'gone')}, at first {first[content.name]}"
                self._files.end_changed(part, f"{content.name}: {detail}")
