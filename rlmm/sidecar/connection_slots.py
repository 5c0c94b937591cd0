"""
Places of connections: which one is refused, and which one goes for it, when all are taken.

Clients that have not said hello are displaced, the one that came first of all, so that they keep
no place from a client that says hello at once. Invariant: a TCP connection never takes the last
places, which are kept for the Unix socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.sidecar.connection import ClientConnection

GREETINGS_MAX: Final = 1_024
"""TCP connections before hello, over all addresses, and never more than a quarter of all."""
UNIX_PLACES: Final = 64
"""Places that are kept for the Unix socket, and never more than a quarter of all."""
_SHARE: Final = 4


class ConnectionSlots:
    def __init__(self, connections_max: int, address_greetings_max: int) -> None:
        self.connections_max = connections_max
        self._address_max = address_greetings_max
        self._greetings_max = max(1, min(GREETINGS_MAX, connections_max // _SHARE))
        self._tcp_max = connections_max - min(UNIX_PLACES, connections_max // _SHARE)
        self._taken: set[ClientConnection] = set()
        self._greeting: dict[ClientConnection, None] = {}
        """In the order in which they came."""
        self._by_address: dict[str, dict[ClientConnection, None]] = {}

    def __iter__(self) -> Iterator[ClientConnection]:
        return iter(list(self._taken))

    def __len__(self) -> int:
        return len(self._taken)

    def enter(self, connection: ClientConnection) -> bool:
        """Give a place to *connection*; `False`: there is none, and no other goes for it."""
        address = connection.address
        if address:
            of_address = self._by_address.get(address, {})
            self._keep_below(self._address_max, of_address)
            self._keep_below(self._greetings_max, self._greeting)
        most = self._tcp_max if address else self.connections_max
        while len(self._taken) >= most:
            if not self._displace_first(self._greeting):
                return False
        self._taken.add(connection)
        if address:
            self._greeting[connection] = None
            self._by_address.setdefault(address, {})[connection] = None
        return True

    def greeted(self, connection: ClientConnection) -> None:
        """Note that *connection* has said hello, and is not displaced any more."""
        self._forget(connection)

    def leave(self, connection: ClientConnection) -> None:
        self._taken.discard(connection)
        self._forget(connection)

    def _keep_below(self, most: int, greeting: dict[ClientConnection, None]) -> None:
        while len(greeting) >= most and self._displace_first(greeting):
            pass

    def _displace_first(self, greeting: dict[ClientConnection, None]) -> bool:
        """Cut off the first of *greeting*; return whether there is one."""
        first = next(iter(greeting), None)
        if first is None:
            return False
        self.leave(first)
        first.abort("displaced")
        return True

    def _forget(self, connection: ClientConnection) -> None:
        self._greeting.pop(connection, None)
        of_address = self._by_address.get(connection.address)
        if of_address is not None:
            of_address.pop(connection, None)
            if not of_address:
                del self._by_address[connection.address]
