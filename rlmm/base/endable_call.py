"""A call of one task that other tasks may end before it returns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

T = TypeVar("T")


class EndableCall:
    def __init__(self) -> None:
        self._limit: asyncio.Timeout | None = None

    async def result(self, call: Awaitable[T]) -> T | None:
        """Return the result of *call*, or `None` where `end` came first, which cancels it."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limit = limit
                return await call
        except TimeoutError:
            if not limit.expired():
                raise
            return None
        finally:
            self._limit = None
            del limit  # it knows the task, whose exception may know this frame: a cycle

    def end(self) -> None:
        """End the call that is under way, if there is one."""
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.reschedule(asyncio.get_running_loop().time())
