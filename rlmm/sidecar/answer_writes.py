"""
Answers of one connection: written together, and counted until the system has taken them.

Invariant: a client that leaves more than `sidecar.write_buffer_bytes_max` is blocked until it has
taken everything; above `sidecar.unsent_bytes_total_max` of all clients, the one that leaves most
loses a connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.sidecar.held_bytes import Holder
    from rlmm.sidecar.settings import SidecarSettings
    from rlmm.sidecar.statistics import FrameServerCounters


class AnswerWrites:
    __slots__ = (
        "_figures", "_has_unsent", "_holder", "_later", "_pause", "_settings",
        "_transport", "blocked_s",
    )  # fmt: skip

    def __init__(
        self,
        holder: Holder,
        settings: SidecarSettings,
        figures: FrameServerCounters,
        pause: Callable[[], None],
    ) -> None:
        """*pause* stops reading from the client."""
        self._holder = holder
        self._settings = settings
        self._figures = figures
        self._pause = pause
        self._transport: Any = None
        self._later: list[bytes] = []
        """Answers of requests that waited, to be written together."""
        self._has_unsent = False
        self.blocked_s: float | None = None
        """Since when the client leaves too much, by the event loop's clock."""

    def begin(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=1, low=0)

    def write(self, frames: list[bytes]) -> None:
        joined = frames[0] if len(frames) == 1 else b"".join(frames)
        self._figures.bytes_out += len(joined)
        self._transport.write(joined)
        if self._has_unsent:
            self._count()

    def write_later(self, frame: bytes) -> None:
        if not self._later:
            asyncio.get_running_loop().call_soon(self.flush)
        self._later.append(frame)

    def flush(self) -> None:
        if self._later and not self._transport.is_closing():
            frames, self._later = self._later, []
            self.write(frames)

    def note_unsent(self) -> None:
        """The transport keeps answers that the system did not take."""
        self._has_unsent = True
        self._count()

    def note_all_sent(self) -> bool:
        """Return whether the client was blocked."""
        self._has_unsent = False
        self._figures.unsent.hold(self._holder, 0)
        was_blocked, self.blocked_s = self.blocked_s is not None, None
        return was_blocked

    def drop(self) -> None:
        self._later.clear()
        self._figures.unsent.hold(self._holder, 0)
        self._transport = None

    def _count(self) -> None:
        size, unsent = self._transport.get_write_buffer_size(), self._figures.unsent
        unsent.hold(self._holder, size)
        if size > self._settings.write_buffer_bytes_max and self.blocked_s is None:
            self.blocked_s = asyncio.get_running_loop().time()
            self._figures.slow_clients += 1
            self._pause()
        unsent.keep_below(self._settings.unsent_bytes_total_max, self._holder, "unsent")
