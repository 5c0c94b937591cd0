"""
Bytes that connections hold of one kind, with a limit over all connections.

Above the limit the client that holds most loses its largest connection, so that a client which
holds little is not cut off for what others hold.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rlmm.sidecar.settings import SidecarSettings
    from rlmm.sidecar.statistics import FrameServerCounters


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


class ReceivedBytes:
    """Bytes of requests that one connection holds, before its hello of those of all strangers."""

    __slots__ = ("_figures", "_holder", "_settings", "size")

    def __init__(
        self, holder: Holder, settings: SidecarSettings, figures: FrameServerCounters
    ) -> None:
        self._holder = holder
        self._settings = settings
        self._figures = figures
        self.size = 0

    def note(self, size: int, *, is_known: bool, is_closing: bool) -> None:
        """Note what the connection holds now; a connection is cut off where all hold too much."""
        if size == self.size:
            return
        figures, settings = self._figures, self._settings
        held = figures.received if is_known else figures.greeting
        held.hold(self._holder, size)
        self.size = size
        if is_closing or not size:
            return
        if is_known:
            held.keep_below(settings.received_bytes_max, self._holder, "memory")
        else:
            held.keep_below(settings.greeting_bytes_max, self._holder, "greeting")

    def note_hello(self) -> None:
        """What the connection holds is no stranger's any more."""
        self._figures.greeting.hold(self._holder, 0)
        self._figures.received.hold(self._holder, self.size)

    def drop(self) -> None:
        self._figures.received.hold(self._holder, 0)
        self._figures.greeting.hold(self._holder, 0)
