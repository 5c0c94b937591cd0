"""What a verification found: as values, as lines for people, and as a JSON document. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rlmm.findings import tier_findings as tier_kinds
from rlmm.findings.finding import Severity
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.maintenance.verify.fault_findings import ranges_text
from spark_tiering.reporting.progress import span_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlmm.findings.finding import Finding
    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.maintenance.verify.settings import SegmentSample
    from spark_tiering.maintenance.verify.values import Offsets, VerifyWork

FORMAT: Final = "rlmm-tier-verify"
VERSION: Final = 1
FINDINGS_MAX: Final = 10_000
"""Of a document; more are counted by code."""
LINES_MAX: Final = 20
"""Of one code, for people."""
MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """
    The outcome. *counts* are all findings by code, of which *findings* are the first; *lost* are
    the offsets of each partition that nothing in the tier can give any more.
    """

    cluster_id: str
    began_ms: int
    ended_ms: int
    is_deep: bool
    partitions: int
    segments_total: int
    """Finished ones of the topics that were wanted."""
    work: VerifyWork
    findings: tuple[Finding, ...]
    counts: Mapping[str, int]
    lost: Mapping[TopicIdPartition, Offsets]
    gone: int = 0
    """Segments with something wrong that were deleted, or are being deleted, by the end."""
    sample: SegmentSample | None = None
    stopped: str = ""
    """Why not everything was looked at that was to be; empty where it was."""
    after: str = ""
    """Behind which segment to go on, where it was stopped."""
    notes: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether all was looked at, and nothing found that is more than a note."""
        worst = max((one.kind.severity for one in self.findings), default=Severity.NOTE)
        return not self.stopped and worst < Severity.WARNING

    @property
    def seconds(self) -> float:
        return max(0, self.ended_ms - self.began_ms) / 1_000

    @property
    def not_looked_at(self) -> int:
        """Segments at which the store failed."""
        return self.counts.get(tier_kinds.UNREADABLE.code, 0)

    @property
    def requests_per_million(self) -> int:
        """What a million such segments would take."""
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
            "sample": None if self.sample is None else _sample_fields(self.sample),
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
            "counts": dict(sorted(self.counts.items())),
            "lost": [
                {
                    "topic": partition.topic,
                    "topicId": str(partition.topic_id),
                    "partition": partition.partition,
                    "offsets": [list(one) for one in ranges],
                }
                for partition, ranges in self.lost.items()
            ],
            "notes": list(self.notes),
            "findings": [one.view() for one in self.findings],
        }

    def lines(self) -> Iterator[str]:
        """What people are told of it."""
        yield from self._findings_lines()
        for partition, ranges in list(self.lost.items())[:LINES_MAX]:
            where = f"{partition.topic}-{partition.partition}"
            yield f"lost: {where}, offsets {ranges_text(ranges)}"
        if len(self.lost) > LINES_MAX:
            yield f"lost: offsets of {len(self.lost) - LINES_MAX} more partitions"
        yield from (f"note: {text}" for text in self.notes)
        if self.stopped:
            yield f"stopped: {self.stopped}"
        if self.after:
            yield f"to go on: --after {self.after}"
        yield self._figures()
        found = sum(self.counts.values())
        yield "nothing found" if not found else f"{found} findings"

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

    def _findings_lines(self) -> Iterator[str]:
        by_code: dict[str, list[Finding]] = {}
        for one in sorted(self.findings, key=lambda one: (-one.kind.severity, one.kind.code)):
            by_code.setdefault(one.kind.code, []).append(one)
        for code, those in by_code.items():
            kind = those[0].kind
            yield f"{str(kind.severity).upper()} {code}: {kind.title}"
            yield from (f"  {one.subject}: {one.detail}" for one in those[:LINES_MAX])
            if self.counts[code] > LINES_MAX:
                yield f"  and {self.counts[code] - LINES_MAX} more, see --report"
            yield f"  why: {kind.reason}"
            yield f"  fix: {kind.fix}"


def _sample_fields(sample: SegmentSample) -> dict[str, Any]:
    return {"count": sample.count, "share": sample.share, "seed": sample.seed}


def counted(findings: Sequence[Finding]) -> Counter[str]:
    return Counter(one.kind.code for one in findings)
