"""The report of one job about all topics: values, lines for people, and JSON. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spark_tiering.adopt.outcomes import AdoptionRefusal, TopicStatus
from spark_tiering.copy_job.report import CopyFate, not_fine_lines
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.layout.strict_json import plain_values
from spark_tiering.reporting.progress import span_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.adopt.outcomes import TopicOutcome

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class AdoptionReport:
    """*stopped* says why the last topics were not begun; *findings* concern the whole job."""

    job_id: str
    way: str
    """The command: adopt, resume or abort."""
    began_ms: int
    ended_ms: int
    topics: tuple[TopicOutcome, ...]
    findings: tuple[str, ...] = ()
    stopped: str = ""

    @property
    def is_fine(self) -> bool:
        return not self.stopped and all(one.is_fine for one in self.topics)

    @property
    def is_busy(self) -> bool:
        """Return whether nothing is wrong but that other jobs work on topics."""
        wrong = [one.why for one in self.topics if not one.is_fine]
        is_busy = [why is not None and why.reason is AdoptionRefusal.TOPIC_BUSY for why in wrong]
        return bool(wrong) and all(is_busy) and not self.stopped

    @property
    def left_open(self) -> list[str]:
        return [one.topic for one in self.topics if not one.standing.is_closed]

    def document(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "jobId": self.job_id,
            "way": self.way,
            "beganMs": self.began_ms,
            "endedMs": self.ended_ms,
            "isFine": self.is_fine,
            "stopped": self.stopped,
            "findings": list(self.findings),
            "topics": [_fields(one) for one in self.topics],
        }

    def lines(self) -> Iterator[str]:
        if not self.topics:
            yield f"job {self.job_id}: there is no topic to {self.way}"
        for one in self.topics:
            yield from _lines(one)
        if self.stopped:
            yield f"stopped: {self.stopped}"
        yield from (f"finding: {text}" for text in self.findings)


def _fields(one: TopicOutcome) -> dict[str, Any]:
    return {
        "topic": one.topic,
        "standing": one.standing.value,
        "why": None if one.why is None else one.why.reason.value,
        "detail": "" if one.why is None else one.why.detail,
        "rounds": one.rounds,
        "windowMs": one.window_ms,
        "stopped": one.stopped,
        "findings": list(one.findings),
        "copies": plain_values(one.receipts),
        "ends": plain_values(one.ends),
    }


def _lines(one: TopicOutcome) -> Iterator[str]:
    finished = [receipt for receipt in one.receipts if receipt.fate is CopyFate.FINISHED]
    size = size_text(sum(receipt.log_bytes for receipt in finished))
    text = f"topic {one.topic}: {one.standing}"
    if one.window_ms:
        span = span_text(one.window_ms / 1_000)
        text += f", {len(finished)} segments with {size}, copying was off for {span}"
    yield text
    if one.why is not None:
        yield f"  {one.why}"
    if one.stopped:
        yield f"  copying ended early: {one.stopped}"
    if one.ends:
        ended = sum(end.fate is CopyFate.ENDED for end in one.ends)
        yield f"  {ended} of {len(one.ends)} open copies ended"
    not_begun = sum(receipt.fate is CopyFate.NOT_BEGUN for receipt in one.not_copied)
    if not_begun:
        yield f"  {not_begun} segments were not begun"
    yield from not_fine_lines(one.not_copied)
    yield from (f"  finding: {finding}" for finding in one.findings)
    if one.standing is TopicStatus.LEFT_OPEN:
        yield "  its window is open: copying and retention are off until it is resumed or aborted"
