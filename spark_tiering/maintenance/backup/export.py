"""The export of every metadata partition, up to the end that it had when the export began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import LogError
from rlmm.metadata.decoding import decode
from rlmm.metadata.verdicts import Undecodable
from spark_tiering.maintenance.backup.files import writing
from spark_tiering.maintenance.backup.records import READ_BYTES, SkippedRecords, rows_of
from spark_tiering.maintenance.backup.report import LOST_MAX, BackupExportReport, ExportedPartition
from spark_tiering.maintenance.backup.rows import BackupExtent, BackupHeader, BackupRow
from spark_tiering.reporting.progress import Meter

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.maintenance.backup.rows import LostOffsets
    from spark_tiering.maintenance.tier import Tier, TierLog


def export_backup(tier: Tier, path: Path, meter: Meter | None = None) -> BackupExportReport:
    """
    Write every event of the metadata topic into the new file *path*. A metadata partition that
    cannot be read at all is reported, and the others are written; an error in the middle of a
    partition ends the export, and leaves no file.
    """
    log = tier.log
    header = header_of(log)
    report = BackupExportReport(str(path), header)
    meter, seen = meter or Meter(), 0
    total = sum(_length(one) for one in header.extents.values())
    with writing(path, header) as into:
        for place, extent in sorted(header.extents.items()):
            exported, passed = ExportedPartition(extent), SkippedRecords()
            report.places[place] = exported
            read = lambda at, position: log.read(at, position, bytes_max=READ_BYTES)  # noqa: E731
            for row in rows_of(read, place, extent, passed):
                into.add(row)
                _count(report, exported, row)
                if into.digest.records % 1_000 == 0:
                    meter.reach("offsets read", seen + row.offset - extent.first_offset, total)
            seen += _length(extent)
            if extent.first_offset < extent.next_offset:
                meter.reach("offsets read", seen, total)
            exported.holes, exported.control = passed.holes, passed.control
        report.footer = into.digest.footer
    return report


def header_of(log: TierLog) -> BackupHeader:
    """Return the identity of the log, and the extent of each metadata partition now."""
    identity = log.identity()
    extents: dict[int, BackupExtent] = {}
    missing: dict[int, str] = {}
    first: LogError | None = None
    for place, found in log.bounds(range(identity.partition_count)).items():
        if isinstance(found, LogError):
            missing[place] = str(found)
            first = first or found
        else:
            extents[place] = BackupExtent(found.log_start_offset, found.high_watermark)
    if first is not None and not extents:
        raise first
    return BackupHeader(identity, extents, missing)


def _length(extent: BackupExtent) -> int:
    return extent.next_offset - extent.first_offset


def _count(
    report: BackupExportReport, exported: ExportedPartition, row: BackupRow | LostOffsets
) -> None:
    if not isinstance(row, BackupRow):
        exported.lost += row.next_offset - row.offset
        if len(report.lost) < LOST_MAX:
            report.lost.append(row)
        return
    exported.records += 1
    if row.value is None:
        report.tombstones += 1
    elif isinstance(decode(row.value), Undecodable):
        report.undecodable += 1
