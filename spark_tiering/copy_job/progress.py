"""How far a job is: what is done of what is planned, how fast, and when it may be over. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTE = 1_000_000


class Progress(NamedTuple):
    """Progress of a job; *bytes* are those of logs at the source."""

    segments: int
    segments_total: int
    failed: int
    bytes: int
    bytes_total: int
    elapsed_s: float

    @property
    def bytes_per_s(self) -> float:
        """Bytes in a second since the first copy began."""
        return self.bytes / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest takes at this pace; None before the first copy."""
        if self.bytes_total <= self.bytes:
            return 0.0
        pace = self.bytes_per_s
        return None if pace <= 0 else (self.bytes_total - self.bytes) / pace

    def line(self) -> str:
        left_s = self.left_s
        text = (
            f"{self.segments} of {self.segments_total} segments, "
            f"{self.bytes / MEGABYTE:.1f} of {self.bytes_total / MEGABYTE:.1f} MB, "
            f"{self.bytes_per_s / MEGABYTE:.1f} MB/s"
        )
        if self.failed:
            text += f", {self.failed} not copied"
        return text if left_s is None else f"{text}, {span_text(left_s)} left"


class ProgressMeter:
    def __init__(
        self,
        segments_total: int,
        bytes_total: int,
        now_s: Callable[[], float],
        listener: Callable[[Progress], None],
    ) -> None:
        self._total = (segments_total, bytes_total)
        self._now_s = now_s
        self._listener = listener
        self._began_s = now_s()
        self._segments = self._failed = self._bytes = 0

    def came_back(self, size_bytes: int, *, is_done: bool) -> None:
        if is_done:
            self._segments += 1
            self._bytes += size_bytes
        else:
            self._failed += 1
        self.tell()

    def tell(self) -> None:
        self._listener(self.progress())

    def progress(self) -> Progress:
        segments_total, bytes_total = self._total
        return Progress(
            self._segments,
            segments_total,
            self._failed,
            self._bytes,
            bytes_total,
            self._now_s() - self._began_s,
        )


def span_text(seconds: float) -> str:
    """Return a time as people say it: 41 s, 12 min, 3 h 05 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"
