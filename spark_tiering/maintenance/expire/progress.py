"""How far a run is, while segments come to their end. Pure but for the clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from spark_tiering.copy_job.progress import MEGABYTE, Progress, span_text
from spark_tiering.maintenance.expire.execution import ExpireFate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spark_tiering.maintenance.expire.decision import PartitionExpirePlan
    from spark_tiering.maintenance.expire.execution import ExpireReceipt


class DeletionProgress(Progress):
    """The same in words of deletions."""

    def line(self) -> str:
        text = (
            f"{self.segments} of {self.segments_total} segments deleted, "
            f"{self.bytes / MEGABYTE:.1f} MB"
        )
        if self.failed:
            text += f", {self.failed} left"
        left_s = self.left_s
        return text if left_s is None else f"{text}, {span_text(left_s)} to go"


class DeletionMeter:
    """Counts receipts, and tells who listens."""

    def __init__(
        self,
        plans: Sequence[PartitionExpirePlan],
        max_delete: int | None,
        listener: Callable[[Progress], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        doomed = [one.segment.size_bytes for plan in plans for one in plan.doomed][:max_delete]
        self._total = (len(doomed), sum(doomed))
        self._listener = listener
        self._now_s = now_s
        self._began_s = now_s()
        self._segments = self._failed = self._bytes = 0

    def came_back(self, receipts: Sequence[ExpireReceipt]) -> None:
        for one in receipts:
            if one.fate is ExpireFate.DELETED:
                self._segments += 1
                self._bytes += one.segment.size_bytes
            elif one.fate is not ExpireFate.NOT_BEGUN:
                self._failed += 1
        segments_total, bytes_total = self._total
        self._listener(
            DeletionProgress(
                self._segments,
                segments_total,
                self._failed,
                self._bytes,
                bytes_total,
                self._now_s() - self._began_s,
            )
        )
