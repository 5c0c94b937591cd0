"""
Paging through the segments of one user partition while they change.

A page continues behind a segment, by start offset and then by id, whether that segment is there or
not, so a segment that lives through the whole paging is shown once. An order is made in pieces for
the first page and kept up until the last reader's last page, until as much changed as it holds, or
until there are too many (`page_order_cache`).

Invariant of an order: it holds every listed segment that is not still ahead, once, and no other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.metadata.ids import Uuid, trusted_segment_id
from rlmm.metadata.row import KEPT_AT, epoch_range, segment_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.page_order_cache import PageOrderCache
    from rlmm.metadata.partition_state import PartitionState
    from rlmm.metadata.segment import SegmentMetadata

TAKEN_AT_A_TIME: Final = 1_000
"""Segments that are put in order by one call: about a millisecond."""
CHUNK_MAX: Final = 1024
_START_STOP = KEPT_AT + 8
_OFFSET_SIZE = 8


class PageKey(NamedTuple):
    """The last segment of the page before, as two numbers that a client sends."""

    start_offset: int
    uuid: Uuid


@dataclass(frozen=True, slots=True)
class Page:
    """Some segments of a listing, by rising start offset, then by id."""

    segments: tuple[SegmentMetadata, ...]
    """May be empty although more follow, while the order is being made: ask again with *after*."""
    after: PageKey | None
    is_last: bool
    """Whether nothing followed when this page was made."""


class SortedKeys:
    """Keeps a sorted set of keys; a change of one moves a bounded number of others."""

    __slots__ = ("_chunks", "_lowest")

    def __init__(self) -> None:
        self._chunks: list[list[bytes]] = [[]]
        self._lowest = [b""]
        """A key not above any of the chunk, and above all of the one before."""

    def add(self, key: bytes) -> None:
        number = bisect_right(self._lowest, key) - 1
        chunk = self._chunks[number]
        at = bisect_left(chunk, key)
        if at < len(chunk) and chunk[at] == key:
            return
        chunk.insert(at, key)
        if len(chunk) > CHUNK_MAX:
            # Most keys are appended: the last chunk is cut near its end, and stays full.
            is_appended = number == len(self._chunks) - 1 and at == len(chunk) - 1
            middle = at if is_appended else len(chunk) // 2
            upper = chunk[middle:]
            self._chunks.insert(number + 1, upper)
            self._lowest.insert(number + 1, upper[0])
            del chunk[middle:]

    def discard(self, key: bytes) -> None:
        number = bisect_right(self._lowest, key) - 1
        chunk = self._chunks[number]
        at = bisect_left(chunk, key)
        if at == len(chunk) or chunk[at] != key:
            return
        del chunk[at]
        if not chunk and number:
            del self._chunks[number], self._lowest[number]

    def behind(self, key: bytes) -> Iterator[bytes]:
        number = bisect_right(self._lowest, key) - 1
        chunk = self._chunks[number]
        for at in range(bisect_right(chunk, key), len(chunk)):
            yield chunk[at]
        for later in range(number + 1, len(self._chunks)):
            yield from self._chunks[later]


class KeptOrder:
    """The readers of an order, as far as they are known; `PageOrderCache` bounds all orders."""

    __slots__ = ("__weakref__", "is_awaited", "is_given_up", "reader_count", "turn")

    def __init__(self) -> None:
        self.is_awaited = False
        """Whether a reader was asked to come again, and no page has been given since."""
        self.reader_count = 0
        """Readers with a first page and without the last; one that never returns stays counted."""
        self.is_given_up = False
        """Whether this is not kept up any more; then it is empty, too."""
        self.turn = -1
        """When it was asked for last; `PageOrderCache` counts."""

    def give_up(self) -> None:
        self.is_given_up = True

    def is_done_with(self, *, is_first: bool, is_last: bool) -> bool:
        """Note that a page is given; return whether no reader seems to need the order any more."""
        if is_first and not is_last:
            self.reader_count += 1
        elif is_last and not is_first and self.reader_count:
            self.reader_count -= 1
        is_awaited, self.is_awaited = self.is_awaited, False
        return is_last and not self.reader_count and not is_awaited


class Order(KeptOrder):
    """The segments of one leader epoch, or of all; those still *ahead* are not in it yet."""

    __slots__ = ("ahead", "epoch", "idle_changes", "keys", "size_max")

    def __init__(self, state: PartitionState, epoch: int | None) -> None:
        super().__init__()
        self.epoch = epoch
        self.keys = SortedKeys()
        if epoch is None:
            ids = list(state.rows)
        else:
            entry = state.epochs[epoch]
            ids = [*entry.slots.ids(), *entry.unreferenced]
        self.ahead: Iterator[bytes] | None = iter(ids)
        self.size_max = len(ids)
        self.idle_changes = 0
        """Since a page was asked for."""

    def give_up(self) -> None:
        super().give_up()
        self.keys, self.ahead = SortedKeys(), None

    def go_on(self, state: PartitionState) -> bool:
        """Sort some more ids, without those removed meanwhile; return whether all are sorted."""
        if self.ahead is None:
            return True
        rows, epoch = state.rows, self.epoch
        count = 0
        for uuid in islice(self.ahead, TAKEN_AT_A_TIME):
            count += 1
            row = rows.get(uuid)
            if row is not None and (epoch is None or _lists(state, uuid, row, epoch)):
                self.keys.add(_key(row, uuid))
        if count < TAKEN_AT_A_TIME or not length_hint(self.ahead):
            self.ahead = None
        return self.ahead is None

    def is_forgotten(self) -> bool:
        self.idle_changes += 1
        return self.idle_changes > self.size_max + TAKEN_AT_A_TIME


class Orders:
    """
    The orders of one user partition by leader epoch; `None` is the whole partition. Callers report
    each change of rows; where they cannot name the change, they drop the orders.
    """

    __slots__ = ("_orders",)

    def __init__(self) -> None:
        self._orders: dict[int | None, Order] = {}
        """By leader epoch; the one asked for least recently first."""

    def page(
        self,
        state: PartitionState,
        partition: TopicIdPartition,
        epoch: int | None,
        after: PageKey | None,
        limit: int,
        kept: PageOrderCache,
    ) -> Page:
        kept.pass_turn()
        order = self._orders.pop(epoch, None)
        if order is None or order.is_given_up:
            if not kept.make_room(self._held()):
                return Page((), after, is_last=False)
            order = Order(state, epoch)
        self._orders[epoch] = order
        kept.note_request(order)
        order.idle_changes = 0
        if not order.go_on(state):
            order.is_awaited = True
            return Page((), after, is_last=False)
        found = list(islice(order.keys.behind(_packed(after)), limit + 1))
        is_last = len(found) <= limit
        if order.is_done_with(is_first=after is None, is_last=is_last):
            self._drop(state, epoch)
        ids = [key[_OFFSET_SIZE:] for key in found[:limit]]
        segments = tuple(
            segment_of(trusted_segment_id(partition, uuid), state.rows[uuid]) for uuid in ids
        )
        if segments:
            last = segments[-1]
            after = PageKey(last.start_offset, last.id.uuid)
        return Page(segments, after, is_last=is_last)

    def changed(
        self, state: PartitionState, uuid: bytes, before: bytes | None, after: bytes | None
    ) -> None:
        """The row of *uuid* changed from *before* to *after* (`None`: absent); it is in *state*."""
        if not self._held():
            state.orders = None
        for epoch, order in list(self._orders.items()):
            if before is not None:
                order.keys.discard(_key(before, uuid))
            if after is not None and (epoch is None or _lists(state, uuid, after, epoch)):
                order.keys.add(_key(after, uuid))
            if order.is_forgotten():
                self._drop(state, epoch)

    def _held(self) -> list[Order]:
        given_up = [epoch for epoch, order in self._orders.items() if order.is_given_up]
        for epoch in given_up:
            del self._orders[epoch]
        return list(self._orders.values())

    def _drop(self, state: PartitionState, epoch: int | None) -> None:
        del self._orders[epoch]
        if not self._orders:
            state.orders = None


def page_of(
    state: PartitionState,
    partition: TopicIdPartition,
    epoch: int | None,
    after: PageKey | None,
    limit: int,
    kept: PageOrderCache,
) -> Page:
    """Return at most *limit* next segments behind *after*; *kept* holds the engine's orders."""
    if not state.rows or (epoch is not None and epoch not in state.epochs):
        return Page((), after, is_last=True)
    if state.orders is None:
        state.orders = Orders()
    return state.orders.page(state, partition, epoch, after, limit, kept)


def _lists(state: PartitionState, uuid: bytes, row: bytes, epoch: int) -> bool:
    return epoch_range(row, epoch) is not None or epoch in state.strays.get(uuid, ())


def _key(row: bytes, uuid: bytes) -> bytes:
    """Start offset and id; offsets are never negative, so their bytes sort as they do."""
    return row[KEPT_AT:_START_STOP] + uuid


def _packed(after: PageKey | None) -> bytes:
    if after is None:
        return b""
    return after.start_offset.to_bytes(_OFFSET_SIZE, "big") + after.uuid
