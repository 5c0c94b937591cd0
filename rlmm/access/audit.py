"""
The audit log: what clients wrote and took over, and what was refused to them, one line for each.

The event loop only queues an entry; a thread writes it. Invariant: no entry holds a secret, and
an entry that is not written is counted.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.base.log_context import ANSWER
from rlmm.base.threads import in_own_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.access.roles import Client, Peer
    from rlmm.errors import RlmmError

LOGGER: Final = "rlmm.audit"
_log = logging.getLogger(LOGGER)

ENTRIES_MAX: Final = 20_000
"""Entries that wait to be written, some 10 MiB."""
REFUSALS_MAX: Final = 1_000
"""Refusals among them: a flood of these must not push out what was written."""
_TEXT_CHARS_MAX: Final = 500
REFUSED: Final = "refused"


class _Entry(NamedTuple):
    """What the event loop notes; the rest of a log record is made where it is written."""

    at_s: float
    message: str
    fields: Mapping[str, object]

    def record(self) -> logging.LogRecord:
        made = _log.makeRecord(
            LOGGER, logging.INFO, "", 0, self.message, (), None, extra=self.fields
        )
        made.created = self.at_s
        return made


class AuditLog:
    def __init__(self, *, is_on: bool = True) -> None:
        self._is_on = is_on
        self._accepted: deque[_Entry] = deque()
        self._refused: deque[_Entry] = deque()
        self._ring = asyncio.Event()
        self.lost = 0
        """Entries that were not queued, as too many waited."""
        self._lost_told = 0
        self._taking = threading.Lock()
        self.wait_room: Callable[[], bool] = lambda: True
        """Waits until the stream takes an entry; returns false where it takes none for long."""

    def note(self, action: str, client: Client, peer: Peer, **fields: object) -> None:
        """Queue an entry, which no limit of repeated lines holds back; `None` is left out."""
        message = f"audit: {action}"
        self._queue(
            self._accepted,
            ENTRIES_MAX,
            message,
            client,
            peer,
            {**ANSWER, "action": action, **fields},
        )

    def refuse(
        self, action: str, client: Client | None, peer: Peer, error: RlmmError, **fields: object
    ) -> None:
        """
        Queue a refusal; *fields* may have a `reason` other than the code of *error*.

        Lines of one action and reason are limited as repeated lines. A *client* of `None` has not
        been identified.
        """
        told = {
            "action": action,
            "verdict": REFUSED,
            "reason": error.code,
            "error": str(error)[:_TEXT_CHARS_MAX],
            **fields,
        }
        message = f"audit: {action} refused: {told['reason']}"
        self._queue(self._refused, REFUSALS_MAX, message, client, peer, told)

    def _queue(
        self,
        queue: deque[_Entry],
        most: int,
        message: str,
        client: Client | None,
        peer: Peer,
        fields: Mapping[str, object],
    ) -> None:
        if not self._is_on or not _log.isEnabledFor(logging.INFO):
            return
        if len(queue) >= most:
            self.lost += 1
            return
        queue.append(_Entry(time.time(), message, _fields(client, peer, fields)))
        self._ring.set()

    async def run(self) -> None:
        """Write the queued entries in a thread; `flush` writes those that come later."""
        while True:
            await self._ring.wait()
            self._ring.clear()
            if not await in_own_thread("audit log", self.flush):
                self._ring.set()

    def flush(self) -> bool:
        """
        Write the entries that wait, the oldest first. Blocks. Return whether all were written:
        where the stream takes none, they wait on.
        """
        while self.wait_room():
            entry = self._oldest()
            if entry is None:
                self._tell_lost()
                return True
            _log.handle(entry.record())
        return False

    def _oldest(self) -> _Entry | None:
        with self._taking:
            queues = [queue for queue in (self._accepted, self._refused) if queue]
            oldest = min(queues, key=lambda queue: queue[0].at_s, default=None)
            return None if oldest is None else oldest.popleft()

    def _tell_lost(self) -> None:
        lost = self.lost - self._lost_told
        if lost:
            self._lost_told += lost
            _log.warning("%d entries of the audit log were not written: too many waited", lost)


def _fields(
    client: Client | None, peer: Peer, fields: Mapping[str, object]
) -> Mapping[str, object]:
    known: dict[str, object] = {"address": peer.where, "transport": peer.transport}
    if client is not None:
        known |= {"client": client.name, "role": client.role.value, "bound_to": client.broker_id}
    return {name: value for name, value in {**known, **fields}.items() if value is not None}
