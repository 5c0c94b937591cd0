"""
The comparison of a log with a backup: which of its records the log holds, and where. Pure.

A log takes a backup where it is empty or holds its first records alone, in order, as a stopped
import leaves them. Times are not compared: a topic may be configured to set its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from spark_tiering.maintenance.backup.rows import LostOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.maintenance.backup.rows import BackupRow

RUNS_MAX: Final = 1_000


class OffsetRun(NamedTuple):
    place: int
    offset: int
    """Of the first record, in the backup."""
    new_offset: int
    records: int

    def __str__(self) -> str:
        return (
            f"metadata partition {self.place}: {self.offset} to {self.offset + self.records - 1}"
            f" became {self.new_offset} to {self.new_offset + self.records - 1}"
        )


@dataclass
class RestoredOffsets:
    """The new offsets of a backup's records; runs that kept their offsets are not listed."""

    records: int = 0
    moved: int = 0
    runs: list[OffsetRun] = field(default_factory=list)
    _run: OffsetRun | None = None

    def add(self, place: int, offset: int, new_offset: int) -> None:
        self.records += 1
        run = self._run
        if (
            run is not None
            and run.place == place
            and offset - run.offset == new_offset - run.new_offset == run.records
        ):
            self._run = run._replace(records=run.records + 1)
            return
        self.close()
        self._run = OffsetRun(place, offset, new_offset, 1)

    def close(self) -> None:
        run, self._run = self._run, None
        if run is not None and run.offset != run.new_offset:
            self.moved += run.records
            if len(self.runs) < RUNS_MAX:
                self.runs.append(run)


class RestoredLog(NamedTuple):
    records: int
    """The first records, which the log holds already."""
    why_not: str = ""


def begun(expected: Iterator[BackupRow], present: Iterator[BackupRow | LostOffsets]) -> RestoredLog:
    """Return how many of the *expected* records a log holds whose records are *present*."""
    count = 0
    for found in present:
        wanted = next(expected, None)
        if wanted is None:
            return RestoredLog(count, f"offset {found.offset} is there, and the backup has no such")
        if isinstance(found, LostOffsets) or found.content != wanted.content:
            why = f"offset {found.offset} holds another record than {wanted.offset} had"
            return RestoredLog(count, why)
        count += 1
    return RestoredLog(count)
