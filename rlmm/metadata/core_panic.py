"""
The panic of the native core as an exception, which is no `Exception`: PyO3's own class for it.

Where an event is applied or an image is read, the core itself turns a panic into a `RuntimeError`.
After a panic under the lock of its state, which may be half changed, it refuses every call with
another one.
"""

from __future__ import annotations

try:
    from rlmm_native import PanicException as CorePanic
except ImportError:

    class CorePanic(BaseException):  # type: ignore[no-redef]  # the same name without the core
        """Never raised: the core is not installed."""


__all__ = ["CorePanic"]
