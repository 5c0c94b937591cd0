"""Time in these tests passes at once: pauses of ten seconds take none."""

from __future__ import annotations

from tests.support.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories() -> dict[str, type[VirtualTimeLoop]]:
    return {"virtual time": VirtualTimeLoop}
