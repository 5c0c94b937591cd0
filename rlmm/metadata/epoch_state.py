"""
The state of one leader epoch of one user partition: finds the segment that answers for an offset.

Kafka's structures and displacement rules: *slots* map the first offset of a finished segment to its
id; *unreferenced* holds other ids of the epoch (started, being deleted, displaced); *highest* is
the watermark, which only rises. Beyond Kafka: an id that is overwritten in its slot becomes
unreferenced (the rule `kafka-20932`), and finished segments that slots may hide are in *shadowed*,
so that every offset they cover is found (the rule `cover-lookup`).

Invariant of *shadowed*: a finished segment that lists the epoch is in it if it has no slot, or if
another slot's offset lies in its range. Spare entries cost time, never answers. Every change of
slots or watermark is noted in an `Undo` before it is made.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.row import (
    END_AT,
    EPOCHS_AT,
    ONE_EPOCH,
    STATE_AT,
    TXN_INDEX_EMPTY_AT,
    end_of,
    epoch_range,
    finish_of,
    unpack_range,
)
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.slots import Slots
from rlmm.metadata.txn_index_skips import TxnIndexSkips

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Rows = Mapping[bytes, bytes]
    Undo = list[tuple["EpochState", int, bytes | None, int | None]]
    """Epoch, offset of a slot, the id that stood in it, the watermark before."""

_FINISHED = SegmentState.COPY_SEGMENT_FINISHED.value
NOTHING_SHADOWED: frozenset[bytes] = frozenset()
"""Shared by all epochs without overlaps: a set of its own would be a quarter of the memory."""
STEPS_MAX = 64
"""Segments that a search steps over one by one before it makes the stretches of a short epoch."""


class Cover(NamedTuple):
    """Shadowed segments: `ids[i]` answers from `firsts[i]` up to the next; `None` for a gap."""

    firsts: list[int]
    ids: list[bytes | None]


class EpochState:
    __slots__ = (
        "cover",
        "epoch",
        "highest",
        "indexed_count",
        "shadowed",
        "size_bytes",
        "skips",
        "slots",
        "unreferenced",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.slots = Slots()
        self.unreferenced: set[bytes] = set()
        self.shadowed: set[bytes] | frozenset[bytes] = NOTHING_SHADOWED
        self.highest: int | None = None
        self.size_bytes = 0
        self.indexed_count = 0
        """Finished segments that name the epoch and may have a transaction index."""
        self.cover: Cover | None = None
        """Index of the shadowed segments; dropped when one comes, goes or finishes again."""
        self.skips: TxnIndexSkips | None = None
        """Kept where slots fill more than a chunk, or where a search once took long."""

    def finish(self, uuid: bytes, first: int, last: int, rows: Rows, undo: Undo) -> bool:
        """
        Give *uuid*, which covers *first* to *last*, a slot; whether another segment lost its own.
        Kafka's loop: while the watermark is not above *last*, slots from *first* on are emptied,
        largest first.
        """
        highest = self.highest
        slots = self.slots
        top = slots.top
        if top is None or (top < first and highest is not None and highest < first):
            undo.append((self, first, None, highest))
            if slots.append(first, uuid):
                self.find_skips(rows)
            displaced = False
        else:
            displaced = self._displace(uuid, first, last, rows, undo)
        self.unreferenced.discard(uuid)
        if highest is None or highest < last:
            self.highest = last
        if displaced or uuid in self.shadowed:
            self.cover = None
        return displaced

    def _displace(self, uuid: bytes, first: int, last: int, rows: Rows, undo: Undo) -> bool:
        slots, highest = self.slots, self.highest
        losers = []
        if highest is None or highest <= last:
            while slots.top is not None and slots.top >= first:
                undo.append((self, slots.top, slots.get(slots.top), highest))
                losers.append(slots.pop_last())
        before = slots.get(first)
        undo.append((self, first, before, highest))
        is_cut = slots.put(first, uuid)
        if before is not None:
            losers.append(before)
        if self.skips is not None:
            self.skips.changed(first, slots, rows)
        if is_cut:
            self.find_skips(rows)
        others = [loser for loser in losers if loser != uuid]
        self.unreferenced.update(others)
        self.shadow(others)
        self._note_overlap(uuid, first, last, rows)
        return bool(others)

    def _note_overlap(self, uuid: bytes, first: int, last: int, rows: Rows) -> None:
        """Remember the segment that a neighbour's slot may hide: the new one or the one before."""
        after = self.slots.above(first)
        if after is not None and after <= last:
            self.shadow([uuid])
        before = self.slots.floor(first - 1)
        if before is not None:
            covered = epoch_range(rows[before], self.epoch)
            if covered is not None and covered[1] >= first:
                self.shadow([before])
                self.cover = None

    def unmap(self, uuid: bytes, first: int, rows: Rows, undo: Undo) -> None:
        slots = self.slots
        place = slots.find(first)
        if place is not None and slots.at(place) == uuid:
            undo.append((self, first, uuid, self.highest))
            slots.drop(place)
            if slots.top is None:
                self.skips = None
            elif self.skips is not None:
                self.skips.changed(first, slots, rows)
        self.unreferenced.add(uuid)
        if uuid in self.shadowed:
            self.shadowed -= {uuid}
            self.cover = None

    def shadow(self, uuids: Iterable[bytes]) -> None:
        shadowed = self.shadowed
        if not isinstance(shadowed, set):
            shadowed = self.shadowed = set()
        shadowed.update(uuids)

    def find_skips(self, rows: Rows) -> TxnIndexSkips:
        """Derive the stretches of all slots; called whenever a chunk of slots is full."""
        skips = self.skips
        if skips is None:
            skips = self.skips = TxnIndexSkips(self.epoch)
        try:
            skips.catch_up(self.slots, rows)
        except BaseException:
            self.skips = None  # the next look-up that needs them makes them anew
            raise
        return skips

    def derive_overlaps(self, rows: Rows) -> None:
        """Remember every segment whose range reaches the next slot."""
        before: bytes | None = None
        for offset, uuid in self.slots:
            covered = None if before is None else epoch_range(rows[before], self.epoch)
            if before is not None and covered is not None and covered[1] >= offset:
                self.shadow([before])
            before = uuid

    def lookup(self, offset: int, rows: Rows) -> bytes | None:
        """Return the finished segment for *offset*: by slot, else the last finished over it."""
        found = self.row_for(offset, rows)
        return None if found is None else found[0]

    def row_for(self, offset: int, rows: Rows) -> tuple[bytes, bytes] | None:
        """Answer `lookup` with its row: the most frequent question, in as few steps as possible."""
        highest = self.highest
        if highest is None or offset > highest:
            return None  # no finished copy ever reached that far
        uuid = self.slots.floor(offset)
        if uuid is not None:
            row = rows[uuid]
            if row[EPOCHS_AT] == ONE_EPOCH:  # in line what `epoch_range` reads
                last, listed, _ = unpack_range(row, END_AT)
                if offset <= last and listed == self.epoch:
                    return uuid, row
            else:
                covered = epoch_range(row, self.epoch)
                if covered is not None and offset <= covered[1]:
                    return uuid, row
        uuid = self._covering(offset, rows) if self.shadowed else None
        return None if uuid is None else (uuid, rows[uuid])

    def _covering(self, offset: int, rows: Rows) -> bytes | None:
        """Return the shadowed segment finished last that covers *offset*."""
        cover = self.cover
        if cover is None:
            cover = self.cover = self.build_cover(rows)
        at = bisect_right(cover.firsts, offset) - 1
        return None if at < 0 else cover.ids[at]

    def build_cover(self, rows: Rows) -> Cover:
        """Index the shadowed segments; made at the first look-up that needs it after a change."""
        entries = []
        for uuid in self.shadowed:
            row = rows[uuid]
            covered = epoch_range(row, self.epoch)
            if covered is not None and row[STATE_AT] == _FINISHED and covered[0] <= covered[1]:
                entries.append((*covered, -finish_of(row), uuid))
        entries.sort(reverse=True)
        cover = Cover([], [])
        open_entries: list[tuple[int, int, bytes]] = []
        bounds = {first for first, *_ in entries} | {last + 1 for _, last, *_ in entries}
        for bound in sorted(bounds):
            while entries and entries[-1][0] == bound:
                _, last, finish, uuid = entries.pop()
                heappush(open_entries, (finish, last, uuid))  # the one finished last on top
            while open_entries and open_entries[0][1] < bound:
                heappop(open_entries)
            cover.firsts.append(bound)
            cover.ids.append(open_entries[0][2] if open_entries else None)
        return cover

    def next_with_txn_index(self, offset: int, rows: Rows) -> bytes | None:
        """
        Return the next finished segment that may have a transaction index, as a walk would. The
        walk looks up *offset*, then the offset behind the segment, and so on; stretches are passed
        in one step.
        """
        if self.indexed_count == 0:
            return None
        steps = 0
        while offset <= INT64_MAX:
            uuid = self.lookup(offset, rows)
            if uuid is None:
                return None
            row = rows[uuid]
            if not row[TXN_INDEX_EMPTY_AT]:
                return uuid
            steps += 1
            if self.skips is not None or steps > STEPS_MAX:
                slot = self.slots.floor_slot(offset)
                if slot is not None and slot[1] == uuid:
                    end = self.find_skips(rows).end_from(slot[0], self.slots)
                    if end is not None and end[0] > offset:
                        offset, row = end[0], rows[end[1]]
            following = end_of(row) + 1
            if following <= offset:
                # An epoch may be listed with offsets behind the end; Kafka's walk never ends there.
                return None
            offset = following
        return None
