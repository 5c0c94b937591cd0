"""The import: it reads a file, compares the log, appends and reads back; a repeat continues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import ConfigError
from spark_tiering.maintenance.backup.files import open_backup
from spark_tiering.maintenance.backup.records import SkippedRecords, rows_of
from spark_tiering.maintenance.backup.report import LOST_MAX, ImportReport
from spark_tiering.maintenance.backup.rows import BackupExtent, BackupRow, LostOffsets
from spark_tiering.maintenance.backup.targets import open_target
from spark_tiering.reporting.progress import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from spark_tiering.maintenance.backup.files import Backup
    from spark_tiering.maintenance.backup.targets import BackupTarget
    from spark_tiering.tier_metadata.opening import AccessSettings

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
    """
    Return how many of the *expected* records a log holds, whose records are *present*. It may hold
    only the first ones, in order, as a stopped import leaves them. Times are not compared: a topic
    may be configured to set its own.
    """
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


GROUP_ROWS: Final = 500
GROUP_BYTES: Final = 256 * 1024
"""Size of records that are appended together; every log takes a batch of this size."""


@dataclass
class _Seen:
    lost: list[LostOffsets] = field(default_factory=list)

    def see(self, row: BackupRow | LostOffsets) -> None:
        if isinstance(row, LostOffsets) and len(self.lost) < LOST_MAX:
            self.lost.append(row)


def import_backup(
    access: AccessSettings,
    path: Path,
    *,
    is_applied: bool,
    is_other_cluster: bool = False,
    why_stop: Callable[[], str] = lambda: "",
    meter: Meter | None = None,
) -> ImportReport:
    """
    Append the events of *path* to the log of *access*, or report what that would append. Raise
    `ConfigError`, with nothing appended, for a file that is no whole backup, for a log with another
    number of partitions or of another cluster, and for a log that holds anything but the first
    records of the same backup.
    """
    seen = _Seen()
    backup = open_backup(path, seen.see)
    with open_target(access, backup.header.identity, is_written=is_applied) as target:
        _require_same(backup, target, is_other_cluster=is_other_cluster)
        if deletes := target.deletes():
            # Events keep their times, so the old ones would go at once.
            raise ConfigError(f"{target.where} would delete what is imported: {deletes}")
        present = _present(backup, target)
        report = ImportReport(
            str(path), target.where, backup.header, backup.footer, target.identity, is_applied,
            present=sum(present.values()), lost=seen.lost,
        )  # fmt: skip
        if not is_applied:
            _foretell(backup, target, present, report)
            return report
        meter = meter or Meter()
        _append(backup, target, present, report, why_stop, meter)
        if not report.stopped_by:
            _read_back(backup, target, report, meter)
            target.finish()
    return report


def _require_same(backup: Backup, target: BackupTarget, *, is_other_cluster: bool) -> None:
    ours, theirs = target.identity, backup.header.identity
    if ours.partition_count != theirs.partition_count:
        msg = (
            f"{target.where} has {ours.partition_count} metadata partitions, the backup is of"
            f" {theirs.partition_count}: user partitions live elsewhere there"
        )
        raise ConfigError(msg)
    if ours.cluster_id != theirs.cluster_id and theirs.cluster_id and not is_other_cluster:
        msg = (
            f"{target.where} is of cluster {ours.cluster_id}, the backup of {theirs.cluster_id}:"
            " where that is meant, say --other-cluster"
        )
        raise ConfigError(msg)


def _present(backup: Backup, target: BackupTarget) -> dict[int, int]:
    """Return by partition how many first records the log holds, or raise `ConfigError`."""
    extents = target.extents()
    unseen = {place for place, one in extents.items() if one.first_offset < one.next_offset}
    found: dict[int, int] = {}
    if not unseen:
        return found
    for place, rows in backup.places():
        if place not in unseen:
            continue
        unseen.remove(place)
        there = rows_of(target.read, place, extents[place], SkippedRecords())
        outcome = begun(_records(rows), there)
        if outcome.why_not:
            raise _foreign(target, place, outcome.why_not)
        found[place] = outcome.records
    for place in sorted(unseen):
        for one in rows_of(target.read, place, extents[place], SkippedRecords()):
            raise _foreign(target, place, f"offset {one.offset} is not in the backup")
    return found


def _foreign(target: BackupTarget, place: int, why: str) -> ConfigError:
    return ConfigError(
        f"{target.where}, metadata partition {place}: {why}; a backup goes into an empty log, or"
        " on behind an import of its own: name another"
    )


def _records(rows: Iterator[BackupRow | LostOffsets]) -> Iterator[BackupRow]:
    return (row for row in rows if isinstance(row, BackupRow))


def _foretell(
    backup: Backup, target: BackupTarget, present: dict[int, int], report: ImportReport
) -> None:
    """Compute the offsets that the events would get."""
    extents, offsets = target.extents(), RestoredOffsets()
    for place, rows in backup.places():
        extent = extents.get(place, BackupExtent(0, 0))
        first = extent.next_offset - present.get(place, 0)
        for number, row in enumerate(_records(rows)):
            offsets.add(place, row.offset, first + number)
    _tell(offsets, report)


def _tell(offsets: RestoredOffsets, report: ImportReport) -> None:
    offsets.close()
    report.moved, report.runs = offsets.moved, offsets.runs


def _append(
    backup: Backup,
    target: BackupTarget,
    present: dict[int, int],
    report: ImportReport,
    why_stop: Callable[[], str],
    meter: Meter,
) -> None:
    for place, rows in backup.places():
        records = _records(rows)
        for _ in range(present.get(place, 0)):
            next(records)
        for group in _groups(records):
            report.stopped_by = why_stop()
            if report.stopped_by:
                return
            offsets = target.append(place, group)
            report.appended += len(offsets)
            there = report.present + report.appended
            meter.reach("events appended", there, backup.footer.records)
            if offsets[-1] - offsets[0] != len(group) - 1:
                raise _foreign(target, place, "another process appends to it at the same time")


def _groups(rows: Iterator[BackupRow]) -> Iterator[list[BackupRow]]:
    group: list[BackupRow] = []
    size_bytes = 0
    for row in rows:
        if group and (len(group) >= GROUP_ROWS or size_bytes + row.size_bytes > GROUP_BYTES):
            yield group
            group, size_bytes = [], 0
        group.append(row)
        size_bytes += row.size_bytes
    if group:
        yield group


def _read_back(backup: Backup, target: BackupTarget, report: ImportReport, meter: Meter) -> None:
    """Compare the log with the backup, and note the new offsets."""
    extents, offsets, seen = target.extents(), RestoredOffsets(), 0
    for place, rows in backup.places():
        there = rows_of(target.read, place, extents[place], SkippedRecords())
        for row in _records(rows):
            found = next(there, None)
            if not isinstance(found, BackupRow) or found.content != row.content:
                raise _foreign(target, place, f"what was appended for {row.offset} is not there")
            report.restamped += found.timestamp_ms != row.timestamp_ms
            offsets.add(place, row.offset, found.offset)
            seen += 1
            if seen % GROUP_ROWS == 0 or seen == backup.footer.records:
                meter.reach("events read back", seen, backup.footer.records)
        for found in there:
            raise _foreign(target, place, f"offset {found.offset} is not of the backup")
    _tell(offsets, report)
