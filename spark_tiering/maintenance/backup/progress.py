"""How far an export or an import is. Pure but for the clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from spark_tiering.copy_job.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable


class ExportProgress(Progress):
    """Events in a file, of the offsets that there are."""

    def line(self) -> str:
        return f"{self.segments} of {self.segments_total} offsets read"


class AppendProgress(Progress):
    """Events in a log, of those in a file."""

    def line(self) -> str:
        return f"{self.segments} of {self.segments_total} events appended"


class ReadBack(Progress):
    """Events that were found in the log as they are in the file."""

    def line(self) -> str:
        return f"{self.segments} of {self.segments_total} events read back"


class BackupMeter:
    """Tells who listens."""

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
