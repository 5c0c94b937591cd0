"""Time in these tests passes at once: pauses of ten seconds take none. And nothing may block."""

from __future__ import annotations

from tests.support.blocking import nothing_blocks
from tests.support.virtual_time import VirtualTimeLoop

__all__ = ["nothing_blocks"]


def pytest_asyncio_loop_factories() -> dict[str, type[VirtualTimeLoop]]:
    return {"virtual time": VirtualTimeLoop}
