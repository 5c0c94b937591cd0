"""Streams of items that are cut short, and those of which the first item was waited for."""

from __future__ import annotations

from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

T = TypeVar("T")


async def with_first(first: T | None, rest: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Yield *first* and *rest*; nothing where there is no first."""
    async with aclosing(rest):
        if first is not None:
            yield first
            async for item in rest:
                yield item


async def first_of(items: AsyncGenerator[T], limit: int | None) -> AsyncGenerator[T]:
    """Yield the first *limit* items; None: all."""
    left = limit
    async with aclosing(items):
        async for item in items:
            yield item
            left = None if left is None else left - 1
            if left == 0:
                return


async def last_of(items: AsyncGenerator[T], limit: int) -> AsyncGenerator[T]:
    """Yield the last *limit* items; no more than these are held."""
    held: deque[T] = deque(maxlen=limit)
    async with aclosing(items):
        async for item in items:
            held.append(item)
    for item in held:
        yield item
