"""
Turns of connections that have requests in line, in rounds of clients.

A turn of the event loop gives them a few milliseconds in all, whatever their number: reading from
other sockets, and answering their small requests, comes in between. A client with many connections
has one turn in a round, as a client with one; clients before hello share one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict, deque
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

ROUND_S: Final = 0.002
"""How long connections in line are served in one turn of the event loop; the last may end later."""
_CONNECTIONS_MAX: Final = 8
"""In one turn of it: those with nothing but a piece of a large frame to read read it afterwards."""


class TurnTaker(Protocol):
    @property
    def client_name(self) -> str: ...

    def go_on(self) -> None: ...


class RequestScheduler:
    __slots__ = ("_clients", "_is_due", "_is_open", "_long", "_now_s", "_until_s", "_waiting")

    def __init__(self, now_s: Callable[[], float] = perf_counter) -> None:
        self._now_s = now_s
        self._clients: OrderedDict[str, deque[TurnTaker]] = OrderedDict()
        self._long: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting = 0
        self._is_due = False
        self._is_open = False
        self._until_s = 0.0

    def may_begin(self) -> bool:
        """Return whether this turn of the event loop has time for another connection at once."""
        if self._is_open:
            return self._now_s() < self._until_s
        self._is_open = True
        self._until_s = self._now_s() + ROUND_S
        asyncio.get_running_loop().call_soon(self._close)
        return True

    def _close(self) -> None:
        self._is_open = False

    def wait(self, connection: TurnTaker, *, has_begun: bool = False) -> None:
        """
        Call `go_on` of *connection* once, when its turn has come.

        One that *has_begun* a request is the next of its client's: of all that have begun, each
        keeps memory.
        """
        line = self._clients.setdefault(connection.client_name, deque())
        if has_begun:
            line.appendleft(connection)
        else:
            line.append(connection)
        self._waiting += 1
        self._ask_for_round()

    def long_turn(self, client_name: str) -> asyncio.Lock:
        """Return the turn of a client's requests that work in several turns of the event loop."""
        return self._long[client_name]

    def _ask_for_round(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        self._is_due = False
        end_s = self._now_s() + ROUND_S
        for _ in range(min(self._waiting, _CONNECTIONS_MAX)):
            name, line = self._clients.popitem(last=False)
            connection = line.popleft()
            if line:
                self._clients[name] = line
            self._waiting -= 1
            connection.go_on()
            if self._now_s() >= end_s:
                break
        if self._waiting:
            self._ask_for_round()
