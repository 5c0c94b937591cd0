"""How far a verification is. Pure but for the clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from spark_tiering.copy_job.progress import MEGABYTE, Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.maintenance.verify.values import UnitVerdict


class VerifyProgress(Progress):
    """The same in words of looking: *failed* are segments with something wrong."""

    def line(self) -> str:
        done = self.segments + self.failed
        pace = done / self.elapsed_s if self.elapsed_s > 0 else 0.0
        text = f"{done} of {self.segments_total} segments, {pace:.0f} a second"
        if self.bytes:
            text += f", {self.bytes / MEGABYTE:.1f} MB read"
        return f"{text}, {self.failed} with findings" if self.failed else text


class VerifyMeter:
    """Counts what came back, and tells who listens."""

    def __init__(
        self,
        segments_total: int,
        listener: Callable[[Progress], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = segments_total
        self._listener = listener
        self._now_s = now_s
        self._began_s = now_s()
        self._segments = self._failed = self._bytes = 0

    def came_back(self, verdict: UnitVerdict) -> None:
        self._failed += len(verdict.found)
        self._segments += max(verdict.work.segments - len(verdict.found), 0)
        self._bytes += verdict.work.read_bytes
        elapsed_s = self._now_s() - self._began_s
        self._listener(
            VerifyProgress(self._segments, self._total, self._failed, self._bytes, 0, elapsed_s)
        )
