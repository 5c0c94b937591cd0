"""Progress of making a plan. Pure but for the clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from spark_tiering.copy_job.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable


class ManifestsRead(Progress):
    """Manifests, of those that were listed."""

    def line(self) -> str:
        return f"{self.segments} of {self.segments_total} manifests read"


class PlanningProgress(Progress):
    """User partitions whose segments were decided about."""

    def line(self) -> str:
        return f"{self.segments} of {self.segments_total} partitions planned"


class PlanMeter:
    def __init__(
        self,
        listener: Callable[[Progress], None] = lambda _: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._now_s = now_s
        self._began_s = now_s()

    def tell(self, step: type[Progress], done: int, total: int) -> None:
        self._listener(step(done, total, 0, 0, 0, self._now_s() - self._began_s))
