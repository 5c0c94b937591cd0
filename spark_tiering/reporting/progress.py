"""The progress of a job: its figures, its line for people, and the meter that counts it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTE = 1_000_000


class Progress(NamedTuple):
    """The progress of one step of a job at one moment."""

    unit: str
    """The words that follow the number: `segments copied`."""
    done: int = 0
    """Those that failed are among them."""
    total: int | None = None
    failed: int = 0
    failed_as: str = "failed"
    bytes: int = 0
    bytes_total: int = 0
    """0 where the total is not known."""
    elapsed_s: float = 0.0

    @property
    def is_last(self) -> bool:
        return self.done == self.total

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Return the time that the rest takes; None while the total or the pace is unknown."""
        done, total = (
            (self.bytes, self.bytes_total) if self.bytes_total else (self.done, self.total)
        )
        if total is None:
            return None
        if done >= total:
            return 0.0
        return (total - done) * self.elapsed_s / done if done and self.elapsed_s > 0 else None

    def line(self) -> str:
        of = "" if self.total is None else f" of {self.total}"
        text = f"{self.done}{of} {self.unit}"
        if self.bytes or self.bytes_total:
            of = f" of {self.bytes_total / MEGABYTE:.1f}" if self.bytes_total else ""
            text += f", {self.bytes / MEGABYTE:.1f}{of} MB, {self.bytes_per_s / MEGABYTE:.1f} MB/s"
        elif self.total is not None and self.elapsed_s > 0:
            text += f", {self.done / self.elapsed_s:.0f} a second"
        if self.failed:
            text += f", {self.failed} {self.failed_as}"
        if self.total is None:
            return f"{text}, {span_text(self.elapsed_s)} so far"
        left_s = self.left_s
        return text if self.is_last or left_s is None else f"{text}, {span_text(left_s)} left"


class Meter:
    """Counts each step of a job by its unit, and passes its progress on to a listener."""

    def __init__(
        self,
        listener: Callable[[Progress], None] = lambda _: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._now_s = now_s
        self._began_s = now_s()
        self._steps: dict[str, Progress] = {}

    def expect(
        self, unit: str, total: int | None, *, bytes_total: int = 0, failed_as: str = "failed"
    ) -> None:
        """Set the total of a step; nothing is passed on."""
        step = self._steps.get(unit) or Progress(unit)
        self._steps[unit] = step._replace(total=total, bytes_total=bytes_total, failed_as=failed_as)

    def add(self, unit: str, done: int = 1, *, failed: int = 0, size_bytes: int = 0) -> None:
        """Count *done* more, of which so many *failed*."""
        step = self._steps.get(unit) or Progress(unit)
        step = self._steps[unit] = step._replace(
            done=step.done + done, failed=step.failed + failed, bytes=step.bytes + size_bytes
        )
        self._listener(step._replace(elapsed_s=self._now_s() - self._began_s))

    def reach(self, unit: str, done: int, total: int, *, failed: int = 0) -> None:
        """Set the progress of a step."""
        step = self._steps.get(unit) or Progress(unit)
        self._steps[unit] = step._replace(done=0, failed=0, total=total)
        self.add(unit, done, failed=failed)

    def restart(self) -> None:
        """Begin to measure the time anew."""
        self._began_s = self._now_s()


def span_text(seconds: float) -> str:
    """Return a time in words: 41 s, 12 min, 3 h 05 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"
