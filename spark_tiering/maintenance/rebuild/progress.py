"""How far a rebuild is, or the publishing of its file. Pure but for the clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from spark_tiering.copy_job.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN: Final = -1
"""As a total: nobody knows when it is over."""


class ListingProgress(Progress):
    """Sets of objects that were listed."""

    def line(self) -> str:
        return f"{self.segments} segments' objects listed"


class ManifestProgress(Progress):
    """Manifests that were read, of those that are listed so far."""

    def line(self) -> str:
        pace = self.segments / self.elapsed_s if self.elapsed_s > 0 else 0.0
        return f"{self.segments} of {self.segments_total} manifests read, {pace:.0f} a second"


class PublishProgress(Progress):
    """Segments of a file that were dealt with."""

    def line(self) -> str:
        text = f"{self.segments + self.failed} of {self.segments_total} segments dealt with"
        return f"{text}, {self.failed} not published" if self.failed else text


class RebuildMeter:
    """Counts what came back, and tells who listens."""

    def __init__(
        self,
        listener: Callable[[Progress], None] = lambda _: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._now_s = now_s
        self._began_s = now_s()
        self._listed = self._read = 0

    def listed(self, sets: int) -> None:
        self._listed += sets
        self._tell(ListingProgress, self._listed, UNKNOWN)

    def read(self, sets: int) -> None:
        """The manifests of so many more are read."""
        self._read += sets
        self._tell(ManifestProgress, self._read, self._listed)

    def dealt(self, published: int, failed: int, total: int) -> None:
        """So far with so many segments of a file."""
        self._tell(PublishProgress, published, total, failed)

    def _tell(self, step: type[Progress], done: int, total: int, failed: int = 0) -> None:
        elapsed_s = self._now_s() - self._began_s
        self._listener(step(done, total, failed, 0, 0, elapsed_s))
