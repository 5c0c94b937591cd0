"""
The stop mark of a job in the store: each unit looks for it before it begins, on every executor. The
driver alone would learn of it too late: the waiting units would have begun.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rlmm.errors import StoreError
from spark_tiering.executor.limited_io import UnitEnd
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.stores.results import ObjectFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.executor.limited_io import UnitLimits
    from spark_tiering.stores.protocol import ObjectStore

UNMARKED_AGE_S: Final = 1.0
"""How old may be what this process heard last: a small copy takes less time than asking."""
JOBS_KEPT: Final = 64

_unmarked: dict[str, float] = {}
"""When there was no mark, by its key; workers are used again from unit to unit."""


def require_not_paused(
    key: str, store: ObjectStore, watch: UnitLimits, clock: Callable[[], float] = time.monotonic
) -> None:
    """End the unit where the mark *key* is there; a silent store is no reason to stop."""
    if not key or clock() - _unmarked.get(key, float("-inf")) < UNMARKED_AGE_S:
        return
    watch.ask_apart()
    try:
        found = store.head(key, is_sum_wanted=False)
    except StoreError:
        return
    if isinstance(found, ObjectFacts):
        raise UnitEnd(UnitOutcome.STOPPED, f"the job is told to stop: {key}")
    if len(_unmarked) >= JOBS_KEPT:
        _unmarked.clear()
    _unmarked[key] = clock()
