"""The report of a copy job: as values, as lines for people, and as a JSON document. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spark_tiering.copy_job.receipts import CopyFate
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.reporting.progress import span_text
from spark_tiering.reporting.report import first_lines, partition_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spark_tiering.copy_job.receipts import CopyReceipt, EndReceipt

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class JobReport:
    """
    *stopped* says why the job ended before its plan; it is empty where it did not. *findings*
    concern the job as a whole: missing features of the store, places that were left out of the
    source. *hindrances* are segments that cannot be copied until an operator acts.
    """

    job_id: str
    fingerprint: str
    mode: str
    began_ms: int
    ended_ms: int
    receipts: tuple[CopyReceipt, ...]
    ends: tuple[EndReceipt, ...] = ()
    findings: tuple[str, ...] = ()
    stopped: str = ""
    hindrances: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether all of the plan is done, and an operator has nothing to look at."""
        return (
            not self.stopped
            and not self.hindrances
            and all(one.fate is CopyFate.FINISHED for one in self.receipts)
            and all(one.fate is CopyFate.ENDED for one in self.ends)
        )

    @property
    def seconds(self) -> float:
        return max(0, self.ended_ms - self.began_ms) / 1_000

    def count(self, fate: CopyFate) -> int:
        return sum(one.fate is fate for one in self.receipts)

    @property
    def log_bytes(self) -> int:
        return sum(one.log_bytes for one in self.receipts)

    def document(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "jobId": self.job_id,
            "plan": self.fingerprint,
            "mode": self.mode,
            "beganMs": self.began_ms,
            "endedMs": self.ended_ms,
            "isFine": self.is_fine,
            "stopped": self.stopped,
            "segments": dict(sorted(Counter(one.fate.value for one in self.receipts).items())),
            "logBytes": self.log_bytes,
            "storedBytes": sum(one.stored_bytes for one in self.receipts),
            "requests": sum(one.requests for one in self.receipts),
            "findings": list(self.findings),
            "hindrances": list(self.hindrances),
            "ends": [end_fields(one) for one in self.ends],
            "copies": [receipt_fields(one) for one in self.receipts],
        }

    def lines(self) -> Iterator[str]:
        pace = self.log_bytes / self.seconds / 1_000_000 if self.seconds else 0.0
        yield (
            f"job {self.job_id}: {self.count(CopyFate.FINISHED)} of {len(self.receipts)} segments "
            f"finished, {size_text(self.log_bytes)} in {span_text(self.seconds)} ({pace:.1f} MB/s)"
        )
        if self.ends:
            ended = sum(one.fate is CopyFate.ENDED for one in self.ends)
            yield f"  {ended} of {len(self.ends)} open copies ended"
        if self.stopped:
            yield f"  stopped: {self.stopped}"
        for fate in CopyFate:
            if self.count(fate) and fate is not CopyFate.FINISHED:
                yield f"  {fate.value}: {self.count(fate)}"
        yield from (f"  finding: {text}" for text in self.findings)
        yield from first_lines([f"  {text}" for text in self.hindrances])
        yield from not_fine_lines(self.receipts)
        yield from first_lines([_line(one) for one in self.ends if one.fate is not CopyFate.ENDED])


def not_fine_lines(receipts: Iterable[CopyReceipt]) -> Iterator[str]:
    """Return a line for each segment that an operator has to look at; the first ones of many."""
    return first_lines([_line(one) for one in receipts if not one.fate.is_fine])


def receipt_fields(one: CopyReceipt) -> dict[str, Any]:
    return {
        **_segment_fields(one),
        "action": one.action.value,
        "logBytes": one.log_bytes,
        "storedBytes": one.stored_bytes,
        "requests": one.requests,
        "seconds": round(one.seconds, 3),
        "offset": one.offset,
        "crc64nvme": None if one.crc64nvme is None else f"{one.crc64nvme:016x}",
        "findings": list(one.findings),
    }


def end_fields(one: EndReceipt) -> dict[str, Any]:
    return _segment_fields(one)


def _segment_fields(one: CopyReceipt | EndReceipt) -> dict[str, Any]:
    return {
        **partition_fields(one.partition),
        "id": str(one.uuid),
        "start": one.start_offset,
        "last": one.last_offset,
        "fate": one.fate.value,
        "why": one.why,
        "detail": one.detail,
    }


def _line(one: CopyReceipt | EndReceipt) -> str:
    where = f"{one.partition.topic}-{one.partition.partition} {one.start_offset}-{one.last_offset}"
    text = " ".join(f"{one.why}: {one.detail}".split()) if one.detail else one.why
    return f"  {one.fate.value}: {where}, {text}: {one.uuid}"
