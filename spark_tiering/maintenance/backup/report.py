"""The reports of an export and of an import. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rlmm.findings.finding import Finding
from rlmm.findings.tier_findings import RECORDS_LOST, UNREADABLE
from spark_tiering.reporting.report import FindingSample, first_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.log.protocol import LogIdentity
    from spark_tiering.maintenance.backup.import_ import OffsetRun
    from spark_tiering.maintenance.backup.rows import (
        BackupExtent,
        BackupHeader,
        Footer,
        LostOffsets,
    )

VERSION: Final = 1
_RUN: Final = ("partition", "offset", "newOffset", "records")
LOST_MAX: Final = 1_000


@dataclass
class ExportedPartition:
    extent: BackupExtent
    records: int = 0
    holes: int = 0
    control: int = 0
    lost: int = 0

    def fields(self) -> dict[str, Any]:
        return {
            "firstOffset": self.extent.first_offset,
            "nextOffset": self.extent.next_offset,
            "records": self.records,
            "holes": self.holes,
            "control": self.control,
            "lost": self.lost,
        }


@dataclass
class BackupExportReport:
    file: str
    header: BackupHeader
    places: dict[int, ExportedPartition] = field(default_factory=dict)
    footer: Footer | None = None
    undecodable: int = 0
    tombstones: int = 0
    lost: list[LostOffsets] = field(default_factory=list)

    @property
    def is_fine(self) -> bool:
        """Return whether the file has everything that the log holds."""
        return not self.header.missing and not (self.footer and self.footer.lost)

    @property
    def findings(self) -> list[Finding]:
        missing = [
            Finding(UNREADABLE, f"metadata partition {place}", why, fields={"partition": place})
            for place, why in self.header.missing.items()
        ]
        return missing + [lost_finding(one) for one in self.lost]

    def lines(self) -> Iterator[str]:
        assert self.footer is not None
        identity = self.header.identity
        yield (
            f"{self.footer.records} events of {len(self.places)} metadata partitions of cluster"
            f" {identity.cluster_id or 'unknown'} are in {self.file}"
        )
        yield f"sha256 of the events: {self.footer.sha256}"
        if self.undecodable or self.tombstones:
            yield (
                f"{self.undecodable} that cannot be decoded and {self.tombstones} without a"
                " value are kept as they are"
            )
        trimmed = [(n, one) for n, one in self.places.items() if one.extent.first_offset]
        yield from first_lines(
            [
                f"metadata partition {place} begins at offset {one.extent.first_offset}: retention"
                " had deleted the events before"
                for place, one in trimmed
            ],
            "metadata partitions",
        )
        holes = sum(one.holes for one in self.places.values())
        control = sum(one.control for one in self.places.values())
        if holes or control:
            yield (
                f"{holes} offsets are empty, {control} hold markers of transactions: an import"
                " gives the events behind them other offsets"
            )
        yield from FindingSample.of(self.findings).lines()

    def document(self) -> dict[str, Any]:
        assert self.footer is not None
        return {
            "format": "rlmm-tier-backup-export",
            "version": VERSION,
            "file": self.file,
            **identity_fields(self.header.identity),
            "records": self.footer.records,
            "lost": self.footer.lost,
            "undecodable": self.undecodable,
            "tombstones": self.tombstones,
            "sha256": self.footer.sha256,
            "partitions": {str(n): one.fields() for n, one in sorted(self.places.items())},
            "findings": [one.view() for one in self.findings],
        }


@dataclass
class ImportReport:
    file: str
    target: str
    header: BackupHeader
    footer: Footer
    into: LogIdentity
    is_applied: bool
    present: int = 0
    """Events that an earlier import appended."""
    appended: int = 0
    moved: int = 0
    runs: list[OffsetRun] = field(default_factory=list)
    restamped: int = 0
    """Events to which the topic gave a time of its own."""
    lost: list[LostOffsets] = field(default_factory=list)
    stopped_by: str = ""

    @property
    def is_fine(self) -> bool:
        """Return whether the log holds everything that the backup should hold, or would."""
        return not (self.stopped_by or self.footer.lost or self.header.missing)

    @property
    def findings(self) -> list[Finding]:
        missing = [
            Finding(UNREADABLE, f"metadata partition {place}", f"not in the backup: {why}")
            for place, why in self.header.missing.items()
        ]
        return missing + [lost_finding(one) for one in self.lost]

    def lines(self) -> Iterator[str]:
        left = self.footer.records - self.present
        if self.stopped_by:
            yield (
                f"stopped by {self.stopped_by}: {self.appended} of {left} events were appended to"
                f" {self.target}; the same command goes on behind them"
            )
        elif self.is_applied:
            yield f"{self.appended} events were appended to {self.target}, and read back"
        else:
            yield f"{left} events would be appended to {self.target}; with --apply they are"
        if self.present:
            yield f"{self.present} were there already, of an import before this one"
        before = self.header.identity
        for what, was, now in (
            ("cluster", before.cluster_id, self.into.cluster_id),
            ("topic id", before.topic_id, self.into.topic_id),
        ):
            if was != now:
                yield f"{what}: {now}, the backup is of {was or 'none that is known'}"
        have = "have" if self.is_applied else "would have"
        if self.moved:
            yield f"{self.moved} events {have} other offsets than in the backup:"
            yield from first_lines([f"  {run}" for run in self.runs], "stretches")
        if self.restamped:
            yield (
                f"{self.restamped} events have the time of the import: the topic has"
                " message.timestamp.type=LogAppendTime"
            )
        yield from FindingSample.of(self.findings).lines()

    def document(self) -> dict[str, Any]:
        return {
            "format": "rlmm-tier-backup-import",
            "version": VERSION,
            "file": self.file,
            "target": self.target,
            "applied": self.is_applied,
            "stoppedBy": self.stopped_by,
            "backup": identity_fields(self.header.identity),
            "into": identity_fields(self.into),
            "records": self.footer.records,
            "present": self.present,
            "appended": self.appended,
            "moved": self.moved,
            "runs": [dict(zip(_RUN, run, strict=True)) for run in self.runs],
            "restamped": self.restamped,
            "lost": self.footer.lost,
            "sha256": self.footer.sha256,
            "findings": [one.view() for one in self.findings],
        }


def identity_fields(identity: LogIdentity) -> dict[str, Any]:
    return {
        "clusterId": identity.cluster_id,
        "topicId": str(identity.topic_id),
        "partitionCount": identity.partition_count,
    }


def lost_finding(one: LostOffsets) -> Finding:
    count = one.next_offset - one.offset
    return Finding(
        RECORDS_LOST,
        f"metadata partition {one.place}",
        f"{count} offsets from {one.offset} on: {one.why}",
        fields={"partition": one.place, "offset": one.offset, "next_offset": one.next_offset},
    )
