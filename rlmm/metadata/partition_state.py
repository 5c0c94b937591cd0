"""
All state of one user partition: its segments, leader epochs and deletion, and the effect of events.
Nothing here decodes a record. A handler decides before it changes anything; a change that fails
half-way is taken back whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.derived import derive
from rlmm.metadata.epoch_state import EpochState
from rlmm.metadata.row import (
    BROKER_STOP,
    CONTENT_AT,
    EPOCHS_AT,
    FINISHED_HEADS,
    KEPT_AT,
    ONE_EPOCH,
    ONE_EPOCH_CUSTOM_AT,
    STATE_AT,
    TXN_INDEX_EMPTY_AT,
    epoch_ranges,
    pack_finish,
    packed_finish_of,
    same_content,
    size_of,
    start_of,
    unpack_content,
    unpack_listing,
    updated_row,
)
from rlmm.metadata.segment import (
    PARTITION_DELETE_TRANSITIONS,
    TRANSITIONS,
    PartitionDeleteState,
    SegmentState,
)
from rlmm.metadata.verdicts import (
    APPLIED,
    DUPLICATE,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Verdict,
)

if TYPE_CHECKING:
    from rlmm.metadata.epoch_state import Undo
    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.paging import Orders

_STARTED, _FINISHED, _DELETE_STARTED, _DELETE_FINISHED = (state.value for state in SegmentState)
_IS_LEGAL = tuple(
    tuple(target in TRANSITIONS[source] for target in SegmentState) for source in SegmentState
)


class PartitionState:
    """One user partition. Ids are the 16 bytes of the segment's uuid, rows are those of `row`."""

    __slots__ = ("counts", "delete", "epochs", "key", "orders", "rows", "size_bytes", "strays")

    def __init__(self, key: bytes) -> None:
        self.key = key
        """Name, topic id and partition in canonical record form."""
        self.rows: dict[bytes, bytes] = {}
        self.epochs: dict[int, EpochState] = {}
        self.strays: dict[bytes, frozenset[int]] = {}
        """Epochs that still list an id although its repeated first record no longer names them."""
        self.delete: PartitionDelete | None = None
        """The last partition-delete event. Finished is kept too, for writers must know."""
        self.counts = [0, 0, 0]
        self.size_bytes = 0
        self.orders: Orders | None = None
        """Kept up to date only while a reader lists by page."""

    # ------------------------------------------------------------------------------- events

    def add(self, uuid: bytes, row: bytes) -> Verdict:
        """A copy starts: *row* is its first record, in state COPY_SEGMENT_STARTED."""
        if uuid in self.rows:
            return self._add_again(uuid, self.rows[uuid], row)
        known_epochs = len(self.epochs)
        try:
            if row[EPOCHS_AT] == ONE_EPOCH:
                # In line what `_list` does: nearly half of all events come this way.
                epoch, size = unpack_listing(row, EPOCHS_AT + 1)
                entry = self.epochs.get(epoch)
                if entry is None:
                    entry = self.epochs[epoch] = EpochState(epoch)
                entry.unreferenced.add(uuid)
                entry.size_bytes += size
            else:
                size = size_of(row)
                for epoch, _, _ in epoch_ranges(row):
                    self._list(uuid, epoch, size)
            self.rows[uuid] = row
            self.size_bytes += size
            self.counts[_STARTED] += 1
            if self.orders is not None:
                self.orders.changed(self, uuid, None, row)
            return APPLIED if self.delete is None else self._remark_on_add(self.delete)
        except BaseException:
            self._recover(uuid, None, [], known_epochs)
            raise

    def _list(self, uuid: bytes, epoch: int, size: int) -> None:
        entry = self.epochs.get(epoch)
        if entry is None:
            entry = self.epochs[epoch] = EpochState(epoch)
        entry.unreferenced.add(uuid)
        entry.size_bytes += size

    def _add_again(self, uuid: bytes, current: bytes, row: bytes) -> Verdict:
        """
        Replace the metadata by a repeated first record while the copy is open. Every epoch that
        listed the id goes on listing it, as in Kafka, even if the new record omits it.
        """
        state = current[STATE_AT]
        if state != _STARTED:
            reason = RejectReason.ILLEGAL_TRANSITION
            return Rejected(reason, SegmentState(state), SegmentState.COPY_SEGMENT_STARTED)
        if same_content(current, row):
            return DUPLICATE
        listed = self._listing_epochs(uuid, current)
        named = frozenset(epoch for epoch, _, _ in epoch_ranges(row))
        strays_before = self.strays.get(uuid)
        known_epochs = len(self.epochs)
        growth = size_of(row) - size_of(current)
        try:
            if listed - named:
                self.strays[uuid] = listed - named
            else:
                self.strays.pop(uuid, None)
            for epoch in listed:
                self.epochs[epoch].size_bytes += growth
            for epoch in sorted(named - listed):
                self._list(uuid, epoch, size_of(row))
            self.rows[uuid] = row
            self.size_bytes += growth
            if self.orders is not None:
                self.orders.changed(self, uuid, current, row)
            return APPLIED if self.delete is None else self._remark_on_add(self.delete)
        except BaseException:
            self.strays.pop(uuid, None)
            if strays_before is not None:
                self.strays[uuid] = strays_before
            self._recover(uuid, current, [], known_epochs)
            raise

    def _listing_epochs(self, uuid: bytes, row: bytes) -> frozenset[int]:
        named = frozenset([epoch for epoch, _, _ in epoch_ranges(row)])
        strays = self.strays.get(uuid)
        return named if strays is None else named | strays

    def _remark_on_add(self, delete: PartitionDelete) -> Verdict:
        if delete.state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            return Applied(Remark.PARTITION_WAS_DELETED)
        return Applied(Remark.PARTITION_BEING_DELETED)

    def update(
        self, uuid: bytes, target: int, writer: bytes, custom: bytes, offset: int
    ) -> Verdict:
        """
        Move a segment on to *target*; *offset* is the metadata offset of the event. *writer* is
        broker id and event timestamp, *custom* the custom metadata, both as in a record.
        """
        current = self.rows.get(uuid)
        if current is None:
            return Rejected(RejectReason.UNKNOWN_SEGMENT, None, SegmentState(target))
        state = current[STATE_AT]
        if not _IS_LEGAL[state][target] or target == _STARTED:
            return _refuse(state, target)
        if target == _FINISHED and state == _STARTED and current[EPOCHS_AT] == ONE_EPOCH:
            return self._finish_one_epoch(uuid, current, writer, custom, offset)
        if target == _FINISHED:
            row = updated_row(current, target, writer, custom, pack_finish(offset))
            return self._finish(uuid, current, row)
        undo: Undo = []
        strays = self.strays.get(uuid)
        try:
            if target == _DELETE_FINISHED:
                self._finish_delete(uuid, current)
                return APPLIED
            row = updated_row(current, target, writer, custom, packed_finish_of(current))
            self._start_delete(uuid, state, row, undo)
            return DUPLICATE if state == target and same_content(current, row) else APPLIED
        except BaseException:
            if strays is not None:
                self.strays[uuid] = strays
            self._recover(uuid, current, undo, len(self.epochs))
            raise

    def _finish(self, uuid: bytes, current: bytes, row: bytes) -> Verdict:
        """The copy is there: *row* takes its slot in every epoch that it names."""
        was_started = current[STATE_AT] == _STARTED
        indexed = was_started and not row[TXN_INDEX_EMPTY_AT]
        displaced = False
        undo: Undo = []
        try:
            for epoch, first, last in epoch_ranges(row):
                entry = self.epochs[epoch]
                if entry.finish(uuid, first, last, self.rows, undo):
                    displaced = True
                if indexed:
                    entry.indexed_count += 1
            self.rows[uuid] = row
            if was_started:
                self.counts[_STARTED] -= 1
                self.counts[_FINISHED] += 1
            if not was_started and same_content(current, row):
                return DUPLICATE
            if displaced:
                return Applied(Remark.DISPLACED_ANOTHER_SEGMENT)
            same_broker = row[CONTENT_AT:BROKER_STOP] == current[CONTENT_AT:BROKER_STOP]
            taken_over = was_started and not same_broker
            return Applied(Remark.FINISHED_BY_ANOTHER_BROKER) if taken_over else APPLIED
        except BaseException:
            self._recover(uuid, current, undo, len(self.epochs))
            raise

    def _finish_one_epoch(
        self, uuid: bytes, current: bytes, writer: bytes, custom: bytes, offset: int
    ) -> Verdict:
        broker, last, epoch, first = unpack_content(current, CONTENT_AT)
        undo: Undo = []
        try:
            # In line what `updated_row` makes of a row of one epoch.
            txn_index_empty = current[TXN_INDEX_EMPTY_AT]
            head = FINISHED_HEADS[txn_index_empty]
            kept = current[KEPT_AT:ONE_EPOCH_CUSTOM_AT]
            row = b"".join((head, pack_finish(offset), writer, kept, custom))
            entry = self.epochs[epoch]
            displaced = entry.finish(uuid, first, last, self.rows, undo)
            if not txn_index_empty:
                entry.indexed_count += 1
            self.rows[uuid] = row
            self.counts[_STARTED] -= 1
            self.counts[_FINISHED] += 1
            if displaced:
                return Applied(Remark.DISPLACED_ANOTHER_SEGMENT)
            if not writer.startswith(broker):
                return Applied(Remark.FINISHED_BY_ANOTHER_BROKER)
        except BaseException:
            self._recover(uuid, current, undo, len(self.epochs))
            raise
        return APPLIED

    def _start_delete(self, uuid: bytes, state: int, row: bytes, undo: Undo) -> None:
        indexed = state == _FINISHED and not row[TXN_INDEX_EMPTY_AT]
        for epoch, first, _ in epoch_ranges(row):
            entry = self.epochs[epoch]
            entry.unmap(uuid, first, self.rows, undo)
            if indexed:
                entry.indexed_count -= 1
        self.rows[uuid] = row
        self.counts[state] -= 1
        self.counts[_DELETE_STARTED] += 1

    def _finish_delete(self, uuid: bytes, row: bytes) -> None:
        size = size_of(row)
        listed = [epoch for epoch, _, _ in epoch_ranges(row)]
        listed += self.strays.pop(uuid, ())
        for epoch in listed:
            entry = self.epochs[epoch]
            entry.unreferenced.discard(uuid)
            entry.size_bytes -= size
        del self.rows[uuid]
        self.size_bytes -= size
        self.counts[_DELETE_STARTED] -= 1
        if self.orders is not None:
            self.orders.changed(self, uuid, row, None)

    def put_delete(self, event: PartitionDelete) -> Verdict:
        """Store a record of the partition's own deletion; every one is stored, as in Kafka."""
        finishes = event.state is PartitionDeleteState.DELETE_PARTITION_FINISHED
        if event == self.delete and not (finishes and self.epochs):
            return DUPLICATE
        before = None if self.delete is None else self.delete.state
        verdict = APPLIED
        if before is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            verdict = Applied(Remark.PARTITION_WAS_DELETED)
        elif event.state not in PARTITION_DELETE_TRANSITIONS[before]:
            verdict = Applied(Remark.PARTITION_DELETE_OUT_OF_ORDER)
        kept = (self.rows, self.epochs, self.strays, self.counts, self.size_bytes)
        try:
            if finishes:  # also when repeated: what came in between goes as well
                self.rows, self.epochs, self.strays = {}, {}, {}
                self.counts, self.size_bytes, self.orders = [0, 0, 0], 0, None
            self.delete = event
        except BaseException:
            self.rows, self.epochs, self.strays, self.counts, self.size_bytes = kept
            raise
        return verdict

    def _recover(self, uuid: bytes, row: bytes | None, undo: Undo, known_epochs: int) -> None:
        """
        Take back a change of *uuid* that failed half-way; *row* is its row before, or `None`.
        *undo* restores slots and watermarks, new epochs are dropped, and the rest is derived anew.
        """
        self.orders = None
        if row is None:
            self.rows.pop(uuid, None)
        else:
            self.rows[uuid] = row
        for entry, offset, holder, highest in reversed(undo):
            entry.highest = highest
            if holder is None:
                entry.slots.remove(offset)
            else:
                entry.slots.put(offset, holder)
        for epoch in list(self.epochs)[known_epochs:]:
            del self.epochs[epoch]
        derive(self)

    # ------------------------------------------------------------------------------ queries

    def lookup(self, epoch: int, offset: int) -> bytes | None:
        entry = self.epochs.get(epoch)
        return None if entry is None else entry.lookup(offset, self.rows)

    def next_with_txn_index(self, epoch: int, offset: int) -> bytes | None:
        entry = self.epochs.get(epoch)
        return None if entry is None else entry.next_with_txn_index(offset, self.rows)

    def highest(self, epoch: int) -> int | None:
        """Watermark of *epoch*: the largest offset that any copy of it ever finished."""
        entry = self.epochs.get(epoch)
        return None if entry is None else entry.highest

    def size_of_epoch(self, epoch: int) -> int:
        entry = self.epochs.get(epoch)
        return 0 if entry is None else entry.size_bytes

    def ids(self) -> list[bytes]:
        rows = self.rows
        return sorted(rows, key=lambda uuid: (start_of(rows[uuid]), uuid))

    def ids_of_epoch(self, epoch: int) -> list[bytes]:
        """
        Return all segments of *epoch*, in Kafka's order. By slot where every id has one; otherwise
        by rising start offset, those with a slot first.
        """
        entry = self.epochs.get(epoch)
        if entry is None:
            return []
        ids = list(entry.slots.ids())
        if entry.unreferenced:
            ids += sorted(entry.unreferenced)
            ids.sort(key=lambda uuid: start_of(self.rows[uuid]))
        return ids


def _refuse(state: int, target: int) -> Rejected:
    illegal = not _IS_LEGAL[state][target]
    reason = RejectReason.ILLEGAL_TRANSITION if illegal else RejectReason.UPDATE_TO_STARTED
    return Rejected(reason, SegmentState(state), SegmentState(target))
