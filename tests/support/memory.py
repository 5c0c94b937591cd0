"""Memory that a block of a test may take."""

from __future__ import annotations

import tracemalloc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def memory_below(limit_bytes: int) -> Iterator[None]:
    """Check that the block's peak of traced memory stays below *limit_bytes*."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit_bytes
    finally:
        tracemalloc.stop()
