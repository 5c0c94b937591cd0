"""Freshness of an answer: waits for events before a question; one deadline covers all waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition

_LEAST_S = 0.001
"""Time to ask the log after the deadline, so that the caller gets the log's refusal."""


async def wait_fresh(
    engine: Engine,
    partitions: Collection[TopicIdPartition],
    at_least: Mapping[int, int] | None = None,
    *,
    linearizable: bool = False,
    timeout_s: float | None = None,
) -> None:
    """
    Wait for the offsets of *at_least*, and with *linearizable* for the log ends of *partitions*.
    `None` as *timeout_s* means the engine's setting.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + engine.limit_s(timeout_s)
    if at_least:
        await engine.wait_reached(at_least, timeout_s=timeout_s)
    if linearizable and partitions:
        left_s = max(_LEAST_S, deadline_s - loop.time())
        await engine.wait_current(*partitions, timeout_s=left_s)
