"""The report of a verification: as values, as lines for people, and as a JSON document. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from rlmm.findings import tier_findings as tier_kinds
from rlmm.findings.finding import Severity
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.maintenance.verify.fault_findings import ranges_text
from spark_tiering.reporting.progress import span_text
from spark_tiering.reporting.report import first_lines, partition_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlmm.findings.finding import Finding
    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.maintenance.verify.values import Offsets, SegmentSample, VerifyWork
    from spark_tiering.reporting.report import FindingSample

FORMAT: Final = "rlmm-tier-verify"
VERSION: Final = 1
MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """*lost* are the offsets of each partition that no object in the tier holds any more."""

    cluster_id: str
    began_ms: int
    ended_ms: int
    is_deep: bool
    partitions: int
    segments_total: int
    """Finished segments of the wanted topics."""
    work: VerifyWork
    found: FindingSample
    lost: Mapping[TopicIdPartition, Offsets]
    gone: int = 0
    """Segments with faults that were deleted, or were being deleted, by the end."""
    sample: SegmentSample | None = None
    stopped: str = ""
    after: str = ""
    """The segment behind which the next run begins, where this one was stopped."""
    notes: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Return whether all that was wanted was checked, and no finding is more than a note."""
        is_checked = bool(self.work.segments) or not self.segments_total or bool(self.gone)
        return not self.stopped and is_checked and self.found.worst < Severity.WARNING

    @property
    def findings(self) -> Sequence[Finding]:
        return self.found.findings

    @property
    def counts(self) -> Mapping[str, int]:
        return self.found.by_code()

    @property
    def seconds(self) -> float:
        return max(0, self.ended_ms - self.began_ms) / 1_000

    @property
    def not_looked_at(self) -> int:
        """Segments at which the store failed."""
        return self.counts.get(tier_kinds.UNREADABLE.code, 0)

    @property
    def requests_per_million(self) -> int:
        return round(self.work.requests * MILLION / self.work.segments) if self.work.segments else 0

    def document(self) -> dict[str, Any]:
        seconds = self.seconds
        return {
            "format": FORMAT,
            "version": VERSION,
            "clusterId": self.cluster_id,
            "beganMs": self.began_ms,
            "endedMs": self.ended_ms,
            "isFine": self.is_fine,
            "isDeep": self.is_deep,
            "sample": None if self.sample is None else asdict(self.sample),
            "stopped": self.stopped,
            "after": self.after,
            "partitions": self.partitions,
            "segmentsTotal": self.segments_total,
            "segments": self.work.segments,
            "segmentsNotLookedAt": self.not_looked_at,
            "segmentsGoneMeanwhile": self.gone,
            "segmentsUnderOlderPrefixes": self.work.elsewhere,
            "segmentsOpenedByKeyRing": self.work.opened,
            "objects": self.work.objects,
            "objectsPerS": round(self.work.objects / seconds, 1) if seconds else None,
            "requests": self.work.requests,
            "requestsPerMillionSegments": self.requests_per_million,
            "logBytesRead": self.work.read_bytes,
            "counts": self.found.by_code(),
            "lost": [
                {**partition_fields(partition), "offsets": [list(one) for one in ranges]}
                for partition, ranges in self.lost.items()
            ],
            "notes": list(self.notes),
            "findings": [one.view() for one in self.findings],
        }

    def lines(self) -> Iterator[str]:
        yield from self.found.lines()
        yield from first_lines(
            [
                f"lost: {partition.topic}-{partition.partition}, offsets {ranges_text(ranges)}"
                for partition, ranges in self.lost.items()
            ],
            "partitions",
        )
        yield from (f"note: {text}" for text in self.notes)
        if self.stopped:
            yield f"stopped: {self.stopped}"
        if self.after:
            yield f"to go on: --after {self.after}"
        yield self._figures()
        found = sum(self.counts.values())
        if found:
            yield f"{found} findings"
        else:
            yield "nothing found" if self.work.segments else "nothing was checked"

    def _figures(self) -> str:
        work, seconds = self.work, self.seconds
        pace = f" ({work.objects / seconds:.0f} objects/s)" if seconds else ""
        text = (
            f"{work.segments} of {self.segments_total} segments in {self.partitions} partitions, "
            f"{work.objects} objects, {work.requests} requests in {span_text(seconds)}{pace}"
        )
        if self.is_deep:
            text += f", {size_text(work.read_bytes)} read"
        return f"{text}; {self.requests_per_million} requests for a million segments"
