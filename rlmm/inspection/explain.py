"""
The explanation of an offset: why the tier has it or not, and how long it stays. Pure. Every
statement is the engine's answer, an event, or a fact of the cluster; a missing fact is said to be
unknown. Findings come in the order in which they matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlmm.base.time_text import duration_text, moment_text
from rlmm.findings.finding import Finding, Severity
from rlmm.inspection import explain_findings as kinds
from rlmm.inspection.explain_facts import finding, of_topic
from rlmm.inspection.lookup_trace import LookUp, LookupRule, look_up
from rlmm.inspection.segment_search import holding
from rlmm.inspection.stuck import (
    COPY_FINISHED_FIRST,
    COPY_STALLED,
    TOPIC_GONE,
    StuckFacts,
    stuck_in,
)
from rlmm.inspection.verify import (
    BELOW_LOG_START,
    HIDDEN_SEGMENT,
    HISTORY_TRIMMED,
    LOOKUP_HOLE,
    TOPIC_RECREATED,
    hidden_of,
)
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.retention.retention import RetentionSettings, due_of
from rlmm.retention.segment_lineage import finished_of, lineage_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlmm.findings.finding import FindingKind
    from rlmm.inspection.explain_facts import ExplainFacts
    from rlmm.inspection.offset_history import SegmentCopy
    from rlmm.inspection.segment_search import SegmentMatches
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.retention.retention import RetentionDecision
    from rlmm.retention.segment_lineage import Lineage


_BLOCKS = (BELOW_LOG_START, kinds.PARTITION_BEING_DELETED, kinds.PARTITION_DELETED, TOPIC_GONE)
"""What keeps brokers from reading a segment that is found."""
_BESIDE = (TOPIC_RECREATED, HISTORY_TRIMMED)
"""Findings that inform the operator, and are never the reason why an offset is not found."""
STALLED_MS = 3_600_000
"""Age of an open copy from which it counts as stalled, the same as in `rlmm stuck`."""


@dataclass(frozen=True, slots=True)
class Explanation:
    partition: TopicIdPartition
    offset: int
    epoch: int | None
    is_epoch_said: bool
    look_up: LookUp | None
    others: tuple[LookUp, ...]
    """The same in other leader epochs, of those that find something."""
    held: SegmentMatches
    findings: tuple[Finding, ...]
    due: RetentionDecision | None
    ahead: int
    """Finished segments that retention deletes before it comes to that one."""
    rules: RetentionSettings

    @property
    def found(self) -> SegmentMetadata | None:
        return None if self.look_up is None else self.look_up.found

    @property
    def is_read(self) -> bool:
        return self.found is not None and not any(one.kind in _BLOCKS for one in self.findings)

    @property
    def is_fine(self) -> bool:
        return all(one.kind.severity <= Severity.NOTE for one in self.findings)


def explain(
    shard: Shard, partition: TopicIdPartition, offset: int, epoch: int | None, facts: ExplainFacts
) -> Explanation:
    """Explain the look-up of *offset* in *epoch*, or in the epoch that the segments give it."""
    segments = shard.segments(partition)
    lineage = lineage_of(finished_of(segments))
    asked = epoch if epoch is not None else epoch_at(lineage, segments, offset)
    held = holding(shard, partition, offset)
    found = None if asked is None else look_up(shard, partition, asked, offset)
    others = tuple(
        one
        for one in (look_up(shard, partition, other, offset) for other in held.epochs)
        if one.epoch != asked and one.found is not None
    )
    rules = RetentionSettings.of(facts.topic, facts.offsets)
    due, ahead = _due(segments, rules, None if found is None else found.found, facts.now_ms)
    judge = _Judge(shard, partition, offset, facts, held, lineage)
    findings = [*judge.of_partition()]
    if found is not None and found.found is not None:
        findings += judge.of_found(found)
    else:
        findings += [*judge.of_nothing(found, others), *judge.of_history()]
    findings.sort(key=lambda one: one.kind in _BESIDE)
    return Explanation(
        partition, offset, asked, epoch is not None, found, others, held, tuple(findings), due,
        ahead, rules,
    )  # fmt: skip


def epoch_at(lineage: Lineage, segments: Sequence[SegmentMetadata], offset: int) -> int | None:
    """Return the epoch of *offset* by the segments: the last behind all, the first before all."""
    for stretch in lineage.stretches():
        if stretch.first <= offset <= stretch.last:
            return stretch.epoch
    if lineage.begins:
        is_before = offset < lineage.begins[0][1]
        return lineage.begins[0][0] if is_before else lineage.begins[-1][0]
    listed = [epoch for one in segments for epoch, _ in one.epochs]
    return max(listed, default=None)


def _due(
    segments: Sequence[SegmentMetadata],
    rules: RetentionSettings,
    found: SegmentMetadata | None,
    now_ms: int,
) -> tuple[RetentionDecision | None, int]:
    for ahead, due in enumerate(due_of(segments, rules, now_ms)):
        if found is not None and due.segment.id == found.id:
            return due, ahead
    return None, 0


class _Judge:
    def __init__(
        self,
        shard: Shard,
        partition: TopicIdPartition,
        offset: int,
        facts: ExplainFacts,
        held: SegmentMatches,
        lineage: Lineage,
    ) -> None:
        self._shard = shard
        self._partition = partition
        self._offset = offset
        self._facts = facts
        self._held = held
        self._lineage = lineage

    # ------------------------------------------------------------------------- the partition

    def of_partition(self) -> Iterator[Finding]:
        delete = self._shard.partition_delete(self._partition)
        if delete is not None:
            is_over = delete.state is PartitionDeleteState.DELETE_PARTITION_FINISHED
            kind = kinds.PARTITION_DELETED if is_over else kinds.PARTITION_BEING_DELETED
            yield self._finding(
                kind,
                f"{delete.state.name} by broker {delete.broker_id}",
                event_timestamp_ms=delete.event_timestamp_ms, broker_id=delete.broker_id,
            )  # fmt: skip
        yield from of_topic(self._partition, self._facts)

    # ------------------------------------------------------------------------- what was found

    def of_found(self, found: LookUp) -> Iterator[Finding]:
        segment = found.found
        assert segment is not None, found
        if found.rule is LookupRule.COVER_LOOKUP:
            yield self._finding(
                kinds.STOCK_LOOKUP_EMPTY, _slot_text(found), segment_id=str(segment.id.uuid),
                epoch=found.epoch,
            )  # fmt: skip
            yield from self._hidden(segment)
        offsets = self._facts.offsets
        if offsets is None:
            return
        if offsets.earliest is not None and self._offset < offsets.earliest:
            yield self._finding(
                BELOW_LOG_START, f"the log begins at offset {offsets.earliest}: brokers refuse "
                f"{self._offset}, and retention deletes the segment once all of it lies before",
                log_start=offsets.earliest,
            )  # fmt: skip
        elif offsets.earliest_local is not None and self._offset >= offsets.earliest_local:
            yield self._finding(
                kinds.STILL_LOCAL, f"the local log begins at offset {offsets.earliest_local}",
                local_start=offsets.earliest_local,
            )  # fmt: skip

    def _hidden(self, segment: SegmentMetadata) -> Iterator[Finding]:
        if segment.id in {one.id for one in hidden_of(self._shard, self._partition)}:
            yield self._finding(
                HIDDEN_SEGMENT,
                f"segment {segment.id.uuid}, offsets {segment.start_offset} to "
                f"{segment.last_offset}",
                segment_id=str(segment.id.uuid), first_offset=segment.start_offset,
                last_offset=segment.last_offset, size_bytes=segment.size_bytes,
            )  # fmt: skip

    # ----------------------------------------------------------------------- nothing was found

    def of_nothing(self, found: LookUp | None, others: Sequence[LookUp]) -> Iterator[Finding]:
        if found is not None and self._shard.epoch_view(self._partition, found.epoch) is None:
            known = ", ".join(map(str, self._held.epochs)) or "none"
            yield self._finding(
                kinds.EPOCH_UNKNOWN, f"epoch {found.epoch}; finished copies list {known}",
                epoch=found.epoch,
            )  # fmt: skip
        for other in others:
            segment = other.found
            assert segment is not None, other
            yield self._finding(
                kinds.OTHER_EPOCH,
                f"in epoch {other.epoch} segment {segment.id.uuid} is found, offsets "
                f"{segment.start_offset} to {segment.last_offset}",
                epoch=other.epoch, segment_id=str(segment.id.uuid),
            )  # fmt: skip
        reasons = [*self._of_held(is_other=bool(others)), *self._of_story()]
        yield from reasons
        if not others:
            yield from self._of_place(has_reason=bool(reasons))

    def _of_held(self, *, is_other: bool) -> Iterator[Finding]:
        for one in self._held.held:
            segment = one.segment
            what = (
                f"segment {segment.id.uuid} of broker {segment.broker_id}, offsets "
                f"{segment.start_offset} to {segment.last_offset}"
            )
            fields = {
                "segment_id": str(segment.id.uuid), "broker_id": segment.broker_id,
                "event_timestamp_ms": segment.event_timestamp_ms,
            }  # fmt: skip
            if segment.state is SegmentState.COPY_SEGMENT_STARTED:
                copy = self._copy(segment)
                early = None if copy is None else copy.refused_finish
                if early is not None:
                    detail = f"{what}: its finish at offset {early.happened.offset} came first"
                    yield self._finding(COPY_FINISHED_FIRST, detail, **fields)
                else:
                    age_s = max(0, self._facts.now_ms - segment.event_timestamp_ms) // 1_000
                    yield self._finding(
                        kinds.COPY_UNFINISHED, f"{what}, open for {duration_text(age_s)}", **fields
                    )
            elif segment.state is SegmentState.DELETE_SEGMENT_STARTED:
                yield self._finding(kinds.SEGMENT_BEING_DELETED, what, **fields)
            elif not one.epochs and not is_other:
                yield self._finding(kinds.NOT_IN_EPOCH, what, **fields)

    def _copy(self, segment: SegmentMetadata) -> SegmentCopy | None:
        story = self._facts.story
        return None if story is None else story.copies.get(segment.id.uuid)

    def _of_story(self) -> Iterator[Finding]:
        story = self._facts.story
        gone = [] if story is None else [one for one in story.copies.values() if not one.is_there]
        read = [one for one in gone if one.last_to(SegmentState.COPY_SEGMENT_FINISHED)]
        for copy in read[-1:]:
            ended = copy.last_to(SegmentState.DELETE_SEGMENT_FINISHED)
            began = copy.last_to(SegmentState.DELETE_SEGMENT_STARTED)
            line = ended or began
            event = None if line is None else line.happened.event
            by = "with its whole partition" if event is None else f"by broker {event.broker_id}"
            if line is not None and line.happened.timestamp_ms >= 0:
                by += f" at {moment_text(line.happened.timestamp_ms)}"
            segment = copy.started
            yield self._finding(
                kinds.SEGMENT_DELETED,
                f"segment {segment.id.uuid}, offsets {segment.start_offset} to "
                f"{segment.last_offset}, {by}",
                segment_id=str(segment.id.uuid),
                broker_id=None if event is None else event.broker_id,
                timestamp_ms=None if line is None else line.happened.timestamp_ms,
            )  # fmt: skip

    def _of_place(self, *, has_reason: bool) -> Iterator[Finding]:
        """Report whether the offset lies before all segments, behind all, or in a hole."""
        before, behind = self._held.before, self._held.behind
        offsets, at = self._facts.offsets, self._offset
        if offsets is not None and offsets.earliest is not None and at < offsets.earliest:
            yield self._finding(
                BELOW_LOG_START, f"the log begins at offset {offsets.earliest}",
                log_start=offsets.earliest,
            )  # fmt: skip
        elif offsets is not None and offsets.latest is not None and at >= offsets.latest:
            yield self._finding(
                kinds.OFFSET_BEYOND_LOG, f"the log ends before offset {offsets.latest}",
                log_end=offsets.latest,
            )  # fmt: skip
        elif has_reason:
            return
        elif before is None and behind is not None:
            yield self._finding(
                kinds.OFFSET_BELOW_TIER, f"the first finished segment begins at offset "
                f"{behind.start_offset}", first_offset=behind.start_offset,
            )  # fmt: skip
        elif before is not None and behind is None:
            yield from self._stalled()
            yield self._finding(
                kinds.OFFSET_ABOVE_TIER,
                f"the last finished segment ends at offset {before.last_offset}",
                last_offset=before.last_offset,
            )  # fmt: skip
        elif before is not None and behind is not None:
            label = f"{self._partition.topic}-{self._partition.partition}"
            hole = self._finding(
                LOOKUP_HOLE, f"offsets {before.last_offset + 1} to {behind.start_offset - 1}",
                first_offset=before.last_offset + 1, last_offset=behind.start_offset - 1,
            )  # fmt: skip
            yield replace(
                hole,
                fix=f"see `rlmm history {label}` for what was there, `rlmm stuck` for copies that "
                "are open; a local log that still has these offsets can be copied again",
            )
        elif self._shard.partition_delete(self._partition) is None:
            yield from self._stalled()
            yield self._finding(kinds.OFFSET_ABOVE_TIER, "no finished segment is there")

    def _stalled(self) -> Iterator[Finding]:
        """Report copies below the offset that never ended: nothing behind them is tiered."""
        known = StuckFacts(self._facts.now_ms, STALLED_MS, STALLED_MS)
        below = [
            one for one in self._shard.segments(self._partition) if one.start_offset <= self._offset
        ]
        yield from (one for one in stuck_in(below, known) if one.kind is COPY_STALLED)

    # ----------------------------------------------------------------------------- the history

    def of_history(self) -> Iterator[Finding]:
        """Report that events before the log start offset are not known."""
        start, story = self._facts.log_start, self._facts.story
        if start is None or start == 0:
            return
        lost = "" if story is None else (
            f"; {story.without_base} updates of this partition are of segments whose first record "
            "is gone"
        )  # fmt: skip
        yield Finding(
            HISTORY_TRIMMED,
            f"__remote_log_metadata-{self._shard.partition}",
            f"it begins at offset {start}{lost}",
            fields={
                "metadata_partition": self._shard.partition,
                "log_start": start,
                "updates_without_base": None if story is None else story.without_base,
            },
        )

    def _finding(self, kind: FindingKind, detail: str, **fields: object) -> Finding:
        return finding(kind, self._partition, self._offset, detail, **fields)


def _slot_text(found: LookUp) -> str:
    if found.slot_segment is None:
        return f"no segment with a slot begins at or before {found.offset} in epoch {found.epoch}"
    return (
        f"the slot at {found.slot_offset} of epoch {found.epoch} has segment "
        f"{found.slot_segment.id.uuid}, which ends there at {found.slot_last}"
    )
