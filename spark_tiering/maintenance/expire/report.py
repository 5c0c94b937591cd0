"""The report of an expire job or a dry run: values, lines for people, a document. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rlmm.base.time_text import moment_text
from rlmm.findings import expire_findings as kinds
from rlmm.findings.finding import Finding, Severity, of_partition
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.executor.tasks import one_line
from spark_tiering.maintenance.expire.decision import SegmentAmount
from spark_tiering.maintenance.expire.execution import MAX_DELETE, ExpireFate
from spark_tiering.maintenance.expire.topic_ownership import TopicOwner
from spark_tiering.reporting.report import FindingSample, first_lines, partition_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spark_tiering.maintenance.expire.decision import PartitionExpirePlan
    from spark_tiering.maintenance.expire.execution import ExpireReceipt, PartitionEnd

FORMAT: Final = "rlmm-tier-expire"
VERSION: Final = 1
SEGMENTS_MAX: Final = 10_000
"""Segments that the document lists; more are counted by partition."""

_REFUSALS = {
    TopicOwner.LIVE: (kinds.EXPIRE_LIVE, "refused, nothing of it was touched"),
    TopicOwner.UNTOLD: (kinds.EXPIRE_UNTOLD, "refused, nothing of it was touched"),
}
_OPEN = (ExpireFate.LEFT, ExpireFate.CHANGED, ExpireFate.NOT_BEGUN)


@dataclass(frozen=True, slots=True)
class ExpireReport:
    is_applied: bool
    cluster_id: str
    job_id: str
    """A dry run has no job, and this is empty."""
    began_ms: int
    ended_ms: int
    plans: tuple[PartitionExpirePlan, ...]
    receipts: tuple[ExpireReceipt, ...]
    ends: tuple[PartitionEnd, ...] = ()
    busy: Mapping[tuple[str, str], str] | None = None
    """By topic and id: the job that has claimed it."""
    stopped: str = ""
    notes: tuple[str, ...] = ()
    impossible: tuple[Finding, ...] = ()
    """Findings about partitions that no broker can have; the job leaves them out."""

    @property
    def is_busy(self) -> bool:
        """Return whether another job has claimed a topic."""
        return bool(self.busy)

    @property
    def is_fine(self) -> bool:
        """Return whether everything is done, or shown, and nothing was refused."""
        return not self.stopped and not any(
            one.kind.severity >= Severity.WARNING
            and (self.is_applied or one.kind is not kinds.EXPIRE_DELETION)
            for one in self.findings()
        )

    def count(self, fate: ExpireFate) -> SegmentAmount:
        return SegmentAmount.of(one.segment for one in self.receipts if one.fate is fate)

    def findings(self) -> list[Finding]:
        found = [*self.impossible, *self._of_topics()]
        for plan in self.plans:
            found += self._of_plan(plan)
        return [*found, *self._of_receipts()]

    def _of_topics(self) -> Iterator[Finding]:
        seen = set()
        for plan in self.plans:
            name, topic_id = plan.partition.topic, str(plan.partition.topic_id)
            if plan.standing in _REFUSALS and (name, topic_id) not in seen:
                seen.add((name, topic_id))
                kind, why = _REFUSALS[plan.standing]
                fields = {"topic": name, "topic_id": topic_id}
                yield Finding(kind, one_line(name), f"topic id {topic_id}: {why}", fields=fields)
        for (name, topic_id), who in (self.busy or {}).items():
            fields = {"topic": name, "topic_id": topic_id}
            yield Finding(kinds.EXPIRE_BUSY, name, who, fields=fields)

    def _of_plan(self, plan: PartitionExpirePlan) -> Iterator[Finding]:
        if plan.delete is not None or plan.standing in (TopicOwner.GONE, TopicOwner.DELETED):
            yield from self._of_deletion(plan)
        for kind, amount in (
            (kinds.EXPIRE_REPLACED, plan.replaced),
            (kinds.EXPIRE_OPEN, SegmentAmount() if plan.standing.is_refused else plan.waiting),
        ):
            if amount.segments:
                text = _amount_text(amount)
                yield of_partition(kind, plan.partition, text, **amount._asdict())

    def _of_deletion(self, plan: PartitionExpirePlan) -> Iterator[Finding]:
        """Report the rest of a partition that is being deleted, and its last event (F116)."""
        partition = plan.partition
        end = next((one for one in self.ends if one.partition == partition), None)
        if end is not None and end.is_finished:
            return
        gone = {
            one.segment.id
            for one in self.receipts
            if one.fate is ExpireFate.DELETED and one.segment.id.partition == partition
        }
        going = [one.segment for one in plan.doomed if one.segment.id not in gone]
        left = SegmentAmount.of(going)
        segments = left.segments + plan.kept.segments + plan.waiting.segments
        size_bytes = left.size_bytes + plan.kept.size_bytes + plan.waiting.size_bytes
        if not segments and plan.delete is None:
            return
        state = "the topic is gone" if plan.delete is None else plan.delete.state.name
        detail = (
            f"topic id {partition.topic_id}, {state}: {segments} segments, "
            f"{size_text(size_bytes)} left, last event {moment_text(plan.last_event_ms)}"
        )
        if end is not None and end.detail:
            detail += f"; {end.detail}"
        yield of_partition(
            kinds.EXPIRE_DELETION, partition, detail,
            state=state, segments=segments, size_bytes=size_bytes, last_event_ms=plan.last_event_ms,
        )  # fmt: skip

    def _of_receipts(self) -> Iterator[Finding]:
        absent = Counter(
            one.segment.id.partition
            for one in self.receipts
            # What somebody began to delete before may be gone from there already.
            if one.fate is ExpireFate.DELETED
            and not one.was_there
            and one.segment.state is SegmentState.COPY_SEGMENT_FINISHED
        )
        for partition, segments in absent.items():
            detail = f"{segments} finished segments were not there, and are deleted now"
            yield of_partition(kinds.EXPIRE_ABSENT, partition, detail, segments=segments)
        for kind, fates in (
            (kinds.EXPIRE_LEFT, (ExpireFate.LEFT,)),
            (kinds.EXPIRE_SKIPPED, (ExpireFate.CHANGED, ExpireFate.NOT_BEGUN)),
        ):
            by_partition: dict[Any, list[ExpireReceipt]] = {}
            for one in self.receipts:
                # What a limit left is as it was asked for.
                if one.fate in fates and one.detail not in (MAX_DELETE, self.stopped or MAX_DELETE):
                    by_partition.setdefault(one.segment.id.partition, []).append(one)
            for partition, left in by_partition.items():
                text = f"{len(left)} segments, the first at {left[0].segment.start_offset}: "
                yield of_partition(
                    kind, partition, text + (left[0].detail or "-"), segments=len(left)
                )

    def document(self) -> dict[str, Any]:
        shown = self.receipts[:SEGMENTS_MAX]
        return {
            "format": FORMAT,
            "version": VERSION,
            "isApplied": self.is_applied,
            "clusterId": self.cluster_id,
            "jobId": self.job_id,
            "beganMs": self.began_ms,
            "endedMs": self.ended_ms,
            "isFine": self.is_fine,
            "stopped": self.stopped,
            "totals": {
                fate.value: dict(zip(("segments", "sizeBytes"), self.count(fate), strict=True))
                for fate in ExpireFate
            },
            "partitions": [_plan_fields(one) for one in self.plans],
            "segments": [_receipt_fields(one) for one in shown],
            "segmentsLeftOut": len(self.receipts) - len(shown),
            "findings": [one.view() for one in self.findings()],
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        yield self._head()
        if self.stopped:
            yield f"  stopped: {self.stopped}"
        rows = [_plan_line(one) for one in self.plans if one.doomed]
        yield from first_lines(rows, "partitions")
        for fate in _OPEN:
            amount = self.count(fate)
            if amount.segments:
                yield f"  {fate.value}: {_amount_text(amount)}"
        yield from (f"  note: {note}" for note in self.notes)
        yield from FindingSample.of(self.findings()).lines()

    def _head(self) -> str:
        if not self.is_applied:
            would = _amount_text(self.count(ExpireFate.WOULD_GO))
            return f"dry run: {would} would go, nothing was changed; --apply deletes them"
        gone = _amount_text(self.count(ExpireFate.DELETED))
        total = len(self.receipts)
        return f"job {self.job_id or '-'}: {gone} deleted, of {total} segments that were to go"


def _amount_text(amount: Sequence[int]) -> str:
    segments, size_bytes = amount
    return f"{segments} segment{'' if segments == 1 else 's'}, {size_text(size_bytes)}"


def _plan_line(plan: PartitionExpirePlan) -> str:
    name = f"{plan.partition.topic}-{plan.partition.partition}"
    why = ", ".join(f"{count} by {reason}" for reason, count in plan.by_reason().items())
    return f"  {name}: {_amount_text(plan.amount)} ({why}); {_start_text(plan)}"


def _start_text(plan: PartitionExpirePlan) -> str:
    if plan.start_before is None:
        return "nothing finished is there"
    if plan.start_after is None:
        return f"start {plan.start_before} -> nothing is left"
    if plan.start_after == plan.start_before:
        return f"start stays {plan.start_before}"
    return f"start {plan.start_before} -> {plan.start_after}"


def _plan_fields(plan: PartitionExpirePlan) -> dict[str, Any]:
    rules, delete = plan.rules, plan.delete
    return {
        **partition_fields(plan.partition),
        "standing": plan.standing.value,
        "retentionMs": rules.retention_ms,
        "retentionBytes": rules.retention_bytes,
        "logStartOffset": rules.log_start,
        "segments": plan.amount.segments,
        "sizeBytes": plan.amount.size_bytes,
        "reasons": dict(plan.by_reason()),
        "keptSegments": plan.kept.segments,
        "keptBytes": plan.kept.size_bytes,
        "openSegments": plan.waiting.segments,
        "startBefore": plan.start_before,
        "startAfter": plan.start_after,
        "lastEventMs": plan.last_event_ms,
        "deleteState": None if delete is None else delete.state.name,
    }


def _receipt_fields(one: ExpireReceipt) -> dict[str, Any]:
    segment = one.segment
    return {
        **partition_fields(segment.id.partition),
        "id": str(segment.id.uuid),
        "start": segment.start_offset,
        "last": segment.last_offset,
        "sizeBytes": segment.size_bytes,
        "state": segment.state.name,
        "reason": one.reason.value,
        "fate": one.fate.value,
        "detail": one.detail,
    }
