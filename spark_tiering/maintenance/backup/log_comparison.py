"""
How far a log holds a backup already, and which offsets its records have there. Pure.

A log takes a backup where it holds nothing, or nothing but the first records of it, in order: what
an import has left that was broken off. Times are not compared there: a topic may be set to give
records its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from spark_tiering.maintenance.backup.rows import LostOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.maintenance.backup.rows import BackupRow

RUNS_MAX: Final = 1_000
"""Moved stretches of offsets that are told one by one."""


class OffsetRun(NamedTuple):
    """So many records in a row, that moved together."""

    place: int
    offset: int
    """Of the first, in the backup."""
    new_offset: int
    records: int

    def __str__(self) -> str:
        return (
            f"metadata partition {self.place}: {self.offset} to {self.offset + self.records - 1}"
            f" became {self.new_offset} to {self.new_offset + self.records - 1}"
        )


@dataclass
class RestoredOffsets:
    """Where the records of a backup went; runs that kept their offsets are not told."""

    records: int = 0
    moved: int = 0
    """Records whose offset is another one now."""
    runs: list[OffsetRun] = field(default_factory=list)
    """The first ones of those that moved."""
    _run: OffsetRun | None = None

    def add(self, place: int, offset: int, new_offset: int) -> None:
        """The next record, in the order of the backup."""
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
        """There is none behind the last."""
        run, self._run = self._run, None
        if run is not None and run.offset != run.new_offset:
            self.moved += run.records
            if len(self.runs) < RUNS_MAX:
                self.runs.append(run)


class RestoredLog(NamedTuple):
    """What a log holds of one metadata partition of a backup."""

    records: int
    """The first ones, that are there already."""
    why_not: str = ""
    """Why the log cannot take the rest."""


def begun(expected: Iterator[BackupRow], present: Iterator[BackupRow | LostOffsets]) -> RestoredLog:
    """How many of the *expected* records a log holds that holds *present*."""
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
