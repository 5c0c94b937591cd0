"""A shard in pure Python, by the rules of `partition_state` and `epoch_state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rlmm.errors import InvalidArgument
from rlmm.metadata.decoding import decode, decode_partition_key
from rlmm.metadata.encoding import encode_custom, encode_writer
from rlmm.metadata.ended_partitions import EndedPartitions
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.fast_decoding import cut
from rlmm.metadata.ids import INT64_MAX, TopicIdPartition, Uuid
from rlmm.metadata.image import partition_image
from rlmm.metadata.image_reading import read_partition_image, read_shard_image
from rlmm.metadata.misplaced import MisplacedPartitions
from rlmm.metadata.open_record_set import OpenRecordSet
from rlmm.metadata.page_order_cache import PageOrderCache
from rlmm.metadata.partition_state import PartitionState
from rlmm.metadata.report import Counters, Entry, Report, ReportDraft, never
from rlmm.metadata.row import row_of
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.shard_answers import ShardAnswers
from rlmm.metadata.verdicts import (
    APPLIED,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Undecodable,
    UndecodableReason,
    Verdict,
)
from rlmm.records.batch import Batch
from rlmm.records.header import BatchMark, mark_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.events import Event
    from rlmm.records.damage import DamagedBatch, DamagedRecords
    from rlmm.records.record_set import RecordSet


MISPLACED = Applied(Remark.MISPLACED)

STEPS_MAX = 1000
"""Batches without a record that one call steps over at most, when its events are limited."""
PIECE_EVENTS = 32
"""Events of the usual form that are applied between two looks at the time."""
EPOCHS_FEW = 64
"""An event costs as much as its user partition has leader epochs; above, each is looked at."""


class PythonShard(ShardAnswers):
    def __init__(
        self, partition: int, position: int = 0, order_cache: PageOrderCache | None = None
    ) -> None:
        """Shards of one engine are given the same *order_cache*; else it has its own."""
        if partition < 0 or position < 0:
            msg = f"metadata partition {partition} at position {position}: neither can be negative"
            raise InvalidArgument(msg)
        self.partition = partition
        self.position = position
        self._states = {}
        self._ended = EndedPartitions()
        self.misplaced = MisplacedPartitions(partition)
        self.holes_are_damage = False
        self._order_cache = PageOrderCache() if order_cache is None else order_cache
        self._counters = Counters()
        self._open: OpenRecordSet | None = None
        self._aside: tuple[bytes, int] | None = None
        """Record set of the damaged batch set aside last, and where it ends: looked at once."""
        self._unreported: ReportDraft | None = None
        """Entries of a call that ended with an exception: they go into the next report."""

    @classmethod
    def from_image(cls, image: bytes) -> Self:
        """Return the shard of *image*. Raises `ImageCorrupt` before anything is taken over."""
        partition, position, states = read_shard_image(image)
        shard = cls(partition, position)
        for state in states:
            shard._ended.keep(state, shard._states)
        return shard

    def import_partition(self, image: bytes) -> TopicIdPartition:
        state = read_partition_image(image)
        self._ended.keep(state, self._states)
        partition = decode_partition_key(state.key)
        assert partition is not None, state.key.hex()
        self.misplaced.meet(partition)
        return partition

    def place_among(self, partition_count: int) -> None:
        self.misplaced.partition_count = partition_count

    # ---------------------------------------------------------------------------- applying

    def apply(
        self,
        record_set: RecordSet,
        max_events: int | None = None,
        *,
        is_over: Callable[[], bool] = never,
        passed: list[tuple[int, bytes | None]] | None = None,
    ) -> Report:
        if record_set.partition != self.partition:
            msg = f"record set of metadata partition {record_set.partition} for {self.partition}"
            raise InvalidArgument(msg)
        if max_events is not None and max_events < 1:
            msg = f"max_events must be at least 1, got {max_events}"
            raise InvalidArgument(msg)
        self._order_cache.pass_turn()
        opened = self._opened(record_set)
        # Whatever is raised: the next call walks again, and steps over what is done.
        self._open = None
        turn = self._begin()
        turn.is_over, turn.passed = is_over, passed
        complete, damage = self._apply_batches(opened, turn, max_events or INT64_MAX)
        if complete and record_set.next_offset is not None and not opened.is_cut:
            self._skip_to(record_set.next_offset, turn)
        if not complete and damage is None:
            self._open = opened
        mark = None if opened.last_start < 0 else mark_at(record_set.data, opened.last_start)
        return self._report(turn, complete=complete, damage=damage, last_batch=mark)

    def _opened(self, record_set: RecordSet) -> OpenRecordSet:
        if self._open is not None and self._open.data is record_set.data:
            return self._open
        data, start = self._aside or (b"", 0)
        return OpenRecordSet(record_set, start if data is record_set.data else 0)

    def _begin(self) -> ReportDraft:
        if self._unreported is None:
            self._unreported = ReportDraft(self.position)
        return self._unreported

    def _apply_batches(
        self, opened: OpenRecordSet, turn: ReportDraft, budget: int
    ) -> tuple[bool, DamagedBatch | None]:
        steps = 0
        is_over = turn.is_over
        piece = INT64_MAX if is_over is never else PIECE_EVENTS
        while True:
            batch = opened.batch
            if batch is None:
                if steps >= STEPS_MAX and budget < INT64_MAX:
                    return False, None
                found = opened.next_batch(self.position)
                if isinstance(found, Batch):
                    steps += self._open_batch(opened, found, turn)
                elif found is None or not self._is_passed(opened):
                    return found is None, found
            elif not opened.is_read:
                opened.read_on()
            elif opened.left_count == 0:
                self._close(opened, batch, turn)
            elif budget > 0:
                budget -= self._apply_values(opened, turn, min(budget, piece))
            else:
                return False, None
            if is_over():
                return False, None

    def _open_batch(self, opened: OpenRecordSet, batch: Batch, turn: ReportDraft) -> bool:
        """
        Open *batch*, or step over it; return whether that was a step forward without a record. One
        over a batch below the position is none: callers with ever new bytes would not get past.
        """
        if batch.next_offset <= self.position:
            turn.redelivered += batch.record_count
            return False
        if batch.is_control:
            self._skip_control(batch, turn)
            return True
        opened.begin(batch)
        return opened.is_read and opened.left_count == 0

    def _is_passed(self, opened: OpenRecordSet) -> bool:
        """
        Return whether all of a damaged batch lies below the position. Only the offsets of the next
        sound batch prove that, not those in its own header.
        """
        behind = opened.offset_behind()
        return behind is not None and behind <= self.position

    def _close(self, opened: OpenRecordSet, batch: Batch, turn: ReportDraft) -> None:
        if opened.damage is not None:
            self._lose(opened.damage, opened.data[batch.start : batch.stop], turn)
        self._skip_to(opened.next_offset, turn)
        self._counters.last_timestamp_ms = opened.timestamp_ms if opened.timestamp_ms >= 0 else None
        opened.batch = None

    def _apply_values(self, opened: OpenRecordSet, turn: ReportDraft, budget: int) -> int:
        """
        Apply *budget* records of the open batch at most; return how many, without those below the
        position: if these counted, callers with ever new bytes would not get past them.
        """
        seen = redelivered = 0
        tally = turn.tally
        is_over = turn.is_over
        position = self.position
        states = self._states
        try:
            for offset, value in opened.taken(budget, position, turn.passed):
                seen += 1
                if offset < position:
                    redelivered += 1
                    continue
                parts = None if value is None else cut(value)
                state = None if parts is None else states.get(parts[0])
                if parts is None or state is None:
                    verdict = self._apply_decoded(decode(value), offset, turn)
                elif len(parts) == 3:
                    verdict = state.add(parts[1], parts[2])
                else:
                    _, uuid, target, writer, custom = parts
                    verdict = state.update(uuid, target, writer, custom, offset)
                if offset != position:
                    self._skip_to(offset, turn)
                self.position = position = offset + 1
                if verdict is APPLIED:
                    tally.applied += 1
                else:
                    self._note(turn, verdict, value, offset)
                if (parts is None or state is None or len(state.epochs) > EPOCHS_FEW) and is_over():
                    break  # only the usual form is known to cost little
        finally:
            opened.left_count -= seen
            turn.redelivered += redelivered
        return seen - redelivered

    def _apply_decoded(self, event: Event | Undecodable, offset: int, turn: ReportDraft) -> Verdict:
        match event:
            case Undecodable():
                return event
            case SegmentMetadata():
                return self._add(event)
            case SegmentUpdate():
                return self._update(event, offset)
            case PartitionDelete():
                return self._put_delete(event, turn)
            case _:
                return Rejected(RejectReason.SNAPSHOT_RECORD, None, event.state)

    def _add(self, event: SegmentMetadata) -> Verdict:
        key = event.id.partition.key
        state = self._states.get(key)
        if event.state is not SegmentState.COPY_SEGMENT_STARTED:
            row = None if state is None else state.rows.get(event.id.uuid)
            current = None if row is None else SegmentState(row[0])
            return Rejected(RejectReason.ADD_NOT_STARTED, current, event.state)
        if state is None:
            state = self._ended.state(key) or PartitionState(key)
            verdict = state.add(bytes(event.id.uuid), row_of(event))
            self._ended.keep(state, self._states)
            is_misplaced = self.misplaced.meet(event.id.partition)
            return MISPLACED if is_misplaced and verdict is APPLIED else verdict
        return state.add(bytes(event.id.uuid), row_of(event))

    def _update(self, event: SegmentUpdate, offset: int) -> Verdict:
        partition = event.id.partition
        state = self._states.get(partition.key)
        if state is None:
            if not self.knows(partition) and self.misplaced.meet(partition):
                # By a state without segments a snapshot tells that the log has events of it here.
                self.import_partition(partition_image(PartitionState(partition.key)))
            return Rejected(RejectReason.UNKNOWN_SEGMENT, None, event.state)
        writer = encode_writer(event.broker_id, event.event_timestamp_ms)
        custom = encode_custom(event.custom_metadata)
        return state.update(bytes(event.id.uuid), event.state.value, writer, custom, offset)

    def _put_delete(self, event: PartitionDelete, turn: ReportDraft) -> Verdict:
        key = event.partition.key
        state = self._states.get(key)
        is_misplaced = state is None and self.misplaced.meet(event.partition)
        if state is None:
            state = self._ended.state(key) or PartitionState(key)
        verdict = state.put_delete(event)
        self._ended.keep(state, self._states)
        if is_misplaced and verdict is APPLIED:
            verdict = MISPLACED
        if event.state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            turn.deleted.append(event.partition)
        return verdict

    def apply_event(self, event: Event | Undecodable | None, offset: int | None = None) -> Verdict:
        offset = self.position if offset is None else offset
        if not self.position <= offset < INT64_MAX:
            msg = f"offset {offset} lies before position {self.position} or beyond the largest"
            raise InvalidArgument(msg)
        turn = self._unreported or ReportDraft(self.position)
        decoded = decode(None) if event is None else event
        verdict = self._apply_decoded(decoded, offset, turn)
        turn.tally.missing += offset - self.position
        self.position = offset + 1
        if verdict is APPLIED:
            turn.tally.applied += 1
        else:
            self._note(turn, verdict, None, offset)
        if turn is not self._unreported:
            self._count(turn)
        return verdict

    # ---------------------------------------------------------------------------- counting

    def _note(self, turn: ReportDraft, verdict: Verdict, value: bytes | None, offset: int) -> None:
        turn.tally.count(verdict)
        event = None if value is None else decode(value)
        partition: TopicIdPartition | None = None
        segment: Uuid | None = None
        if isinstance(event, SegmentMetadata | SegmentUpdate):
            partition, segment = event.id.partition, event.id.uuid
        elif isinstance(event, PartitionDelete):
            partition = event.partition
        kept = value if isinstance(verdict, Undecodable) else None
        entry = Entry(offset, offset + 1, verdict, partition, segment, kept)
        turn.entries.append(entry)
        self._counters.note(entry)

    def _lose(self, damage: DamagedRecords, batch: bytes, turn: ReportDraft) -> None:
        """Count the lost records of a batch with a sound header; a new fetch brings the same."""
        first = max(damage.first_offset, self.position)
        if damage.next_offset <= first:
            return
        self._skip_to(first, turn)
        self._set_aside(first, damage.next_offset, f"{damage.reason}: {damage.detail}", batch, turn)

    def _set_aside(
        self, first: int, next_offset: int, detail: str, value: bytes, turn: ReportDraft
    ) -> None:
        verdict = Undecodable(UndecodableReason.DAMAGED_BATCH, detail)
        entry = Entry(first, next_offset, verdict, value=value)
        turn.entries.append(entry)
        self._counters.note(entry)
        turn.tally.undecodable += next_offset - first
        self.position = next_offset

    def set_aside(self, damage: DamagedBatch, data: bytes, next_offset: int) -> Report:
        if not self.position < next_offset <= INT64_MAX:
            msg = (
                f"metadata partition {self.partition}: cannot set aside the batch at byte "
                f"{damage.start} up to offset {next_offset}, position {self.position}"
            )
            raise InvalidArgument(msg)
        turn = self._begin()
        detail = f"{damage.reason}: {damage.detail}"
        kept = data[damage.start : damage.stop]
        self._aside = (data, len(data) if damage.stop is None else damage.stop)
        self._set_aside(self.position, next_offset, detail, kept, turn)
        return self._report(turn, complete=False, damage=None)

    def pass_trimmed(self, log_start: int) -> Report:
        turn = self._begin()
        turn.tally.missing += log_start - self.position
        self.position = log_start
        return self._report(turn, complete=True, damage=None)

    def _skip_control(self, batch: Batch, turn: ReportDraft) -> None:
        passed = batch.next_offset - max(batch.base_offset, self.position)
        control = min(batch.record_count, passed)
        self._skip_to(batch.next_offset - control, turn)
        turn.tally.control += control
        self.position = batch.next_offset

    def _skip_to(self, next_offset: int, turn: ReportDraft) -> None:
        if next_offset <= self.position:
            return
        if self.holes_are_damage:
            self._set_aside(self.position, next_offset, "no batch has these offsets", b"", turn)
            return
        turn.tally.missing += next_offset - self.position
        self.position = next_offset

    def _count(self, turn: ReportDraft) -> None:
        self._counters.tally.add(turn.tally)
        self._counters.redelivered += turn.redelivered

    def _report(
        self,
        turn: ReportDraft,
        *,
        complete: bool,
        damage: DamagedBatch | None,
        last_batch: BatchMark | None = None,
    ) -> Report:
        self._count(turn)
        self._unreported = None
        return Report(
            self.partition,
            turn.from_offset,
            self.position,
            complete,
            turn.tally,
            turn.redelivered,
            tuple(turn.entries),
            tuple(turn.deleted),
            damage,
            last_batch,
        )
