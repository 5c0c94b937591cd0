"""
Bytes that connections hold of one kind, with a limit over all connections.

Above the limit the client that holds most loses its largest connection, so that a client which
holds little is not cut off for what others hold.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol


class Holder(Protocol):
    @property
    def client_name(self) -> str: ...

    def abort(self, reason: str | None = None) -> None: ...


class HeldBytes:
    __slots__ = ("_sizes", "total")

    def __init__(self) -> None:
        self._sizes: dict[Holder, int] = {}
        self.total = 0

    def hold(self, holder: Holder, size: int) -> None:
        """Note that *holder* has *size* bytes now; 0 forgets it."""
        self.total += size - self._sizes.pop(holder, 0)
        if size:
            self._sizes[holder] = size

    def keep_below(self, bytes_max: int, newest: Holder, reason: str) -> None:
        """Cut off a connection for *reason* if more is held: of equally large ones *newest*."""
        if self.total <= bytes_max:
            return
        clients: Counter[str] = Counter()
        for holder, size in self._sizes.items():
            clients[holder.client_name] += size
        largest = max(
            self._sizes,
            key=lambda one: (clients[one.client_name], self._sizes[one], one is newest),
        )
        largest.abort(reason)
