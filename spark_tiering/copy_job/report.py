"""The report of a job: receipts as values, as lines for people, and as a JSON document. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rlmm.metadata.ids import TopicIdPartition, Uuid
from spark_tiering.copy_plan.reasons import NotCopiedReason, SegmentAction
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.layout.strict_json import HexBytes, plain_values
from spark_tiering.reporting.progress import span_text
from spark_tiering.reporting.report import first_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spark_tiering.copy_plan.plan import CopyPlan, LeftOutRun, PartitionCopyPlan


VERSION: Final = 1
OUT_OF_BUDGET: Final = frozenset(
    (NotCopiedReason.BUDGET_BYTES, NotCopiedReason.BUDGET_OBJECTS, NotCopiedReason.BUDGET_REQUESTS)
)
NEEDS_HELP: Final = frozenset(
    (
        NotCopiedReason.METADATA_ABSENT,
        NotCopiedReason.SOURCE_OUTDATED,
        NotCopiedReason.LOG_START_UNKNOWN,
        NotCopiedReason.TIER_HAS_HOLE,
        NotCopiedReason.STABILITY_UNKNOWN,
        NotCopiedReason.EPOCH_UNKNOWN,
        NotCopiedReason.EPOCHS_DISAGREE,
        NotCopiedReason.TOO_LARGE,
        NotCopiedReason.BLOCKED,
        NotCopiedReason.OVERLAP_WOULD_HIDE,
    )
)
"""Reasons that time alone does not take away. Others are what was asked for, or pass."""
_SEVERAL: Final = frozenset("*?[")
"""In a pattern, which may match nothing; a plain name means that the topic is there."""


class CopyFate(StrEnum):
    """State of a segment when the job ends. A closed list."""

    FINISHED = "finished"
    """Its objects are verified, and the metadata says so."""
    LEFT_OPEN = "left-open"
    """It was started: a later job goes on with it, or ends it."""
    ENDED = "ended"
    """It was given up: its deletion is finished, and nothing of it is left."""
    ENDING = "ending"
    """It was given up, and its deletion is begun: a later job finishes it."""
    VANISHED = "vanished"
    """Another writer deleted it during the copy; the job removed its objects."""
    NOT_BEGUN = "not-begun"
    """The job ended before its turn."""

    @property
    def is_fine(self) -> bool:
        return self in (CopyFate.FINISHED, CopyFate.NOT_BEGUN)


class EndReceipt(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome of an open copy that was to be ended before anything was copied."""

    topic: str
    topic_id: Uuid
    partition_number: int = msgspec.field(name="partition")
    uuid: Uuid = msgspec.field(name="id")
    start_offset: int = msgspec.field(name="start")
    last_offset: int = msgspec.field(name="last")
    fate: CopyFate
    why: str = ""
    """The text is empty after a success."""
    detail: str = ""

    @property
    def partition(self) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, self.topic, self.partition_number)


class CopyReceipt(EndReceipt, frozen=True, kw_only=True, rename="camel"):
    action: SegmentAction
    log_bytes: int = 0
    stored_bytes: int = 0
    requests: int = 0
    seconds: float = 0.0
    offset: int | None = None
    """That of the event that finished it."""
    crc64nvme: HexBytes | None = None
    """The sum of its log object; None where this job did not write it."""
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobReport:
    """
    *stopped* says why the job ended before its plan. *findings* concern the whole job, *hindrances*
    are segments that cannot be copied until an operator acts.
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
        """Return whether everything planned is done, and no operator has to look at anything."""
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
            "ends": plain_values(self.ends),
            "copies": plain_values(self.receipts),
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
    return first_lines([_line(one) for one in receipts if not one.fate.is_fine])


def _line(one: CopyReceipt | EndReceipt) -> str:
    where = f"{one.partition.topic}-{one.partition.partition} {one.start_offset}-{one.last_offset}"
    text = " ".join(f"{one.why}: {one.detail}".split()) if one.detail else one.why
    return f"  {one.fate.value}: {where}, {text}: {one.uuid}"


def hindrances(plan: CopyPlan) -> tuple[str, ...]:
    """Return a line for each run of segments, and each topic, that an operator has to look at."""
    there = {one.partition.topic for one in plan.partitions}
    named = dict.fromkeys(plan.rules.filters.topics)
    absent = (
        f"{topic}: no partition of it was found at the source"
        for topic in named
        if topic not in there and not _SEVERAL.intersection(topic)
    )
    return (*absent, *_of_segments(plan))


def _of_segments(plan: CopyPlan) -> tuple[str, ...]:
    return tuple(
        f"{one.partition.topic}-{one.partition.partition}: {_left_out_line(run)}"
        for one in plan.partitions
        for run in one.left_out
        if _needs_help(one, run) or _is_refused(plan, run)
    )


def _needs_help(one: PartitionCopyPlan, run: LeftOutRun) -> bool:
    if run.reason is NotCopiedReason.NOT_INSPECTED:
        # What no budget has kept from being read could not be read.
        return not any(other.reason in OUT_OF_BUDGET for other in one.left_out)
    return run.reason in NEEDS_HELP


def _is_refused(plan: CopyPlan, run: LeftOutRun) -> bool:
    """Return whether a topic was named that needs another mode or option."""
    is_other = run.reason in (NotCopiedReason.BROKER_COPIES, NotCopiedReason.COMPACTED)
    return is_other and bool(plan.rules.filters.topics)


def _left_out_line(run: LeftOutRun) -> str:
    until = "on" if run.next_offset is None else f"to {run.next_offset - 1}"
    text = f"{run.first_offset} {until} ({run.segments} segments, {size_text(run.size_bytes)})"
    why = " ".join(f"{run.reason}: {run.detail}".split()) if run.detail else run.reason.value
    return f"{text} cannot be copied, {why}"
