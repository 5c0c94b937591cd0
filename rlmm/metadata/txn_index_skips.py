"""
Stretches of one leader epoch: gapless segments without a transaction index, passed in one step.

A slot *ends* a stretch where a walk from it does not simply step into the slot behind, or where
that one may have a transaction index. Only ends are kept. Slots are looked at in order, up to
*looked_to*, and again when something beside them changes: a change costs log n.

Invariant: of the slots below *looked_to*, which is not above the last one, every one that ends a
stretch is in *ends*, and no offset without a slot is. Spare entries cost time, never answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.ids import INT64_MIN
from rlmm.metadata.row import ONE_EPOCH, TXN_INDEX_EMPTY_AT, end_of, epoch_range, unpack_walked
from rlmm.metadata.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Mapping

    Rows = Mapping[bytes, bytes]


class TxnIndexSkips:
    """Notes where the stretches of one epoch end; its slots and rows answer everything else."""

    __slots__ = ("ends", "epoch", "looked_to")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.ends = Slots()
        self.looked_to = INT64_MIN

    def catch_up(self, slots: Slots, rows: Rows) -> None:
        """Look at all slots that were not looked at, but for the last one: nothing follows it."""
        if self.looked_to == slots.top:
            return
        epoch = self.epoch
        before, offset, following = b"", INT64_MIN, INT64_MIN
        was_empty = 0  # one that may have an index ends nothing: no walk passes it
        for at, uuid in slots.since(self.looked_to):
            row = rows[uuid]
            is_empty, end, epoch_count = unpack_walked(row, TXN_INDEX_EMPTY_AT)
            last = end if epoch_count == ONE_EPOCH else _last_of(row, epoch)
            if was_empty and not (is_empty and following == at <= last):
                self.ends.put(offset, before)
            was_empty = is_empty
            before = uuid
            offset = at
            following = end + 1
        self.looked_to = offset

    def changed(self, offset: int, slots: Slots, rows: Rows) -> None:
        """The slot of *offset* was filled or emptied, or all from there on were; some are left."""
        top = slots.top
        assert top is not None
        ends = self.ends
        if self.looked_to > top:
            self.looked_to = top
            while ends.top is not None and ends.top >= top:
                ends.pop_last()
        if ends.top is not None and ends.top >= offset:
            ends.remove(offset)
        found = slots.floor_slot(offset)
        if found is not None and found[0] == offset:
            self._look_at(found, slots, rows)
            found = slots.floor_slot(offset - 1)
        if found is not None:
            self._look_at(found, slots, rows)

    def _look_at(self, slot: tuple[int, bytes], slots: Slots, rows: Rows) -> None:
        """Note whether *slot* ends a stretch, if it was looked at before."""
        offset, uuid = slot
        if offset >= self.looked_to:
            return
        if self._ends(offset, uuid, slots, rows):
            self.ends.put(offset, uuid)
        elif self.ends.top is not None:
            self.ends.remove(offset)

    def _ends(self, offset: int, uuid: bytes, slots: Slots, rows: Rows) -> bool:
        row = rows[uuid]
        if not row[TXN_INDEX_EMPTY_AT]:
            return False
        following = end_of(row) + 1
        after = slots.get(following)
        if after is None or slots.above(offset) != following:
            return True
        row = rows[after]
        return not row[TXN_INDEX_EMPTY_AT] or _last_of(row, self.epoch) < following

    def end_from(self, offset: int, slots: Slots) -> tuple[int, bytes] | None:
        """Return the slot that ends the stretch of *offset*'s slot, when all were looked at."""
        at = self.ends.above(offset - 1)
        if at is None:
            at = slots.top
        return None if at is None else slots.floor_slot(at)

    def missing(self, slots: Slots, rows: Rows) -> list[int]:
        """Return the slots that end a stretch and are not noted; the checker uses it."""
        return [
            offset
            for offset, uuid in slots
            if offset < self.looked_to
            and self.ends.get(offset) != uuid
            and self._ends(offset, uuid, slots, rows)
        ]


def _last_of(row: bytes, epoch: int) -> int:
    covered = epoch_range(row, epoch)
    return INT64_MIN if covered is None else covered[1]
