"""Snapshots without a service: each engine reads its log to the end and writes its snapshots."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from rlmm.engine.service import Service, SnapshotOutcome
from rlmm.errors import NotReady, PartFailed, RlmmError, SnapshotError, Unresolved, first_of
from rlmm.snapshot.snapshot_writer import FlushResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.engine.engine import Engine
    from rlmm.engine.plan import EnginePlan

_log = logging.getLogger(__name__)

READING_SHARE = 0.8
"""Share of the time for reading; the state of that moment is written."""


async def write_snapshots_once(
    plans: Sequence[EnginePlan], wait_s: float
) -> dict[str, SnapshotOutcome]:
    """
    Read the logs of *plans*, of observers, and write snapshots, within *wait_s* in all.

    Raises nothing for one of them: its obstacle is in its result.
    """
    end_s = asyncio.get_running_loop().time() + wait_s
    done = await asyncio.gather(*(_written(plan, wait_s, end_s) for plan in plans))
    return {plan.name: asked for plan, asked in zip(plans, done, strict=True)}


async def _written(plan: EnginePlan, wait_s: float, end_s: float) -> SnapshotOutcome:
    assert plan.is_observer, plan.name
    try:
        return await _write(plan, wait_s, end_s)
    except TimeoutError:
        obstacle: RlmmError = NotReady(f"the log was not opened in {wait_s:g} s")
    except Exception as error:  # noqa: BLE001 - the others have results
        first = first_of(error)
        if isinstance(first, RlmmError):
            obstacle = first
        else:
            _log.error("%s has failed", plan.name, exc_info=first)
            obstacle = PartFailed(f"{plan.name} has failed: {type(first).__name__}: {first}")
    return SnapshotOutcome(FlushResult(obstacle=obstacle), ())


async def _write(plan: EnginePlan, wait_s: float, end_s: float) -> SnapshotOutcome:
    service = Service({})
    try:
        async with asyncio.timeout_at(end_s):
            engine = await service.add(plan)
        running = asyncio.create_task(service.run(), name=f"once {plan.name}")
        try:
            left_s = end_s - asyncio.get_running_loop().time()
            timeout_s = max(0.0, round(left_s - wait_s * (1 - READING_SHARE), 3))
            not_ready = await engine.wait_all_ready(timeout_s=timeout_s)
            return SnapshotOutcome(await _flushed(engine, wait_s, end_s), tuple(not_ready))
        except Unresolved:
            if running.done():
                await running  # what it has died of says more
            raise
        finally:
            service.refuse("it is done")
            running.cancel()
            await asyncio.wait([running])
    finally:
        await service.close()


async def _flushed(engine: Engine, wait_s: float, end_s: float) -> FlushResult:
    """Flush one partition after the other; when the time is up the rest have failed."""
    written: list[int] = []
    unchanged: list[int] = []
    failed: dict[int, SnapshotError] = {}
    for place in sorted(engine.read_token()):
        try:
            async with asyncio.timeout_at(end_s):
                await asyncio.sleep(0)
                found = await engine.flush([place])
        except TimeoutError:
            failed[place] = SnapshotError(f"not written in {wait_s:g} s")
            continue
        if found.obstacle is not None:
            return found
        written += found.written
        unchanged += found.unchanged
        failed |= found.failed
    return FlushResult(tuple(written), tuple(unchanged), (), failed)
