"""All engines of a process at a time. A failure or a disk that hangs stops no other engine."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.log_context import ANSWER, bound

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AsyncExitStack

    from rlmm.engine.engine import Engine
    from rlmm.snapshot.snapshot_writer import FlushResult

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


async def flush_all(engines: Mapping[str, Engine]) -> dict[str, FlushResult]:
    """Write a snapshot of everything that changed, in all engines at a time; return the results."""
    engines = dict(engines)
    done = await asyncio.gather(*map(_flush, engines, engines.values()), return_exceptions=True)
    return _all_of(dict(zip(engines, done, strict=True)), "while its snapshots were written")


async def close_all(opened: Mapping[str, AsyncExitStack]) -> None:
    opened = dict(opened)
    done = await asyncio.gather(*map(close_engine, opened, opened.values()), return_exceptions=True)
    _all_of(dict(zip(opened, done, strict=True)), "while it was closed")


async def close_engine(cluster: str, opened: AsyncExitStack) -> None:
    with bound(cluster=cluster):
        await opened.aclose()


async def _flush(name: str, engine: Engine) -> FlushResult:
    task = asyncio.current_task()
    if task is not None:
        task.set_name(f"snapshots of {name}")  # to be named where it hangs
    with bound(cluster=name):
        done = await engine.flush()
    extra = {"cluster": name, **ANSWER}
    if done.obstacle is not None:
        _log.info("engine %s: no snapshots written: %s", name, done.obstacle, extra=extra)
        return done
    _log.info(
        "engine %s: %d snapshots written, %d unchanged, %d failed",
        name, len(done.written), len(done.unchanged), len(done.failed), extra=extra,
    )  # fmt: skip
    return done


def _all_of(results: Mapping[str, Result | BaseException], when: str) -> dict[str, Result]:
    failed = [(name, one) for name, one in results.items() if isinstance(one, BaseException)]
    for name, error in failed:
        _log.error("%s: %s: %r", name, when, error, extra={"cluster": name})
    if failed:
        raise failed[0][1]
    return {name: one for name, one in results.items() if not isinstance(one, BaseException)}
