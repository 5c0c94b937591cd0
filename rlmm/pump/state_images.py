"""State images, copied out of a shard while other tasks have turns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COPY_S = 0.001
"""How long references are copied before other tasks have a turn."""


async def copy_parts(
    steps: Iterator[Callable[[], bytes] | None], now: Callable[[], float]
) -> list[Callable[[], bytes]]:
    """Return all parts of *steps*; see `Shard.freezing`. Nothing may be applied meanwhile."""
    parts: list[Callable[[], bytes]] = []
    begin_s = now()
    for part in steps:
        if part is not None:
            parts.append(part)
        if now() - begin_s > _COPY_S:
            await asyncio.sleep(0)
            begin_s = now()
    return parts
