"""
A shard on the native core, which holds the state and applies what is of the usual form.

Damaged and compressed batches, record values of an unusual form, and images that the core refuses
go the way of the pure-Python engine, so that verdicts, reasons and words are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm_native import Core

from rlmm.errors import ImageCorrupt
from rlmm.metadata.decoding import decode, decode_partition_key
from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.image_reading import read_partition_image, shard_image_parts
from rlmm.metadata.native_answers import CoreOrder, NativeAnswers
from rlmm.metadata.native_partitions import CorePartition, CorePartitions, verdict_of
from rlmm.metadata.python_shard import MISPLACED, PIECE_EVENTS, STEPS_MAX, PythonShard
from rlmm.metadata.report import never
from rlmm.metadata.row import row_of
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import (
    APPLIED,
    Rejected,
    RejectReason,
    Verdict,
)
from rlmm.records.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm_native import Applied as AppliedByCore

    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.open_record_set import OpenRecordSet
    from rlmm.metadata.page_order_cache import PageOrderCache
    from rlmm.metadata.report import ReportDraft
    from rlmm.records.damage import DamagedBatch
    from rlmm.records.record_set import RecordSet

_END, _LIMIT, _BATCH, _, _STEPS = range(5)
"""Why the core stopped; behind a value it can go on at once."""
_SLICE_NS: Final = 400_000
"""How long the core works between two looks at whether the caller's time is over."""
_AHEAD_NS: Final = 5_000_000
"""How long it works in a thread; a freeze of the shard and the end of its follower wait for it."""
_AHEAD_BYTES_MIN: Final = 64 * 1024
"""Smaller record sets are applied sooner than a thread has begun with them."""
_WHOLE_NS: Final = 60_000_000_000


class NativeShard(NativeAnswers, PythonShard):  # type: ignore[misc]  # other states and listings
    slices_by_time = True

    def __init__(
        self, partition: int, position: int = 0, order_cache: PageOrderCache | None = None
    ) -> None:
        super().__init__(partition, position, order_cache)
        self._core = self.core = Core()
        # Without a frame of Python for each look-up, which would cost half of it.
        self.row_for = self._core.row_for  # type: ignore[method-assign]
        self.rows_for = self._core.rows_for  # type: ignore[method-assign]
        self._states = CorePartitions(self._core)  # type: ignore[assignment]
        self._walked: OpenRecordSet | None = None
        """The record set that the core has read a part of."""
        self._ahead: AppliedByCore | None = None
        """What the core has applied of it, and no report has yet."""
        self._orders: dict[bytes, dict[int | None, CoreOrder]] = {}
        """Orders of listings by page: by user partition and leader epoch; the core keeps them."""

    @classmethod
    def from_image(cls, image: bytes) -> NativeShard:
        partition, position, parts = shard_image_parts(image)
        shard = cls(partition, position)
        for part in parts:
            shard.import_partition(part)
        return shard

    def import_partition(self, image: bytes) -> TopicIdPartition:
        key = self._core.import_partition(image)
        if key is None:
            read_partition_image(image)  # its error names the fault
            msg = f"state image of {len(image)} bytes: the native core refuses it"
            raise ImageCorrupt(msg)
        partition = decode_partition_key(key)
        assert partition is not None, key.hex()
        self.misplaced.meet(partition)
        return partition

    def import_images(self, content: bytes, start: int, after: bytes) -> tuple[int, int, bytes]:
        stop, count, last_key, misplaced = self._core.import_images(
            content, start, after, self.partition, self.misplaced.partition_count
        )
        for key in misplaced:
            partition = decode_partition_key(key)
            assert partition is not None, key.hex()
            self.misplaced.meet(partition)
        return stop, count, last_key

    # ---------------------------------------------------------------------------- applying

    def work_ahead(
        self, record_set: RecordSet, *, keeps_passed: bool
    ) -> Callable[[], object] | None:
        if len(record_set.data) < _AHEAD_BYTES_MIN or record_set.partition != self.partition:
            return None
        opened = self._open = self._opened(record_set)
        if opened.batch is not None:
            return None
        self._walk(opened)
        args = opened.data, self.position, opened.limit, None, _AHEAD_NS, self.holes_are_damage

        def work() -> None:
            self._ahead = self._core.apply(*args, keeps_passed)

        return work

    def _walk(self, opened: OpenRecordSet) -> None:
        if self._walked is not opened:
            self._core.begin(opened.stop, opened.floor)
            self._walked = opened

    def _apply_batches(
        self, opened: OpenRecordSet, turn: ReportDraft, budget: int
    ) -> tuple[bool, DamagedBatch | None]:
        assert self._ahead is None or self._walked is opened, "the work was for another record set"
        self._walk(opened)
        steps = 0
        while True:
            batch = opened.batch
            if batch is None:
                is_ahead = self._ahead is not None
                stop, budget = self._apply_in_core(opened, turn, budget)
                if is_ahead and stop == _LIMIT:
                    return False, None
                is_bare = stop == _BATCH and steps >= STEPS_MAX and budget < INT64_MAX
                if stop in (_END, _STEPS) or (stop == _LIMIT and not budget) or is_bare:
                    if stop == _END:
                        self._walked = None  # a megabyte, until the next one comes
                    return stop == _END, None
                if stop == _BATCH:
                    found = opened.next_batch(self.position)
                    if not isinstance(found, Batch) and not self._is_behind(opened, found):
                        return found is None, found
                    steps += self._go_on_behind(opened, found, turn)
            elif opened.is_read and opened.left_count and not budget:
                return False, None
            else:
                budget -= self._apply_some_of(opened, batch, turn, budget)
            if turn.is_over():
                return False, None

    def _is_behind(self, opened: OpenRecordSet, damage: DamagedBatch | None) -> bool:
        return damage is not None and self._is_passed(opened)

    def _go_on_behind(
        self, opened: OpenRecordSet, found: Batch | DamagedBatch | None, turn: ReportDraft
    ) -> bool:
        """Open a batch that the core has left, or let the core go on behind it."""
        assert found is not None
        is_step = isinstance(found, Batch) and self._open_batch(opened, found, turn)
        if opened.batch is None:
            stop = len(opened.data) if found.stop is None else found.stop  # no end can be found
            self._core.begin(stop, opened.floor)
        return is_step

    def _apply_some_of(
        self, opened: OpenRecordSet, batch: Batch, turn: ReportDraft, budget: int
    ) -> int:
        """Read or apply a part of the open batch; return how many events were applied."""
        if not opened.is_read:
            opened.read_on()
        elif opened.left_count == 0:
            self._close(opened, batch, turn)
            self._core.begin(opened.stop, opened.floor)
        else:
            return self._apply_values(opened, turn, min(budget, PIECE_EVENTS))
        return 0

    def _apply_in_core(
        self, opened: OpenRecordSet, turn: ReportDraft, budget: int
    ) -> tuple[int, int]:
        """Let the core apply what it can within some time; return why it stopped, and *budget*."""
        data = opened.data
        found, self._ahead = self._ahead, None
        stop, self.position, place, counts, entries, passed, stopped = found or self._core.apply(
            data,
            self.position,
            opened.limit,
            None if budget == INT64_MAX else budget,
            _WHOLE_NS if turn.is_over is never else _SLICE_NS,
            self.holes_are_damage,
            turn.passed is not None,
        )
        at, floor, last_start, timestamp_ms = place
        applied, control, missing, redelivered = counts
        tally = turn.tally
        tally.applied += applied
        tally.control += control
        tally.missing += missing
        turn.redelivered += redelivered
        if turn.passed is not None:
            turn.passed += passed
        for offset, number, value in entries:
            self._note(turn, verdict_of(number), value, offset)
        if last_start is not None:
            opened.last_start = last_start
        if timestamp_ms is not None:
            self._counters.last_timestamp_ms = timestamp_ms if timestamp_ms >= 0 else None
        if budget != INT64_MAX:
            budget -= applied + len(entries)
        if stop == _BATCH:
            opened.go_to(at, floor)
        elif stopped is not None:
            self._apply_unusual(data, *stopped, turn)
            budget -= budget != INT64_MAX
        return stop, budget

    def _apply_unusual(
        self, data: bytes, offset: int, value: bytes | None, turn: ReportDraft
    ) -> None:
        if turn.passed is not None:
            turn.passed.append((offset, value))
        verdict = self._apply_decoded(decode(value), offset, turn)
        self._skip_to(offset, turn)
        self.position = offset + 1
        self._core.pass_value(data)
        if verdict is APPLIED:
            turn.tally.applied += 1
        else:
            self._note(turn, verdict, value, offset)

    def _add(self, event: SegmentMetadata) -> Verdict:
        key, is_new = event.id.partition.key, False
        state = CorePartition(self._core, key)
        if event.state is not SegmentState.COPY_SEGMENT_STARTED:
            row = state.rows.get(event.id.uuid)
            current = None if row is None else SegmentState(row[0])
            return Rejected(RejectReason.ADD_NOT_STARTED, current, event.state)
        is_new = not self._core.has(key) and self.misplaced.meet(event.id.partition)
        verdict = state.add(event.id.uuid, row_of(event))
        return MISPLACED if is_new and verdict is APPLIED else verdict

    def _put_delete(self, event: PartitionDelete, turn: ReportDraft) -> Verdict:
        key = event.partition.key
        is_new = not self._core.has(key) and self.misplaced.meet(event.partition)
        number = self._core.put_delete(key, event.state, event.broker_id, event.event_timestamp_ms)
        verdict = verdict_of(number)
        if event.state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            turn.deleted.append(event.partition)
        return MISPLACED if is_new and verdict is APPLIED else verdict
