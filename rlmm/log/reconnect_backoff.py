"""
Pauses between attempts to reach a log; a sign of life of the log cuts a pause short.

A broker that connects to us is up, and a pause of ten seconds would delay its first reads. Attempts
keep the first pause between them, however often a sign comes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rlmm.base.backoff import Backoff
from rlmm.base.doorbell import Doorbell

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.base.backoff import Pauses
    from rlmm.log.protocol import MetadataLog


@runtime_checkable
class ReconnectSignal(Protocol):
    """A log that can be unreachable, and takes signs of life: that of a cluster."""

    def wake(self) -> None: ...


def wake(log: MetadataLog) -> None:
    """Report a sign of life of *log*; a log that is never away ignores it."""
    if isinstance(log, ReconnectSignal):
        log.wake()


def loop_now() -> float:
    return asyncio.get_running_loop().time()


class ReconnectBackoff(Backoff):
    """A backoff that is waited out here, unless there is a sign of life before."""

    def __init__(self, pauses: Pauses, now: Callable[[], float] = loop_now) -> None:
        super().__init__(pauses, now)
        self._bell = Doorbell()

    def wake(self) -> None:
        self.begin_anew()
        self._bell.ring()

    async def wait(self) -> None:
        while (remaining_s := self.remaining_s) > 0:
            try:
                async with asyncio.timeout(remaining_s):
                    await self._bell.wait()
            except TimeoutError:
                return
