"""
Memory that is freed goes back to the system.

glibc maps large pieces one by one and unmaps them when they are freed. But it takes the size of a
freed piece as its new limit, up to 32 MiB: after one large frame, all smaller ones share the heap,
where small pieces between them keep the memory of freed ones.
"""

from __future__ import annotations

import ctypes
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 128 * 1024
"""glibc's own default: pieces from this size on are mapped one by one."""


def give_back_freed_memory() -> bool:
    """Fix glibc's limit for this process; return whether this is glibc."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES))
    except (AttributeError, OSError):
        return False
