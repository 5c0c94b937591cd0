"""
An engine for one purpose: it reads up to the end of the log, its snapshots are written, it is over.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlmm.errors import Unresolved
from rlmm.service import Service

if TYPE_CHECKING:
    from rlmm.service import EnginePlan
    from rlmm.snapshot.writer import Flushed


@dataclass(frozen=True, slots=True)
class WrittenOnce:
    """What became of the snapshots, and which metadata partitions were not read to their end."""

    flushed: Flushed
    not_ready: tuple[int, ...]


async def write_snapshots_once(plan: EnginePlan, wait_s: float) -> WrittenOnce:
    """
    Read what *plan* names, for *wait_s* at most, and write a snapshot of what was read whole.

    Nothing is written into the log. Raises `NotReady` when it was not even reached.
    """
    service = Service({})
    engine = await service.add(replace(plan, is_observer=True))
    running = asyncio.create_task(service.run(), name="once")
    try:
        not_ready = await engine.wait_all_ready(timeout_s=wait_s)
        return WrittenOnce(await engine.flush(), tuple(not_ready))
    except Unresolved:
        await running  # what it has died of says more
        raise
    finally:
        service.refuse("it is done")
        running.cancel()
        await asyncio.wait([running])
        await service.close()
