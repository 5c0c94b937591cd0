"""
Kept orders of listings by page: bounded over all user partitions of one engine.

Time is counted in turns: pages requested and record sets applied. The least recently used order
goes when there are too many, an unused one after a while; readers get it made anew. An order that
is in the making and was used a moment ago stays, so every reader gets on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.metadata.paging import KeptOrder

ORDERS_MAX: Final = 64
ORDERS_OF_PARTITION_MAX: Final = 8
"""Orders of one user partition: each of its events is put into all of them."""
ABANDONED_TURNS: Final = 100_000
AWAITED_TURNS: Final = 1_000
"""The same for an order whose reader was asked to come again."""


class PageOrderCache:
    __slots__ = ("_by_turn", "_turn")

    def __init__(self) -> None:
        self._turn = 0
        self._by_turn: WeakValueDictionary[int, KeptOrder] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._by_turn)

    def pass_turn(self) -> None:
        """Count a page or a record set; give up abandoned orders."""
        self._turn += 1
        if self._by_turn:
            turn, order = next(iter(self._by_turn.items()), (self._turn, None))
            if order is not None and self._turn - turn > ABANDONED_TURNS:
                self.give_up(order)

    def note_request(self, order: KeptOrder) -> None:
        self._by_turn.pop(order.turn, None)
        order.turn = self._turn
        self._by_turn[self._turn] = order

    def make_room(self, of_partition: Sequence[KeptOrder]) -> bool:
        """Give up the least recently used order, of *of_partition* first; false if none may go."""
        if len(of_partition) >= ORDERS_OF_PARTITION_MAX and not self._give_up_oldest(of_partition):
            return False
        return len(self) < ORDERS_MAX or self._give_up_oldest(list(self._by_turn.values()))

    def give_up(self, order: KeptOrder) -> None:
        self._by_turn.pop(order.turn, None)
        order.give_up()

    def _give_up_oldest(self, orders: Sequence[KeptOrder]) -> bool:
        for order in orders:
            if not order.is_awaited or self._turn - order.turn > AWAITED_TURNS:
                self.give_up(order)
                return True
        return False
