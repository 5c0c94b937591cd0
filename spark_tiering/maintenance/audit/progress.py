"""How far an audit is, step by step. Pure but for the clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from spark_tiering.copy_job.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable


UNKNOWN: Final = -1
"""As a total: nobody knows when it is over."""


class StoreListingProgress(Progress):
    """Objects that were found. How many there are is a guess."""

    def line(self) -> str:
        pace = self.segments / self.elapsed_s if self.elapsed_s > 0 else 0.0
        about = f" of about {self.segments_total}" if self.segments_total > self.segments else ""
        return f"{self.segments}{about} objects found, {pace:.0f} a second"


class MetadataReadProgress(Progress):
    """Objects that were found, while the metadata is read."""

    def line(self) -> str:
        return f"{self.segments} objects found; the metadata is read, {self.elapsed_s:.0f} s so far"


class ComparisonProgress(Progress):
    """Parts, of about as many objects each, that were held beside the metadata."""

    def line(self) -> str:
        return f"{self.segments} of {self.segments_total} parts compared with the metadata"


class OrphanDeletionProgress(Progress):
    """Orphans that were dealt with; of a dry run, too."""

    def line(self) -> str:
        return f"{self.segments} orphans dealt with, {self.failed} of them kept or refused"


class AuditMeter:
    """Counts what came back, and tells who listens."""

    def __init__(
        self,
        listener: Callable[[Progress], None] = lambda _: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._now_s = now_s
        self._began_s = now_s()
        self._found = self._expected = 0
        self._compared = self._parts = 0
        self._dealt = self._kept = 0

    def expect(self, objects: int) -> None:
        """About so many will be found."""
        self._expected = objects

    def found(self, objects: int) -> None:
        if not objects:
            return
        self._found += objects
        total = self._expected if self._expected > self._found else UNKNOWN
        self._tell(StoreListingProgress, self._found, total)

    def asks(self) -> None:
        """All are found, and the metadata is read."""
        self._began_s = self._now_s()
        self._tell(MetadataReadProgress, self._found, UNKNOWN)

    def parts(self, count: int) -> None:
        """In so many parts it is compared."""
        self._parts = count

    def compared(self) -> None:
        self._compared += 1
        self._tell(ComparisonProgress, self._compared, self._parts)

    def dealt(self, *, is_kept: bool) -> None:
        self._dealt += 1
        self._kept += is_kept
        self._tell(OrphanDeletionProgress, self._dealt, UNKNOWN, self._kept)

    def _tell(self, step: type[Progress], done: int, total: int, failed: int = 0) -> None:
        elapsed_s = self._now_s() - self._began_s
        self._listener(step(done, total, failed, 0, 0, elapsed_s))
