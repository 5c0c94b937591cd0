"""The reports of a rebuild and of its application. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import Finding
from spark_tiering.maintenance.rebuild.decision import RebuildFate
from spark_tiering.reporting.report import FINDINGS_MAX, LINES_MAX, FindingSample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.findings.finding import FindingKind
    from rlmm.log.protocol import LogIdentity
    from rlmm.metadata.ids import SegmentId
    from spark_tiering.maintenance.rebuild.decision import SegmentDecision, SegmentOverlap

VERSION: Final = 1

_KIND_OF: Final[dict[RebuildFate, FindingKind]] = {
    RebuildFate.MISSING: kinds.METADATA_LOST,
    RebuildFate.DIFFERENT: kinds.METADATA_DIFFERS,
    RebuildFate.OPEN: kinds.COPY_OPEN,
    RebuildFate.DELETED: kinds.DELETED_NOT_GONE,
    RebuildFate.SUPERSEDED: kinds.EXTENT_OVERLAP,
    RebuildFate.UNKNOWN: kinds.TOPIC_UNKNOWN,
    RebuildFate.LOST: kinds.OBJECT_MISSING,
}
_KIND_BY_CODE: Final = {kind.code: kind for kind in kinds.COMMON}
_WORDS: Final = {
    RebuildFate.MISSING: "whole in the store and not in the metadata",
    RebuildFate.EQUAL: "in both, and equal",
    RebuildFate.DIFFERENT: "in both, with fields that differ",
    RebuildFate.OPEN: "whole in the store, and their copy never finished",
    RebuildFate.DELETED: "deleted in the metadata, and still in the store: not rebuilt",
    RebuildFate.SUPERSEDED: "not in the metadata, where another segment holds their offsets",
    RebuildFate.UNKNOWN: "of topics that the cluster does not have: not rebuilt",
    RebuildFate.BROKEN: "not whole in the store, or not readable: not rebuilt",
    RebuildFate.LOST: "finished in the metadata, and not in the store",
}


def segment_finding(
    kind: FindingKind, segment_id: SegmentId, start_offset: int, detail: str
) -> Finding:
    partition = segment_id.partition
    subject = f"{partition.topic}-{partition.partition} segment {segment_id.uuid}"
    fields = {
        "topic": partition.topic,
        "topic_id": str(partition.topic_id),
        "partition": partition.partition,
        "segment_id": str(segment_id.uuid),
        "start_offset": start_offset,
    }
    return Finding(kind, subject, f"from {start_offset}: {detail}", fields=fields)


@dataclass
class RebuildReport:
    file: str = ""
    store: str = ""
    identity: LogIdentity | None = None
    counts: Counter[RebuildFate] = field(default_factory=Counter)
    partitions: int = 0
    unknown_keys: int = 0
    overlaps: int = 0
    doubtful: int = 0
    """Overlaps whose copies may have finished in another order than they started."""
    found: FindingSample = field(default_factory=FindingSample)
    elapsed_s: float = 0.0

    @property
    def is_fine(self) -> bool:
        """Return whether metadata and store agree."""
        is_equal = all(fate is RebuildFate.EQUAL for fate, count in self.counts.items() if count)
        return is_equal and not self.found.counts[kinds.KEY_IMPOSSIBLE]

    def add(self, one: SegmentDecision) -> None:
        self.counts[one.fate] += 1
        kind = (
            _KIND_BY_CODE.get(one.code)
            if one.fate is RebuildFate.BROKEN
            else _KIND_OF.get(one.fate)
        )
        if kind is None:
            return
        detail = one.detail
        if one.fate is RebuildFate.MISSING and one.segment is not None:
            detail = f"to {one.segment.last_offset}, {one.segment.size_bytes} bytes"
        elif one.fate is RebuildFate.UNKNOWN:
            detail = f"the cluster has no topic of id {one.segment_id.partition.topic_id}"
        elif one.fate is RebuildFate.LOST:
            detail = "finished, and none of its objects is there"
        self.found.add(segment_finding(kind, one.segment_id, one.start_offset, detail))

    def add_overlap(self, one: SegmentOverlap) -> None:
        self.overlaps += 1
        self.doubtful += one.is_order_doubtful
        other = one.first.segment_id.uuid
        detail = f"it holds offsets that {other} holds, and comes behind it by its event's time"
        if one.is_order_doubtful:
            detail += "; its manifest was written before the other's, which may be the newer copy"
        second = one.second
        self.found.add(
            segment_finding(kinds.EXTENT_OVERLAP, second.segment_id, second.start_offset, detail)
        )

    def lines(self) -> Iterator[str]:
        yield f"{self.partitions} user partitions of {self.store}"
        for fate in RebuildFate:
            if self.counts[fate]:
                yield f"{self.counts[fate]:>9}  {_WORDS[fate]}"
        if not self.counts:
            yield "no segment lies there: look whether store, prefix and topics are those meant"
        if self.overlaps:
            yield (
                f"{self.overlaps:>9}  of those that are brought back overlap; the order of their"
                " events says which is found"
            )
        if self.unknown_keys:
            yield f"{self.unknown_keys:>9}  objects beside them have other names, and were left out"
        yield from self.found.lines()
        events = 2 * self.counts[RebuildFate.MISSING]
        if not events:
            yield "nothing is to be brought back" + f": {self.file} has no event" * bool(self.file)
        elif self.file:
            yield (
                f"{events} events are in {self.file}: look at it, then "
                "`rlmm tier rebuild --apply` it"
            )
        else:
            yield "their events are in no file: --save FILE writes them"

    def document(self) -> dict[str, Any]:
        identity = self.identity
        return {
            "format": "rlmm-tier-rebuild-report",
            "version": VERSION,
            "file": self.file or None,
            "store": self.store,
            "clusterId": None if identity is None else identity.cluster_id,
            "partitions": self.partitions,
            "segments": {str(fate): self.counts[fate] for fate in RebuildFate},
            "overlaps": self.overlaps,
            "doubtfulOverlaps": self.doubtful,
            "unknownKeys": self.unknown_keys,
            "elapsedS": round(self.elapsed_s, 3),
            "findingCounts": self.found.by_code(),
            "findings": [one.view() for one in self.found.findings],
        }


@dataclass
class ApplyReport:
    file: str
    target: str = ""
    is_applied: bool = True
    published: int = 0
    """Segments whose copy this call finished."""
    resumed: int = 0
    """Of them, those whose start the metadata had already."""
    equal: int = 0
    refused: int = 0
    failed: int = 0
    left: int = 0
    """Not tried, after a failure or a signal."""
    stopped_by: str = ""
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: FindingSample = field(default_factory=FindingSample)
    elapsed_s: float = 0.0

    @property
    def is_fine(self) -> bool:
        """Return whether all of the file is in the metadata now, or would be."""
        return not (self.refused or self.failed or self.left or self.stopped_by)

    def refuse(self, segment_id: SegmentId, start_offset: int, why: str) -> None:
        self.refused += 1
        self.found.add(segment_finding(kinds.EVENT_REFUSED, segment_id, start_offset, why))

    def fail(self, segment_id: SegmentId, why: str) -> None:
        """Count a segment that could not be published, or whose publishing is in doubt."""
        self.failed += 1
        if len(self.failures) < FINDINGS_MAX:
            self.failures.append(f"{segment_id}: {why}")

    def lines(self) -> Iterator[str]:
        if self.is_applied:
            yield f"{self.published} segments of {self.file} were published to {self.target}"
        else:
            yield f"{self.published} segments of {self.file} would be published to {self.target}"
        if self.resumed:
            yield f"{self.resumed:>9}  of them were begun by an application before this one"
        if self.equal:
            yield f"{self.equal:>9}  are there already"
        if self.refused:
            yield f"{self.refused:>9}  contradict the metadata as it is, and are left out"
        if self.failed:
            yield f"{self.failed:>9}  could not be published"
        if self.left:
            yield f"{self.left:>9}  were not tried; the same command goes on with them"
        if self.stopped_by:
            yield f"stopped by {self.stopped_by}"
        yield from self.failures[:LINES_MAX]
        yield from (f"note: {text}" for text in self.notes)
        yield from self.found.lines()

    def document(self) -> dict[str, Any]:
        return {
            "format": "rlmm-tier-rebuild-apply",
            "version": VERSION,
            "file": self.file,
            "target": self.target,
            "applied": self.is_applied,
            "published": self.published,
            "resumed": self.resumed,
            "equal": self.equal,
            "refused": self.refused,
            "failed": self.failed,
            "left": self.left,
            "stoppedBy": self.stopped_by,
            "failures": self.failures,
            "notes": self.notes,
            "elapsedS": round(self.elapsed_s, 3),
            "findingCounts": self.found.by_code(),
            "findings": [one.view() for one in self.found.findings],
        }
